"""One run of a graph: all its state, in one object."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from swarm_ui.errors import BudgetExceeded, ConfigError, NodeError, NodeTimeout
from swarm_ui.message import Message
from swarm_ui.model import Decision
from swarm_ui.node import NodeContext, NodeReply, Source
from swarm_ui.observation import Observation
from swarm_ui.trace import Call, Trace, hear
from swarm_ui.view import View, identity

if TYPE_CHECKING:
    from swarm_ui.graph import CollabGraph

_FOR_THE_USER = (ConfigError, BudgetExceeded)  # not the node's failure: never a tombstone


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may take, and what happens when a node fails."""

    timeout: float | None = None
    """Seconds for one call; a node's own ``timeout`` goes before. ``None``: no limit."""
    concurrency: int | None = None
    """Calls of one run at the same time; ``None``: no limit."""
    on_failure: Literal["tombstone", "abort"] = "tombstone"
    """``tombstone``: successors see a message with an ``error``. ``abort``: the run raises."""


class Run:
    """The state of one run. Call numbers are those of the graph's plan."""

    __slots__ = (
        "_around", "_calls", "_clock", "_failures", "_gate", "_given", "_graph",
        "_group", "_inner", "_limits", "_number", "_observation", "_path", "_plan", "_prefix",
        "_run", "_said", "_seed", "_start", "_waiting", "ballot",
    )  # fmt: skip

    def __init__(
        self,
        graph: CollabGraph,
        observation: Observation,
        seed: int,
        run: str,
        limits: Limits,
        around: Sequence[Message] = (),
        path: str = "",
        prefix: str = "",
    ) -> None:
        """``around``, ``path`` and ``prefix``: what is heard from, and the names of, the graphs
        around a nested one (``"team/"`` before node names, ``"team:1/"`` before message ids)."""
        plan = graph.plan
        self._graph, self._plan, self._observation = graph, plan, observation
        self._seed, self._run, self._limits = seed, run, limits
        self._around, self._path, self._prefix = tuple(around), path, prefix
        self._said: list[Message | None] = [None] * plan.size
        self._calls: list[Call | None] = [None] * plan.size
        self._waiting = list(plan.waiting)
        self._inner: dict[int, tuple[tuple[Message, Call], ...]] = {}
        self._given: Mapping[str, tuple[Message, Call]] = {}
        self.ballot: dict[str, float] = {}
        self._failures: dict[int, BaseException] = {}
        self._number: dict[str, int] | None = None
        self._gate = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._clock = asyncio.get_running_loop().time
        self._start = self._clock()
        self._group = asyncio.TaskGroup()

    def take(self, given: Trace) -> None:
        """Take the messages of a trace as said."""
        calls = {call.message: call for call in given.calls}
        self._given = {m.id: (m, calls[m.id]) for m in given.messages if m.id in calls}

    async def finish(self) -> None:
        """Make every call. Leaves no task behind, however it ends."""
        ready = [k for k, count in enumerate(self._waiting) if count == 0]
        try:
            async with self._group as group:
                for k in ready:
                    group.create_task(self._follow(k))
        except BaseExceptionGroup:
            if not self._failures:
                raise
            first = self._failures[min(self._failures)]
            raise first from first.__cause__

    async def _follow(self, k: int) -> None:
        """Make a call, then one it made ready, and so on; start the others beside it."""
        successors, waiting, create = self._plan.successors, self._waiting, self._group.create_task
        while True:
            await self._make(k)
            following = -1
            for successor in successors[k]:
                waiting[successor] -= 1
                if waiting[successor] == 0:
                    if following < 0:
                        following = successor
                    else:
                        create(self._follow(successor))
            if following < 0:
                return
            k = following

    async def _make(self, k: int) -> None:
        """Make one call and record it."""
        plan, said = self._plan, self._said
        if self._given and self._reuse(k):
            return
        started = self._clock() - self._start
        inbox: list[Message] = [said[j] for j in plan.inputs[k]]  # type: ignore[misc]
        if plan.open[k] and self._around:
            inbox.extend(self._around)
        own = plan.own[k]
        context = NodeContext(
            self._observation,
            self._path + plan.names[k],
            plan.rounds[k],
            self._graph.rounds,
            self._prefix + plan.ids[k],
            self._run,
            self._seed,
            said[own] if own >= 0 else None,
            self._limits,
            self,
        )
        error: str | None = None
        try:
            reply = await self._ask(k, inbox, context)
            if type(reply) is not NodeReply and not isinstance(reply, Message):
                raise TypeError(f"answered with a {type(reply).__name__}, not a NodeReply")
        except Exception as failure:
            error = self._failed(k, failure)
            reply = NodeReply(error=error)
        self._record(k, inbox, context, reply, started, error)

    async def _ask(self, k: int, inbox: list[Message], context: NodeContext) -> NodeReply | Message:
        node = self._plan.nodes[k]
        seconds = self._plan.timeouts[k]
        if seconds is None:
            seconds = self._limits.timeout
        if self._gate is not None:
            async with self._gate:
                return await _timed(node(inbox, context), seconds)
        if seconds is None:
            return await node(inbox, context)
        return await _timed(node(inbox, context), seconds)

    def _failed(self, k: int, failure: Exception) -> str:
        """What the tombstone says; raises if there shall be none."""
        expired = isinstance(failure, _Expired)
        reason = str(failure) if expired else f"{type(failure).__name__}: {failure}"
        abort = self._limits.on_failure == "abort"
        if isinstance(failure, _FOR_THE_USER) or (abort and isinstance(failure, NodeError)):
            self._failures[k] = failure
            raise failure
        if not abort:
            return reason
        name = self._path + self._plan.names[k]
        kind = NodeTimeout if expired else NodeError
        error = kind(reason, node=name, round=self._plan.rounds[k], run=self._run)
        self._failures[k] = error
        raise error from failure

    def _record(
        self,
        k: int,
        inbox: list[Message],
        context: NodeContext,
        reply: NodeReply | Message,
        started: float,
        error: str | None,
    ) -> None:
        if isinstance(reply, Message):
            message = reply
            if message.id != context.message_id or message.sender != context.node:
                message = msgspec.structs.replace(
                    reply, id=context.message_id, sender=context.node, round=context.round
                )
            reply = NodeReply(
                adapter=reply.adapter, logprob=reply.logprob, usage=reply.usage, error=reply.error
            )
        else:
            message = Message(
                id=context.message_id,
                sender=context.node,
                round=context.round,
                content=reply.content,
                action=reply.action,
                adapter=reply.adapter,
                logprob=reply.logprob,
                usage=reply.usage,
                error=reply.error,
            )
            if reply.inner:
                self._inner[k] = reply.inner
            if reply.ballot is not None and k == self._plan.final:
                self.ballot = reply.ballot
        self._said[k] = message
        self._calls[k] = Call(
            message=message.id,
            node=context.node,
            round=context.round,
            heard=tuple([m.id for m in inbox]),
            order=reply.order,
            prompt=reply.prompt,
            reply=message.content if reply.prompt else "",
            adapter=reply.adapter,
            temperature=reply.temperature,
            seed=reply.seed,
            logprob=reply.logprob,
            usage=reply.usage,
            started=started,
            ended=self._clock() - self._start,
            error=error,
        )

    def _reuse(self, k: int) -> bool:
        """Take a given message instead of a call; whether there was one."""
        id = self._prefix + self._plan.ids[k]
        if id not in self._given:
            return False
        self._said[k], self._calls[k] = self._given[id]
        inside = id + "/"
        self._inner[k] = tuple(v for i, v in self._given.items() if i.startswith(inside))
        return True

    def source(self, message: Message) -> Source:
        """Who said a message, and knowing what; see :meth:`NodeContext.source`."""
        if self._number is None:
            self._number = {self._prefix + id: k for k, id in enumerate(self._plan.ids)}
        k = self._number[message.id]
        call = self._calls[k]
        if call is None:
            raise KeyError(message.id)
        screen = self._observation
        view = identity(screen) if call.order is None else View(screen, call.order)
        inbox: list[Message] = [self._said[j] for j in self._plan.inputs[k]]  # type: ignore[misc]
        if self._plan.open[k]:
            inbox.extend(self._around)
        heard = tuple(hear(m, view, listener=call.node) for m in inbox)
        decision = Decision(observation=view.observation, heard=heard)
        return Source(self._plan.nodes[k], call, view, decision)

    def spoken(self) -> list[tuple[Message, Call]]:
        """All messages with their calls, by call number; those inside a nested graph after it."""
        pairs: list[tuple[Message, Call]] = []
        for k, (message, call) in enumerate(zip(self._said, self._calls, strict=True)):
            if message is not None and call is not None:
                pairs.append((message, call))
                pairs.extend(self._inner.get(k, ()))
        return pairs

    def answer(self) -> Message:
        """The output's message, once all calls are made."""
        message = self._said[self._plan.final]
        if message is None:
            raise KeyError(self._plan.ids[self._plan.final])
        return message

    def trace(self, edge_logprob: float | None) -> Trace:
        """The record of the run."""
        pairs = self.spoken()
        return Trace(
            run=self._run,
            seed=self._seed,
            observation=self._observation,
            agents=self._graph.agents,
            rounds=self._graph.rounds,
            edges=self._graph.talk,
            edge_logprob=edge_logprob,
            messages=tuple([message for message, _ in pairs]),
            calls=tuple([call for _, call in pairs]),
            ballot=self.ballot,
            action=self.answer().action,
        )


class _Expired(Exception):
    """The time given to a call is over."""


async def _timed(
    answer: Coroutine[Any, Any, NodeReply | Message], seconds: float | None
) -> NodeReply | Message:
    if seconds is None:
        return await answer
    try:
        async with asyncio.timeout(seconds) as window:
            return await answer
    except TimeoutError:
        if window.expired():
            raise _Expired(f"no answer within {seconds:g} s") from None
        raise
