"""The parts of the live page as markup. Every text of the run is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from urllib.parse import quote

from swarm_ui.experiment.live.following import Look, Seen
from swarm_ui.experiment.progress import TaskProgress
from swarm_ui.report.charts import curve
from swarm_ui.report.contents import Curve, CurvePoint, Series
from swarm_ui.report.html import Markup, join, note, tag
from swarm_ui.stats import wilson
from swarm_ui.trace.failures import FAILURE_CLASSES, FAILURE_NAMES

SECTIONS = ("head", "progress", "curves", "success", "faults", "episodes")
"""Names of the parts, in the order of the page."""
_STATES = {"killed": "killed: it recorded no end", "unknown": "state not known"}
"""States that are described in other words than their name."""
_MOST_POINTS = 60
_STALE = 30.0
"""Seconds without an update after which progress is shown with its age."""
_MARKS = {True: ("solved", "✓"), False: ("failed", "✗"), None: ("masked", "–")}


def panel(look: Look, now: float) -> dict[str, str]:
    """The parts by name. ``now``: seconds since the epoch."""
    return {
        "head": _head(look),
        "progress": _progress(look, now),
        "success": _success(look),
        "curves": _curves(look),
        "faults": _faults(look),
        "episodes": _episodes(look.newest),
    }


def _head(look: Look) -> Markup:
    facts = " · ".join(filter(None, [look.command, look.environment]))
    state = tag("span", _STATES.get(look.state, look.state), class_=f"state {look.state}")
    error = tag("p", look.error, class_="error") if look.error else Markup("")
    links = tag("p", tag("a", "the whole report so far", href="report"))
    return join(tag("h1", look.name, " ", state), note(facts), error, links)


def _progress(look: Look, now: float) -> Markup:
    if look.state != "running":
        return Markup("")
    if look.progress is None:
        return note("It has begun; no progress is recorded yet.")
    age = now - look.progress.written
    old = note(f"Recorded {duration_text(age)} ago.") if age > _STALE else Markup("")
    return join(*(_task(task) for task in look.progress.tasks), old)


def _task(task: TaskProgress) -> Markup:
    share = min(1.0, max(0.0, task.done / task.total)) if task.total > 0 else 0.0
    left = task.left
    said = [
        f"{share:.0%}",
        f"about {duration_text(left)} left" if left is not None else "",
        task.note,
    ]
    bar = tag("progress", max=1, value=round(share, 4), aria_label=task.label)
    words = tag("p", tag("b", task.label), " ", ", ".join(filter(None, said)))
    return tag("div", words, bar, class_="task")


def _success(look: Look) -> Markup:
    if not look.outcomes:
        return note("No episode is recorded yet.")
    rows = []
    for name, values in look.outcomes.items():
        counted = [float(value) for value in values if value is not None]
        rate = wilson(counted)
        shown = "–"
        if rate is not None and not look.is_selection(name):
            shown = f"{100 * rate.mean:.1f} [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"
        cells = (shown, f"{sum(counted):.0f}/{len(counted)}", str(len(values) - len(counted)))
        numbers = [tag("td", cell, class_="number") for cell in cells]
        rows.append(tag("tr", tag("th", name, scope="row"), *numbers))
    heads = ("episodes", "success, % [95 %]", "solved", "masked")
    head = tag("tr", *(tag("th", name, scope="col") for name in heads))
    grid = tag("table", tag("thead", head), tag("tbody", *rows))
    said = [f"{FAILURE_NAMES[why]} {look.failures[why]:,}"
            for why in FAILURE_CLASSES if why in look.failures]  # fmt: skip
    why = tag("p", tag("b", "Not solved: "), ", ".join(said)) if said else Markup("")
    small = "Of training a selection of episodes is kept, which has no rate of success. "
    small = small if any(map(look.is_selection, look.outcomes)) else ""
    small += "Short episodes end first. " if look.state == "running" else ""
    return join(
        tag("h2", "Recorded episodes"), tag("div", grid, class_="wide"), why,
        note(f"{small}95 % intervals: Wilson."),
    )  # fmt: skip


def _curves(look: Look) -> Markup:
    drawn = look.curves or _so_far(look)
    if not drawn:
        return Markup("")
    figures = tag("div", *map(curve, drawn), class_="figures large")
    return join(tag("h2", "Learning" if look.curves else "So far"), figures)


def _so_far(look: Look) -> tuple[Curve, ...]:
    """The running success rate of the recorded episodes."""
    series = [Series(name=name, points=points)
              for name, values in look.outcomes.items()
              if not look.is_selection(name)
              and len(points := _cumulative([v for v in values if v is not None])) > 1]  # fmt: skip
    if not series:
        return ()
    return (
        Curve(
            title="Success of the episodes so far", x_label="episodes", y_label="share",
            series=tuple(series), note="Band: 95 % Wilson interval.",
        ),
    )  # fmt: skip


def _cumulative(values: Sequence[bool]) -> tuple[CurvePoint, ...]:
    step, points = max(1, math.ceil(len(values) / _MOST_POINTS)), []
    for end in sorted({*range(step, len(values) + 1, step), len(values)} - {0}):
        rate = wilson([float(value) for value in values[:end]])
        if rate is not None:
            points.append(CurvePoint(float(end), rate.mean, rate.low, rate.high))
    return tuple(points)


def _faults(look: Look) -> Markup:
    lines = [tag("li", f"{count}× " if count > 1 else "", fault) for fault, count in look.faults]
    lines += [tag("li", f"cannot be read: {problem}") for problem in look.problems]
    if not lines:
        return Markup("")
    small = note("Episodes that a fault ended are masked, and not counted as failed.")
    return join(tag("h2", "Faults"), tag("ul", *lines, class_="error"), small)


def _episodes(newest: Sequence[Seen]) -> Markup:
    if not newest:
        return Markup("")
    return join(
        tag("h2", "Newest episodes"),
        tag("ol", *map(_episode, newest), class_="entries newest"),
    )


def _episode(seen: Seen) -> Markup:
    word, mark = _MARKS[seen.success]
    why = f", {FAILURE_NAMES[seen.why]}" if seen.why not in (None, "world_fault") else ""
    small = " · ".join(filter(None, [
        f"{word}{why}", seen.trace, seen.task, f"seed {seen.seed}", seen.policy,
        f"{seen.steps} {'step' if seen.steps == 1 else 'steps'}",
    ]))  # fmt: skip
    inside = (
        tag("span", mark, class_=f"outcome {word}"),
        tag("span", seen.goal or seen.task, tag("small", small)),
    )
    address = f"episode/{quote(seen.trace, safe='')}/{seen.number}"
    return tag("li", tag("a", *inside, href=address))


def duration_text(seconds: float) -> str:
    """A duration as readable text."""
    if seconds < 90:
        return f"{max(0.0, seconds):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
