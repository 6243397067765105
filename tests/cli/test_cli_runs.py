"""``runs``: what it lists of finished, running, killed and damaged runs, and what it deletes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from cli_world import LAMP, Shell, shell  # noqa: F401

from swarm_ui.errors import BudgetExceeded, ConfigError
from swarm_ui.experiment.stored.deletion import delete
from swarm_ui.experiment.stored.run_status import running
from swarm_ui.experiment.stored.summary import point_in_time
from swarm_ui.files import being_written, only_writer
from swarm_ui.storage.run_directory import RunDirectory


def listed(shell: Shell, line: str = "runs") -> dict[str, dict[str, Any]]:  # noqa: F811
    return {run["path"]: run for run in shell(f"{line} --json").json["runs"]}


def made(folder: Path, **config: object) -> RunDirectory:
    """A run whose end nobody recorded."""
    return RunDirectory.create(folder, config={"made_by": "swarm-ui", "command": "run", **config})


@contextmanager
def worked_on(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that is working on a run."""
    code = f"""
import sys, time
from pathlib import Path
from swarm_ui.experiment.stored.deletion import delete
from swarm_ui.experiment.stored.run_status import running
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
    shell(f"run {LAMP} -n 4 -m script:mixed.txt --out runs/one")
    shell(f"eval {LAMP} -n 2 -m script:right.txt --out runs/sweep/two")
    found = listed(shell)
    assert [*found] == ["runs/sweep/two", "runs/one"], "the newest first"
    one = found["runs/one"]
    assert (one["state"], one["command"], one["environment"]) == ("finished", "run", LAMP)
    assert (one["model"], one["of"]) == ("script:mixed.txt", "all episodes")
    assert one["success"]["mean"] == 0.5 and one["success"]["n"] == 4
    assert one["files"] >= 4 and one["bytes"] > 1000
    done = shell("runs")
    assert "50.0 [" in done.out and "finished" in done.out and "runs/one" in done.out
    assert [*listed(shell, "runs runs/one")] == ["runs/one"], "a run's own folder"
    assert shell("runs nowhere").code == 2


def test_filters(shell: Shell) -> None:  # noqa: F811
    shell(f"run {LAMP} -n 1 -m script:right.txt --out runs/one")
    shell(f"eval {LAMP} -n 1 -m script:wrong.txt --out runs/two")
    made(Path("runs/three"), environment={"name": "phone"})

    def found(options: str) -> set[str]:
        return {Path(path).name for path in listed(shell, f"runs {options}")}

    assert found("--command eval") == {"two"}
    assert found("--environment phone") == {"three"}
    assert found("--state killed --state failed") == {"three"}
    assert found("--text WRONG") == {"two"}
    assert found("--since 1h") == {"one", "two", "three"}
    assert found("--since 2999-01-01") == set()
    assert "no run in 'runs' that fits" in shell("runs --since 2999-01-01").err
    assert "expected one of running, finished" in shell("runs --state done").err
    for text in ("yesterday", "7", "9e99d", "99999999999999999d"):
        with pytest.raises(ConfigError, match="is not a point in time"):
            point_in_time(text, datetime.now(UTC))


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
        assert shell(f"run {LAMP} -n 1 -m script:right.txt --out r").code == 70
    assert listed(shell, "runs r")["r"]["state"] == "failed"
    assert shell("run --resume r --trust").code == 0
    assert listed(shell, "runs r")["r"]["state"] == "finished"


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
    assert {run["name"]: run["state"] for run in found.values()} == dict.fromkeys(
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
    assert listed(shell, "runs r")["r"]["success"] is None


def test_the_last_rollouts_are_the_headline_of_training(shell: Shell) -> None:  # noqa: F811
    run = made(Path("r"), command="train")
    for iteration, success in enumerate((0.25, 0.75)):
        run.log({"kind": "iteration", "iteration": iteration, "episodes": 5, "masked": 1,
                 "success": success})  # fmt: skip
    found = listed(shell, "runs r")["r"]
    assert (found["of"], found["success"]["mean"]) == ("rollouts of iteration 2", 0.75)
    assert found["success"]["n"] == 4
    assert "not comparable with a test" in " ".join(shell("runs r").out.split())


def test_runs_are_deleted_after_asking(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("a", "b", "c"):
        made(Path("runs") / name)
    dry = shell("runs delete runs/a runs/b --dry-run --json").json
    assert dry["runs"] == ["runs/a", "runs/b"] and dry["files"] == 2
    done = shell("runs delete runs/a runs/b")
    assert done.code == 2 and "2 runs, 2 files" in done.err and "--yes" in done.err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    answers = [False, True]
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: answers.pop(0))
    assert "nothing was deleted" in shell("runs delete runs/a").err
    assert {*os.listdir("runs")} == {"a", "b", "c"}
    assert shell("runs delete runs/a").code == 0
    assert {*os.listdir("runs")} == {"b", "c"}
    assert shell("runs delete runs/b runs/c --yes --json").json["runs"] == ["runs/b", "runs/c"]
    assert os.listdir("runs") == []


def test_an_interrupted_deletion_is_continued_by_the_same_command(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = made(Path("runs/a"))
    (run.path / "traces" / "one.jsonl").write_text("", encoding="utf-8")
    remove, removed = shutil.rmtree, list[str]()

    def interrupted(folder: Path) -> None:
        removed.append(folder.name)
        if len(removed) == 2:
            raise KeyboardInterrupt
        remove(folder)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        delete(run.path)
    monkeypatch.undo()
    monkeypatch.chdir(shell.folder)
    assert os.listdir("runs") == [".a.deleted"] and removed == ["adapters", "edges"]

    assert shell("runs delete runs/a --dry-run --json").json["runs"][0].endswith(".a.deleted")
    assert os.listdir("runs") == [".a.deleted"]
    done = shell("runs delete runs/a runs/.a.deleted --yes")
    assert done.code == 2 and "is named twice" in done.err
    done = shell("runs delete runs/a --yes")
    assert (done.code, os.listdir("runs")) == (0, []), done.err
    assert "there is no run" in shell("runs delete runs/a --yes").err


def test_the_rest_of_an_earlier_run_does_not_prevent_a_deletion(
    shell: Shell,  # noqa: F811
) -> None:
    made(Path("runs/.a.deleted"))
    made(Path("runs/a"))
    assert shell("runs delete runs/a --yes").code == 0
    assert os.listdir("runs") == []
    # Killed after the last file.
    Path("runs/.a.deleted").mkdir()
    (Path("runs/.a.deleted") / ".deletion.lock").touch()
    assert shell("runs delete runs/a --yes").code == 0
    assert os.listdir("runs") == []
    # A folder of that name that was certainly not a run.
    Path("runs/.a.deleted").mkdir()
    Path("runs/.a.deleted/diary.txt").write_text("mine", encoding="utf-8")
    made(Path("runs/a"))
    done = shell("runs delete runs/a --yes")
    assert done.code == 2 and "delete it yourself" in " ".join(done.err.split())
    assert {*os.listdir("runs")} == {".a.deleted", "a"}


def test_what_is_not_certainly_a_free_run_is_not_deleted(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = made(Path("runs/good")).path.resolve()
    Path("notes").mkdir()
    Path("notes/diary.txt").write_text("mine", encoding="utf-8")
    (made(Path("runs/damaged")).path / "config.json").write_text("{", encoding="utf-8")
    os.symlink(good, "runs/link")
    made(made(Path("runs/outer")).path / "inner" / "deep")
    for name, said in (("notes", "it has no config.json"), ("runs", "it has no config.json"),
                       ("runs/damaged", "delete it yourself"), ("runs/link", "is a link to"),
                       ("nowhere", "there is no run 'nowhere'"), ("runs/good", "is named twice"),
                       ("runs/outer", "contains the run")):  # fmt: skip
        done = shell(f"runs delete runs/good {name} --yes")
        assert done.code == 2 and said in " ".join(done.err.split()), (name, done.err)
    with worked_on(good):
        done = shell("runs delete runs/good --yes")
        assert done.code == 2 and "is being written by another process" in done.err
    monkeypatch.chdir(good)
    assert "current folder is inside of" in shell(f"runs delete {good} --yes").err
    monkeypatch.chdir(shell.folder)
    assert (good / "config.json").exists() and Path("notes/diary.txt").exists()
    assert shell("runs delete runs/good --yes").code == 0 and not good.exists()


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
