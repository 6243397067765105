"""Errors of commands for the simulated device."""

from __future__ import annotations

from swarm_ui.errors import EnvironmentFault


class AdbFailure(EnvironmentFault):
    """A command failed as on a real device: a file is missing, or an app is not installed."""

    def __init__(self, message: str, *, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class UnsupportedArguments(AdbFailure):
    """A program of the shell does not support its arguments. The message lists those it does."""


class UnsupportedCommand(AdbFailure):
    """A command that the simulated device does not support. A real device may support it."""

    def __init__(self, command: str, why: str) -> None:
        super().__init__(f"the simulated device does not support 'adb {command}': {why}", code=127)
