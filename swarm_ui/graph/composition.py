"""Graphs written from left to right: ``planner >> [ada, grace] >> MajorityVote()``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar, overload

from swarm_ui.errors import GraphError
from swarm_ui.graph.dag import Dag
from swarm_ui.node import Node, Until

G = TypeVar("G", bound=Dag)
Part: TypeAlias = "Dag | Node | OpenGraph[Any]"
"""Operands of ``>>``, alone or in a list."""


class OpenGraph(Generic[G]):
    """A graph with open ends; the next appended part receives the messages of all of them.

    ``graph >> [a, b]`` makes one and ``>> node`` closes it; until then it cannot run.
    """

    __slots__ = ("_graph", "ends")

    def __init__(self, graph: G, ends: Iterable[str]) -> None:
        self._graph = graph
        #: names of the nodes without successors
        self.ends = tuple(ends)

    @overload
    def __rshift__(self, other: Sequence[Part] | OpenGraph[Any]) -> OpenGraph[G]: ...
    @overload
    def __rshift__(self, other: Dag | Node) -> G: ...
    def __rshift__(self, other: Part | Sequence[Part]) -> G | OpenGraph[G]:
        return then(self._graph, self.ends, other)

    def __rrshift__(self, other: Node | Sequence[Part]) -> OpenGraph[G]:
        return then(*start(self._graph, other), self)

    def __repr__(self) -> str:
        return f"OpenGraph('{self._graph.name}', open ends: {', '.join(self.ends)})"

    if not TYPE_CHECKING:  # type checkers detect that a fan is not a graph

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_") or not hasattr(self._graph, name):
                raise AttributeError(f"'OpenGraph' object has no attribute '{name}'")
            raise GraphError(
                f"no '{name}' yet: '{self._graph.name}' has open ends ({', '.join(self.ends)}). "
                "Close it with '>> node', for instance '>> MajorityVote()'"
            )


@overload
def then(graph: G, ends: Sequence[str], other: Sequence[Part] | OpenGraph[Any]) -> OpenGraph[G]: ...
@overload
def then(graph: G, ends: Sequence[str], other: Dag | Node) -> G: ...
def then(graph: G, ends: Sequence[str], other: Part | Sequence[Part]) -> G | OpenGraph[G]:
    """A graph followed by a part, or by a list of parts; each receives the messages of its ends."""
    parts = _parts(other)
    longer, tips = _append(graph, ends, parts)
    return OpenGraph(longer, tips) if parts is other or isinstance(other, OpenGraph) else longer


def start(like: G, other: Node | Sequence[Part]) -> tuple[G, tuple[str, ...]]:
    """A graph that begins with a node or a list of parts, and its open ends."""
    first, *others = _parts(other)
    graph, ends = _opened(like, first)
    if others:
        graph, tips = _append(graph, (), others)
        ends = (*ends, *tips)
    return graph.named(like.name), ends


def _append(graph: G, ends: Sequence[str], parts: Sequence[Part]) -> tuple[G, tuple[str, ...]]:
    """One graph in which the first nodes of every part follow the ends, and the new open ends."""
    nodes, edges = dict(graph.nodes), list(graph.edges)
    when, delays = dict(graph.when), dict(graph.delays)
    tips: list[str] = []
    until = graph.until
    for part in parts:
        new, its = _opened(graph, part)
        _check_fits(graph, nodes, new, until)
        until = until or new.until
        edges += [(end, name) for name in new.sources for end in ends]
        edges += new.edges
        nodes |= new.nodes
        when |= new.when
        delays |= new.delays
        tips += its
    whole = type(graph)(
        nodes,
        edges,
        output=tips[0],
        rounds=graph.rounds,
        name=graph.name,
        when=when,
        delays=delays,
        until=until,
    )
    return whole, tuple(tips)


def _opened(like: G, part: Part) -> tuple[G, tuple[str, ...]]:
    """A part as a graph with its open ends."""
    if isinstance(part, OpenGraph):
        return part._graph, part.ends
    if isinstance(part, Dag):
        return part, (part.output,)  # type: ignore[return-value]
    alone = type(like)([part], rounds=like.rounds)
    return alone.named(alone.output), (alone.output,)


def _check_fits(graph: Dag, nodes: Mapping[str, Node], new: Dag, until: Until | None) -> None:
    what = f"cannot compose '{graph.name}' with '{new.name}'"
    twice = next((name for name in new.nodes if name in nodes), None)
    if twice is not None:
        raise GraphError(
            f"{what}: two nodes are called '{twice}'. "
            f"Rename one, as in graph.rename({{'{twice}': '{twice}_2'}})"
        )
    nest = "Nest one as a node of the other with with_node()"
    if new.rounds != graph.rounds or (graph.rounds > 1 and graph.closing and len(new) > 1):
        raise GraphError(
            f"{what} ({graph.rounds} and {new.rounds} rounds): both need equal rounds, and a graph "
            f"with a vote cannot repeat its rounds. {nest}"
        )
    if until is not None and new.until not in (None, until):
        raise GraphError(f"{what}: the two graphs have different 'until' functions. {nest}")


def _parts(other: Part | Sequence[Part]) -> Sequence[Part]:
    if callable(other) or not isinstance(other, list | tuple):
        return [other]  # type: ignore[list-item]
    if not other:
        raise GraphError("'>> []' is an empty list; put at least one node in it")
    return other
