"""GPTSwarm (``gptswarm==0.1.0``, arXiv 2402.16823) in our graphs.

    operation = GPTSwarmNode(DirectAnswer("gaia", "gpt-4"))        # one operation as a node
    team = import_graph(TOT("gaia", "gpt-4"), model=model)         # one node per operation
    found = import_swarm(Swarm(["IO", "COT"], "gaia", edge_optimize=True))

    edges = EdgeDistribution.from_probabilities(found.potential)
    team = found.with_edges(edges.sample(1, generator)[0].edges)

Prompts, inputs and answers are those of GPTSwarm, but for this: every call works on a private copy
with its own memory, so one graph serves any number of runs at the same time, and ``GlobalMemory``
is neither read nor written; outputs travel as JSON; and an error that GPTSwarm would print and
ignore is an error of that node. GPTSwarm breaks the ties of a majority with the process's
``random``, not with the run's seed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from types import MappingProxyType, SimpleNamespace
from typing import Any

import networkx as nx
from msgspec import structs

from swarm_ui.collab_graph import CollabGraph
from swarm_ui.errors import ConfigError, GraphError, MissingExtra
from swarm_ui.message import Message, Usage
from swarm_ui.model import ChatMessage, ChatModel, Completion, Request
from swarm_ui.node import NodeContext, NodeReply, derive
from swarm_ui.observation import render
from swarm_ui.topology import Edge

_MAX_TOKENS, _TEMPERATURE = 1000, 0.2
"""The defaults of ``swarm.llm.llm.LLM``."""
_KEY = "gptswarm"


@dataclass(frozen=True, slots=True)
class GPTSwarmNode:
    """A GPTSwarm operation (``Node``) as a node of our graphs.

    Each call runs a private copy, with the messages of the predecessors as its inputs; in later
    rounds its own last message comes first. An operation that blocks holds the event loop.

    Raises:
        MissingExtra: GPTSwarm is not installed.
        ConfigError: ``operation`` is not a GPTSwarm node.
    """

    operation: Any
    """Its edges are not read."""
    id: str = ""
    """Name in a graph; ``""``: the operation's class."""
    _: KW_ONLY
    starts: bool | None = None
    """Whether its input is the task, without the messages, as for an input node of GPTSwarm;
    ``None``: if the inbox is empty."""
    records: bool = False
    """Whether it sends all its outputs with all their fields, for other GPTSwarm operations, and
    not the answer of the last one as text."""
    model: ChatModel | None = None
    """Answers instead of the operation's own ``llm``; then usage is counted, budgets and rate
    limits apply, and no key of GPTSwarm is needed."""

    def __post_init__(self) -> None:
        _check_is(self.operation, "Node")
        object.__setattr__(self, "id", self.id or type(self.operation).__name__)

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        screen, call = context.observation, _Call(self, context)
        goal = f"{screen.goal}\n\n{render(screen)}" if screen.elements else screen.goal
        task = {"task": goal, "files": [], "GT": ""}  # as in GPTSwarm's own examples
        twin = call.private(self.operation)
        if self.starts or (self.starts is None and not inbox):
            twin.inputs = [task]
        twin.predecessors = [
            SimpleNamespace(id=message.sender, outputs=_outputs(message, task)) for message in inbox
        ]
        if not twin.inputs and not inbox:
            return call.reply("", "the operation has no input: no messages and no task")
        await twin.execute()
        if call.failed is not None:  # GPTSwarm has printed and ignored it
            raise call.failed
        if self.records:  # the `input` of an output repeats the inputs, and no operation reads it
            kept = [
                {k: v for k, v in each.items() if k != "input" or isinstance(v, str)}
                if isinstance(each, dict)
                else each
                for each in twin.outputs
            ]
            return call.reply(json.dumps({_KEY: kept}, ensure_ascii=False))
        if not twin.outputs:
            return call.reply("", "the operation has no output: its inputs were empty")
        last = twin.outputs[-1]
        value = last.get("output", last) if isinstance(last, dict) else last
        return call.reply(value if isinstance(value, str) else json.dumps(value))


