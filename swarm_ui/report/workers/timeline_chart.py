"""Timelines of workers: a row for each, coloured by what it did."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import get_args

from swarm_ui.report.contents import WorkerRow, WorkerTimeline
from swarm_ui.report.html import Markup, join, note, tag
from swarm_ui.trace.worker_history import Activity
from swarm_ui.viz.svg import ticks

SLOTS = 400
"""Number of slots of the time axis. Each has the colour of its main activity."""
_ACTIVITIES: tuple[Activity, ...] = get_args(Activity)
_NAMES: dict[Activity, str] = {
    "deciding": "deciding (models)",
    "environment": "environment",
    "waiting": "waiting to begin",
}
_LEAST = 0.05
"""A slot is drawn as empty if the activity fills less than this share of it."""
_LOSS = 3
"""Width of the mark of a loss, in slots."""
_UNITS = ((2 * 86400.0, 86400.0, "d"), (2 * 3600.0, 3600.0, "h"), (120.0, 60.0, "min"))


def timeline(data: WorkerTimeline) -> Markup:
    """Draw one timeline. Its size does not depend on the number of episodes."""
    rows = [_lane(row, data.seconds) for row in data.rows]
    lanes = tag("div", *rows, _axis(data.seconds), class_="lanes")
    return tag(
        "figure",
        tag("figcaption", data.title),
        _legend(data),
        lanes,
        note(data.note),
        class_="full",
    )


def _legend(data: WorkerTimeline) -> Markup:
    found = {what for row in data.rows for what, _, _ in row.parts}
    names = [
        tag("li", tag("i", class_=f"swatch {what}"), _NAMES[what])
        for what in _ACTIVITIES
        if what in found
    ]
    if any(row.losses for row in data.rows):
        names.append(tag("li", tag("i", class_="swatch loss"), "worker lost"))
    return tag("ul", *names, class_="legend")


def _lane(row: WorkerRow, seconds: float) -> Markup:
    told = row.detail or row.name
    drawn = [tag("title", told)]
    colours = slots(row, seconds)
    for what in _ACTIVITIES:
        path = _path(colours, what)
        if path:
            drawn.append(tag("path", class_=what, d=path))
    for at in row.losses:
        x = min(SLOTS - _LOSS, max(0.0, at / (seconds or 1.0) * SLOTS))
        drawn.append(tag("path", class_="loss", d=f"M{x:.1f} 0h{_LOSS}v1h-{_LOSS}z"))
    lane = tag("svg", *drawn, viewBox=f"0 0 {SLOTS} 1", preserveAspectRatio="none", role="img",
               aria_label=told)  # fmt: skip
    return join(tag("span", row.name, title=row.name), lane)


def slots(row: WorkerRow, seconds: float) -> list[Activity | None]:
    """The main activity in each of the :data:`SLOTS` parts of the time, or ``None`` for idle."""
    width = (seconds or 1.0) / SLOTS
    filled: list[dict[Activity, float]] = [{} for _ in range(SLOTS)]
    for what, begin, end in row.parts:
        first, last = int(begin / width), int(end / width)
        for k in range(max(0, first), min(SLOTS - 1, last) + 1):
            share = min(end, (k + 1) * width) - max(begin, k * width)
            if share > 0:
                filled[k][what] = filled[k].get(what, 0.0) + share
    return [_most(parts, width) for parts in filled]


def _most(parts: dict[Activity, float], width: float) -> Activity | None:
    if sum(parts.values()) <= _LEAST * width:
        return None
    longest: Activity = max(parts, key=parts.__getitem__)
    return longest


def _path(colours: Sequence[Activity | None], wanted: Activity) -> str:
    """The slots of one colour as boxes of an SVG path; neighbours are one box."""
    boxes, x = [], 0
    for what, run in groupby(colours):
        width = len(list(run))
        if what == wanted:
            boxes.append(f"M{x} 0h{width}v1h-{width}z")
        x += width
    return "".join(boxes)


def _axis(seconds: float) -> Markup:
    unit, name = next(((size, n) for least, size, n in _UNITS if seconds > least), (1.0, "s"))
    long = seconds / unit
    marks = [value for value in ticks(0.0, long, 5) if value <= long * 1.001]
    words = [_mark(f"{value:g} {name}", 100 * value / (long or 1.0)) for value in marks]
    return join(tag("span"), tag("div", *words, class_="times"))


def _mark(words: str, percent: float) -> Markup:
    """A mark of the axis. Near the right end its words are on the left of it."""
    if percent > 88:
        return tag("i", words, class_="end", style=f"right:{100 - percent:.2f}%")
    return tag("i", words, style=f"left:{percent:.2f}%")
