"""``runs RUN``: how far a run is, from its files alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cli_world
import pytest
from cli_world import BROKEN, LAMP, SLOW, Shell, shell  # noqa: F401
from interrupts import hear_ctrl_c

from swarm_ui.experiment.stored import snapshot
from swarm_ui.storage.run_directory import RunDirectory


def told(shell: Shell, run: str) -> dict[str, Any]:  # noqa: F811
    done = shell(f"runs {run} --json")
    assert done.code == 0
    return done.json


def test_a_run_that_has_finished(shell: Shell) -> None:  # noqa: F811
    shell(f"eval {LAMP} -n 4 -m script:mixed.txt --out runs/one")
    found = told(shell, "runs/one")
    assert (found["state"], found["command"], found["environment"]) == ("finished", "eval", LAMP)
    assert (found["done"], found["total"], found["left"], found["tasks"]) == (4, 4, None, [])
    (only,) = found["sets"]
    listed = shell("runs --json").json["runs"][0]
    assert only["success"] == listed["success"], "the same figure as in the list of runs"
    text = shell("runs runs/one").out
    assert "finished" in text and "4 of 4 episodes" in text and "2/4" in text


def test_masked_episodes_are_counted_by_the_kind_of_their_fault(shell: Shell) -> None:  # noqa: F811
    shell(f"eval {BROKEN} -n 3 -m script:right.txt --out runs/one")
    found = told(shell, "runs/one")
    assert found["faults"] == {"environment": 3} and found["sets"][0]["masked"] == 3
    assert "by kind: environment 3" in shell("runs runs/one").out


def test_a_run_at_work_in_another_process_and_then_killed(shell: Shell) -> None:  # noqa: F811
    process = slow_run("--concurrency", "2")
    try:
        wait_until(process, lambda: recorded() >= 3)
        found = told(shell, "runs/one")
        assert found["state"] == "running" and found["done"] < found["total"] == 60
        assert found["silent"] < 30
    finally:
        process.kill()
        process.wait()
    found = told(shell, "runs/one")
    assert found["state"] == "killed" and found["elsewhere"], "it wrote a moment ago"
    assert "No process of this machine" in shell("runs runs/one").out
    later = snapshot(Path("runs/one"), time.time() + 3600)
    assert not later.elsewhere and later.left is None and later.total == 60


@pytest.mark.slow
def test_an_interrupted_run_keeps_the_number_of_its_episodes(shell: Shell) -> None:  # noqa: F811
    process = slow_run()
    try:
        wait_until(process, Path("runs/one/progress.json").is_file)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        process.kill()
    found = told(shell, "runs/one")
    assert (found["state"], found["total"], found["left"]) == ("interrupted", 60, None)
    assert 0 < found["done"] < 60


def slow_run(*more: str) -> subprocess.Popen[bytes]:
    """A process that evaluates 60 episodes of 0.3 seconds."""
    support = Path(cli_world.__file__).parent
    words = ["eval", SLOW, "-n", "60", "-m", "script:right.txt", "--out", "runs/one", "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-m", "swarm_ui", *words, *more],
        env={
            **os.environ,
            "LAMP_SECONDS": "0.3",
            "PYTHONPATH": os.pathsep.join([str(support), os.environ.get("PYTHONPATH", "")]),
        },
        preexec_fn=hear_ctrl_c,
    )


def recorded() -> int:
    """The number of lines of the trace files."""
    return sum(path.read_bytes().count(b"\n") for path in Path("runs/one/traces").glob("*.jsonl"))


def wait_until(process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not ready():
        assert process.poll() is None, "it has ended"
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)


def test_a_split_that_has_not_begun_has_no_total(tmp_path: Path) -> None:
    config = {
        "made_by": "swarm-ui",
        "command": "eval",
        "eval": {"split": ["a", "b/c"], "seed": [0, 1]},
    }
    RunDirectory.create(tmp_path / "run", config=config)
    found = snapshot(tmp_path / "run")
    assert [each.name for each in found.sets] == ["a-seed0", "a-seed1", "b-c-seed0", "b-c-seed1"]
    assert found.total is None and found.done == 0 and found.silent is None


def test_what_is_no_run(shell: Shell) -> None:  # noqa: F811
    Path("plain").mkdir()
    for words, why in (("nowhere", "there is no folder"),):
        done = shell(f"runs {words}")
        assert done.code == 2 and why in done.err
        assert json.loads(shell(f"runs {words} --json").out)["ok"] is False


@pytest.mark.parametrize("text", ["{", "[]", '{"kind":"sold"}', "\x00"])
def test_damaged_files_are_a_remark_and_no_error(shell: Shell, text: str) -> None:  # noqa: F811
    shell(f"eval {LAMP} -n 2 -m script:right.txt --out runs/one")
    for name in ("progress.json", "traces/episodes.jsonl"):
        Path("runs/one", name).write_text(text + "\n", encoding="utf-8")
    found = told(shell, "runs/one")
    assert found["done"] == 2


def test_a_run_that_failed_at_once_leaves_nothing_behind(shell: Shell) -> None:  # noqa: F811
    """Its workers had begun, but there is no episode."""
    code = (
        "from cli_world import Lamp\nfrom swarm_ui.errors import ConfigError\n"
        "class Picky(Lamp):\n"
        "    async def reset(self, *, task, seed):\n"
        "        raise ConfigError('no such lamp')\n"
    )
    Path("picky_lamp.py").write_text(code, encoding="utf-8")
    done = shell("eval picky_lamp:Picky -n 2 -m script:right.txt --out runs/one")
    assert done.code == 2 and "no such lamp" in done.err
    assert not Path("runs/one").exists()


def test_a_report_follows_a_run_that_plays(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell(f"eval {LAMP} -n 2 -m script:right.txt --out runs/one")
    page, states = Path("runs/one/report.html"), [*["running"] * 4, "finished"]
    pages: list[str] = []
    monkeypatch.setattr("swarm_ui.experiment.stored.state_of", lambda _: (states.pop(0), ""))
    monkeypatch.setattr(time, "sleep", lambda _: pages.append(page.read_text(encoding="utf-8")))
    assert shell("view runs/one --follow --no-open").code == 0
    assert [text.count('http-equiv="refresh"') for text in pages] == [1, 1]
    assert "The run is playing: 2 of 2 episodes" in pages[0]
    assert 'http-equiv="refresh"' not in page.read_text(encoding="utf-8")
