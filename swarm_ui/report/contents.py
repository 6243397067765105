"""The contents of a report as plain records, which any program can fill."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import msgspec

from swarm_ui.stats import Interval
from swarm_ui.trace.failures import FailureClass
from swarm_ui.trace.records import EdgeName, Episode

_LEAST_SPAN = 0.1


class Estimate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A measured number with its interval."""

    value: float
    low: float | None = None
    """Lower end of the 95 % interval; ``None``: not known."""
    high: float | None = None
    percent: bool = True
    """Whether the values are fractions that are shown in percent."""
    difference: bool = False
    """Whether it is a paired difference: shown with its sign, bold if the interval excludes 0."""
    count: int | None = None
    """Episodes (or pairs) behind the number."""

    @classmethod
    def of(cls, found: Interval, *, difference: bool = False) -> Estimate:
        """An interval of :mod:`swarm_ui.stats` as an estimate of fractions."""
        return cls(
            value=found.mean, low=found.low, high=found.high, count=found.n, difference=difference
        )

    @property
    def excludes_zero(self) -> bool:
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A table cell that leads to another page."""

    text: str
    address: str
    """Relative to the report, quoted as an address."""


TableCell = Estimate | Link | str | float | int | None
"""``None`` is shown as a dash."""


class ReportTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table of results."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    note: str = ""
    """Text below the table: the measure and the method."""


class Headline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The one figure with which a report begins."""

    label: str
    """What was measured: the policy, or the measure."""
    value: Estimate
    where: str = ""
    """The split or the episodes it was measured on."""
    gain: Estimate | None = None
    """The paired difference to ``against``."""
    against: str = ""
    """The policy that ``gain`` compares with."""


class Arm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A policy that was tested."""

    name: str
    value: Estimate
    chosen: bool = False
    """Whether the headline is about this policy."""


class Arms(msgspec.Struct, frozen=True, kw_only=True):
    """The policies that were tested on one split; they are drawn beside the learning curve."""

    title: str
    arms: tuple[Arm, ...]


class CurvePoint(msgspec.Struct, frozen=True):
    """One point of a line, with the ends of its interval."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a chart."""

    name: str
    points: tuple[CurvePoint, ...]


