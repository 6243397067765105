"""The version of the package."""

from __future__ import annotations

import re
from pathlib import Path

import swarm_ui

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_has_one_source() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", swarm_ui.__version__)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'version = {attr = "swarm_ui.version.__version__"}' in project
    assert 'dynamic = ["version"]' in project
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {swarm_ui.__version__}" in changelog
