"""Do edges learn faster from credit than from the outcome of the episode?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

import msgspec

from benchmarks.cell import Cell, read_cells
from benchmarks.study import Study
from benchmarks.support.tables import markdown_table

ARMS = ("outcome", "critic", "leave one out", "critic, 20 % errors")
SPLIT = "outcome, settings of the study of split facts"
EACH = 104
"""Training episodes of a step: 13 templates on 8 graphs."""
NEAR, HELD, CHEAP = 0.95, 3, 2.0
"""Near the oracle: this success for so many steps; cheap: with so many times its tokens."""


def of_split(cells: Sequence[Cell]) -> Iterable[Cell]:
    """The learned edges of the study of split facts, which have the same test episodes."""
    for cell in read_cells("split"):
        if cell.arm == "learned edges":
            yield msgspec.structs.replace(cell, arm=SPLIT)


def speeds(cells: Sequence[Cell]) -> str:
    """Episodes until known templates are near the oracle, and the settings that were tried."""
    oracle = next(cell for cell in cells if cell.arm == "oracle router")
    most = CHEAP * oracle.work["known templates"]["tokens"]
    lines = []
    for arm in ARMS:
        curves = [c.notes["curve"]["known templates"] for c in cells if c.arm == arm]
        costs = [c.work["training"] for c in cells if c.arm == arm]
        ends = [", ".join(_reached(curve, limit) for curve in curves)
                for limit in (float("inf"), most)]  # fmt: skip
        calls = (f"{fmean(c[key] for c in costs):,.0f}" for key in ("calls", "credit_calls"))
        lines.append((arm, *ends, *calls))
    heads = ("edges learn from", "episodes to 95 % of the oracle",
             f"with at most {CHEAP:g} times its tokens", "calls", "calls for credit")  # fmt: skip
    tried = [
        (cell.arm.removeprefix("setting of: "),
         ", ".join(f"{key} {value}" for key, value in setting.items()),
         f"{100 * success:.1f}", f"{tokens:,.0f}", "chosen" * (setting == cell.settings))
        for cell in cells
        for setting, success, tokens in cell.notes.get("tried", ())
    ]  # fmt: skip
    columns = ("arm", "setting", "success %", "tokens", "")
    return f"{markdown_table(heads, lines)}\n\n{markdown_table(columns, tried)}"


def _reached(curve: Sequence[Sequence[float]], most: float) -> str:
    near = [success >= NEAR and spent <= most for success, spent in curve]
    starts = (k for k in range(len(near) - HELD + 1) if all(near[k : k + HELD]))
    step = next(starts, None)
    return "never" if step is None else f"{(step + 1) * EACH:,}"


STUDY = Study(
    named=(("critic", "outcome"), ("leave one out", "outcome")),
    named_on=("known templates, after 520 episodes",),
    explored=(("critic, 20 % errors", "outcome"),),
    seeds=(0, 1, 2, 3, 4),
    derived=of_split,
    more=speeds,
    note="Scripted agents and a scripted critic on a simulated phone. The third named difference "
    "is that of the tokens on known templates at the end.",
)
