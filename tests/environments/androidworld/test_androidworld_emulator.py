"""Emulators: whether one answers, and how a dead one comes back. Programs stand in for Google's."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_ui.environments.androidworld.emulator import Emulator
from swarm_ui.errors import ConfigError, EnvironmentFault

# Listens on both ports until it is killed, or for half a minute.
EMULATOR = """
import os, socket, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
held = [socket.create_server(("localhost", int(port))) for port in sys.argv[2:]]
time.sleep(30)
"""
# Says that the device has booted; "emu kill" ends the emulator.
ADB = """#!{python}
import os, signal, sys
if sys.argv[3:] == ["emu", "kill"] and os.path.exists({pid!r}):
    os.kill(int(open({pid!r}).read()), signal.SIGKILL)
elif sys.argv[3:] == ["shell", "getprop", "sys.boot_completed"]:
    print(1)
"""


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    """One that is dead and can be started."""
    pid = tmp_path / "pid"
    program, adb = tmp_path / "emulator.py", tmp_path / "adb"
    program.write_text(EMULATOR)
    adb.write_text(ADB.format(python=sys.executable, pid=str(pid)))
    adb.chmod(0o700)
    console, grpc = free_ports(2)
    start = (sys.executable, str(program), str(pid), str(console), str(grpc))
    yield Emulator(console_port=console, grpc_port=grpc, adb_path=str(adb), start=start)
    if pid.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.mark.slow
async def test_a_dead_one_is_started_and_killed_before_it_is_started_again(
    emulator: Emulator, tmp_path: Path
) -> None:
    assert not emulator.listens()
    assert not await emulator.healthy()
    await emulator.restart(seconds=20.0)
    assert await emulator.healthy()
    emulator.expect()
    first = (tmp_path / "pid").read_text()
    await emulator.restart(seconds=20.0)
    assert await emulator.healthy()
    assert (tmp_path / "pid").read_text() != first


def test_the_message_says_where_nothing_answers_and_what_to_start() -> None:
    console, grpc = free_ports(2)
    with pytest.raises(EnvironmentFault, match=f"{console}.*{grpc}.*emulator -avd.*handset"):
        Emulator(console_port=console, grpc_port=grpc).expect()


async def test_what_cannot_be_started_is_said(emulator: Emulator) -> None:
    fields = {"console_port": emulator.console_port, "grpc_port": emulator.grpc_port}
    adb = emulator.adb_path
    with pytest.raises(ConfigError, match="a command to start it"):
        await Emulator(**fields, adb_path=adb).restart()
    with pytest.raises(ConfigError, match="the program 'no-such-emulator', which does not exist"):
        await Emulator(**fields, adb_path=adb, start=("no-such-emulator",)).restart()
    with pytest.raises(ConfigError, match="adb is not at 'no-such-adb'"):
        await Emulator(**fields, adb_path="no-such-adb", start=("true",)).restart()
    with pytest.raises(EnvironmentFault, match="did not boot"):
        await Emulator(**fields, adb_path=adb, start=("true",)).restart(seconds=0.1)
