"""The main job: the demo's script, with settings that make it short."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

pytest.importorskip("peft")

from demos import androidworld_swarm as demo

SHORT = ["train.iterations=1", "train.episodes=8", "train.shared_iterations=1",
         "train.update.steps=2", "eval.episodes=4", "eval.split=parameters"]  # fmt: skip


def ran(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr("sys.argv", ["androidworld_swarm.py", *map(str, words)])
    runpy.run_path(str(demo.__file__), run_name="__main__")


def test_a_team_is_trained_compared_and_reported_and_a_second_call_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    ran(monkeypatch, *SHORT, "--out", folder)
    first = capsys.readouterr().out
    assert demo.TRAINED in first and "scores on it are not AndroidWorld scores" in first
    assert (folder / "report.html").stat().st_size > 10_000
    assert json.loads((folder / "trained" / "results.json").read_text())["arms"]
    metrics = (folder / "trained" / "metrics.jsonl").read_bytes()
    ran(monkeypatch, *SHORT, "--out", folder)
    assert (folder / "trained" / "metrics.jsonl").read_bytes() == metrics
    assert capsys.readouterr().out.split("report:")[0] == first.split("report:")[0]


def test_a_mistake_is_one_line_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as stopped:
        ran(monkeypatch, "env.devises=2", "--out", tmp_path / "run")
    assert "devices" in str(stopped.value) and "\n" not in str(stopped.value)
    assert not (tmp_path / "run").exists()


async def test_learned_edges_replace_most_messages(capsys: pytest.CaptureFixture[str]) -> None:
    """With few steps they solve more than as many random senders, and cost less than all."""
    await demo.who_talks(6)
    rows = [line.split("│")[1:4] for line in capsys.readouterr().out.splitlines() if "│" in line]
    solved = {name.strip(): float(value.split()[0]) for name, value, _ in rows}
    words = {name.strip(): float(value.replace(",", "")) for name, _, value in rows}
    (drawn,) = [name for name in solved if name.endswith("random senders")]
    assert solved["no messages"] == 0.0 < solved[drawn] < solved["learned edges"]
    assert words["learned edges"] < words["all send"]
