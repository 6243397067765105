"""A graph unrolled over its rounds: computed once for each graph and shared by its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from weakref import WeakKeyDictionary

from swarm_ui.budget import Budget, Price
from swarm_ui.errors import GraphError
from swarm_ui.graph.dag import Dag
from swarm_ui.message import Usage
from swarm_ui.model import VersionedModel
from swarm_ui.node import Condition, Node, parts_of, scope_of
from swarm_ui.trace.records import Call

Lease = tuple[VersionedModel, str]


class Plan:
    """Calls numbered ``0 .. size - 1``, round by round, then those after the last round.

    All sequences are indexed by call number. The inputs of a call are from earlier rounds, or from
    the same round along an edge without a delay.
    """

    def __init__(self, graph: Dag, last: int) -> None:
        """``last``: the last round that is made. Raises ``GraphError`` for open ends."""
        if len(graph.ends) > 1:
            raise GraphError(
                f"the output is ambiguous: no node receives the messages of "
                f"{', '.join(graph.ends)}. Append a vote or another node with >>"
            )
        team, closing = graph.agents, frozenset(graph.closing)
        places = [(name, r) for r in range(last + 1) for name in team]
        places += [(name, last) for name in graph.closing]
        number = {place: k for k, place in enumerate(places)}
        self.size = len(places)
        self.names = tuple(name for name, _ in places)
        self.rounds = tuple(r for _, r in places)
        self.ids = tuple(f"{name}:{r}" for name, r in places)
        self.nodes = tuple(graph.nodes[name] for name in self.names)
        self.final = number[graph.output, last]
        self.composite = tuple(bool(parts_of(node)) for node in self.nodes)
        #: own time limits; that of the run holds for the nodes inside of a node, not for itself
        self.seconds = tuple(
            getattr(node, "timeout", None) or (inf if inside else None)
            for node, inside in zip(self.nodes, self.composite, strict=True)
        )
        #: adapters to lease; and budgets with the names of their models, by the paths of the nodes
        self.leases, self.budgets = _models(graph)
        self.own = tuple(
            number[name, r - 1] if r and name not in closing else -1 for name, r in places
        )
        self.inputs = tuple(
            _inputs(graph, name, r, own, number)
            for (name, r), own in zip(places, self.own, strict=True)
        )
        #: for each input, which of its messages are received; ``None``: all
        self.conditions: tuple[tuple[Condition | None, ...], ...] = tuple(
            tuple([graph.when.get((self.names[j], self.names[k])) for j in inputs])
            for k, inputs in enumerate(self.inputs)
        ) if graph.when else ()  # fmt: skip
        sources = frozenset(graph.sources)
        #: calls that receive nothing from this round: in a nested graph, the messages from outside
        self.open = tuple(name in sources for name, _ in places)
        successors: list[list[int]] = [[] for _ in places]
        for k, inputs in enumerate(self.inputs):
            for j in inputs:
                successors[j].append(k)
        self.successors = tuple(map(tuple, successors))
        self.waiting = tuple(map(len, self.inputs))


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


def _inputs(
    graph: Dag, name: str, round: int, own: int, number: Mapping[tuple[str, int], int]
) -> tuple[int, ...]:
    """Calls whose messages a call receives, in the order of its inbox."""
    senders, delays = graph.predecessors[name], graph.delays
    if scope_of(graph.nodes[name]) == "all":
        rounds = range(round + 1)
        return tuple(
            number[sender, r] for r in rounds for sender in senders if (sender, r) in number
        )
    before = () if own < 0 else (own,)
    if not delays:
        return before + tuple(number[sender, round] for sender in senders)
    sent = [(sender, round - delays.get((sender, name), 0)) for sender in senders]
    # In the first rounds a delayed edge has nothing to deliver.
    return before + tuple(number[place] for place in sent if place[1] >= 0)


def _all_nodes(nodes: Mapping[str, Node], path: str = "") -> Iterator[tuple[str, Node]]:
    """All nodes by their full names, those inside other nodes too."""
    for name, node in nodes.items():
        yield path + name, node
        yield from _all_nodes(parts_of(node), f"{path}{name}/")


def _models(graph: Dag) -> tuple[tuple[Lease, ...], dict[str, tuple[Budget, str]]]:
    leases: dict[tuple[int, str], Lease] = {}
    budgets: dict[str, tuple[Budget, str]] = {}
    for path, node in _all_nodes(graph.nodes):
        adapter, model = getattr(node, "adapter", None), getattr(node, "model", None)
        if adapter is not None and isinstance(model, VersionedModel):
            leases[id(model), adapter] = model, adapter
        budget = getattr(model, "budget", None)
        if isinstance(budget, Budget):
            budgets[path] = budget, str(getattr(model, "name", ""))
    return tuple(leases.values()), budgets


# -- adapter versions ---------------------------------------------------------------------------


Versions = dict[tuple[int, str], Lease]
"""By the identity of a model and an adapter: the model, and the version that is in use."""
_EPISODE: ContextVar[Versions | None] = ContextVar("versions of an episode", default=None)


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


# -- what was spent before a run was resumed --------------------------------------------------


def count_spent(graph: Dag, run: str, seed: int, past: Mapping[str, Call]) -> None:
    """Count the recorded calls of a run in the budgets of their models.

    A budget that has counted the run already is left as it is: this process made the calls.
    """
    models = plan_of(graph).budgets
    around = {call.id.rpartition("/")[0] for call in past.values() if call.step is not None}

    def spent(budget: Budget) -> Iterator[tuple[Usage, Price | None]]:
        for call in past.values():
            path = call.node if call.node in models else call.node.rpartition("/")[0]
            owner, name = models.get(path, (None, ""))
            # It failed before an answer, or asked in no step.
            failed = call.error is not None and path == call.node and call.id not in around
            if owner is budget and (call.completion is not None or failed):
                price = budget.prices.get(call.adapter or name) or budget.prices.get(name)
                yield call.usage, price

    for budget, _ in models.values():
        budget.resume((run, seed), spent(budget))
