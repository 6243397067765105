"""The pictures of the README and of the concepts are those that their scripts draw from runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "docs" / "pictures"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "names", "compared"),
    [
        ("draw_split_facts.py", "split_facts_team.svg", r"(?s).*"),
        ("draw.py", "concept_*", r'aria-label="([^"]*)"'),
    ],
)
def test_the_stored_pictures_are_drawn_from_runs(
    tmp_path: Path, script: str, names: str, compared: str
) -> None:
    done = subprocess.run(
        [sys.executable, str(STORED / script), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in STORED.glob(names)}
    for name in drawn:
        if name.endswith(".svg"):
            now, then = ((folder / name).read_text("utf-8") for folder in (tmp_path, STORED))
            assert re.findall(compared, now) == re.findall(compared, then) != []
