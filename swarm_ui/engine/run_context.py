"""The state that a run shares with the runs of its nested graphs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from math import inf

import msgspec

from swarm_ui.engine.adapter_pins import lease
from swarm_ui.engine.deadlines import Deadlines
from swarm_ui.engine.events import OnEvent, traceparent_of
from swarm_ui.engine.limits import Limits
from swarm_ui.errors import ConfigError, Failure
from swarm_ui.message import Message, Question
from swarm_ui.model import ChatModel, Request, VersionedModel
from swarm_ui.storage.protocol import Journal, RecordedCall
from swarm_ui.trace.records import Call

Rewrite = Callable[[Request], Request]
Lease = tuple[VersionedModel, str]


class Edits(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to a recorded run, by message id."""

    messages: Mapping[str, Message] = {}
    """Messages that replace those of the nodes."""
    without: frozenset[str] = frozenset()
    """Messages that are not delivered."""
    again: frozenset[str] = frozenset()
    """Calls to make again, although their inbox is the recorded one."""
    samples: Mapping[str, int] = {}
    """Number of the sample of each call. Sample 0 has the seed of the original call; the others
    have different seeds."""
    rewrites: Mapping[str, Rewrite] = {}
    """Functions that change a call's request to its model."""
    answers: Mapping[str, str] = {}
    """Answers of people to the questions of nodes, by message id or by the node's name."""


UNCHANGED = Edits()
_NOTHING: Mapping[str, RecordedCall] = {}


class Unanswered(Exception):
    """A node asked a question to which there is no answer yet; its call is made later."""

    def __init__(self, id: str, inner: Sequence[RecordedCall] = ()) -> None:
        """``inner``: for a node that runs a graph, the calls that were made inside it."""
        super().__init__(id)
        self.inner = tuple(inner)


class RunContext:
    """Name, limits, time, record and edits of one run. Belongs to one event loop."""

    __slots__ = (
        "around_edits", "clock", "deadlines", "edits", "end", "gate", "inside", "journal",
        "limits", "on_event", "past", "pins", "questions", "raised", "run", "start", "written",
    )  # fmt: skip

    def __init__(
        self,
        run: str,
        limits: Limits,
        *,
        on_event: OnEvent | None = None,
        journal: Journal | None = None,
        past: Mapping[str, RecordedCall] = _NOTHING,
        edits: Edits = UNCHANGED,
    ) -> None:
        """
        Args:
            on_event: called with every event.
            journal: keeps every call.
            past: recorded calls. A call whose inbox equals the recorded one is not made again.
            edits: changes to the recorded run.
        """
        self.run, self.limits = run, limits
        self.on_event, self.journal, self.past, self.edits = on_event, journal, past, edits
        self.inside = _inside(past)
        #: ids of calls inside of which something is edited
        self.around_edits = frozenset(
            around
            for id in (*edits.messages, *edits.without, *edits.again)
            for around in _around(id)
        )
        #: ids of calls inside a plain node that were written to the journal when they were made
        self.written: set[str] = set()
        self.clock = asyncio.get_running_loop().time
        self.start = self.clock()
        self.end = inf if limits.run_timeout is None else self.start + limits.run_timeout
        self.deadlines = Deadlines(self.end)
        self.gate = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self.pins: dict[tuple[int, str], str] = {}
        #: exceptions of the calls that failed, by message id
        self.raised: dict[str, Exception] = {}
        #: open questions of the run, by message id
        self.questions: dict[str, Question] = {}

    def lease(self, leases: Sequence[Lease]) -> ExitStack:
        """Pin the present adapter versions until the result is closed."""
        with ExitStack() as held:
            for model, adapter in leases:
                version = lease(model, adapter)
                held.callback(model.release, version)
                self.pins[id(model), adapter] = version
            return held.pop_all()

    def without_record(self) -> RunContext:
        """The same run, in which no call is recorded."""
        other = copy(self)
        other.past, other.inside = _NOTHING, {}
        return other

    async def keep(self, message: Message, call: Call) -> None:
        """Write a call to the journal, if there is one and it is not written yet. Raises
        ``ConfigError`` if it cannot be written."""
        journal = self.journal
        if journal is None or message.id in self.written:
            return
        found = journal.past.get(message.id)
        if found is not None and found[1] is call:
            return
        try:
            await journal.write(message, call)
        except ConfigError:
            raise
        except Exception as failure:
            kept_not = f"the store did not keep '{message.id}': {Failure.of(failure)}"
            raise ConfigError(kept_not) from failure

    async def ask(self, question: Question) -> str:
        """The answer to a question.

        Raises:
            Unanswered: there is none yet; the question is kept, and written to the store.
        """
        answers = self.edits.answers
        answer = answers.get(question.id, answers.get(question.node))
        if answer is not None:
            return answer
        parent = traceparent_of(self.on_event)
        question = msgspec.structs.replace(question, traceparent=parent)
        self.questions[question.id] = question
        if self.journal is not None:
            await self.journal.ask(question)
        raise Unanswered(question.id)

    def pinned(self, model: ChatModel, request: Request) -> Request:
        """The request, naming the version its adapter had when the run began."""
        if request.adapter is None or not self.pins:
            return request
        version = self.pins.get((id(model), request.adapter))
        if version is None:
            return request
        return msgspec.structs.replace(request, adapter=version)

    def rewritten(self, id: str, request: Request) -> Request:
        """The request of a call, with the edit made to it."""
        rewrite = self.edits.rewrites.get(id)
        if rewrite is None:
            return request
        changed = rewrite(request)
        if not isinstance(changed, Request):
            raise ConfigError(
                f"the edit of call '{id}' returned a {type(changed).__name__}; expected a Request"
            )
        return changed


def _inside(past: Mapping[str, RecordedCall]) -> dict[str, tuple[RecordedCall, ...]]:
    """The calls made inside each recorded call of a nested graph, by its message id."""
    found: dict[str, list[RecordedCall]] = {}
    for id, recorded in past.items():
        for around in _around(id):
            found.setdefault(around, []).append(recorded)
    return {id: tuple(pairs) for id, pairs in found.items()}


def _around(id: str) -> Iterator[str]:
    """Ids of the calls inside of which a call was made, the outermost first."""
    place = id.find("/")
    while place >= 0:
        yield id[:place]
        place = id.find("/", place + 1)
