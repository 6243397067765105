"""Do messages help if each agent sees a part of a long screen?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

import msgspec

from benchmarks.cell import Cell
from benchmarks.study import Pair, Study

FORMS = "forms of known templates"
NONE, TOP, FULL = "vote without edges", "vote without edges, top wins ties", "full, page order"
SHUFFLED, WHOLE = f"{FULL}, messages shuffled", "one agent, whole screen"
REDRAWN, SCROLL = "random, redrawn each episode", "one agent scrolling, 4 x the steps"
THOMPSON, RANDOM, BEST = (
    "learned edges, Thompson",
    "20 random graphs",
    "the best of them, cross-fitted",
)
CONTROLS = (
    NONE, TOP, FULL, SHUFFLED, "full, reverse order", "chain, page order", REDRAWN,
    "one agent, top window", "one agent scrolling", SCROLL, "half windows, no edges",
    "half windows, full, page order", WHOLE,
)  # fmt: skip
FIRST = (
    *((arm, NONE) for arm in CONTROLS[1:]), (THOMPSON, NONE),
    ("learned edges, score function", NONE), (RANDOM, NONE), (BEST, NONE), (THOMPSON, TOP),
    (THOMPSON, BEST), (THOMPSON, REDRAWN), (THOMPSON, SCROLL), (FULL, SHUFFLED), (FULL, TOP),
    (FULL, WHOLE),
)  # fmt: skip
"""Differences of the first agent, with which the question was explored."""


def other(*pairs: Pair) -> tuple[Pair, ...]:
    """Differences of the three agents that were trained after the named ones had been named."""
    return tuple((f"other agents: {a}", f"other agents: {b}") for a, b in pairs)


LEARNED, OUTCOME = "learned edges, critic", "learned edges, outcome; own edges"
UNTRAINED, SILENT = "before stage 2; no edges", "no edges, critic; own edges"


def best_graph(cells: Sequence[Cell]) -> Iterable[Cell]:
    """The best random graph: each half of the episodes takes the one that was best on the other
    half, so that the choice is unbiased."""
    graphs = [cell for cell in cells if cell.arm == RANDOM]
    if not graphs:
        return
    played = [cell.outcomes[FORMS] for cell in graphs]
    chosen = list(played[0])
    halves = [range(start, len(chosen), 2) for start in (0, 1)]
    for here, there in (halves, halves[::-1]):
        best = max(played, key=lambda own: _rate([own[k].value for k in there]))
        for k in here:
            chosen[k] = msgspec.structs.replace(best[k], run=0)
    yield Cell(arm=BEST, outcomes={FORMS: chosen}, work=graphs[0].work, origin=graphs[0].origin)


def _rate(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return fmean(known) if known else 0.0


STUDY = Study(
    named=(
        *other((FULL, NONE), (THOMPSON, NONE), (THOMPSON, REDRAWN)),
        (f"{LEARNED}; own edges", SILENT),
        (f"{LEARNED}; own edges", "no edges, critic; top ties"),
        (f"{LEARNED}; own edges", OUTCOME),
    ),
    explored=(
        *other(
            (FULL, SHUFFLED), (FULL, TOP), (FULL, WHOLE), (THOMPSON, TOP), (THOMPSON, SCROLL),
            (THOMPSON, FULL),
        ),
        *((f"{LEARNED}; own edges", f"{LEARNED}; {how}")
          for how in ("shuffled", "muted", "transplanted", "scroller with notes")),
        (f"{LEARNED}; own edges", "redrawn edges, critic; own edges"),
        (SILENT, UNTRAINED), (f"{LEARNED}; own edges", UNTRAINED),
        (f"{LEARNED}; own edges", "before stage 2; top ties"),
        *FIRST,
    ),
    derived=best_graph,
    seeds=(0, 1, 2, 3, 4),
    shown=tuple(
        f"other agents: {arm}"
        for arm in (NONE, TOP, FULL, THOMPSON, WHOLE)
    ),
    shown_on=(FORMS,),
)  # fmt: skip
