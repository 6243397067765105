"""A whole GPTSwarm agent: as one node, or unfolded into one node an operation."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from swarm_ui.errors import GraphError
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge, descendants
from swarm_ui.message import Message
from swarm_ui.model import ChatModel
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.nodes.gptswarm.model_stand_in import Asked, Ledger
from swarm_ui.nodes.gptswarm.operation import GPTSwarmNode
from swarm_ui.nodes.gptswarm.payloads import MakeTask, answer, joined, task_of
from swarm_ui.nodes.gptswarm.private_copies import (
    Failures,
    blocks,
    check_is,
    model_of,
    private_copies,
)
from swarm_ui.nodes.gptswarm.worker_loop import beside

Entry = Literal["only", "joined"]


@dataclass(frozen=True, slots=True)
class GPTSwarmGraph:
    """A GPTSwarm agent, that is any ``swarm.graph.graph.Graph``, as one node of our graphs.

    GPTSwarm's own ``run()`` goes over private copies of its operations, one after another. Take it
    for agents whose operations hand each other objects or talk through their memory (the crossword
    agents); :func:`import_graph` runs the others concurrently and traces every operation.

    It is given the task, with what it hears written under it. The attributes are those of
    :class:`~swarm_ui.nodes.gptswarm.operation.GPTSwarmNode`.

    Raises:
        MissingExtra: GPTSwarm is not installed.
        ConfigError: ``agent`` is not a GPTSwarm graph.
    """

    agent: Any
    id: str = ""
    _: KW_ONLY
    task: MakeTask = task_of
    model: ChatModel | None = None
    adapter: str | None = None
    blocking: bool | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        check_is(self.agent, "Graph")
        if not self.id:
            object.__setattr__(self, "id", type(self.agent).__name__)
        if self.blocking is None:
            object.__setattr__(self, "blocking", any(map(blocks, self.agent.nodes.values())))

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        failures, ledger = Failures(), Ledger(context)
        agent, operations = self._private(failures)
        for operation in operations:
            if model_of(operation) is not None:
                operation.llm = Asked(operation.llm, ledger, self.model, self.adapter)
        run = agent.run(joined(self.task(context), inbox))
        answers = await (beside(run) if self.blocking else run)
        failures.check()
        if not any(node.outputs for node in agent.output_nodes):
            return ledger.reply("", "the agent has no output: no operation led to one")
        return ledger.reply("\n".join(answer([each]) for each in answers))

    def _private(self, failures: Failures) -> tuple[Any, list[Any]]:
        agent = copy.copy(self.agent)
        operations = list(agent.nodes.values())
        twins = private_copies(operations, failures)
        own = dict(zip(map(id, operations), twins, strict=True))
        agent.nodes = dict(zip(agent.nodes, twins, strict=True))
        agent.input_nodes = [own[id(node)] for node in agent.input_nodes]
        agent.output_nodes = [own[id(node)] for node in agent.output_nodes]
        if twins:
            agent.memory = twins[0].memory
        return agent, twins


def import_graph(
    agent: Any,
    *,
    name: str | None = None,
    output: str | None = None,
    entry: Entry = "only",
    task: MakeTask = task_of,
    model: ChatModel | None = None,
) -> CollabGraph:
    """A GPTSwarm agent as a graph with one node an operation.

    Nodes are named after their class, ``"CoTStep.0"`` and so on where there are several. Operations
    that lead to no output are left out: GPTSwarm never runs them.

    Args:
        agent: a ``swarm.graph.graph.Graph``.
        name: of the new graph; ``None``: the agent's class.
        output: which node answers, where the agent has several output nodes.
        entry: whether an input node of the agent reads what it hears too (``"joined"``) or, as in
            GPTSwarm, the task only.
        task, model: as for :class:`~swarm_ui.nodes.gptswarm.operation.GPTSwarmNode`.

    Raises:
        GraphError: several output nodes and no ``output``, or the agent has cycles.
    """
    check_is(agent, "Graph")
    names = names_of(agent.nodes.values())
    outputs = [names[id(node)] for node in agent.output_nodes]
    if output is None and len(outputs) != 1:
        raise GraphError(
            f"{type(agent).__name__} has {len(outputs)} output nodes "
            f"({', '.join(outputs) or 'none'}); say which one answers with output="
        )
    answers = outputs[0] if output is None else output
    edges = edges_among(agent.nodes.values(), names)
    useful = descendants([answers], [(listener, sender) for sender, listener in edges])
    operations = [node for node in agent.nodes.values() if names[id(node)] in useful]
    return CollabGraph(
        wrapped(operations, names, agent.input_nodes, answers, entry, task, model),
        [edge for edge in edges if useful.issuperset(edge)],
        output=answers,
        name=name or type(agent).__name__,
    )


def names_of(operations: Iterable[Any], prefix: str = "") -> dict[int, str]:
    """A name for each operation by its ``id()``: its class, with a number where there are more."""
    listed = list(operations)
    total = Counter(type(operation).__name__ for operation in listed)
    seen: Counter[str] = Counter()
    names: dict[int, str] = {}
    for operation in listed:
        kind = type(operation).__name__
        names[id(operation)] = f"{prefix}{kind}" + (f".{seen[kind]}" if total[kind] > 1 else "")
        seen[kind] += 1
    return names


def edges_among(operations: Iterable[Any], names: Mapping[int, str]) -> list[Edge]:
    """Edges between operations, in the order in which each listener reads them.

    Read from ``successors``: ``Swarm`` clears those where it is told to connect nothing inside an
    agent, and forgets the ``predecessors``, so that GPTSwarm would wait for them for ever.
    """
    edges: list[Edge] = []
    listed = list(operations)
    for listener in listed:
        speaking = [node for node in listed if any(other is listener for other in node.successors)]
        ordered = [node for node in listener.predecessors if any(node is s for s in speaking)]
        ordered += [node for node in speaking if not any(node is s for s in ordered)]
        edges.extend((names[id(sender)], names[id(listener)]) for sender in ordered)
    return edges


def wrapped(
    operations: Iterable[Any],
    names: Mapping[int, str],
    entries: Sequence[Any],
    output: str,
    entry: Entry,
    task: MakeTask,
    model: ChatModel | None,
) -> dict[str, GPTSwarmNode]:
    """Nodes by name; the one that answers sends text, the others send each other records."""
    starts = {id(node) for node in entries}
    return {
        names[id(node)]: GPTSwarmNode(
            node,
            names[id(node)],
            given=entry if id(node) in starts else "never",
            sends="text" if names[id(node)] == output else "records",
            task=task,
            model=model,
        )
        for node in operations
    }
