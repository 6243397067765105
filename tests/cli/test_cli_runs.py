"""``runs``: what it lists of finished, running, killed and damaged runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli_world import LAMP, Shell, shell  # noqa: F401

from swarm_ui.errors import BudgetExceeded, ConfigError
from swarm_ui.experiment.stored import running
from swarm_ui.files import being_written, only_writer
from swarm_ui.storage.run_directory import RunDirectory


def listed(shell: Shell, line: str = "runs") -> dict[str, dict[str, Any]]:  # noqa: F811
    return {run["path"]: run for run in shell(f"{line} --json").json["runs"]}


def made(folder: Path, **config: object) -> RunDirectory:
    """A run whose end nobody recorded."""
    return RunDirectory.create(folder, config={"made_by": "swarm-ui", "command": "eval", **config})


@contextmanager
def worked_on(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that is working on a run."""
    code = f"""
import sys, time
from pathlib import Path
from swarm_ui.experiment.stored import running
from swarm_ui.storage.run_directory import RunDirectory
with running(RunDirectory(Path({str(folder)!r}))):
    print("on", flush=True)
    time.sleep(60)
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None and other.stdout.readline() == b"on\n"
        yield other
    finally:
        other.kill()
        other.wait()
        assert other.stdout is not None
        other.stdout.close()


def test_a_list_of_what_was_played(shell: Shell) -> None:  # noqa: F811
    assert shell("runs").code == 0 and "no run in 'runs'" in shell("runs").err
    shell(f"eval {LAMP} -n 4 -m script:mixed.txt --out runs/one")
    shell(f"eval {LAMP} -n 2 -m script:right.txt --out runs/sweep/two")
    found = listed(shell)
    assert [*found] == ["runs/sweep/two", "runs/one"], "the newest first"
    one = found["runs/one"]
    assert (one["state"], one["command"], one["environment"]) == ("finished", "eval", LAMP)
    assert (one["model"], one["of"]) == ("script:mixed.txt", "all episodes")
    assert one["success"]["mean"] == 0.5 and one["success"]["n"] == 4
    assert one["bytes"] > 1000
    done = shell("runs")
    assert "50.0 [" in done.out and "finished" in done.out and "runs/one" in done.out
    assert shell("runs nowhere").code == 2


def test_filters(shell: Shell) -> None:  # noqa: F811
    shell(f"eval {LAMP} -n 2 -m script:right.txt --out runs/one")
    shell(f"eval {LAMP} -n 2 -m script:wrong.txt --out runs/two")
    made(Path("runs/three"), env={"name": "phone"})

    def found(options: str) -> set[str]:
        return {Path(path).name for path in listed(shell, f"runs {options}")}

    assert found("--text phone") == {"three"}
    assert found("--state killed --state failed") == {"three"}
    assert found("--text WRONG") == {"two"}
    assert "no run in 'runs' that fits" in shell("runs --text nothing").err
    assert "expected one of running, finished" in shell("runs --state done").err


def test_states_of_runs_that_did_not_finish(shell: Shell) -> None:  # noqa: F811
    for name, error in (("failed", ConfigError("no such <b>thing</b>")),
                        ("interrupted", KeyboardInterrupt()), ("spent", BudgetExceeded("all")),
                        ("exit", SystemExit())):  # fmt: skip
        run = made(Path("runs") / name)
        run.log({"kind": "note"})
        with pytest.raises(type(error)), running(run):
            raise error
    with worked_on(made(Path("runs/alive")).path) as other:
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


def test_a_command_records_that_it_failed(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the disk")

    with monkeypatch.context() as patch:
        patch.setattr("swarm_ui.experiment.evaluation.Results.save", broken)
        assert shell(f"eval {LAMP} -n 1 -m script:right.txt --out r").code == 70
    assert listed(shell, "runs .")["r"]["state"] == "failed"
    assert shell("eval --resume r --trust").code == 0
    assert listed(shell, "runs .")["r"]["state"] == "finished"


def test_damaged_runs_are_listed_and_other_folders_are_not(shell: Shell) -> None:  # noqa: F811
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


@pytest.mark.parametrize(
    ("success", "episodes"),
    [("NaN", "4"), ("1e999", "4"), ("0.5", "9e15"), ("0.5", "-4"), ('"x"', "4"), ("0.5", "null")],
)
def test_odd_measurements_have_no_headline(
    shell: Shell,  # noqa: F811
    success: str,
    episodes: str,
) -> None:
    path = made(Path("r")).path
    line = f'{{"iteration": 0, "success": {success}, "episodes": {episodes}}}\n'
    (path / "metrics.jsonl").write_text(line, encoding="utf-8")
    assert listed(shell, "runs .")["r"]["success"] is None


def test_the_last_rollouts_are_the_headline_of_training(shell: Shell) -> None:  # noqa: F811
    run = made(Path("r"), command="train")
    for iteration, success in enumerate((0.25, 0.75)):
        run.log({"kind": "iteration", "iteration": iteration, "episodes": 5, "masked": 1,
                 "success": success})  # fmt: skip
    found = listed(shell, "runs .")["r"]
    assert (found["of"], found["success"]["mean"]) == ("rollouts of iteration 2", 0.75)
    assert found["success"]["n"] == 4
    assert "not comparable with a test" in " ".join(shell("runs .").out.split())


def test_a_list_never_stops_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list tests a lock by holding it for a moment; a writer tries again."""
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / ".run.lock").touch()
    with (tmp_path / ".run.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        assert not being_written(tmp_path)
        with (
            pytest.raises(ConfigError, match="open in another process"),
            only_writer(tmp_path, "run"),
        ):
            pass
        monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(held, fcntl.LOCK_UN))
        with only_writer(tmp_path, "run"):
            assert being_written(tmp_path)
