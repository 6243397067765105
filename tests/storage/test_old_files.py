"""Files that version 0.1 wrote are read; ``data`` holds a run and a trace file made with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from swarm_ui.cli.app import app
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import read_jsonl, write_jsonl
from swarm_ui.trace.reader import open_jsonl

DATA = Path(__file__).parent / "data"


def test_an_old_run_directory_opens(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(DATA / "run-0.1", folder)
    run = RunDirectory.open_existing(folder)
    (episode,) = run.episodes("parameters")
    assert episode.success is True and episode.steps[0].trace.agents == ("agent_0", "agent_1")
    assert run.config()["made_by"] == "swarm-ui"


@pytest.mark.parametrize("name", ["run-0.1", "episodes-0.1.jsonl"])
def test_old_files_open_in_the_viewer(name: str, tmp_path: Path) -> None:
    source, target = DATA / name, tmp_path / name
    (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    done = CliRunner().invoke(app, ["view", str(target), "--no-open"])
    assert done.exit_code == 0, done.output
    (report,) = tmp_path.rglob("*.html")
    assert report.stat().st_size > 1000


def test_the_texts_of_failures_in_an_old_trace_file_are_read_as_records(tmp_path: Path) -> None:
    episodes = read_jsonl(DATA / "episodes-0.1.jsonl")
    faults = [(e.fault.kind, e.fault.node) if e.fault else None for e in episodes]
    assert faults == [("unavailable", "end"), ("environment", ""), None]
    assert [str(e.fault) for e in episodes[:2]] == [
        "'end' failed: ModelUnavailable: 503",
        "EnvironmentFault: the emulator is gone",
    ]
    calls = {call.node: call for call in episodes[0].steps[0].trace.calls}
    assert {n: c.error and (c.error.kind, str(c.error)) for n, c in calls.items()} == {
        "bad": None,
        "lost": ("model", "ModelError: no such server"),
        "slow": ("timeout", "no answer within 0.01 s"),
        "end": None,
    }
    assert (calls["bad"].rescued or calls["lost"].error) is calls["bad"].rescued
    assert str(calls["bad"].rescued) == "ValueError: no"
    with open_jsonl(DATA / "episodes-0.1.jsonl") as opened:
        assert [each.load() for each in opened] == episodes
    write_jsonl(tmp_path / "new.jsonl", episodes)
    assert read_jsonl(tmp_path / "new.jsonl") == episodes
