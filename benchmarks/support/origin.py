"""Where recorded figures come from."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import msgspec


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Commit, command and machine of a record."""

    commit: str = ""
    """Of the source; empty if it was not noted."""
    dirty: bool = False
    """Whether tracked files differed from the commit."""
    command: str = ""
    machine: str = ""

    @property
    def doubt(self) -> str:
        """Why the source cannot be looked up; empty if it can."""
        if not self.commit:
            return "unknown commit"
        return "changed source" if self.dirty else ""


def origin_here(program: str = "python -m benchmarks") -> Origin:
    """The origin of figures that this process measures; ``program``: without its arguments."""
    command = " ".join([program, *sys.argv[1:]])
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    return Origin(commit=commit(), dirty=dirty(), command=command, machine=machine)


def commit() -> str:
    """The full name of the commit of the source; empty without git."""
    return _git("rev-parse", "HEAD")


def dirty() -> bool:
    """Whether tracked files of the source differ from the commit. A study adds to its own record,
    which is no source."""
    where = (":/", ":(top,exclude)benchmarks/results")
    return bool(_git("status", "--porcelain", "--untracked-files=no", "--", *where))


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
