"""The figures of the study: rows, contrasts, and the tables of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.invented_training.cells import Cell, splits_of
from benchmarks.studies.invented_training.plan import (
    BASE,
    GENERAL,
    SPLITS,
    WORDINGS,
    Design,
    Plan,
    design_of,
)
from benchmarks.studies.struct_files import Sources, read_struct, sources_of
from benchmarks.support.tables import markdown_table
from swarm_ui.environments.phone.invented import APPS
from swarm_ui.environments.phone.invented.tasks import templates
from swarm_ui.errors import ConfigError
from swarm_ui.stats import Outcome, paired_difference

UNTRAINED = (BASE, GENERAL)
"""Teams of one cell, which belongs to no training seed."""
_GENERAL = "four general agents (of this package), no stage 2"
_NOTE = "The phone is simulated, the critic scripted: scores on it are not AndroidWorld scores."


def labels(settings: Plan) -> dict[str, str]:
    """What the arms are called in tables, in the order of the rows."""
    untrained = "four untrained agents" if settings.start == "base" else _GENERAL
    trained = {arm.name: arm.label for arm in design_of(settings).arms}
    return {BASE: untrained, **trained, GENERAL: _GENERAL}


class Row(rates.Row, frozen=True, kw_only=True):
    """One arm on one split."""

    split: str
    cluster_low: float
    cluster_high: float
    """The same as ``low`` and ``high``."""
    steps: float
    """Optimiser steps; this and the next are means over training runs."""
    samples: float
    calls: float
    work: float
    """CPU-seconds of training."""


class Contrast(rates.Contrast, frozen=True, kw_only=True):
    """An arm minus another on one split."""

    split: str
    app_low: float | None = None
    app_high: float | None = None
    """95 %, clustered by app and training run; only of the blind set, which has enough apps."""


class Record(Sources, frozen=True, kw_only=True):
    """All figures of a study, and where they come from."""

    settings: Plan
    rows: list[Row]
    contrasts: list[Contrast]


def record_of(folder: Path) -> Record:
    """The record of what is in a study's folder."""
    paths = sorted((folder / "cells").glob("*.json"))
    cells = _with_blind([read_struct(path, Cell) for path in paths], folder / "blind.json")
    if not any(cell.arm == BASE for cell in cells):
        raise ConfigError(f"'{folder}' has no finished cell of this study")
    files = [*paths, *folder.glob("blind.json")]
    plan = read_struct(folder / "settings.json", Plan)
    design = design_of(plan)
    by_arm = {name: [c for c in cells if c.arm == name] for name in labels(plan)}
    arms = {name: sorted(found, key=lambda c: c.seed) for name, found in by_arm.items() if found}
    places = [(name, split) for split in splits_of(cells) for name in arms]
    return Record(
        **sources_of("invented_training", files, (cell.commit for cell in cells)),
        settings=plan,
        rows=[row for name, split in places for row in _row(arms[name], split)],
        contrasts=[
            contrast
            for split in splits_of(cells)
            for one, other in _pairs(arms, design)
            for contrast in _contrast(arms[one], arms[other], split, design)
        ],
    )


def _with_blind(cells: Sequence[Cell], path: Path) -> list[Cell]:
    """The cells with their outcomes on the blind set, if it was played."""
    if not path.exists():
        return list(cells)
    played = read_struct(path, dict[str, dict[str, list[Outcome]]])
    return [
        msgspec.structs.replace(c, outcomes=c.outcomes | played.get(f"{c.arm}-{c.seed}", {}))
        for c in cells
    ]


def _pairs(arms: dict[str, list[Cell]], design: Design) -> list[tuple[str, str]]:
    """The named contrasts first; then every arm against the untrained team and the main arm."""
    others = [(name, BASE) for name in arms if name != BASE]
    others += [(design.main, name) for name in arms if name not in (design.main, *UNTRAINED)]
    others.append((GENERAL, "stage1"))
    pairs = [*design.contrasts, *(pair for pair in others if pair not in design.contrasts)]
    return [pair for pair in pairs if pair[0] in arms and pair[1] in arms]


def _row(cells: Sequence[Cell], split: str) -> list[Row]:
    played = [cell for cell in cells if split in cell.outcomes]
    outcomes = [o for cell in played for o in cell.outcomes[split]]
    if all(o.value is None for o in outcomes):
        return []
    row = rates.row(cells[0].arm, outcomes, seeded=cells[0].arm not in UNTRAINED)
    return [
        Row(
            **msgspec.structs.asdict(row), split=split, cluster_low=row.low,
            cluster_high=row.high, steps=round(fmean(c.steps for c in played), 1),
            samples=round(fmean(c.samples for c in played), 1),
            calls=round(fmean(c.calls for c in played), 1),
            work=round(fmean(c.training_seconds for c in played), 1),
        )
    ]  # fmt: skip


