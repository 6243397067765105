"""What the budget of a run's model has counted, kept in the folder of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from swarm_ui.budget import Budget
from swarm_ui.experiment.results import Cost
from swarm_ui.files import write_atomic
from swarm_ui.message import Usage
from swarm_ui.model import ChatModel
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import iter_jsonl

FILE = "spent.json"


class Spent(msgspec.Struct, frozen=True):
    """Calls and tokens of all processes that played the run."""

    calls: int = 0
    tokens: int = 0


@contextmanager
def spending(model: ChatModel, run: RunDirectory) -> Iterator[None]:
    """Count in the model's budget what the run has spent before, and write what it spends.

    A process that was killed has not written it; then the calls in the traces count.
    """
    budget = getattr(model, "budget", None)
    if not isinstance(budget, Budget) or not budget.limited:
        yield
        return
    path = run.path / FILE
    spent = msgspec.json.decode(path.read_bytes(), type=Spent) if path.exists() else Spent()
    episodes = (e for file in run.traces.glob("*.jsonl") for e in iter_jsonl(file, whole=False))
    traced = Cost.of_episodes(episodes)
    tokens = max(spent.tokens, traced.prompt_tokens + traced.completion_tokens)
    budget.count(Usage(prompt_tokens=tokens), max(spent.calls, traced.calls))
    try:
        yield
    finally:
        write_atomic(path, msgspec.json.encode(Spent(budget.calls, budget.tokens)))
