"""A GPTSwarm operation, or a whole GPTSwarm agent, as a node."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from types import SimpleNamespace
from typing import Any, Literal

from swarm_ui.message import Message
from swarm_ui.model import ChatModel
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.nodes.gptswarm.model_proxy import CallUsage, install_proxies
from swarm_ui.nodes.gptswarm.payloads import (
    MakeTask,
    Sends,
    answer,
    decode_outputs,
    encode_outputs,
    task_of,
    with_messages,
)
from swarm_ui.nodes.gptswarm.private_copies import Failures, blocks, check_is, private_copies
from swarm_ui.nodes.gptswarm.worker_loop import in_worker

Given = Literal["if_alone", "never", "only", "joined"]


@dataclass(frozen=True, slots=True)
class GPTSwarmNode:
    """A GPTSwarm operation, that is any ``swarm.graph.node.Node``, as a node of our graphs.

    Each call runs ``execute()`` on a private copy, with the messages of the predecessors as its
    inputs, so one operation serves any number of runs at a time. An error of the operation is an
    error of this node. In later rounds its own last message is the first input.

    Attributes:
        operation: the GPTSwarm node. Its edges are not read: see :func:`import_graph`.
        id: name in a graph; ``""``: the operation's class.
        given: when its input is the task. ``"if_alone"``: when the inbox is empty; ``"never"``;
            ``"only"``: always, without the messages, like an input node of GPTSwarm;
            ``"joined"``: always, with the messages appended to the task.
        sends: ``"text"``: the answer of its last output, readable for any node. ``"records"``:
            all its outputs with all their fields, for other GPTSwarm operations.
        task: makes the task; by default from the goal, and the screen if there is one.
        model: answers instead of the operation's own ``llm``; then usage is counted, budgets and
            rate limits apply, and no key of GPTSwarm is needed.
        adapter: LoRA adapter of ``model``.
        blocking: whether its code blocks; then it runs on another thread, one operation at a time.
            ``None``: true for the operations of the package that are known to block.
        timeout: seconds for one call.

    Raises:
        MissingExtra: GPTSwarm is not installed.
        ConfigError: ``operation`` is not a GPTSwarm node.
    """

    operation: Any
    id: str = ""
    _: KW_ONLY
    given: Given = "if_alone"
    sends: Sends = "text"
    task: MakeTask = task_of
    model: ChatModel | None = None
    adapter: str | None = None
    blocking: bool | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        check_is(self.operation, "Node")
        if not self.id:
            object.__setattr__(self, "id", type(self.operation).__name__)
        if self.blocking is None:
            object.__setattr__(self, "blocking", blocks(self.operation))

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        task = self.task(context)
        failures, usage = Failures(), CallUsage(context)
        (twin,) = private_copies([self.operation], failures)
        install_proxies([twin], usage, self.model, self.adapter)
        if self.given in ("only", "joined") or (self.given == "if_alone" and not inbox):
            twin.inputs = [with_messages(task, inbox) if self.given == "joined" else task]
        twin.predecessors = [
            SimpleNamespace(id=message.sender, outputs=decode_outputs(message, task))
            for message in inbox
        ]
        if not twin.inputs and not inbox:
            return usage.reply("", "the operation has no input: no messages and no task")
        await (in_worker(twin.execute()) if self.blocking else twin.execute())
        failures.check()
        if self.sends == "records":
            return usage.reply(encode_outputs(twin.outputs))
        if not twin.outputs:
            return usage.reply("", "the operation has no output: its inputs were empty")
        return usage.reply(answer(twin.outputs))


@dataclass(frozen=True, slots=True)
class GPTSwarmGraph:
    """A GPTSwarm agent, that is any ``swarm.graph.graph.Graph``, as one node of our graphs.

    GPTSwarm's own ``run()`` executes private copies of its operations, one after another. Use it
    for agents whose operations exchange objects or communicate through their memory (the crossword
    agents). :func:`import_graph` runs other agents concurrently, and traces every operation.

    Its input is the task, with the messages of the inbox appended. The attributes are those of
    :class:`GPTSwarmNode`.

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