class _Call:
    """One call of a node. It is the operation's ``llm``, and records its prompts and its usage."""

    def __init__(self, node: GPTSwarmNode, context: NodeContext) -> None:
        self._model, self._seed = node.model, context.seed
        self._llm: Any = None
        self.prompts, self.completions = list[str](), list[Completion]()
        self.failed: Exception | None = None

    def private(self, operation: Any) -> Any:
        """A copy with a memory of its own. Its containers are copied; the objects that it holds,
        such as its prompts, are shared."""
        from swarm.memory.memory import Memory

        held = [v for v in vars(operation).values() if not isinstance(v, dict | list | set)]
        memo = {id(v): v for v in (*held, *operation.predecessors, *operation.successors)}
        memo[id(operation.memory)] = Memory()
        if (llm := vars(operation).get("llm")) is not None:
            self._llm, memo[id(llm)] = llm, self
        twin = copy.deepcopy(operation, memo)
        twin.inputs, twin.outputs = [], []
        work = twin._execute

        async def watched(*args: Any, **kwargs: Any) -> Any:
            try:  # after a failure, no model is called any more
                return [] if self.failed is not None else await work(*args, **kwargs)
            except Exception as failure:
                self.failed = failure
                return []

        twin._execute = watched
        return twin

    def reply(self, content: str, error: str | None = None) -> NodeReply:
        """The reply of the node. Usage is only known for models of this library."""
        done = self.completions
        completion = Completion(
            text=content,
            prompt="\n\n".join(self.prompts),
            usage=sum((each.usage for each in done), Usage()),
            logprob=done[0].logprob if len(done) == 1 else None,
        )
        shown = completion if self.prompts else None
        return NodeReply(content=content, error=error, completion=shown, seed=self._seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)

    def gen(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if self._model is not None:
            raise ConfigError(
                "a GPTSwarm operation calls its model with gen(), which would block the event "
                "loop; expected agen(). Leave model out, so that its own llm answers"
            )
        self.prompts.append(_text(messages))
        return self._llm.gen(messages, *args, **kwargs)

    async def agen(
        self,
        messages: Any,
        max_tokens: int | None = None,
        temperature: float | None = None,
        num_comps: int | None = None,
    ) -> Any:
        if self._model is None:
            self.prompts.append(_text(messages))
            return await self._llm.agen(messages, max_tokens, temperature, num_comps)
        request = Request(
            chat=_chat(messages),
            temperature=_TEMPERATURE if temperature is None else temperature,
            max_tokens=max_tokens or _MAX_TOKENS,
        )
        seeds = [
            derive(self._seed, "gptswarm", len(self.prompts) + k) for k in range(num_comps or 1)
        ]
        made = await self._model.generate([structs.replace(request, seed=seed) for seed in seeds])
        self.completions += made
        self.prompts += [completion.prompt for completion in made]
        return made[0].text if len(made) == 1 else [completion.text for completion in made]


# -- agents and swarms as graphs ------------------------------------------------------------------


def import_graph(agent: Any, *, model: ChatModel | None = None) -> CollabGraph:
    """A GPTSwarm agent as a graph with one node per operation.

    Nodes are named after their class, ``"CoTStep.0"`` and so on if there are several. Operations
    that do not lead to an output are left out, since GPTSwarm never runs them.

    Args:
        agent: a ``swarm.graph.graph.Graph`` with one output node.
        model: see :attr:`GPTSwarmNode.model`.

    Raises:
        GraphError: the agent has several output nodes, or cycles.
    """
    _check_is(agent, "Graph")
    names = _names(agent.nodes.values())
    if len(agent.output_nodes) != 1:
        kind, count = type(agent).__name__, len(agent.output_nodes)
        raise GraphError(f"{kind} has {count} output nodes; expected one, which answers")
    answers = names[id(agent.output_nodes[0])]
    graph = _graph(agent.nodes.values(), names, agent.input_nodes, answers, model)
    for name in {*graph.nodes} - nx.ancestors(_joined(graph), graph.output) - {graph.output}:
        graph = graph.without_node(name)
    return graph


@dataclass(frozen=True, slots=True)
class ImportedSwarm:
    """The result of :func:`import_swarm`."""

    graph: CollabGraph
    """All operations with their fixed edges; the final decision is the output."""
    potential: Mapping[Edge, float]
    """Edges that can be sampled with their probabilities, in the order of the swarm."""

    def with_edges(self, edges: Iterable[Edge]) -> CollabGraph:
        """The graph with its fixed edges, and some potential ones in the given order, in which
        their listeners read them.

        Potential edges are sampled without regard to the fixed ones, so they may close a cycle. As
        in GPTSwarm's ``realize()``, such an edge is skipped. A gradient through the log-probability
        of the *sample* stays unbiased, because the reward is that of the graph after this step.
        Raises ``GraphError`` for an edge that is not a potential one.
        """
        joined, taken = _joined(self.graph), list[Edge]()
        for edge in edges:
            if edge not in self.potential:
                raise GraphError(f"{edge[0]} -> {edge[1]} is not a potential edge of the swarm")
            if not nx.has_path(joined, edge[1], edge[0]):
                joined.add_edge(*edge)
                taken.append(edge)
        return self.graph.with_edges([*self.graph.edges, *taken])


def import_swarm(swarm: Any, *, model: ChatModel | None = None) -> ImportedSwarm:
    """Import a GPTSwarm ``Swarm``: its operations, its fixed edges and its potential edges.

    Operations are named ``"0.IO.DirectAnswer"``, ``"1.COT.CoTStep.2"`` (number and kind of the
    agent, operation, and its number if there are several). ``"FinalDecision"`` is the output. An
    input node of an agent gets the task and no messages, so edges into a single-node agent such as
    ``IO`` have no effect. An operation without inputs has an empty reply and does not stop the
    swarm.

    GPTSwarm's probability of an edge depends on its position in the list of connections, since an
    edge that would close a cycle is skipped; ``EdgeDistribution.from_probabilities(potential)``
    uses the number as the probability *given that the sender comes first*.

    Args:
        swarm: a ``swarm.graph.swarm.Swarm``.
        model: see :attr:`GPTSwarmNode.model`.

    Raises:
        MissingExtra: GPTSwarm is not installed.
        ConfigError: the object is not a swarm.
    """
    _check_is(swarm, "Swarm")
    whole = swarm.composite_graph
    names: dict[int, str] = {}
    for number, agent in enumerate(swarm.used_agents):
        names |= _names(agent.nodes.values(), f"{number}.{type(agent).__name__}.")
    agents = [node for node in whole.nodes.values() if id(node) in names]
    others = [node for node in whole.nodes.values() if id(node) not in names]
    names |= _names(others)
    decision = names[id(whole.decision_method)]
    graph = _graph(agents + others, names, whole.input_nodes, decision, model)
    by_id = {key: names[id(node)] for key, node in whole.nodes.items()}
    pairs = swarm.connection_dist.potential_connections
    chances = swarm.connection_dist.edge_logits.detach().double().sigmoid().tolist()
    potential = {(by_id[a], by_id[b]): p for (a, b), p in zip(pairs, chances, strict=True)}
    return ImportedSwarm(graph, MappingProxyType(potential))


def _names(operations: Iterable[Any], prefix: str = "") -> dict[int, str]:
    """A name for each operation by its ``id()``: its class, and a number if there are several."""
    listed = list(operations)
    kinds = [type(operation).__name__ for operation in listed]
    return {
        id(operation): f"{prefix}{kind}" + f".{kinds[:k].count(kind)}" * (kinds.count(kind) > 1)
        for k, (operation, kind) in enumerate(zip(listed, kinds, strict=True))
    }


def _graph(
    operations: Iterable[Any],
    names: Mapping[int, str],
    entries: Sequence[Any],
    output: str,
    model: ChatModel | None,
) -> CollabGraph:
    """The output node sends text, the others send records to each other.

    Edges are read from ``successors``, in the order in which each listener reads them. If a
    ``Swarm`` connects nothing inside an agent, it clears the ``successors`` and keeps the
    ``predecessors``, for which GPTSwarm would wait for ever.
    """
    listed, starts = list(operations), {id(node) for node in entries}
    nodes, edges = dict[str, GPTSwarmNode](), list[Edge]()
    for node in listed:
        name = names[id(node)]
        nodes[name] = GPTSwarmNode(
            node, name, starts=id(node) in starts, records=name != output, model=model
        )
        speaking = {id(each) for each in listed if any(s is node for s in each.successors)}
        ordered = dict.fromkeys([*map(id, node.predecessors), *map(id, listed)])
        edges += [(names[key], name) for key in ordered if key in speaking]
    return CollabGraph(nodes, edges, output=output)


def _joined(graph: CollabGraph) -> Any:
    joined = nx.DiGraph(graph.edges)
    joined.add_nodes_from(graph.nodes)
    return joined


def _check_is(value: Any, kind: str) -> None:
    """Check that a value is a GPTSwarm ``Node``, ``Graph`` or ``Swarm``. Raises ``MissingExtra`` if
    GPTSwarm, or something it needs, is not installed, and ``ConfigError`` for other objects."""
    try:
        expected = getattr(import_module(f"swarm.graph.{kind.lower()}"), kind)
    except ImportError as error:
        raise MissingExtra("gptswarm", "GPTSwarm interop", error.name or "swarm") from error
    if not isinstance(value, expected):
        raise ConfigError(f"expected a GPTSwarm {kind}, got a {type(value).__name__}")


def _chat(messages: Any) -> tuple[ChatMessage, ...]:
    """GPTSwarm's messages as this library's; a string is a message of the user."""
    if isinstance(messages, str):
        return (ChatMessage("user", messages),)
    # Some of GPTSwarm's prompt sets return None, if they have no prompt for an operation.
    return tuple(ChatMessage(message.role, message.content or "") for message in messages)


def _text(messages: Any) -> str:
    """A prompt for the trace."""
    return "\n\n".join(f"{turn.role}: {turn.content}" for turn in _chat(messages))


def _outputs(message: Message, task: Mapping[str, Any]) -> list[Any]:
    """The outputs in a message; a message of any other node is one output of its sender."""
    if message.error is not None and not message.content:
        return []  # the node failed: in GPTSwarm, too, a failed operation has no outputs
    with suppress(ValueError, RecursionError):  # a text that only begins like outputs
        found = json.loads(message.content) if message.content.startswith('{"' + _KEY) else {}
        if isinstance(outputs := found.get(_KEY), list):
            return outputs
    said = {"operation": message.sender, "output": message.content}
    return [{**task, "subtask": task["task"], **said}]
