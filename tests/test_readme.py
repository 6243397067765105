"""What the README and the documentation print, runs; what they point at, exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("README.md"), *ROOT.glob("C*.md"), *ROOT.glob("docs/*.md")]
)
BLOCKS = [
    pytest.param(block, id=f"{document}-{number}")
    for document in DOCUMENTS
    for number, block in enumerate(
        re.findall(
            r"^```python\n(.*?)^```",
            (ROOT / document).read_text(encoding="utf-8"),
            flags=re.MULTILINE | re.DOTALL,
        )
    )
]


@pytest.mark.parametrize("block", BLOCKS)
def test_python_runs_as_printed(block: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    promised = re.findall(r"^print\(.*\)\s*# (.+)$", block, flags=re.MULTILINE)
    assert done.stdout.splitlines() == promised


def test_there_is_a_custom_graph() -> None:
    assert "from swarm_ui import CollabGraph" in README


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"^make ([a-z]+)", README, flags=re.MULTILINE))
    assert named == {"demo", "test"}
    assert named <= targets


@pytest.mark.parametrize("document", DOCUMENTS)
def test_relative_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    folder = (ROOT / document).parent
    assert [link for link in links if not (folder / link).exists()] == []
