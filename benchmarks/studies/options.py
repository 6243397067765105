"""The options that studies have in common: those of their records."""

from __future__ import annotations

import argparse

_RECORD = {
    "record": "also keep the figures in the source",
    "recorded": "print the figures that were kept",
    "restore": "begin with the cells of the record: write those that the folder lacks",
}


def record_options(parser: argparse.ArgumentParser, *, restore: bool) -> None:
    """Add ``--record``, ``--recorded`` and, if ``restore``, ``--restore``."""
    for name, text in _RECORD.items():
        if name != "restore" or restore:
            parser.add_argument(f"--{name}", action="store_true", help=text)


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of the command line; exits with one line where those of the record conflict."""
    given = parser.parse_args()
    for name in ("record", "restore"):
        for other in ("recorded", "quick"):
            if getattr(given, name, False) and getattr(given, other, False):
                parser.error(f"--{name} and --{other} exclude each other")
    if getattr(given, "restore", False) and given.out is None:
        parser.error("--restore needs --out FOLDER")
    return given
