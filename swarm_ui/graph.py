"""A team as a graph: who there is, and who talks to whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from swarm_ui import interchange
from swarm_ui.draw import svg
from swarm_ui.errors import GraphError
from swarm_ui.executor import Limits, execute, nested, run_blocking
from swarm_ui.message import Message
from swarm_ui.model import ChatModel
from swarm_ui.node import Node, NodeContext, NodeReply, Scope
from swarm_ui.observation import Observation
from swarm_ui.plan import Plan
from swarm_ui.structure import (
    check_heard,
    check_name,
    check_unique,
    checked_edges,
    closes,
    electorate,
    named,
    only_sink,
    unknown,
)
from swarm_ui.topology import Edge, descendants, predecessors, topological
from swarm_ui.trace import Trace

if TYPE_CHECKING:
    import networkx

Views = Literal["same", "shuffle"]
VoteRule = Literal["majority", "probability"]


class CollabGraph:
    """Nodes and ordered edges, immutable; every operation returns a new graph.

    Each node speaks once a round; it hears its own message of the last round, then its
    predecessors of this round in edge order. Closing nodes (votes) and all that follows them speak
    once, after the last round. A graph is itself a node: it can stand in another graph.

    Example:
        >>> from swarm_ui.nodes import function_node
        >>> @function_node
        ... def greet(inbox, context):
        ...     return "hello " + context.observation.goal
        >>> @function_node
        ... def shout(inbox, context):
        ...     return inbox[-1].content.upper()
        >>> team = CollabGraph([greet, shout], [("greet", "shout")])
        >>> team.run_sync("world").messages[-1].content
        'HELLO WORLD'
    """

    def __init__(
        self,
        nodes: Iterable[Node] | Mapping[str, Node],
        edges: Iterable[Edge] = (),
        output: str | None = None,
        rounds: int = 1,
        name: str = "team",
    ) -> None:
        """
        Args:
            nodes: the nodes, each under its own ``id``; or a mapping that names them.
            edges: (sender, listener) pairs. A closing node without any hears all agents.
            output: whose message is the answer; ``None``: the only node nobody hears.
            rounds: how often each agent speaks, at least 1.
            name: the graph's own name, used where it stands as a node in another graph.

        Raises:
            GraphError: a name is unfit, unknown or used twice, or the edges form a cycle.
        """
        members = named(nodes)
        if rounds < 1:
            raise GraphError(f"rounds must be at least 1, got {rounds}")
        check_name(name)
        self._nodes: Mapping[str, Node] = MappingProxyType(members)
        self._edges = electorate(members, checked_edges(members, edges))
        self._rounds = rounds
        self._name = name
        self._heard = MappingProxyType(predecessors(members, self._edges))
        topological(self._heard)
        self._output = only_sink(members, self._edges) if output is None else output
        if self._output not in members:
            raise GraphError(unknown("output", self._output, members))

    @property
    def id(self) -> str:
        return self._name

    @property
    def name(self) -> str:
        return self._name

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Nodes by name, in the order given."""
        return self._nodes

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All (sender, listener) pairs, in order; those into closing nodes too."""
        return self._edges

    @property
    def output(self) -> str:
        return self._output

    @property
    def rounds(self) -> int:
        return self._rounds

    @property
    def heard(self) -> Mapping[str, tuple[str, ...]]:
        """Whom each node hears, in edge order."""
        return self._heard

    @cached_property
    def closing(self) -> tuple[str, ...]:
        """Nodes that speak once, after the last round: votes and all that follows them."""
        after = descendants((n for n, node in self._nodes.items() if closes(node)), self._edges)
        return tuple(name for name in self._nodes if name in after)

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """Nodes that speak every round."""
        after = frozenset(self.closing)
        return tuple(name for name in self._nodes if name not in after)

    @cached_property
    def talk(self) -> tuple[Edge, ...]:
        """Edges among agents, which messages travel over every round: what can be learned."""
        after = frozenset(self.closing)
        return tuple(edge for edge in self._edges if edge[1] not in after)

    @cached_property
    def plan(self) -> Plan:
        """The graph unrolled over its rounds; for the executor."""
        return Plan(self)

    # -- running ------------------------------------------------------------------------------

    async def run(
        self,
        observation: Observation | str,
        *,
        seed: int = 0,
        run: str = "",
        edge_logprob: float | None = None,
        limits: Limits | None = None,
        given: Trace | None = None,
    ) -> Trace:
        """Decide once; see :func:`swarm_ui.executor.execute`. A string is a goal on no screen."""
        if isinstance(observation, str):
            observation = Observation(goal=observation, elements=())
        return await execute(
            self,
            observation,
            seed=seed,
            run=run,
            edge_logprob=edge_logprob,
            limits=limits,
            given=given,
        )

    def run_sync(self, observation: Observation | str, *, seed: int = 0, run: str = "") -> Trace:
        """:meth:`run` for scripts and notebooks; works inside a running event loop too."""
        return run_blocking(self.run(observation, seed=seed, run=run))

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        """The graph as a node: its first nodes hear the inbox, its output is the answer."""
        return await nested(self, inbox, context)

    # -- other graphs from this one -----------------------------------------------------------

    def with_edges(self, edges: Iterable[Edge]) -> CollabGraph:
        """The same agents with these edges among them **instead**; who votes stays."""
        after = frozenset(self.closing)
        new = tuple(edges)
        spoken_to = {listener for _, listener in new}
        kept = [e for e in self._edges if e[1] in after and e[1] not in spoken_to]
        return self._with(edges=[*new, *kept])

    def with_edge(self, sender: str, listener: str) -> CollabGraph:
        """One more edge, last in the listener's order."""
        return self._with(edges=[*self._edges, (sender, listener)])

    def without_edge(self, sender: str, listener: str) -> CollabGraph:
        return self.without_edges([(sender, listener)])

    def without_edges(self, edges: Iterable[Edge]) -> CollabGraph:
        """Without some edges, into votes too.

        Raises:
            GraphError: there is no such edge, or a vote would be left with nobody to hear.
        """
        gone = set(edges)
        for sender, listener in sorted(gone - set(self._edges)):
            raise GraphError(f"there is no edge {sender} -> {listener} to remove")
        left = [e for e in self._edges if e not in gone]
        check_heard(self._nodes, left)
        return self._with(edges=left)

    def with_node(
        self,
        node: Node,
        *,
        name: str | None = None,
        hears: Iterable[str] = (),
        heard_by: Iterable[str] = (),
    ) -> CollabGraph:
        """One more node (which may be a graph), or another one under a name already there."""
        label = node.id if name is None else name
        new = [(sender, label) for sender in hears] + [(label, other) for other in heard_by]
        return self._with(nodes={**self._nodes, label: node}, edges=[*self._edges, *new])

    def without_node(self, name: str) -> CollabGraph:
        """Without one node, its edges and its vote."""
        if name not in self._nodes:
            raise GraphError(unknown("node", name, self._nodes))
        if name == self._output:
            raise GraphError(f"'{name}' is the output; make another node the output first")
        nodes = {label: node for label, node in self._nodes.items() if label != name}
        edges = [edge for edge in self._edges if name not in edge]
        check_heard(nodes, edges)
        return self._with(nodes=nodes, edges=edges)

    def with_rounds(self, rounds: int) -> CollabGraph:
        return self._with(rounds=rounds)

    def with_output(self, output: str) -> CollabGraph:
        return self._with(output=output)

    def named(self, name: str) -> CollabGraph:
        """The same graph under another name, to stand in another graph."""
        return self._with(name=name)

    def rename(self, names: Mapping[str, str]) -> CollabGraph:
        """Other names for some nodes."""
        for old in names:
            if old not in self._nodes:
                raise GraphError(unknown("node", old, self._nodes))
        new = [names.get(name, name) for name in self._nodes]
        check_unique(new)
        return self._with(
            nodes=dict(zip(new, self._nodes.values(), strict=True)),
            edges=[(names.get(a, a), names.get(b, b)) for a, b in self._edges],
            output=names.get(self._output, self._output),
        )

    def compose(self, other: CollabGraph | Node) -> CollabGraph:
        """Both graphs as one: this one's output is heard by the other's first nodes (``>>``)."""
        if isinstance(other, CollabGraph):
            then = other
            fits = then.rounds == self.rounds and (then.rounds == 1 or not self.closing)
        else:
            then, fits = CollabGraph([other], rounds=self.rounds), True
        check_unique([*self._nodes, *then._nodes])
        if not fits:
            raise GraphError(
                f"cannot compose '{self.name}' ({self.rounds} rounds) with '{then.name}' "
                f"({then.rounds} rounds): rounds must be equal, and nothing repeats after a vote. "
                "Nest one as a node of the other with with_node()"
            )
        bridge = [(self._output, first) for first, heard in then.heard.items() if not heard]
        return self._with(
            nodes={**self._nodes, **then._nodes},
            edges=[*self._edges, *bridge, *then._edges],
            output=then._output,
        )

    def __rshift__(self, other: CollabGraph | Node) -> CollabGraph:
        return self.compose(other)

    def __rrshift__(self, node: Node) -> CollabGraph:
        return CollabGraph([node], rounds=self._rounds, name=self._name).compose(self)

    def _with(
        self,
        *,
        nodes: Mapping[str, Node] | None = None,
        edges: Iterable[Edge] | None = None,
        output: str | None = None,
        rounds: int | None = None,
        name: str | None = None,
    ) -> CollabGraph:
        return CollabGraph(
            self._nodes if nodes is None else nodes,
            self._edges if edges is None else edges,
            output=output or self._output,
            rounds=self._rounds if rounds is None else rounds,
            name=name or self._name,
        )

    # -- ready-made teams ---------------------------------------------------------------------

    @classmethod
    def collaborative(
        cls,
        agents: int = 4,
        rounds: int = 3,
        *,
        model: ChatModel,
        edges: Iterable[Edge] | None = None,
        density: float = 0.5,
        seed: int = 0,
        adapters: Sequence[str | None] | None = None,
        temperatures: float | Sequence[float] = 0.0,
        views: Views = "same",
        vote: VoteRule = "majority",
        vote_scope: Scope = "last",
        max_tokens: int = 256,
        timeout: float | None = None,
    ) -> CollabGraph:
        """The paper's team: role-free agents ``agent_0 ...`` on a DAG, then a ``vote``.

        Args:
            agents, rounds: the paper uses 4 and 3.
            model: answers for all agents.
            edges: pairs of names; ``None``: a random DAG drawn with ``seed`` and ``density``.
            adapters: one LoRA adapter name (or ``None``) an agent.
            temperatures: one for all, or one an agent.
            views: ``"shuffle"`` shows each agent but the first the elements in its own order.
            vote: ``"probability"`` needs a model that can score replies.
            vote_scope: the last round's proposals or the whole matrix (majority only).
            max_tokens, timeout: of each call; seconds.

        Raises:
            GraphError: edges are cyclic or name others, or a sequence has the wrong length.
            ConfigError: the model cannot score, and the vote needs it.
        """
        # Only here and in solo() the core reaches into the nodes, and only when called.
        from swarm_ui.nodes.team import collaborative

        return collaborative(
            agents, rounds, model, edges, density, seed, adapters, temperatures, views, vote,
            vote_scope, max_tokens, timeout,
        )  # fmt: skip

    @classmethod
    def solo(
        cls,
        model: ChatModel,
        *,
        adapter: str | None = None,
        temperature: float = 0.0,
        view: Views = "same",
        max_tokens: int = 256,
        timeout: float | None = None,
    ) -> CollabGraph:
        """One agent alone, ``agent_0``: the control every team is compared with."""
        from swarm_ui.nodes.team import solo

        return solo(model, adapter, temperature, view, max_tokens, timeout)

    # -- other forms --------------------------------------------------------------------------

    def to_networkx(self) -> networkx.DiGraph[str]:
        """A ``networkx.DiGraph``: nodes carry ``node``, edges their ``place`` in the order."""
        return interchange.to_networkx(self)

    @classmethod
    def from_networkx(
        cls,
        digraph: networkx.DiGraph[Any],
        nodes: Mapping[str, Node] | None = None,
        *,
        output: str | None = None,
        rounds: int = 1,
        name: str = "team",
    ) -> CollabGraph:
        """Any acyclic ``DiGraph``; nodes from ``nodes`` or from each node's ``node`` attribute."""
        members, edges = interchange.from_networkx(digraph, nodes)
        return cls(members, edges, output=output, rounds=rounds, name=name)

    def to_json(self) -> str:
        """The structure as JSON: names, kinds, edges, output and rounds; no models, no weights."""
        return interchange.to_json(self)

    @classmethod
    def from_json(cls, text: str, nodes: Mapping[str, Node]) -> CollabGraph:
        """A structure written by :meth:`to_json`, with a node for each name."""
        structure = interchange.from_json(text)
        missing = [entry.id for entry in structure.nodes if entry.id not in nodes]
        if missing:
            raise GraphError(f"no node given for: {', '.join(missing)}")
        return cls(
            {entry.id: nodes[entry.id] for entry in structure.nodes},
            structure.edges,
            output=structure.output,
            rounds=structure.rounds,
            name=structure.name,
        )

    def to_mermaid(self) -> str:
        """A Mermaid flow chart."""
        return interchange.to_mermaid(self)

    def _repr_svg_(self) -> str:
        return svg(self)

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{svg(self)}</div>'

    def __repr__(self) -> str:
        return (
            f"CollabGraph('{self._name}', {len(self._nodes)} nodes, {len(self._edges)} edges, "
            f"output='{self._output}', rounds={self._rounds})"
        )
