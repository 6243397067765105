"""A GPTSwarm operation, or a whole GPTSwarm agent, as a node."""

from __future__ import annotations

import asyncio
import copy
import functools
import threading
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal, TypeVar

from swarm_ui.message import Message
from swarm_ui.model import ChatModel
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.nodes.gptswarm.model_proxy import CallUsage, ModelProxy
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

Given = Literal["if_alone", "never", "only", "joined"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """The settings of both kinds of nodes."""

    task: MakeTask = task_of
    model: ChatModel | None = None
    adapter: str | None = None
    blocking: bool | None = None
    timeout: float | None = None

    def _complete(self, id: str, operations: Iterable[Any]) -> None:
        """Set the fields whose defaults depend on the wrapped object."""
        object.__setattr__(self, "id", id)
        if self.blocking is None:
            object.__setattr__(self, "blocking", any(map(blocks, operations)))

    def _copies(self, operations: Sequence[Any], failures: Failures, usage: CallUsage) -> list[Any]:
        """Private copies of operations, whose models record their usage."""
        twins = private_copies(operations, failures)
        for twin in twins:
            llm = vars(twin).get("llm")
            if llm is not None:
                twin.llm = ModelProxy(llm, usage, self.model, self.adapter)
        return twins

    async def _finished(self, work: Coroutine[Any, Any, T], failures: Failures) -> T:
        result = await (in_worker(work) if self.blocking else work)
        failures.check()
        return result


@dataclass(frozen=True, slots=True)
class GPTSwarmNode(_Settings):
    """A GPTSwarm operation, that is any ``swarm.graph.node.Node``, as a node of our graphs.

    Each call runs ``execute()`` on a private copy, with the messages of the predecessors as its
    inputs, so one operation serves any number of runs at a time. An error of the operation is an
    error of this node. In later rounds its own last message is the first input.

    Attributes:
        operation: the GPTSwarm node. Its edges are not read: see :func:`import_graph`.
        id: name in a graph; ``""``: the operation's class.
        given: when its input is the task. ``"if_alone"``: when the inbox is empty; ``"never"``;
            ``"only"``: always, and without the messages, like an input node of GPTSwarm;
            ``"joined"``: always, with the messages appended to the task.
        sends: ``"text"``: the answer of its last output, which any node can read. ``"records"``:
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
    given: Given = field(default="if_alone", kw_only=True)
    sends: Sends = field(default="text", kw_only=True)

    def __post_init__(self) -> None:
        check_is(self.operation, "Node")
        self._complete(self.id or type(self.operation).__name__, [self.operation])

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        task = self.task(context)
        failures, usage = Failures(), CallUsage(context)
        (twin,) = self._copies([self.operation], failures, usage)
        if self.given in ("only", "joined") or (self.given == "if_alone" and not inbox):
            twin.inputs = [with_messages(task, inbox) if self.given == "joined" else task]
        twin.predecessors = [
            SimpleNamespace(id=message.sender, outputs=decode_outputs(message, task))
            for message in inbox
        ]
        if not twin.inputs and not inbox:
            return usage.reply("", "the operation has no input: no messages and no task")
        await self._finished(twin.execute(), failures)
        if self.sends == "records":
            return usage.reply(encode_outputs(twin.outputs))
        if not twin.outputs:
            return usage.reply("", "the operation has no output: its inputs were empty")
        return usage.reply(answer(twin.outputs))


@dataclass(frozen=True, slots=True)
class GPTSwarmGraph(_Settings):
    """A GPTSwarm agent, that is any ``swarm.graph.graph.Graph``, as one node of our graphs.

    GPTSwarm's own ``run()`` executes private copies of its operations, one after another. Use it
    for agents whose operations exchange objects or communicate through their memory (the crossword
    agents). :func:`import_graph` runs other agents concurrently, and traces every operation.

    Its input is the task, with the messages of the inbox appended. The attributes are those of
    :class:`GPTSwarmNode`, and so are the errors.
    """

    agent: Any
    id: str = ""

    def __post_init__(self) -> None:
        check_is(self.agent, "Graph")
        self._complete(self.id or type(self.agent).__name__, self.agent.nodes.values())

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        failures, usage = Failures(), CallUsage(context)
        agent = self._private(failures, usage)
        run = agent.run(with_messages(self.task(context), inbox))
        answers = await self._finished(run, failures)
        if not any(node.outputs for node in agent.output_nodes):
            return usage.reply("", "the agent has no output: no operation led to one")
        return usage.reply("\n".join(answer([each]) for each in answers))

    def _private(self, failures: Failures, usage: CallUsage) -> Any:
        agent = copy.copy(self.agent)
        operations = list(agent.nodes.values())
        twins = self._copies(operations, failures, usage)
        own = dict(zip(map(id, operations), twins, strict=True))
        agent.nodes = dict(zip(agent.nodes, twins, strict=True))
        agent.input_nodes = [own[id(node)] for node in agent.input_nodes]
        agent.output_nodes = [own[id(node)] for node in agent.output_nodes]
        if twins:
            agent.memory = twins[0].memory
        return agent


async def in_worker(work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that blocks, without blocking this event loop.

    All such coroutines run on one other thread, because some operations of GPTSwarm keep state in
    their modules. Cancellation returns at once; blocking code continues up to its next ``await``.
    """
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _worker_loop()))


@functools.cache
def _worker_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="gptswarm", daemon=True).start()
    return loop
