"""CollabGraph: a team of nodes as a graph that runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, Unpack

from swarm_ui.agent_view import AgentView
from swarm_ui.engine import replay as recorded
from swarm_ui.engine.run import RunOptions, run
from swarm_ui.engine.tasks import cancelled, run_blocking
from swarm_ui.errors import GraphError
from swarm_ui.events import Event
from swarm_ui.graph.check import function_name
from swarm_ui.graph.dag import Dag
from swarm_ui.graph.shapes import TeamOptions
from swarm_ui.message import Message
from swarm_ui.model import ChatModel
from swarm_ui.node import Node, NodeContext, NodeReply
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Trace

if TYPE_CHECKING:
    import networkx


class CollabGraph(Dag):
    """Nodes and ordered edges, immutable; every operation returns a new graph.

    Each node sends one message per round; it receives its own message of the last round, then
    those of its predecessors in edge order: of this round, or of an earlier one over a delayed
    edge. Closing nodes (votes) and their successors run once, after the last round. A graph is
    itself a node and can be nested in another graph.

    Examples:
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

    # -- running ------------------------------------------------------------------------------

    async def run(self, observation: Observation | str, **options: Unpack[RunOptions]) -> Trace:
        """Decide once.

        Args:
            observation: the screen; a string is a goal without a screen.
            seed: seed of every random choice in the run; equal seeds and answers give equal traces.
            run_id: name of the run, for the trace, for errors and for the journal.
            limits: the time of a call, and what a failure does.
            journal: keeps every call when it has finished; a run that is already in it is
                continued.
            on_event: called with every event of the run.

        Raises:
            NodeError: a node failed and the policy is ``abort``; with another policy, ``RunFailed``
                at the end if no node succeeded.
            RunPaused: a node asked a person.
            SwarmError: any of these, ``ConfigError`` and ``BudgetExceeded`` have the trace so far
                as ``partial``.
        """
        if isinstance(observation, str):
            observation = Observation(goal=observation, elements=())
        return await run(self, observation, **options)

    def run_sync(self, observation: Observation | str, **options: Unpack[RunOptions]) -> Trace:
        """:meth:`run` for scripts and notebooks; works inside a running event loop too."""
        return run_blocking(self.run(observation, **options))

    async def stream(
        self, observation: Observation | str, **options: Unpack[RunOptions]
    ) -> AsyncGenerator[Event, None]:
        """The events of a run while it is running; the last is ``Finished``, with the trace::

            async with aclosing(team.stream(observation)) as events:  # of contextlib
                async for event in events:
                    ...

        If the run fails, the events before are yielded first, and then the exception is raised.
        Closing the stream cancels an unfinished run. It takes the place of ``on_event``.
        """
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        options["on_event"] = events.put_nowait
        running = asyncio.create_task(self.run(observation, **options))
        running.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            running.result()
        finally:
            await cancelled([running])

    replay = recorded.replay
    """Replay a trace with changes; see :func:`swarm_ui.engine.replay.replay`."""
    resume = recorded.resume
    """Continue a run that waits for a person; see :func:`swarm_ui.engine.replay.resume`."""
    resample = recorded.resample
    """Draw a message of a trace again; see :func:`swarm_ui.engine.replay.resample`."""

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        """The graph as a node: its first nodes receive the inbox, and its output is the answer."""
        return await context.run(self, inbox)

    def parameters(self) -> list[Any]:
        """The weights of its agents' LoRA adapters, as an optimiser of torch takes them.

        They are those of all nodes with a method ``parameters()``, each once. Raises
        ``ConfigError`` if an agent's adapter is not in this process.
        """
        found: dict[int, Any] = {}
        for node in self.nodes.values():
            own = getattr(node, "parameters", None)
            found |= {id(each): each for each in (own() if callable(own) else ())}
        return list(found.values())

    # -- ready-made teams ---------------------------------------------------------------------

    @classmethod
    def collaborative(
        cls,
        agents: int = 4,
        rounds: int = 3,
        *,
        model: ChatModel,
        lora: int | None = None,
        **options: Unpack[TeamOptions],
    ) -> Self:
        """The paper's team: role-free agents ``agent_0 ...`` on a DAG, then a ``vote``.

        Args:
            agents: number of agents; the paper uses 4, and 3 rounds.
            rounds: number of messages of each agent.
            model: answers for all agents.
            lora: adds a new LoRA adapter of this rank for each agent to the model, under the
                agent's name. Their weights are :meth:`parameters`.
            options: see :class:`~swarm_ui.graph.shapes.TeamOptions`, such as ``views="shuffle"``.

        Raises ``ConfigError`` if the model cannot do what the vote or ``lora`` needs.
        """
        # Only here and in solo() the core reaches into the nodes, and only when called.
        from swarm_ui.nodes.team import collaborative

        return collaborative(cls, agents, rounds, model, lora, options)

    @classmethod
    def solo(
        cls,
        model: ChatModel,
        *,
        adapter: str | None = None,
        temperature: float | None = None,
        view: AgentView = "same",
        max_tokens: int | None = None,
        timeout: float | None = None,
    ) -> Self:
        """A single agent, ``agent_0``: the control for every team."""
        from swarm_ui.nodes.agent import AgentNode

        agent = AgentNode("agent_0", model, adapter, temperature, view, max_tokens, timeout)
        return cls([agent], name="solo")

    # -- other forms --------------------------------------------------------------------------

    def to_networkx(self) -> networkx.DiGraph[str]:
        """The graph as a ``networkx.DiGraph``.

        Nodes carry ``node``, edges ``place`` (their order) and perhaps ``when`` (the condition) and
        ``delay`` (in rounds), the graph ``name``, ``output``, ``rounds`` and ``until``.
        """
        import networkx

        digraph: networkx.DiGraph[str] = networkx.DiGraph(
            name=self.name, output=self.output, rounds=self.rounds, until=self.until
        )
        digraph.add_nodes_from((name, {"node": node}) for name, node in self.nodes.items())
        for place, edge in enumerate(self.edges):
            found = {"place": place, "when": self.when.get(edge), "delay": self.delays.get(edge)}
            digraph.add_edge(
                *edge, **{key: value for key, value in found.items() if value is not None}
            )
        return digraph

    @classmethod
    def from_networkx(
        cls, digraph: networkx.DiGraph[Any], nodes: Mapping[str, Node] = MappingProxyType({})
    ) -> Self:
        """A ``DiGraph`` of :meth:`to_networkx`, or any other; a node's name is its label's text.

        ``nodes``: the nodes by name; a missing one is taken from its label's attribute ``node``.
        The edges without an attribute ``delay`` must be acyclic.
        """
        if not digraph.is_directed():
            raise GraphError(
                "the edges of an undirected graph do not say which node is the sender; use a "
                "directed graph"
            )
        members: dict[str, Node] = {}
        for label, node in digraph.nodes(data="node"):
            name = str(label)
            if name in members or (node := nodes.get(name, node)) is None:
                raise GraphError(
                    f"expected one node for '{name}': set its attribute 'node' or pass "
                    "nodes={...}, and use labels whose texts differ"
                )
            members[name] = node
        # Only to_networkx() writes them; in other graphs the names have other meanings.
        ours = digraph.graph if {"output", "rounds", "until"} <= digraph.graph.keys() else {}
        edges = sorted(digraph.edges(data=True), key=lambda edge: edge[2]["place"] if ours else 0)
        data = {(str(a), str(b)): found for a, b, found in edges}
        when, delays = (
            {edge: found[key] for edge, found in data.items() if key in found}
            for key in ("when", "delay")
        )
        return cls(members, data, **ours, when=when, delays=delays)

    def _repr_svg_(self) -> str:
        # Drawing is imported only where something is drawn.
        from swarm_ui.viz import graph_svg

        return graph_svg(self)

    def _repr_html_(self) -> str:
        from swarm_ui.viz import scrolling

        return scrolling(self._repr_svg_())

    def __repr__(self) -> str:
        names = list(self.nodes)
        told = ", ".join(names if len(names) < 8 else [*names[:6], f"... {len(names) - 6} more"])
        edges = f"{len(self.edges)} edge{'s' * (len(self.edges) != 1)}"
        edges += f", {len(self.when)} of them conditional" if self.when else ""
        edges += f", {len(self.delays)} of them delayed" if self.delays else ""
        rounds = f"{self.rounds} round{'s' * (self.rounds > 1)}"
        if self.until is not None:
            rounds = f"at most {rounds}, until '{function_name(self.until)}'"
        return f"CollabGraph('{self.name}': {told}; {edges}; output '{self.output}', {rounds})"
