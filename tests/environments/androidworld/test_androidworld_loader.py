"""android-env's own loader against a fake emulator: our adapter sends it what upstream sends.

Nothing is replaced but the emulator, its adb program, the download of the accessibility app, and
the length of pauses. Runs in the Python named by SWARM_UI_ANDROID_WORLD_PYTHON.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_androidworld_upstream import HERE, ROOT, python

from swarm_ui.environments.androidworld.emulator import Emulator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
LOOKS = ("dumpsys input", "dumpsys window", "settings get global airplane_mode_on")
"""Commands that upstream repeats each time it looks at the screen."""


def search_path() -> dict[str, str]:
    paths = [str(HERE), str(ROOT), str(ROOT / "tests" / "support")]
    # The sets that upstream draws from have an order that depends on the hash seed.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def adb(tmp_path: Path) -> Path:
    program = tmp_path / "adb"
    script = HERE / "androidworld_fake_adb.py"
    program.write_text(f'#!/bin/sh\nexec "{python()}" -S -E "{script}" "$@"\n')
    program.chmod(0o755)
    return program


@contextmanager
def emulator(log: Path, adb: Path) -> Iterator[Emulator]:
    ports = free_port(), free_port()
    command = [python(), str(HERE / "androidworld_fake_emulator.py"), *map(str, ports), str(log)]
    with subprocess.Popen(
        command, env=search_path(), stdout=subprocess.PIPE, text=True
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield Emulator(console_port=ports[0], grpc_port=ports[1], adb_path=str(adb))
        finally:
            process.kill()


def play(who: str, task: str, device: Emulator, result: Path) -> dict[str, Any]:
    ports = (device.console_port, device.grpc_port)
    program = str(HERE / "androidworld_emulator_play.py")
    done = subprocess.run(
        [python(), program, who, task, "30", *map(str, ports), device.adb_path],
        env={**search_path(), "RESULT": str(result)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def commands(log: Path) -> list[str]:
    """What was sent, without looks at the screen, temporary paths and free ports."""
    found: list[str] = []
    for line in log.read_text().splitlines():
        kind, *parts = json.loads(line)
        said = " ".join(map(str, parts))
        looked = kind == "adb" and any(look in said for look in LOOKS)
        lifted = kind == "sendTouch" and not any(down for _, _, down, _ in parts[0])
        if kind == "getScreenshot" or looked or (lifted and "[0, 0, " in said):
            continue
        said = re.sub(r"/tmp/[\w./-]+", "TEMPORARY", said)
        found.append(f"{kind} " + re.sub(r'(port" |10\.0\.2\.2:)\d+', r"\1PORT", said))
    return found


@pytest.mark.parametrize("task", ["ContactsAddContact", "FilesMoveFile", "MarkorEditNote"])
def test_an_emulator_is_sent_what_upstream_sends(task: str, tmp_path: Path, adb: Path) -> None:
    result = tmp_path / "result.json"
    played: dict[str, dict[str, Any]] = {}
    for who in ("upstream", "ours"):
        with emulator(tmp_path / f"{who}.log", adb) as device:
            played[who] = play(who, task, device, result)
    assert played["upstream"]["score"] == played["ours"]["score"] == 1.0
    assert played["upstream"]["goal"] == played["ours"]["goal"]
    sent = commands(tmp_path / "ours.log")
    assert sent == commands(tmp_path / "upstream.log")
    assert len(sent) > 40
    assert sent[0].startswith("getStatus")
    assert any(said.startswith("adb shell input tap") for said in sent)


async def test_the_emulators_ports_and_adb_are_asked_for_its_health(
    tmp_path: Path, adb: Path
) -> None:
    with emulator(tmp_path / "log", adb) as device:
        device.expect()
        assert await device.healthy()
    assert not device.listens()
