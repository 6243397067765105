"""A graph unrolled over its rounds: computed once for each graph and shared by its runs; and the
models that its nodes ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import NamedTuple
from weakref import WeakKeyDictionary

from swarm_ui.budget import Budget, Price
from swarm_ui.graph.check import ambiguous
from swarm_ui.graph.dag import Dag
from swarm_ui.message import Usage
from swarm_ui.model import VersionedModel
from swarm_ui.node import Answer, Condition, Node, parts_of, scope_of
from swarm_ui.trace.records import Call


class Planned(NamedTuple):
    """A call of a node in a round."""

    id: str
    name: str
    round: int
    node: Answer
    inputs: tuple[int, ...]
    """Numbers of the calls whose messages it receives, in the order of its inbox."""
    conditions: tuple[Condition | None, ...]
    """For each input, which of its messages are received; ``None``: all."""
    own: int
    """Number of the node's call in the last round, or -1."""
    first: bool
    """It receives nothing from this round: in a nested graph, the messages from outside."""
    composite: bool
    """It has nodes inside."""
    seconds: float | None
    """Its own time limit; ``None``: that of the run, which holds for the nodes inside of a node,
    not for itself."""


class Plan:
    """Calls numbered from 0, round by round, then those after the last round.

    The inputs of a call are from earlier rounds, or from the same round along an edge without a
    delay.
    """

    def __init__(self, graph: Dag, last: int) -> None:
        """``last``: the last round that is made. Raises ``GraphError`` for open ends."""
        if len(graph.ends) > 1:
            raise ambiguous(graph.ends)
        places = [(name, r) for r in range(last + 1) for name in graph.agents]
        places += [(name, last) for name in graph.closing]
        number = {place: k for k, place in enumerate(places)}
        first, closing = frozenset(graph.sources), frozenset(graph.closing)
        self.calls: list[Planned] = []
        #: for each call, those that receive its message
        self.successors: list[list[int]] = [[] for _ in places]
        for k, (name, r) in enumerate(places):
            node, own = graph.nodes[name], -1 if name in closing else number.get((name, r - 1), -1)
            heard = _heard(graph, name, r) if own < 0 else [(name, r - 1), *_heard(graph, name, r)]
            # In the first rounds a delayed edge has nothing to deliver.
            inputs = tuple([number[place] for place in heard if place in number])
            conditions = tuple([graph.when.get((places[j][0], name)) for j in inputs])
            composite = bool(parts_of(node))
            seconds = getattr(node, "timeout", None) or (inf if composite else None)
            self.calls.append(
                Planned(f"{name}:{r}", name, r, node, inputs, conditions, own, name in first,
                        composite, seconds)
            )  # fmt: skip
            for j in inputs:
                self.successors[j].append(k)
        self.final = number[graph.output, last]
        #: adapters to lease; and budgets with the names of their models, by the paths of the nodes
        self.leases, self.budgets = _models(graph)


def _heard(graph: Dag, name: str, round: int) -> list[tuple[str, int]]:
    """Nodes and rounds whose messages the edges deliver to a node in a round."""
    senders, delays = graph.predecessors[name], graph.delays
    if scope_of(graph.nodes[name]) == "all":
        return [(sender, r) for r in range(round + 1) for sender in senders]
    return [(sender, round - delays.get((sender, name), 0)) for sender in senders]


_PLANS: WeakKeyDictionary[Dag, dict[int, Plan]] = WeakKeyDictionary()


def plan_of(graph: Dag, last_round: int | None = None) -> Plan:
    """The plan of a graph, made at its first run and kept as long as the graph.

    ``last_round``: the last round of a run whose rounds ended early; ``None``: the graph's.
    """
    last = graph.rounds - 1 if last_round is None else last_round
    plans = _PLANS.setdefault(graph, {})
    if last not in plans:
        plans[last] = Plan(graph, last)
    return plans[last]


# -- adapter versions and budgets ---------------------------------------------------------------

Lease = tuple[VersionedModel, str]
Versions = dict[tuple[int, str], Lease]
"""By the identity of a model and an adapter: the model, and the version that is in use."""
_EPISODE: ContextVar[Versions | None] = ContextVar("versions of an episode", default=None)


def _all_nodes(nodes: Mapping[str, Node], path: str = "") -> Iterator[tuple[str, Node]]:
    """All nodes by their full names, those inside other nodes too."""
    for name, node in nodes.items():
        yield path + name, node
        yield from _all_nodes(parts_of(node), f"{path}{name}/")


def _models(graph: Dag) -> tuple[Versions, dict[str, tuple[Budget, str]]]:
    leases: Versions = {}
    budgets: dict[str, tuple[Budget, str]] = {}
    for path, node in _all_nodes(graph.nodes):
        adapter, model = getattr(node, "adapter", None), getattr(node, "model", None)
        if adapter is not None and isinstance(model, VersionedModel):
            leases[id(model), adapter] = model, adapter
        budget = getattr(model, "budget", None)
        if isinstance(budget, Budget):
            budgets[path] = budget, str(getattr(model, "name", ""))
    return leases, budgets


@contextmanager
def same_versions() -> Iterator[Versions]:
    """In this context, and in tasks started in it, all runs use the adapter versions of the first
    run that requests them, even if newer ones are loaded meanwhile. They are released at the end. A
    nested context has no effect."""
    around = _EPISODE.get()
    if around is not None:
        yield around
        return
    versions: Versions = {}
    token = _EPISODE.set(versions)
    try:
        yield versions
    finally:
        _EPISODE.reset(token)
        for model, version in versions.values():
            model.release(version)


def count_spent(graph: Dag, run: str, seed: int, past: Mapping[str, Call]) -> None:
    """Count the recorded calls of a run in the budgets of their models.

    A budget that has counted the run already is left as it is: this process made the calls.
    """
    models = plan_of(graph).budgets
    around = {id.rpartition("/")[0] for id, call in past.items() if call.step is not None}
    spent: dict[Budget, list[tuple[Usage, Price | None]]] = {b: [] for b, _ in models.values()}
    for call in past.values():
        path = call.node if call.node in models else call.node.rpartition("/")[0]
        # It failed before an answer, or asked in no step.
        failed = call.error is not None and path == call.node and call.id not in around
        if path in models and (call.completion is not None or failed):
            budget, name = models[path]
            price = budget.prices.get(call.adapter or name) or budget.prices.get(name)
            spent[budget].append((call.usage, price))
    for budget, made in spent.items():
        budget.resume((run, seed), made)