def _contrast(
    ours: Sequence[Cell], theirs: Sequence[Cell], split: str, design: Design
) -> list[Contrast]:
    """Over the seeds that both have; an untrained team is the same for every seed."""
    mine = {cell.seed: cell.outcomes[split] for cell in ours if split in cell.outcomes}
    other = {cell.seed: cell.outcomes[split] for cell in theirs if split in cell.outcomes}
    if theirs[0].arm in UNTRAINED and other:
        other = _for_seeds(other, mine)
    elif ours[0].arm in UNTRAINED and mine:
        mine = _for_seeds(mine, other)
    seeds = sorted(set(mine) & set(other))
    pooled = [[o for s in seeds for o in side[s]] for side in (mine, other)]
    if any(all(o.value is None for o in side) for side in pooled):
        return []
    pair = (ours[0].arm, theirs[0].arm)
    named = pair in design.contrasts and split == "apps"
    gap = rates.contrast((pair[0], pooled[0]), (pair[1], pooled[1]), named=named)
    by_app = None
    if split == "blind":
        by_app = paired_difference(*([of_app(o) for o in side] for side in pooled))
    return [
        Contrast(
            **msgspec.structs.asdict(gap), split=split,
            app_low=None if by_app is None else round(by_app.low, 4),
            app_high=None if by_app is None else round(by_app.high, 4),
        )
    ]  # fmt: skip


def _for_seeds(
    outcomes: dict[int, list[Outcome]], seeds: Iterable[int]
) -> dict[int, list[Outcome]]:
    """The outcomes of an untrained team, repeated for each training seed."""
    (only,) = outcomes.values()
    return {s: [msgspec.structs.replace(o, run=s) for o in only] for s in seeds}


def of_app(outcome: Outcome) -> Outcome:
    """An outcome of a task of an invented device, with the app in place of the template."""
    number = int(outcome.template.split("-")[1])
    (app,) = templates(number, APPS, WORDINGS)[outcome.template].apps
    return msgspec.structs.replace(outcome, template=f"{number} {app}")


def summary(record: Record) -> str:
    """All tables as Markdown."""
    return "\n\n".join([rows_table(record), contrasts_table(record, record.contrasts), _NOTE])


def rows_table(record: Record) -> str:
    """Success of every arm on every split, and the work of training."""
    splits = [s for s in SPLITS if any(row.split == s for row in record.rows)]
    heads = ["policy", *(f"{SPLITS[s]} %" for s in splits), "seeds", "steps", "pairs", "calls",
             "CPU-s"]  # fmt: skip
    lines = []
    for name, label in labels(record.settings).items():
        rows = {row.split: row for row in record.rows if row.name == name}
        if rows:
            any_row = next(iter(rows.values()))
            shown = [rates.success_shown(rows[s]) if s in rows else "–" for s in splits]
            work = [any_row.steps, any_row.samples, any_row.calls, any_row.work]
            cells = [label, *shown, str(any_row.seeds or "–")]
            cells += [f"{value:,.0f}" if value else "–" for value in work]
            lines.append(cells)
    return markdown_table(heads, lines, "lr")


def main_contrasts(record: Record) -> list[Contrast]:
    """The named contrasts on new apps, and the same differences on the blind set."""
    named = {(one.ours, one.theirs) for one in record.contrasts if one.named}
    return [
        one
        for one in record.contrasts
        if one.named or (one.split == "blind" and (one.ours, one.theirs) in named)
    ]


def contrasts_table(record: Record, contrasts: Sequence[Contrast]) -> str:
    """Differences in points: the three named ones, then the exploratory ones."""
    heads = ("difference, points", "split", "clustered by template", "by app", "t over seeds",
             "each seed")  # fmt: skip
    lines = []
    named = labels(record.settings)
    for one in sorted(contrasts, key=lambda c: not c.named):
        name = f"{named[one.ours]} minus {named[one.theirs]}"
        gap = rates.percent(one.difference, one.low, one.high, signed=True)
        apps = rates.percent_range(one.app_low, one.app_high, signed=True)
        lines.append((
            f"**{name}**" if one.named else name, SPLITS[one.split], gap, apps,
            rates.seeds_shown(one), rates.each_shown(one),
        ))  # fmt: skip
    return markdown_table(heads, lines, "llr")
