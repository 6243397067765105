"""Does credit find an agent that always sends wrong actions, and does removal repair the team?"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.cell import Cell
from benchmarks.study import Study
from benchmarks.table import markdown_table

FULL, HEALTHY, CUT = (
    "broken: fully connected",
    "healthy, fully connected",
    "found, edges and vote cut",
)
NONE, REDRAWN = "broken: no edges", "broken: random edges, redrawn"
HALF = "half of the loss recovered"


def searches(cells: Sequence[Cell]) -> str:
    """In how many seeds credit found the broken agent, by setting."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.arm.startswith("search: "):
            found.setdefault(cell.arm.removeprefix("search: "), []).append(cell)
    lines = []
    for setting, own in found.items():
        notes = [cell.notes for cell in own]
        right = sum(note["found"] == [note["broken"]] for note in notes)
        accused = sum(bool(note["healthy_found"]) for note in notes)
        lines.append((setting, f"{right} of {len(notes)}", f"{accused} of {len(notes)}"))
    heads = ("setting", "seeds in which it was found", "seeds in which a healthy team was accused")
    return markdown_table(heads, lines)


STUDY = Study(
    named=((FULL, HEALTHY), (CUT, FULL), (CUT, NONE)),
    named_on=("whole screen, random actions",),
    explored=(
        (CUT, REDRAWN), (CUT, HEALTHY), ("found, its edges cut", FULL),
        ("found, its vote cut", FULL), (NONE, FULL), (REDRAWN, FULL),
        (HEALTHY, "healthy, no edges"), (CUT, HALF),
    ),
    means={HALF: (FULL, HEALTHY)},
    more=searches,
    note="The phone is simulated; the critic is scripted, and 10 % of its verdicts are inverted.",
)  # fmt: skip
