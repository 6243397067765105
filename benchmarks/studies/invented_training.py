"""Does stage 2 gain in new apps if half of its training is on many invented devices?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from benchmarks.cell import Cell
from benchmarks.study import Study
from swarm_ui.environments.phone.invented import APPS
from swarm_ui.environments.phone.invented.tasks import templates
from swarm_ui.stats import Outcome

BASE, GENERAL = "four untrained agents", "four general agents (of this package), no stage 2"


def by_app(cells: Sequence[Cell]) -> Iterable[Cell]:
    """The blind set again, clustered by app instead of by template."""
    for cell in cells:
        if "blind set" in cell.outcomes:
            outcomes = [_of_app(o) for o in cell.outcomes["blind set"]]
            yield msgspec.structs.replace(
                cell, outcomes={"blind set, clustered by app": outcomes}, work={}
            )


def _of_app(outcome: Outcome) -> Outcome:
    number = int(outcome.template.split("-")[1])
    (app,) = templates(number, APPS, "few")[outcome.template].apps
    return msgspec.structs.replace(outcome, template=f"{number} {app}")


def study(
    main: str,
    start: str,
    controls: Sequence[str],
    others: Sequence[str],
    shown: Sequence[str] = (),
) -> Study:
    """A study of one main arm against the untrained team and controls.

    Args:
        main: the arm of the named differences.
        start: the untrained team.
        controls: the other arms of the named differences.
        others: all other arms that were trained.
        shown: arms that are on the page.
    """
    arms = [a for a in (*controls, *others) if a != GENERAL]
    general = [(GENERAL, BASE), (GENERAL, controls[0])] if start == BASE else []
    return Study(
        named=[(main, other) for other in (start, *controls)],
        named_on=("new apps",),
        explored=[
            *((arm, start) for arm in arms), *((main, arm) for arm in others), *general,
        ],
        derived=by_app,
        shown=shown,
        shown_on=("new parameters", "new apps", "blind set"),
        note="The phone is simulated, critic and teacher are scripted. The blind set was played "
        "once, so that no arm or seed can be added.",
    )  # fmt: skip


STUDY = study(
    "stage 2, 32 invented devices",
    BASE,
    ("more stage 1, 32 invented devices", "stage 2, 0 invented devices"),
    (
        "stage 2, 8 invented devices", "stage 2, 16 invented devices",
        "stage 2, 64 invented devices", "stage 2, 32 invented devices, credit by outcome",
    ),
)  # fmt: skip
