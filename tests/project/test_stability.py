"""docs/stability.md promises what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import swarm_ui
from swarm_ui.experiment.plugins.entry_points import KINDS
from swarm_ui.experiment.results import RESULTS_VERSION
from swarm_ui.storage.run_directory import RUN_VERSION
from swarm_ui.trace.records import TRACE_VERSION

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")


def test_versions_of_files_are_those_of_the_code() -> None:
    assert f"| traces, `traces/*.jsonl` ([format](trace_format.md)) | {TRACE_VERSION} |" in TEXT
    assert f"| `results.json` | {RESULTS_VERSION};" in TEXT
    assert f"| `config.json` and `status.json` of a run | {RUN_VERSION} |" in TEXT


def test_the_groups_of_entry_points_are_those_that_are_read() -> None:
    (row,) = [line for line in TEXT.splitlines() if line.startswith("| the entry points")]
    assert re.findall(r"`swarm_ui\.(\w+)`", row) == list(KINDS)


def test_the_protocols_exist() -> None:
    from swarm_ui.optim import loggers

    (row,) = [line for line in TEXT.splitlines() if line.startswith("| the protocols")]
    for name in re.findall(r"`(\w+)`", row):
        assert hasattr(swarm_ui, name) or hasattr(loggers, name), name


def test_the_version_has_one_source() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", swarm_ui.__version__)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'version = {attr = "swarm_ui.version.__version__"}' in project
    assert 'dynamic = ["version"]' in project
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {swarm_ui.__version__}" in changelog
