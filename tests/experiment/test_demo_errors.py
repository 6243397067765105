"""Whatever is wrong beforehand: one clear line, code 2, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from demo_runs import demo, needs_agent, without

from swarm_ui.experiment.settings import Settings, plain
from swarm_ui.storage.run_directory import RunDirectory


def refused(*arguments: object, cwd: Path, **extra: str) -> str:
    """Run what must be refused; returns the line that says why."""
    before = sorted(cwd.rglob("*"))
    done = demo(*arguments, cwd=cwd, **extra)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert sorted(cwd.rglob("*")) == before
    return done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nonsense"], "--nonsense"),
        (["--seed", "x"], "--seed"),
        (["--agents", "0"], "--agents must be from 1"),
        (["--critic-noise", "3"], "--critic-noise"),
        (["--density", "1"], "--density"),
        (["--model", "m"], "--base-url"),
        (["--base-url", "http://127.0.0.1:9/v1"], "--model"),
        (["--base-url", "nonsense", "--model", "m"], "http://localhost:8000/v1"),
        (["--tasks", "fly"], "no task 'fly'"),
        (["--env", "mars"], "--env"),
        (["--env", "androidworld"], "android_world"),
        (["--resume", "nowhere"], "nowhere"),
        (["--resume", "r", "--seed", "1"], "leave out --seed"),
        (["--agent", "."], "no agent in"),
    ],
)
def test_bad_arguments(arguments: list[str], said: str, tmp_path: Path) -> None:
    assert said in refused(*arguments, cwd=tmp_path)


def test_nobody_answers(tmp_path: Path) -> None:
    line = refused("--base-url", "http://127.0.0.1:9/v1", "--model", "m", cwd=tmp_path)
    assert "http://127.0.0.1:9/v1" in line


def test_resume_wants_a_run_of_this_script(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert "version" in refused("--resume", tmp_path, cwd=tmp_path)
    (tmp_path / "config.json").write_text(
        json.dumps({"run_version": 1, "config": {"x": 1, "env": 2}})
    )
    (tmp_path / "traces").mkdir()
    for folder in ("adapters", "edges", "plots"):
        (tmp_path / folder).mkdir()
    assert "not a run of this script" in refused("--resume", tmp_path, cwd=tmp_path)


def test_a_run_of_a_stranger_connects_only_with_trust(tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = plain(Settings(base_url="http://127.0.0.1:9/v1", model="m"))
    RunDirectory.create(run, config=settings)
    line = refused("--resume", run, cwd=tmp_path)
    assert "would connect to http://127.0.0.1:9/v1 with the key in OPENAI_API_KEY" in line
    assert "127.0.0.1:9" in refused("--resume", run, "--trust", cwd=tmp_path)


def test_out_must_be_free(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    assert "not empty" in refused("--out", tmp_path, cwd=tmp_path)


def test_missing_extra(tmp_path: Path) -> None:
    stubs, work = tmp_path / "stubs", tmp_path / "work"
    stubs.mkdir()
    work.mkdir()
    line = refused("--quick", cwd=work, PYTHONPATH=without(stubs, "torch"))
    assert "swarm-ui[train]" in line


@needs_agent
def test_no_browser(tmp_path: Path) -> None:
    line = refused("--env", "miniwob", cwd=tmp_path, SWARM_UI_BROWSER="/nowhere/chromium")
    assert "/nowhere/chromium" in line
