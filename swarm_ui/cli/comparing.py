"""Two runs on the same episodes, by the paired test."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.table import Table

from swarm_ui.cli.output import table
from swarm_ui.cli.results import load
from swarm_ui.errors import ConfigError
from swarm_ui.trace.jsonl import iter_jsonl

if TYPE_CHECKING:
    from swarm_ui.stats import Interval

Outcomes = dict[tuple[str, str, int, int], float | None]
"""By split, task, seed, and number among equals."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One split, or all."""

    name: str
    ours: Interval | None
    theirs: Interval | None
    difference: Interval | None
    """Ours minus theirs, over the episodes of both."""
    bootstrap: Interval | None
    better: int
    """Episodes that only ours solved."""
    worse: int
    p: float
    """Of McNemar's exact test, two-sided: how often chance alone would split the episodes that
    only one of them solved at least as unevenly, if both were equally good."""

    def plain(self) -> dict[str, object]:
        return {
            name: msgspec.to_builtins(getattr(self, name)) for name in self.__dataclass_fields__
        }


def compared(ours: str | Path, theirs: str | Path) -> list[Compared]:
    """One row a split, and one for all if there are several.

    Raises:
        ConfigError: they have no episode in common, or cannot be read.
    """
    a, b = outcomes_of(str(ours)), outcomes_of(str(theirs))
    common = [key for key in a if key in b]
    if not common:
        raise ConfigError(
            f"'{ours}' and '{theirs}' have no episode in common (same split, task and seed): "
            "play both with the same environment, split, seed and number of episodes"
        )
    splits = list(dict.fromkeys(key[0] for key in common))
    rows = [
        _row(split or "episodes", a, b, [key for key in common if key[0] == split])
        for split in splits
    ]
    return rows if len(rows) == 1 else [*rows, _row("all", a, b, common)]


def comparison_table(rows: list[Compared], ours: str, theirs: str) -> Table:
    """The rows, in percent."""
    made = table(
        f"A {ours}\nB {theirs}",
        ["same episodes of", "A %", "B %", "A - B [95 %]", "only A", "only B", "n", "p"],
        caption="Paired on the same episodes, * if 0 is outside of the interval; p: McNemar's "
        "exact test.",
    )
    for row in rows:
        gap = row.difference
        shown = "–" if gap is None else gap.percent(signed=True)
        made.add_row(
            row.name,
            "–" if row.ours is None else f"{100 * row.ours.mean:.1f}",
            "–" if row.theirs is None else f"{100 * row.theirs.mean:.1f}",
            shown + ("*" if gap is not None and gap.excludes_zero else " "),
            str(row.better),
            str(row.worse),
            str(0 if gap is None else gap.n),
            f"{row.p:.3f}" if row.p >= 0.001 else "<0.001",
            style="bold" if row.name == "all" else "",
        )
    return made


def outcomes_of(source: str) -> Outcomes:
    """Outcomes of a run's folder, of ``FOLDER:ARM`` of a demo's run, or of a trace file."""
    folder, colon, arm = source.rpartition(":")
    if colon and not Path(source).exists():
        return _of_arm(Path(folder), arm)
    path = Path(source)
    if path.is_file():
        episodes = ((e.task, e.seed, e.success) for e in iter_jsonl(path))
        return _numbered(("", t, s, None if v is None else float(v)) for t, s, v in episodes)
    plans = load(path).plans
    return _numbered(
        (plan.split, task, seed, value)
        for plan in plans
        for (task, seed), value in zip(plan.jobs, plan.outcomes, strict=True)
    )


def _of_arm(folder: Path, arm: str) -> Outcomes:
    """One arm of ``results.json`` as the demo writes it."""
    path = folder / "results.json"
    try:
        arms = msgspec.json.decode(path.read_bytes(), type=_Arms).arms
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"'{path}' has no arms: {error}") from error
    chosen = [found for found in arms if found.arm == arm]
    if not chosen:
        known = ", ".join(dict.fromkeys(found.arm for found in arms))
        raise ConfigError(f"'{path}' has no arm '{arm}'; it has {known}")
    return _numbered(
        (found.split, task, seed, value)
        for found in chosen
        for (task, seed), value in zip(found.jobs, found.outcomes, strict=True)
    )


class _Arm(msgspec.Struct, frozen=True):
    arm: str
    split: str
    jobs: tuple[tuple[str, int], ...]
    outcomes: tuple[float | None, ...]


class _Arms(msgspec.Struct, frozen=True):
    arms: tuple[_Arm, ...]


def _numbered(found: Iterable[tuple[str, str, int, float | None]]) -> Outcomes:
    out: Outcomes = {}
    for split, task, seed, value in found:
        number = 0
        while (split, task, seed, number) in out:
            number += 1
        out[split, task, seed, number] = value
    return out


def _row(name: str, a: Outcomes, b: Outcomes, keys: list[tuple[str, str, int, int]]) -> Compared:
    from swarm_ui.stats import bootstrap_difference, paired_difference, wilson

    ours, theirs = [a[key] for key in keys], [b[key] for key in keys]
    both = [(x, y) for x, y in zip(ours, theirs, strict=True) if x is not None and y is not None]
    better, worse = sum(x > y for x, y in both), sum(x < y for x, y in both)
    return Compared(
        name=name,
        ours=wilson([x for x, _ in both]),
        theirs=wilson([y for _, y in both]),
        difference=paired_difference(ours, theirs),
        bootstrap=bootstrap_difference(ours, theirs, random.Random(0)),
        better=better,
        worse=worse,
        p=mcnemar(better, worse),
    )


def mcnemar(better: int, worse: int) -> float:
    """Two-sided p-value of McNemar's exact test: a sign test on what only one of two solved."""
    n = better + worse
    tail: int = sum(math.comb(n, k) for k in range(min(better, worse) + 1))
    return float(min(1.0, 2 * tail / 2.0**n))
