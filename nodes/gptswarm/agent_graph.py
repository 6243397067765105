"""A GPTSwarm agent as one node, or as a graph with one node per operation."""

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
from swarm_ui.nodes.gptswarm.model_proxy import CallUsage, install_proxies
from swarm_ui.nodes.gptswarm.operation import GPTSwarmNode
from swarm_ui.nodes.gptswarm.payloads import MakeTask, answer, task_of, with_messages
from swarm_ui.nodes.gptswarm.private_copies import Failures, blocks, check_is, private_copies
from swarm_ui.nodes.gptswarm.worker_loop import in_worker

Entry = Literal["only", "joined"]


@dataclass(frozen=True, slots=True)
class GPTSwarmGraph:
    """A GPTSwarm agent, that is any ``swarm.graph.graph.Graph``, as one node of our graphs.

    GPTSwarm's own ``run()`` executes private copies of its operations, one after another. Use it
    for agents whose operations exchange objects or communicate through their memory (the crossword
    agents). :func:`import_graph` runs other agents concurrently, and traces every operation.

    Its input is the task, with the messages of the inbox appended. The attributes are those of
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
        failures, usage = Failures(), CallUsage(context)
        agent, operations = self._private(failures)
        install_proxies(operations, usage, self.model, self.adapter)
        run = agent.run(with_messages(self.task(context), inbox))
        answers = await (in_worker(run) if self.blocking else run)
        failures.check()
        if not any(node.outputs for node in agent.output_nodes):
            return usage.reply("", "the agent has no output: no operation led to one")
        return usage.reply("\n".join(answer([each]) for each in answers))

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
    """A GPTSwarm agent as a graph with one node per operation.

    Nodes are named after their class, ``"CoTStep.0"`` and so on if there are several. Operations
    that do not lead to an output are left out, since GPTSwarm never runs them.

    Args:
        agent: a ``swarm.graph.graph.Graph``.
        name: of the new graph; ``None``: the agent's class.
        output: which node answers, if the agent has several output nodes.
        entry: whether an input node of the agent reads its messages too (``"joined"``) or, as in
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
            f"({', '.join(outputs) or 'none'}); choose the one that answers with output="
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
    """A name for each operation by its ``id()``: its class, and a number if there are several."""
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

    They are read from ``successors``. If a ``Swarm`` connects nothing inside an agent, it clears
    the ``successors`` and keeps the ``predecessors``, for which GPTSwarm would wait for ever.
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
    """Nodes by name; the output node sends text, the others send records to each other."""
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
