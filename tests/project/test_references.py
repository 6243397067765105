"""What docstrings and pages refer to exists."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("swarm_ui", "nodes", "optim", "environments", "benchmarks", "demos")
ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?!?((?:swarm_ui|benchmarks)[\w.]*)`")
SOURCE = re.compile(rf"`((?:{'|'.join((*FOLDERS, 'tests', 'docs'))})/[a-z\d_./-]*)`")


@cache
def exists(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for part in parts[k:]:
            if not hasattr(found, part):
                return part in getattr(found, "__annotations__", {})
            found = getattr(found, part)
        return True
    return False


def test_docstrings_refer_to_what_exists() -> None:
    lost = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for name in ROLE.findall(path.read_text(encoding="utf-8"))
        if not exists(name)
    ]
    assert lost == []


def test_pages_refer_to_what_exists() -> None:
    lost = []
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        lost += [n for n in re.findall(r"^::: (\S+)", text, flags=re.MULTILINE) if not exists(n)]
        lost += [name for name in SOURCE.findall(text) if not (ROOT / name).exists()]
    assert lost == []
