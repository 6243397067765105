"""What an earlier process spent in a run that is resumed, in the budgets of the graph's models."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.budget import Budget, Price
from swarm_ui.engine.schedule import schedule_of
from swarm_ui.graph.dag import Dag
from swarm_ui.message import Usage
from swarm_ui.storage.protocol import RecordedCall
from swarm_ui.trace.records import Call


def count_spent(graph: Dag, run: str, seed: int, past: Mapping[str, RecordedCall]) -> None:
    """Count the recorded calls of a run in the budgets of their models.

    A budget that has counted the run already is left as it is: this process made the calls.
    """
    models = schedule_of(graph).budgeted
    if not models:
        return
    calls = [call for _, call in past.values()]
    around = {call.message.rpartition("/")[0] for call in calls if call.step is not None}
    spent: dict[int, tuple[Budget, list[tuple[Usage, Price | None]]]] = {}
    for budget, _ in models.values():
        spent.setdefault(id(budget), (budget, []))
    for call in calls:
        found = models.get(call.node if call.step is None else call.node.rpartition("/")[0])
        if found is not None and _asked_model(call, around):
            budget, name = found
            price = budget.prices.get(call.adapter or name) or budget.prices.get(name)
            spent[id(budget)][1].append((call.usage, price))
    for budget, made in spent.values():
        budget.resume((run, seed), made)


def _asked_model(call: Call, around: set[str]) -> bool:
    """Whether a call asked its model itself: it has an answer of it, or it failed and has no steps
    that asked."""
    if call.model or call.prompt:
        return True
    return call.error is not None and call.step is None and call.message not in around
