"""The benchmarks on the command line: suites of AndroidWorld, and AutoWebBench."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from cli_world import Lamp, Shell

from swarm_ui.environments.androidworld import process
from swarm_ui.environments.androidworld.environment import suite
from swarm_ui.environments.recorded.autowebbench import SPLITS, synthetic


class Device(Lamp):
    """Stands for the process with android_world."""

    seen: ClassVar[list[Any]] = []

    def __init__(self, device: str, *, screenshots: bool) -> None:
        self.seen.append(device)
        self.name = "android_world"
        self.tasks: Sequence[str] = ()

    async def start(self) -> None:
        self.tasks = ("WifiOn", "BrowserMaze")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> type[Device]:
    monkeypatch.setattr(process, "AndroidWorldProcess", Device)
    monkeypatch.setattr(Device, "seen", [])
    return Device


def test_upstreams_suite_is_played_in_its_order(shell: Shell, device: type[Device]) -> None:
    line = "eval handset env.suite_seed=30 env.combinations=2"
    done = shell(f"{line} -m script:mixed.txt --out r --json")
    assert done.code == 0, done.err
    assert set(device.seen) == {"handset"}
    rows = shell("compare r r --json").json["rows"]
    assert rows[0]["difference"]["n"] == 4
    from swarm_ui.report.results import existing_results

    (arm,) = existing_results(shell.folder / "r").arms
    assert list(arm.jobs) == suite(["WifiOn", "BrowserMaze"], combinations=2, seed=30)


def test_autowebbench_with_its_own_measures(shell: Shell) -> None:
    words = ["--split", SPLITS[0], "--split", SPLITS[2], f"env.data={synthetic()}"]
    done = shell("eval autowebbench -m script:mixed.txt --json --out r", *words)
    assert done.code == 0, done.err
    assert [row["name"] for row in done.json["plans"]] == ["en-ind", "zh-ind"]
    assert all(row["measures"] for row in done.json["plans"])
    assert (shell.folder / "r/traces/en-ind.jsonl").is_file()
    assert "Recorded pages, offline" in shell("eval autowebbench -m script:mixed.txt", *words).out
