"""Cells: the measured units of a study, and the files of ``benchmarks/results`` that keep them.

A cell is one policy, trained with one seed, on all its test episodes. The file of a study has one
line of JSON for each cell, with a digit or a number for each outcome, and for each list of episodes
(successive seeds by template), to which cells refer by its number. It is the record itself: tables
are computed from it, and a run of the study adds lines to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.support.origin import Origin, origin_here
from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic
from swarm_ui.stats import Outcome

__all__ = ["Cell", "Origin", "file_of", "origin_here", "read_cells", "write_cells"]
RESULTS = Path(__file__).resolve().parent / "results"
_DIGITS = {0.0: "0", 1.0: "1", None: "-"}
_VALUES: dict[str, float | None] = {digit: value for value, digit in _DIGITS.items()}


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One arm with one seed."""

    arm: str
    seed: int | None = None
    """Seed of the training; ``None``: the study trained nothing."""
    settings: Mapping[str, Any] = {}
    """What an arm's settings do not say, such as chosen settings or sizes."""
    outcomes: Mapping[str, Sequence[Outcome]] = {}
    """Of the test episodes, by split. The run of an outcome is the seed."""
    work: Mapping[str, Mapping[str, float]] = {}
    """Costs, by split; those of the training under ``"training"``."""
    notes: Mapping[str, Any] = {}
    """All else that was measured."""
    origin: Origin = Origin()


def read_cells(study: str, path: Path | None = None) -> list[Cell]:
    """The finished cells of a study; none if it was never run.

    Args:
        study: name of the study.
        path: another file than that of ``benchmarks/results``.

    Raises:
        ConfigError: the file has something else.
    """
    path = path or file_of(study)
    lists: dict[int, list[tuple[str, int]]] = {}
    cells = []
    try:
        for line in path.read_bytes().splitlines() if path.exists() else ():
            stored = msgspec.json.decode(line)
            if "episodes" in stored:
                jobs = [(task, seed) for task, own in stored["jobs"] for seed in own]
                lists[stored["episodes"]] = jobs
            else:
                cells.append(_cell(stored, lists))
    except (OSError, msgspec.DecodeError, KeyError, ValueError) as error:
        raise ConfigError(
            f"'{path}' cannot be read as cells of study '{study}': {error}; restore the file from "
            "the repository"
        ) from error
    return cells


def write_cells(study: str, cells: Iterable[Cell], path: Path | None = None) -> None:
    """Write all cells of a study, whole or not at all."""
    lists: dict[tuple[tuple[str, int], ...], int] = {}
    lines: list[dict[str, Any]] = []
    for cell in cells:
        outcomes = {}
        for split, found in cell.outcomes.items():
            jobs = tuple((o.template, o.seed) for o in found)
            if jobs not in lists:
                lists[jobs] = len(lists)
                lines.append({"episodes": lists[jobs], "jobs": _runs(jobs)})
            outcomes[split] = (lists[jobs], _digits([o.value for o in found]))
        told = msgspec.to_builtins(cell)
        lines.append({**told, "outcomes": outcomes} if outcomes else told)
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    write_atomic(path or file_of(study), text)


def file_of(study: str) -> Path:
    """The committed file of a study's cells."""
    return RESULTS / f"{study}.jsonl"


def _cell(stored: dict[str, Any], lists: Mapping[int, Sequence[tuple[str, int]]]) -> Cell:
    outcomes = {}
    for split, (number, kept) in stored.pop("outcomes", {}).items():
        values = [_VALUES[digit] for digit in kept] if isinstance(kept, str) else kept
        outcomes[split] = [
            Outcome(task, seed, value, stored.get("seed") or 0)
            for (task, seed), value in zip(lists[number], values, strict=True)
        ]
    return msgspec.structs.replace(msgspec.convert(stored, Cell), outcomes=outcomes)


def _runs(jobs: Sequence[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    found: list[tuple[str, list[int]]] = []
    for task, seed in jobs:
        if not found or found[-1][0] != task:
            found.append((task, []))
        found[-1][1].append(seed)
    return found


def _digits(values: Sequence[float | None]) -> str | list[float | None]:
    if all(value in _DIGITS for value in values):
        return "".join(_DIGITS[value] for value in values)
    return list(values)
