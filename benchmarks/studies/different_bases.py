"""Is a vote of agents from different trainings better than a vote of copies of one agent?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

import msgspec

from benchmarks.cell import Cell
from benchmarks.study import Study
from swarm_ui.stats import Outcome

AGENTS = 4
POOLS = ("continued", "scratch")
BEST = 2
"""The agent of each pool that is most often right on validation episodes."""
SPLITS = ("validation", "new parameters", "new templates", "new apps")


def measures(cells: Sequence[Cell]) -> Iterable[Cell]:
    """On all screens: whether one agent is right, and whether any of a team is."""
    for pool in POOLS:
        for split in SPLITS:
            own = [c for c in cells if c.arm.startswith(pool) and split in c.outcomes]
            rights = [_right(cell) for cell in own if "right" in cell.notes]
            place = f"{split}: the vote is right"
            where = next(c.outcomes[place] for c in own)
            for k, right in enumerate(rights):
                team = f"{pool}: clones of agent {k}"
                yield _cell(f"{team}; one agent is right", where, split, [fmean(d) for d in right])
                yield _cell(f"{team}; any agent is right", where, split, [max(d) for d in right])
            shifted = [
                fmean(
                    float(any(d[k][(k + shift) % AGENTS] for k in range(AGENTS)))
                    for shift in range(AGENTS)
                )
                for d in zip(*rights, strict=True)
            ]
            team = f"{pool}: different agents"
            yield _cell(f"{team}; any agent is right", where, split, shifted)


def _right(cell: Cell) -> list[list[int]]:
    """Whether the agent is right on each screen, with each of the four views."""
    marks = [int(digit) for digit in cell.notes["right"]]
    return [marks[k : k + AGENTS] for k in range(0, len(marks), AGENTS)]


def _cell(arm: str, where: Sequence[Outcome], split: str, values: Sequence[float]) -> Cell:
    outcomes = [
        msgspec.structs.replace(o, value=float(v)) for o, v in zip(where, values, strict=True)
    ]
    return Cell(arm=arm, outcomes={f"{split}: decisions": outcomes})


STUDY = Study(
    named=tuple(
        pair
        for pool in POOLS
        for pair in (
            (f"{pool}: different agents; any agent is right",
             f"{pool}: clones of agent {BEST}; one agent is right"),
            (f"{pool}: different agents; any agent is right",
             f"{pool}: clones of agent {BEST}; any agent is right"),
            (f"{pool}: different agents", f"{pool}: clones of agent {BEST}"),
        )
    ),
    named_on=("new parameters", "new parameters: decisions"),
    derived=measures,
    note="The phone is simulated, and a scripted solver grades every decision. One set of agents "
    "of each kind.",
)  # fmt: skip
