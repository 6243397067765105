"""A copy of the repository without what git ignores, so that nothing stale is built."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BUILT = (".venv", ".git", "build", "dist", "*.egg-info", "__pycache__", ".*_cache")


def copy_checkout(target: Path) -> None:
    """Copy the repository to ``target``, which must not exist."""
    named = shutil.ignore_patterns(*_BUILT)

    def ignored(folder: str, names: list[str]) -> set[str]:
        # A package of the library is also called ``runs``.
        return named(folder, names) | ({"runs"} if Path(folder) == ROOT else set())

    shutil.copytree(ROOT, target, symlinks=True, ignore=ignored)
