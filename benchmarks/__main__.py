"""Prints, plays and publishes the studies of learning.

    python -m benchmarks                                  # the names of the studies
    python -m benchmarks STUDY                            # its tables; the last line is JSON
    python -m benchmarks STUDY --page                     # its part of docs/results.md
    python -m benchmarks STUDY --run [--only ARM ...] [--seeds N ...]
    python -m benchmarks STUDY --run --quick              # within a minute; figures mean nothing

``--run`` plays the cells that ``benchmarks/results/STUDY.jsonl`` lacks and adds them to it, so the
same command continues after an interruption.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks.cell import file_of, read_cells
from benchmarks.study import names, run, study
from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic


def main() -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("study", nargs="?", help="name of a study; without it, all are listed")
    parser.add_argument("--page", action="store_true", help="write its part of docs/results.md")
    parser.add_argument("--run", action="store_true", help="play the cells that are missing")
    parser.add_argument("--only", nargs="+", default=[], metavar="ARM", help="only these arms")
    parser.add_argument("--seeds", type=int, nargs="+", default=[], help="of the trainings")
    parser.add_argument("--quick", action="store_true", help="a trial of --run")
    parser.add_argument("--folder", type=Path, default=Path("runs/studies"), help="of the weights")
    given = parser.parse_args()
    if given.study is None:
        print("\n".join(names()))
        return 0
    try:
        with tempfile.TemporaryDirectory() as beside:
            _do(given, Path(beside))
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _do(given: argparse.Namespace, beside: Path) -> None:
    from benchmarks.picture import draw
    from benchmarks.table import PAGE, markdown, page_part, table, with_part

    found, path, folder = study(given.study), file_of(given.study), given.folder / given.study
    if given.quick:
        path, folder = beside / "cells.jsonl", beside
    if given.run:
        run(given.study, found, path=path, folder=folder, only=given.only, seeds=given.seeds,
            quick=given.quick)  # fmt: skip
    cells = read_cells(given.study, path)
    made = table(found, cells, page_only=given.page)
    if given.page:
        page = with_part(PAGE.read_text("utf-8"), given.study, page_part(found, made))
        write_atomic(PAGE, page)
        if found.picture:
            draw(found, made, cells, PAGE.parent / "pictures" / f"{given.study}.svg")
    print(markdown(found, made, cells))
    told = {"study": given.study, "cells": len(cells), **msgspec.structs.asdict(made)}
    print(msgspec.json.encode(told).decode())


if __name__ == "__main__":
    sys.exit(main())