class Curve(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line chart, such as success per iteration."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    note: str = ""
    percent: bool = False
    """Whether the values are fractions that are shown in percent."""


class HeatMap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A matrix of numbers, such as mean credit, shape ``[rows, columns]``."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    """``None`` means unscored, which is not 0; such cells are hatched."""
    low: float = 0.0
    """The value of the weakest colour; values below it have the same colour."""
    high: float = 1.0
    """The value of the strongest colour."""
    note: str = ""
    details: tuple[tuple[str, ...], ...] = ()
    """Small print of each cell, such as ``"15 of 20"``, shape ``[rows, columns]``; may be empty."""
    percent: bool = False
    """Whether the values are fractions that are shown in percent."""


class EdgeFrame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The edge probabilities at one moment."""

    label: str
    edges: tuple[tuple[str, str, float], ...]
    """Sender, listener, probability in [0, 1]."""


class EdgeHistory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Edge probabilities over time: one drawn graph with a slider."""

    title: str
    nodes: tuple[str, ...]
    frames: tuple[EdgeFrame, ...]
    note: str = ""


class GraphDrawing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The edges of a team, drawn as arcs from left to right."""

    title: str
    nodes: tuple[str, ...]
    edges: tuple[EdgeName, ...]
    weights: tuple[float, ...] | None = None
    """Probability of each edge, in [0, 1]; ``None``: all are certain."""


class Picture(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plot as a PNG."""

    title: str
    png: bytes | Path
    note: str = ""


class Episodes:
    """Episodes that each iteration reads again, so that they need not be in memory."""

    def __init__(self, read: Callable[[], Iterator[Episode]], count: int) -> None:
        self._read, self._count = read, count

    def __iter__(self) -> Iterator[Episode]:
        return self._read()

    def __len__(self) -> int:
        return self._count

    def __contains__(self, wanted: object) -> bool:
        return any(episode == wanted for episode in self)


class EpisodeSet(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes that belong together, such as one policy on one split."""

    name: str
    episodes: Collection[Episode]
    """Iterated more than once; need not be in memory."""
    file: str = ""
    """The trace file with exactly these episodes in this order, as a path from the folder of the
    report with ``/``, for commands that the page offers; empty: there is none."""


class ReportData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The contents of a report."""

    title: str
    summary: str
    """Summary of method and results, one paragraph."""
    labels: tuple[str, ...] = ()
    """Simulated or scripted parts: ``"phone: simulated"``, ``"critic: scripted"``."""
    facts: tuple[tuple[str, str], ...] = ()
    """Names and values of settings: command, seed, versions, time. They are folded away."""
    headline: Headline | None = None
    arms: Arms | None = None
    tables: tuple[ReportTable, ...] = ()
    curves: tuple[Curve, ...] = ()
    """The first one of percentages (or else the first one) is drawn on the first screen."""
    heat_maps: tuple[HeatMap, ...] = ()
    graphs: tuple[GraphDrawing, ...] = ()
    pictures: tuple[Picture, ...] = ()
    episodes: tuple[Episode, ...] = ()
    """A sample for the viewer, with screenshots up to a budget."""
    sets: tuple[EpisodeSet, ...] = ()
    """More episodes for the viewer, grouped by their source."""
    edge_histories: tuple[EdgeHistory, ...] = ()
    missing: tuple[str, ...] = ()
    """Parts that this run lacks, a sentence each."""
    failures: Mapping[str, Mapping[FailureClass, int]] = {}
    """Number of tested episodes of each class, by set; empty: counted in the shown episodes."""
    refresh: int | None = None
    """Seconds after which a browser loads the page again; ``None``: never."""


def credit_map(episodes: Collection[Episode], *, title: str = "Mean credit") -> HeatMap | None:
    """Mean credit of each agent in each round over the episodes.

    Counts decisions of the most common team (agents and rounds) only; ``None`` if none is scored.
    """
    teams: dict[tuple[tuple[str, ...], int], list[tuple[tuple[float | None, ...], ...]]] = {}
    scored = 0
    for episode in episodes:
        for step in episode.steps:
            # Rows of another length are those of a damaged file.
            if step.credit is not None and all(
                len(row) == len(step.trace.agents) for row in step.credit
            ):
                scored += 1
                teams.setdefault((step.trace.agents, len(step.credit)), []).append(step.credit)
    if not teams:
        return None
    agents, rounds = max(teams, key=lambda team: (len(teams[team]), team))
    cells: list[list[list[float]]] = [[[] for _ in agents] for _ in range(rounds)]
    for credit in teams[agents, rounds]:
        for row, into in zip(credit, cells, strict=True):
            for value, cell in zip(row, into, strict=True):
                if value is not None:
                    cell.append(value)
    means = tuple(tuple(sum(c) / len(c) if c else None for c in row) for row in cells)
    low, high = limits([means])
    return HeatMap(
        title=title,
        rows=tuple(f"round {r + 1}" for r in range(rounds)),
        columns=agents,
        values=means,
        note=f"{scored} decisions.",
        low=low,
        high=high,
    )


def limits(maps: Iterable[Iterable[Iterable[float | None]]]) -> tuple[float, float]:
    """The ends of a colour scale for several matrices: their least and their greatest value.

    They are at least 0.1 apart, so that noise does not look like a difference. The scale of values
    in [0, 1] stays in [0, 1].
    """
    found = [v for rows in maps for row in rows for v in row if v is not None and isfinite(v)]
    if not found:
        return 0.0, 1.0
    low, high = min(found), max(found)
    more = max(0.0, _LEAST_SPAN - (high - low)) / 2
    shift = 0.0
    if low >= 0.0 and high <= 1.0:
        shift = max(0.0, more - low) - max(0.0, high + more - 1.0)
    return low - more + shift, high + more + shift
