"""The picture at the head of the README is the one that its script draws from an episode."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "docs" / "pictures" / "split_facts_team.svg"


def test_the_stored_picture_is_drawn_from_an_episode(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(STORED.parent / "draw_split_facts.py"), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / STORED.name).read_text(encoding="utf-8") == STORED.read_text("utf-8")


def test_the_readme_shows_it_and_says_what_is_not_real() -> None:
    words = (ROOT / "README.md").read_text(encoding="utf-8")
    caption = words.partition(f"docs/pictures/{STORED.name})")[2].partition("## ")[0]
    assert "simulated" in caption and "scripted" in caption
