"""The contract of a node: a name, and a coroutine that answers the messages it receives.

    class Echo:
        id = "echo"

        async def __call__(self, inbox, context):
            return NodeReply(content=" ".join(m.content for m in inbox))

A node holds no run state, so one graph serves any number of concurrent runs.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from math import inf
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import msgspec

from swarm_ui.action import Action
from swarm_ui.agent_view import View
from swarm_ui.errors import Failure
from swarm_ui.events import Token
from swarm_ui.json_text import encodable
from swarm_ui.message import Message, Question
from swarm_ui.model import ChatModel, Completion, Decision, Request
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Call

Scope = Literal["last", "all"]
Condition = Callable[[Message], bool]
"""Whether a message is sent over an edge. Evaluated again in every run and replay, so it must
depend only on the message."""

Until = Callable[[Mapping[str, Message]], bool]
"""Whether the rounds end, given the newest message of each agent, by its name. Evaluated after each
round, again in every run and replay, so it must depend only on the messages."""


def derive(seed: int, *names: str | int) -> int:
    """A seed for one purpose, in [0, 2**53): the same on every machine and in every process."""
    text = "\x1f".join([str(seed), *map(str, names)])
    digest = blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 11


class NodeReply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a node. The engine turns it into a message and a call record."""

    content: str = ""
    action: Action | None = None
    """Proposal in the indices of the whole screen."""
    error: str | None = None
    """Why there is no valid proposal."""
    abstains: bool = False
    """There is no proposal, and this is no failure; see :class:`swarm_ui.message.Message`."""
    prompt_format: str = "json"
    """The format of the content, see :mod:`swarm_ui.prompts`."""
    completion: Completion | None = None
    """The model's answer; ``None``: no model was asked. Its text is not recorded."""
    order: tuple[int, ...] | None = None
    """Screen index of each element as shown; ``None``: the screen's own order."""
    temperature: float | None = None
    seed: int = 0
    ballot: dict[str, float] | None = None
    """Weight of each proposal in a vote, keyed by the action's JSON."""

    @classmethod
    def like(cls, call: Call) -> NodeReply:
        """The answer of a call inside this one; its costs stay with that call."""
        said = msgspec.convert(call.message, cls, from_attributes=True)
        return msgspec.structs.replace(said, ballot=call.ballot)


class Source(NamedTuple):
    """The origin of a message: the node, the call, and the context the node had."""

    node: Node
    call: Call
    view: View
    decision: Decision


class Unanswered(Exception):
    """A node asked a question to which there is no answer yet; its call is made later."""


