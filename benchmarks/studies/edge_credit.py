"""Do edges learn faster from credit than from the outcome of the episode?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from benchmarks.cell import Cell, read_cells
from benchmarks.study import Study

SPLIT = "outcome, settings of the study of split facts"


def of_split(cells: Sequence[Cell]) -> Iterable[Cell]:
    """The learned edges of the study of split facts, which have the same test episodes."""
    for cell in read_cells("split"):
        if cell.arm == "learned edges":
            yield msgspec.structs.replace(cell, arm=SPLIT)


STUDY = Study(
    named=(("critic", "outcome"), ("leave one out", "outcome")),
    named_on=("known templates, after 520 episodes",),
    explored=(("critic, 20 % errors", "outcome"),),
    seeds=(0, 1, 2, 3, 4),
    derived=of_split,
    note="Scripted agents and a scripted critic on a simulated phone. The third named difference "
    "is that of the tokens on known templates at the end.",
)
