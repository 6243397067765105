"""The options that studies have in common."""

from __future__ import annotations

import argparse
from pathlib import Path

_FLAGS = {
    "quick": "within a minute; figures mean nothing",
    "summarise": "print what is there as Markdown",
    "record": "also keep the figures in the source",
    "recorded": "print the figures that were kept",
    "restore": "begin with the cells of the record: write those that the folder lacks",
}


def study_options(text: str | None, *names: str, out: bool = True) -> argparse.ArgumentParser:
    """A parser with ``--out`` and these flags, for :func:`parsed`.

    Args:
        text: the docstring of the study.
        names: some of ``quick``, ``summarise``, ``record``, ``recorded`` and ``restore``;
            default: all of them.
        out: whether the study has a folder.
    """
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if out:
        parser.add_argument("--out", type=Path, help="folder of the study")
    for name in names or _FLAGS:
        parser.add_argument(f"--{name}", action="store_true", help=_FLAGS[name])
    return parser


def parsed(parser: argparse.ArgumentParser, *, folder: bool = False) -> argparse.Namespace:
    """The options of the command line; exits with one line if those of the record conflict.

    ``folder``: ``--out`` is needed, unless ``--quick`` or ``--recorded`` is given.
    """
    given = parser.parse_args()
    if folder and given.out is None and not (given.quick or given.recorded):
        parser.error("--out FOLDER is needed (or --quick, or --recorded)")
    for name in ("record", "restore"):
        for other in ("recorded", "quick"):
            if getattr(given, name, False) and getattr(given, other, False):
                parser.error(f"--{name} and --{other} exclude each other")
    if getattr(given, "restore", False) and given.out is None:
        parser.error("--restore needs --out FOLDER")
    return given