class Known(Exception):
    """A failure without an exception of the node: its time is over, or it failed in the record."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class NodeContext(msgspec.Struct):
    """The context of one call."""

    observation: Observation
    node: str
    """The node's name in this graph; for a nested node its full name, such as
    ``"team/agent_0"``."""
    round: int
    rounds: int
    """Number of rounds, or their maximum number if the graph can end them early (``until``)."""
    message_id: str
    """Id of the message that will hold the answer."""
    run_seed: int
    own: Message | None
    """The node's own message of the last round; also the first of the inbox."""
    frame: Any
    """The graph in which the call is made: a :class:`~swarm_ui.engine.run.Frame`."""

    @property
    def session(self) -> Any:
        """The :class:`~swarm_ui.engine.session.Session` that all calls of the run share."""
        return self.frame.session

    @property
    def seed(self) -> int:
        """Seed of this call, derived from the run seed, node, round, and sample number."""
        seed = derive(self.run_seed, self.node, self.round)
        sample = self.session.memo.samples.get(self.message_id, 0)
        return derive(seed, "sample", sample) if sample else seed

    def rng(self) -> random.Random:
        """A fresh generator seeded with :attr:`seed`."""
        return random.Random(self.seed)

    def stream(self, purpose: str) -> random.Random:
        """A fresh generator from (run seed, node, purpose): the same in every round."""
        return random.Random(derive(self.run_seed, self.node, purpose))

    @property
    def streaming(self) -> bool:
        """Whether the answer should be streamed."""
        return self.session.on_event is not None

    def emit_token(self, text: str) -> None:
        """Pass a piece of the answer to the callback of the run."""
        if self.streaming:
            at: Any = {"run": self.session.run, "id": self.message_id, "round": self.round}
            self.session.on_event(Token(**at, node=self.node, text=text))

    def pinned(self, model: ChatModel, request: Request) -> Request:
        """The request with the name of the run, and pinned to the adapter version that was current
        when the run started."""
        adapter, session = request.adapter, self.session
        _, version = session.versions.get((id(model), adapter), (model, adapter))
        return msgspec.structs.replace(request, adapter=version, run=session.run)

    async def ask(self, question: str) -> str:
        """A person's answer to a question.

        Without an answer the call ends here, and the run raises ``RunPaused``; after
        ``graph.resume(...)`` the node is called again.
        """
        answers: Mapping[str, str] = self.session.memo.answers
        answer = answers.get(self.message_id, answers.get(self.node))
        if answer is not None:
            return answer
        text = encodable(question)
        self.session.ask(Question(id=self.message_id, node=self.node, round=self.round, text=text))
        raise Unanswered(self.message_id)

    async def run(self, graph: Any, inbox: Sequence[Message], name: str = "") -> NodeReply:
        """Run a ``CollabGraph`` inside this call; its calls are in the same trace.

        Returns the answer of the output node, which has an error if nothing reached it.

        Args:
            inbox: what its first nodes receive.
            name: tells several graphs inside one call apart (``"team:1/name/agent_0:0"``).
        """
        reply: NodeReply = await self.frame.run_inside(graph, inbox, self, name)
        return reply

    async def step(
        self,
        name: str,
        heard: Sequence[Message],
        answer: Answer,
        *,
        number: int | None = None,
        span: tuple[str, str] | None = None,
        arguments: str = "",
        tolerant: bool = False,
    ) -> Call:
        """Make a step inside this call, such as a turn of a conversation or a call of a tool.

        The first step of ``writer`` is recorded as the call ``writer:0/model:0`` of the node
        ``writer/model``; it has events, and is in the journal as soon as it is made. A recorded
        step that hears the same messages is not made again.

        Args:
            name: the name of the model, tool or node.
            heard: messages that the step depends on.
            answer: a node, with its own time limit or that of the run; or a function that answers
                like one.
            number: number of the step; ``None``: the next one.
            span: operation and name in telemetry, such as ``("chat", "gpt-4")``; ``None``: a node.
            arguments: the arguments of a tool call.
            tolerant: record an exception and return it, instead of raising it.

        Raises whatever ``answer`` raises, after it was recorded; ``ConfigError`` and
        ``BudgetExceeded`` also if ``tolerant``.
        """
        session: Any = self.session
        number = session.next_step(self, name, number)
        context = msgspec.structs.replace(
            self,
            node=f"{self.node}/{name}",
            round=number,
            message_id=f"{self.message_id}/{name}:{number}",
            run_seed=derive(self.seed, "inner"),
            own=None,
        )
        composite = bool(parts_of(answer))
        # The limit of the run is for single nodes, not for graphs and functions.
        single = hasattr(answer, "id") and not composite
        seconds = getattr(answer, "timeout", None) or (None if single else inf)
        made: Call = await session.call(answer, heard, context, seconds, composite, arguments, span)
        if made.error is not None and not tolerant:
            raise session.raised.get(made.id) or Known(made.error)
        return made

    def left_out(self, id: str) -> bool:
        """Whether a replay leaves the message with this id out."""
        return id in self.session.memo.without

    def source(self, message: Message) -> Source:
        """The origin of a message that this node receives; raises ``KeyError`` if that is outside
        of its graph."""
        found: Source = self.frame.source(message)
        return found


@runtime_checkable
class Node(Protocol):
    """An object with a name and one coroutine."""

    @property
    def id(self) -> str:
        """Default name of the node in a graph."""
        ...

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        """Answer the received messages: its own last one first, then predecessors in edge order.

        An exception becomes a tombstone or aborts the run, depending on the limits of the run.
        """
        ...


Answer = Callable[[Sequence[Message], NodeContext], Awaitable[NodeReply]]
"""A node, or a function that answers like one."""


def parts_of(node: object) -> Mapping[str, Node]:
    """The nodes inside a node, by name, such as those of a graph, a map or a fallback: such a node
    has an attribute ``nodes``.

    The time limit of a run holds for the calls inside, not for its own; its own ``timeout`` does.
    In a replay it is called again, and only the calls inside that are affected are made.
    """
    found = getattr(node, "nodes", None)
    return found if isinstance(found, Mapping) else _NO_PARTS


_NO_PARTS: Mapping[str, Node] = {}


def scope_of(node: Node) -> Scope | None:
    """The attribute ``scope`` of a closing node, such as a vote, which is called once, after the
    last round: it receives the messages of the ``"last"`` round or of ``"all"``. ``None``: the node
    is called in every round."""
    return getattr(node, "scope", None)


@runtime_checkable
class ModelNode(Node, Protocol):
    """A node that asks a language model about a screen, and can return probabilities."""

    @property
    def model(self) -> ChatModel: ...

    def request(self, decision: Decision, *, seed: int = 0) -> Request:
        """The request to its model in this context."""
        ...
