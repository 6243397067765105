"""Exports read one episode at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_samples import episode

from swarm_ui.errors import TraceError
from swarm_ui.experiment.exporting import lines
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import read_jsonl


def test_episodes_and_pairs_are_streamed(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", config={})
    run.write_episodes("a", [episode("x"), episode("y", success=False)])
    (run.traces / "b.jsonl").write_text("damaged\n")
    for what in ("episodes", "pairs"):
        found = lines(run.path, what)
        assert next(found), "before the damaged file is read"
        with pytest.raises(TraceError):
            list(found)
    (run.traces / "b.jsonl").unlink()
    out = tmp_path / "solved.jsonl"
    out.write_text("".join(lines(run.path, "episodes", solved=True)), encoding="utf-8")
    assert read_jsonl(out) == [episode("x")]
