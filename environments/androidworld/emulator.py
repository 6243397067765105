"""Android emulators: their ports, a check that they respond, and their restart."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Sequence

import msgspec

from swarm_ui.errors import ConfigError, EnvironmentFault

HOST = "localhost"
BOOT = 300.0
"""Time limit for the start of an emulator, in seconds."""
_ADB = "~/Android/Sdk/platform-tools/adb"
_DETACH = """
import subprocess, sys
no = subprocess.DEVNULL
subprocess.Popen(sys.argv[1:], stdin=no, stdout=no, stderr=no, start_new_session=True)
"""
_START_HINT = (
    "start it with: emulator -avd AndroidWorldAvd -no-snapshot -port {console} -grpc {grpc} "
    "(add -no-window without a display). The AVD and its first set-up are described at "
    "https://github.com/google-research/android_world. Without an emulator, android_world runs on "
    "a simulated handset, device='handset'; scores on that one are not AndroidWorld scores."
)


class Emulator(msgspec.Struct, frozen=True, kw_only=True):
    """An emulator on this machine."""

    console_port: int = 5554
    """An even number. adb uses the next port."""
    grpc_port: int = 8554
    adb_path: str = _ADB
    start: Sequence[str] = ()
    """Command that starts the emulator, such as ``("emulator", "-avd", …)``. Empty if you start it
    yourself."""

    @property
    def serial(self) -> str:
        """The serial number that adb uses."""
        return f"emulator-{self.console_port}"

    def listens(self) -> bool:
        """Whether both ports accept connections."""
        return all(_open(port) for port in (self.console_port, self.grpc_port))

    def expect(self) -> None:
        """Check that the emulator accepts connections.

        Raises:
            EnvironmentFault: it accepts no connection. The message explains how to start it.
        """
        if not self.listens():
            hint = _START_HINT.format(console=self.console_port, grpc=self.grpc_port)
            raise EnvironmentFault(
                f"AndroidWorld: no emulator answers on {HOST}, console port {self.console_port} "
                f"and gRPC port {self.grpc_port}; {hint}"
            )

    async def healthy(self, seconds: float = 10.0) -> bool:
        """Whether it has booted and responds to adb."""
        if not self.listens():
            return False
        booted = await self._adb("shell", "getprop", "sys.boot_completed", seconds=seconds)
        return booted.strip() == "1"

    async def restart(self, seconds: float = BOOT) -> None:
        """Kill the emulator, start it, and wait until it has booted.

        Raises:
            ConfigError: ``start`` is empty, or its program does not exist.
            EnvironmentFault: the emulator did not boot in time.
        """
        if not self.start:
            raise ConfigError(
                f"{self.serial} is dead, and 'start' does not contain a command to start it; "
                + _START_HINT.format(console=self.console_port, grpc=self.grpc_port)
            )
        await self._adb("emu", "kill", seconds=10.0)
        program = shutil.which(os.path.expanduser(self.start[0]))
        if program is None:
            raise ConfigError(
                f"{self.serial}: 'start' names the program {self.start[0]!r}, which does not exist"
            )
        # A process that exits at once starts the emulator, so the emulator is not a child of this
        # process: it survives this process and leaves no zombie when it exits.
        starter = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-c", _DETACH, program, *self.start[1:]
        )
        await starter.wait()
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not await self.healthy():
            if loop.time() > end:
                raise EnvironmentFault(f"{self.serial} did not boot within {seconds:.0f} s")
            await asyncio.sleep(min(1.0, seconds / 20))

    async def _adb(self, *args: str, seconds: float) -> str:
        """Output of adb. Empty if adb fails or exceeds the time limit."""
        program = shutil.which(os.path.expanduser(self.adb_path))
        if program is None:
            raise ConfigError(f"AndroidWorld: adb is not at {self.adb_path!r}; give 'adb_path'")
        process = await asyncio.create_subprocess_exec(
            program, "-s", self.serial, *args, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            async with asyncio.timeout(seconds):
                output, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return ""
        return output.decode("utf-8", "replace") if process.returncode == 0 else ""


def _open(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0
