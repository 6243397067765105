"""One GPTSwarm operation as a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from types import SimpleNamespace
from typing import Any, Literal

from swarm_ui.message import Message
from swarm_ui.model import ChatModel
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.nodes.gptswarm.model_stand_in import Asked, Ledger
from swarm_ui.nodes.gptswarm.payloads import MakeTask, Sends, answer, joined, opened, seal, task_of
from swarm_ui.nodes.gptswarm.private_copies import (
    Failures,
    blocks,
    check_is,
    model_of,
    private_copies,
)
from swarm_ui.nodes.gptswarm.worker_loop import beside

Given = Literal["if_alone", "never", "only", "joined"]


@dataclass(frozen=True, slots=True)
class GPTSwarmNode:
    """A GPTSwarm operation, that is any ``swarm.graph.node.Node``, as a node of our graphs.

    Its own ``execute()`` runs on a private copy, on what the predecessors said, so that it serves
    any number of runs at a time. What it raises is this node's failure. In later rounds it hears
    its own last words first, like any node.

    Attributes:
        operation: the GPTSwarm node. Its edges are not read: see :func:`import_graph`.
        id: name in a graph; ``""``: the operation's class.
        given: when it gets the task as its input. ``"if_alone"``: when it hears nobody;
            ``"never"``; ``"only"``: always, and nothing else, as an input node of GPTSwarm does;
            ``"joined"``: always, with what it hears written under the task.
        sends: ``"text"``: its last output's answer, for anybody to read. ``"records"``: all its
            outputs with all their fields, for other GPTSwarm operations.
        task: makes the task; the default gives the goal, and the screen if there is one.
        model: answers instead of the operation's own ``llm``; then usage is counted, budgets and
            rate limits hold, and no key of GPTSwarm's is needed.
        adapter: LoRA adapter to ask ``model`` for.
        blocking: whether its code blocks; ``None``: it is one of the package's that do. Then it
            runs on another thread, taking turns with others of its kind.
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
        failures, ledger = Failures(), Ledger(context)
        (twin,) = private_copies([self.operation], failures)
        if model_of(twin) is not None:
            twin.llm = Asked(twin.llm, ledger, self.model, self.adapter)
        if self.given in ("only", "joined") or (self.given == "if_alone" and not inbox):
            twin.inputs = [joined(task, inbox) if self.given == "joined" else task]
        twin.predecessors = [
            SimpleNamespace(id=message.sender, outputs=opened(message, task)) for message in inbox
        ]
        if not twin.inputs and not inbox:
            return ledger.reply("", "it hears nobody and is given no task, so it says nothing")
        await (beside(twin.execute()) if self.blocking else twin.execute())
        failures.check()
        if self.sends == "records":
            return ledger.reply(seal(twin.outputs))
        if not twin.outputs:
            return ledger.reply("", "the operation has no output: what it heard was empty")
        return ledger.reply(answer(twin.outputs))
