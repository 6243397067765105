"""The course of a study with a folder and a record, as its options ask for it."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchmarks.studies.restore import found_files, packed_files, restore
from benchmarks.support.records import read_record, write_record

T = TypeVar("T")


def recorded_study(
    given: argparse.Namespace,
    name: str,
    kind: type[T],
    *,
    settings: Any,
    files: Sequence[str] | Callable[[Path], Mapping[str, Any]] = ("settings.json", "cells/*.json"),
    run: Callable[[Path], None],
    read: Callable[[Path], T],
) -> T:
    """The record, or the results of the study's folder, after what is missing there has been run.

    Args:
        given: the options, of :func:`~benchmarks.studies.options.study_options`.
        name: name of the record.
        kind: type of the record.
        settings: settings of the full study, as in its ``settings.json``.
        files: the files that the record holds of the folder, or their patterns.
        run: runs what is missing in the folder, which may not exist.
        read: reads the results in a folder.
    """
    if given.recorded:
        return read_record(name, kind)
    with tempfile.TemporaryDirectory() as beside:
        folder = given.out or Path(beside) / "quick"
        if getattr(given, "restore", False):
            restore(name, folder, {"settings.json": settings})
        if not given.summarise:
            run(folder)
        study = read(folder)
        if given.record:
            found = files(folder) if callable(files) else found_files(folder, files)
            write_record(name, study, packed_files(found) if files else None)
    return study


def show_study(study: Any, tables: str, *figures: str) -> None:
    """Print the tables of a study, and one line of JSON with some of its figures.

    Args:
        study: the record.
        tables: its tables as Markdown.
        figures: names of the record's fields that the JSON object holds.
    """
    print(tables)
    print(json.dumps({name: msgspec.to_builtins(getattr(study, name)) for name in figures}))
