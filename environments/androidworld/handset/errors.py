"""What can go wrong between an adb client and the simulated device."""

from __future__ import annotations

from swarm_ui.errors import EnvironmentFault


class AdbFailure(EnvironmentFault):
    """A command failed as it would on a device: a file is missing, an app is not installed."""

    def __init__(self, message: str, *, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class UnsupportedCommand(AdbFailure):
    """A command that a real device may know and this simulated one does not."""

    def __init__(self, command: str, why: str) -> None:
        super().__init__(f"the simulated device does not support 'adb {command}': {why}", code=127)
