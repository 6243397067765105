"""``runs``: the runs of a folder, and how far one run is, from its files alone."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from cli_world import LAMP, SLOW, Shell
from interrupts import held, started, wait_for, written

from swarm_ui.errors import BudgetExceeded, ConfigError
from swarm_ui.experiment.stored import running, snapshot
from swarm_ui.storage.run_directory import RunDirectory


def listed(shell: Shell, line: str = "runs") -> dict[str, dict[str, Any]]:
    return {run["path"]: run for run in shell(f"{line} --json").json["runs"]}


def made(folder: Path, **config: object) -> RunDirectory:
    """A run whose end nobody recorded."""
    return RunDirectory.create(folder, config={"made_by": "swarm-ui", "command": "eval", **config})


def told(shell: Shell, run: str) -> dict[str, Any]:
    done = shell(f"runs {run} --json")
    assert done.code == 0
    return done.json


# -- a list -----------------------------------------------------------------------------------


def test_a_list_of_what_was_played(shell: Shell) -> None:
    assert shell("runs").code == 0 and "no run in 'runs'" in shell("runs").err
    shell(f"eval {LAMP} -n 4 -m script:mixed.txt --out runs/one")
    shell(f"eval {LAMP} -n 2 -m script:right.txt --out runs/sweep/two")
    found = listed(shell)
    assert [*found] == ["runs/sweep/two", "runs/one"], "the newest first"
    one = found["runs/one"]
    assert (one["state"], one["command"], one["environment"]) == ("finished", "eval", LAMP)
    assert (one["model"], one["of"]) == ("script:mixed.txt", "all episodes")
    assert one["success"]["mean"] == 0.5 and one["success"]["n"] == 4
    done = shell("runs")
    assert "50.0 [" in done.out and "finished" in done.out and "runs/one" in done.out
    assert shell("runs nowhere").code == 2
    assert [*listed(shell, "runs runs/sweep --state finished")] == ["runs/sweep/two"]
    assert listed(shell, "runs --state killed") == {}
    assert "expected one of running, finished" in shell("runs --state done").err


def test_states_of_runs_that_did_not_finish(shell: Shell) -> None:
    for name, error in (("failed", ConfigError("no such <b>thing</b>")),
                        ("interrupted", KeyboardInterrupt()), ("spent", BudgetExceeded("all")),
                        ("exit", SystemExit())):  # fmt: skip
        run = made(Path("runs") / name)
        run.log({"kind": "note"})
        with pytest.raises(type(error)), running(run):
            raise error
    with held(made(Path("runs/alive")).path, "run") as other:
        assert listed(shell)["runs/alive"]["state"] == "running"
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert listed(shell)["runs/alive"]["state"] == "killed"
    states = {Path(path).name: run["state"] for path, run in listed(shell).items()}
    assert states == {"alive": "killed", "failed": "failed", "interrupted": "interrupted",
                      "spent": "interrupted", "exit": "killed"}  # fmt: skip
    assert listed(shell)["runs/failed"]["problem"] == "no such <b>thing</b>"
    run = RunDirectory(Path("runs/failed"))
    with pytest.raises(SystemExit), running(run):
        raise SystemExit
    assert listed(shell)["runs/failed"]["state"] == "killed", "its first end is over"


def test_damaged_runs_are_listed_and_other_folders_are_not(shell: Shell) -> None:
    for name, files in {
        "text": {"config.json": "{"},
        "version": {"config.json": '{"run_version": 99}'},
        "gone": {"results.json": "{}"},
    }.items():
        (shell.folder / "runs" / name / "traces").mkdir(parents=True)
        for file, text in files.items():
            (shell.folder / "runs" / name / file).write_text(text, encoding="utf-8")
    for name, text in (
        ("results", '{"version": 2, "arms": [{"split": "", "jobs": [], "outcomes": [1.0]}]}'),
        ("status", "[]"),
        ("metrics", "{\n"),
    ):
        path = made(shell.folder / "runs" / name).path
        (path / f"{name}.json{'l' * (name == 'metrics')}").write_text(text, encoding="utf-8")
    others = shell.folder / "runs/model"
    others.mkdir()
    (others / "config.json").write_text('{"hidden_size": 8}', encoding="utf-8")
    (shell.folder / "runs/notes").mkdir()
    os.symlink(shell.folder / "runs", shell.folder / "runs/loop")
    if hasattr(os, "mkfifo"):
        os.mkfifo(shell.folder / "runs/status/.run.lock")  # to open it would wait for a writer
    before = sorted(shell.folder.rglob("*"))
    found = listed(shell)
    assert {Path(path).name: run["state"] for path, run in found.items()} == dict.fromkeys(
        ("text", "version", "gone", "results", "status", "metrics"), "damaged"
    )
    assert all(run["problem"] for run in found.values())
    assert "version 99" in shell("runs").err
    assert sorted(shell.folder.rglob("*")) == before, "a list changes nothing"


def test_the_last_rollouts_are_the_headline_of_training(shell: Shell) -> None:
    run = made(Path("r"), command="train")
    for iteration, success in enumerate((0.25, 0.75)):
        run.log({"kind": "iteration", "iteration": iteration, "episodes": 5, "masked": 1,
                 "success": success})  # fmt: skip
    found = listed(shell, "runs .")["r"]
    assert (found["of"], found["success"]["mean"]) == ("rollouts of iteration 2", 0.75)
    assert found["success"]["n"] == 4
    assert "not comparable with a test" in " ".join(shell("runs .").out.split())


# -- one run ----------------------------------------------------------------------------------


def test_a_run_at_work_in_another_process_and_then_killed(shell: Shell) -> None:
    words = f"eval {SLOW} -n 60 -j 2 -m script:right.txt --out runs/one --quiet"
    process = started(*words.split(), LAMP_SECONDS="0.3")
    try:
        wait_for(process, lambda: written(Path("runs/one/traces/episodes.jsonl")) >= 3)
        found = told(shell, "runs/one")
        assert found["state"] == "running" and found["done"] < found["total"] == 60
        assert found["silent"] < 30
    finally:
        process.kill()
        process.communicate()
    found = told(shell, "runs/one")
    assert found["state"] == "killed" and "killed" in shell("runs runs/one").out
    later = snapshot(Path("runs/one"), time.time() + 3600)
    assert later.left is None and later.total == 60


@pytest.mark.parametrize("text", ["{", "[]", '{"kind":"sold"}', "\x00"])
def test_damaged_files_are_a_remark_and_no_error(shell: Shell, text: str) -> None:
    shell(f"eval {LAMP} -n 2 -m script:right.txt --out runs/one")
    for name in ("progress.json", "traces/episodes.jsonl"):
        Path("runs/one", name).write_text(text + "\n", encoding="utf-8")
    found = told(shell, "runs/one")
    assert found["done"] == 2


def test_a_report_follows_a_run_that_plays(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell(f"eval {LAMP} -n 2 -m script:right.txt --out runs/one")
    page, states = Path("runs/one/report.html"), [*["running"] * 4, "finished"]
    pages: list[str] = []
    monkeypatch.setattr("swarm_ui.experiment.stored.state_of", lambda _: (states.pop(0), ""))
    monkeypatch.setattr(time, "sleep", lambda _: pages.append(page.read_text(encoding="utf-8")))
    assert shell("view runs/one --follow --no-open").code == 0
    assert [text.count('http-equiv="refresh"') for text in pages] == [1, 1]
    assert "The run is playing: 2 of 2 episodes" in pages[0]
    assert 'http-equiv="refresh"' not in page.read_text(encoding="utf-8")
