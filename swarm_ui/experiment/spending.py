"""What the budget of a run's model has counted, kept in the folder of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from swarm_ui.budget import Budget
from swarm_ui.files import write_atomic
from swarm_ui.message import Usage
from swarm_ui.report.results import Cost
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import iter_jsonl


class Spent(msgspec.Struct, frozen=True):
    """Calls and tokens of all processes that worked on the run."""

    calls: int = 0
    tokens: int = 0


@contextmanager
def spending(model: object, run: RunDirectory, *, role: str = "") -> Iterator[None]:
    """Count in the model's budget what the run has spent before, and write what it spends.

    A process that was killed has not written it; then the calls of the agents in the traces and in
    the measurements of a training count.

    Args:
        model: a model that may have a budget.
        run: its folder has the file ``spent.json``.
        role: of a model beside that of the agents, such as ``"critic"``; it has a file of its own,
            and no traces.
    """
    budget = getattr(model, "budget", None)
    if not isinstance(budget, Budget) or not budget.limited:
        yield
        return
    path = run.path / (f"spent-{role}.json" if role else "spent.json")
    spent = msgspec.json.decode(path.read_bytes(), type=Spent) if path.exists() else Spent()
    if not role:
        found = _recorded(run)
        spent = Spent(max(spent.calls, found.calls), max(spent.tokens, found.tokens))
    budget.count(Usage(prompt_tokens=spent.tokens), spent.calls)
    try:
        yield
    finally:
        write_atomic(path, msgspec.json.encode(Spent(budget.calls, budget.tokens)))


def _recorded(run: RunDirectory) -> Spent:
    """What the traces of an evaluation, or the measurements of a training, say."""
    episodes = (e for file in run.traces.glob("*.jsonl") for e in iter_jsonl(file, whole=False))
    traced = Cost.of_episodes(episodes)
    lines = [line for line in run.metrics() if line.get("kind") == "rollouts"]
    counted = Cost.total(msgspec.convert({**line, "seconds": 0.0}, Cost) for line in lines)
    costs = (traced, counted)
    return Spent(
        calls=max(cost.calls for cost in costs),
        tokens=max(cost.prompt_tokens + cost.completion_tokens for cost in costs),
    )
