"""Tables and heat maps as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from swarm_ui.stats import Interval
from swarm_ui.trace.records import Episode
from swarm_ui.viz.svg import Markup, tag


class Gap(NamedTuple):
    """A paired difference: shown with its sign, bold if the interval excludes 0."""

    interval: Interval


Cell = Interval | Gap | Markup | str | float | int | None
"""Intervals are shares, shown in percent; ``None`` is shown as a dash."""


class Table(NamedTuple):
    """A table of results."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


class HeatMap(msgspec.Struct, frozen=True, kw_only=True):
    """A matrix of numbers in [0, 1], such as mean credit, shape ``[rows, columns]``."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    """``None`` means unscored, which is not 0; such cells are hatched."""
    note: str = ""
    details: tuple[tuple[str, ...], ...] = ()
    """Small print of each cell, such as ``"15 of 20"``, shape ``[rows, columns]``. Values that have
    it are shown in percent."""


def credit_map(episodes: Iterable[Episode], *, title: str = "Mean credit") -> HeatMap | None:
    """Mean credit of each agent in each round over the episodes.

    Counts decisions of the most common team (agents and rounds) only; ``None`` if none is scored.
    """
    teams: dict[tuple[tuple[str, ...], int], list[tuple[tuple[float | None, ...], ...]]] = {}
    for step in (step for episode in episodes for step in episode.steps):
        agents, credit = step.trace.agents, step.credit
        # Rows of another length are those of a damaged file.
        if credit is not None and all(len(row) == len(agents) for row in credit):
            teams.setdefault((agents, len(credit)), []).append(credit)
    if not teams:
        return None
    (agents, rounds), scored = max(teams.items(), key=lambda team: (len(team[1]), team[0]))
    given = [
        [[v for credit in scored if (v := credit[r][k]) is not None] for k in range(len(agents))]
        for r in range(rounds)
    ]
    return HeatMap(
        title=title,
        rows=tuple(f"round {r + 1}" for r in range(rounds)),
        columns=agents,
        values=tuple(tuple(sum(v) / len(v) if v else None for v in row) for row in given),
        note=f"{len(scored)} decisions.",
    )


def note(text: str) -> Markup:
    """Small print below a figure or table; nothing for an empty text."""
    return tag("p", text, class_="note") if text else Markup("")


def table(data: Table) -> Markup:
    """A table with its title."""
    columns = zip(*data.rows, strict=True)
    numbers = [
        all(isinstance(v, int | float | Markup | None) for v in column) for column in columns
    ]
    heads = (
        tag("th", name, scope="col", class_="number" if right else None)
        for name, right in zip(data.columns, numbers, strict=True)
    )
    rows = (
        tag("tr", *(_cell(value, k, numbers[k]) for k, value in enumerate(row)))
        for row in data.rows
    )
    grid = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    title = tag("h3", data.title) if data.title else Markup("")
    return tag("section", title, tag("div", grid, class_="wide"), note(data.note), class_="result")


def _cell(value: Cell, column: int, right: bool) -> Markup:
    if isinstance(value, Markup):
        return tag("td", value, class_="number" if right else None)
    if isinstance(value, str):
        words = tag("span", value, class_="words")
        return tag("th", words, scope="row") if column == 0 else tag("td", words)
    if isinstance(value, Gap):
        mean, _, ends = value.interval.percent(signed=True).partition(" ")
        figure = tag("b" if value.interval.excludes_zero else "span", mean)
        return tag("td", figure, tag("small", f" {ends}"), class_="estimate")
    if isinstance(value, Interval):
        mean, _, ends = value.percent().partition(" ")
        small = tag("small", f" {ends} n = {value.n:,}")
        return tag("td", tag("span", mean), small, class_="estimate")
    text = "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return tag("td", text, class_="number" if right else None)


def heat_map(data: HeatMap, *, caption: bool = True) -> Markup:
    """A matrix of shaded cells with the numbers in them. ``caption``: whether to show its title."""
    head = tag("tr", tag("td"), *(tag("th", c, scope="col") for c in data.columns))
    details = data.details or (("",) * len(data.columns),) * len(data.rows)
    rows = []
    for name, values, small in zip(data.rows, data.values, details, strict=True):
        cells = [_shade(v, data, more) for v, more in zip(values, small, strict=True)]
        rows.append(tag("tr", tag("th", name, scope="row", title=name), *cells))
    box = tag("div", tag("table", head, *rows, class_="heat"), class_="wide")
    title = tag("figcaption", data.title) if caption else Markup("")
    size = "full" if len(data.columns) > 5 else "part"
    return tag("figure", title, box, note(data.note), class_=size)


def _shade(value: float | None, data: HeatMap, detail: str) -> Markup:
    if value is None or not math.isfinite(value):
        return tag("td", "–", class_="unscored", title=detail or "unscored")
    strength = round(100 * min(1.0, max(0.0, value)))
    shown = f"{100 * value:.0f}" if data.details else f"{value:.2f}"
    small = tag("small", detail) if detail else Markup("")
    return tag("td", shown, small, style=f"--share:{strength}%")
