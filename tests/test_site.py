"""The documentation site builds without a warning, and shows what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def test_it_builds_strictly(site: Path) -> None:
    assert (site / "index.html").stat().st_size > 10_000


def test_the_reference_is_made_from_docstrings(site: Path) -> None:
    page = (site / "reference" / "core.html").read_text(encoding="utf-8")
    assert 'id="swarm_ui.graph.CollabGraph.replay"' in page
    for role in (":class:", ":meth:", ":func:"):
        assert role not in page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert 'src="http' not in page, path
        assert '<link rel="stylesheet" href="http' not in page, path
