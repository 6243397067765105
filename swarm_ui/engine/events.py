"""Events of a run, and the stream of them that :meth:`CollabGraph.stream` returns.

Times are seconds since the start of the run. Every event contains the name of its run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import msgspec

from swarm_ui.action import Action
from swarm_ui.errors import Failure
from swarm_ui.trace.records import Call, Trace


class CallEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all events of a call; ``id`` is that of its message."""

    run: str
    id: str
    node: str
    round: int


class CallStarted(CallEvent, frozen=True, kw_only=True, tag="call_started"):
    """A node was called, after all its messages had arrived."""

    heard: tuple[str, ...]
    at: float


class Token(CallEvent, frozen=True, kw_only=True, tag="token"):
    """A piece of a reply, from models that stream. If a reply breaks off and is asked for again,
    no pieces of the new one come; the message has its text."""

    text: str


class CallFinished(msgspec.Struct, frozen=True, kw_only=True, tag="message"):
    """A call has finished, and its message (which may be a tombstone) is sent to the successors."""

    run: str
    call: Call


class Failed(CallEvent, frozen=True, kw_only=True, tag="error"):
    """A node failed. A tombstone or the end of the run follows."""

    error: Failure


class Skipped(CallEvent, frozen=True, kw_only=True, tag="skipped"):
    """A node was skipped, because none of its edges delivered a message."""


class Voted(msgspec.Struct, frozen=True, kw_only=True, tag="vote"):
    """The output node has answered."""

    run: str
    ballot: dict[str, float]
    """Weight of each proposal, keyed by the action's JSON; empty if the output does not vote."""
    action: Action | None


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """The run has finished; always the last event of a run that did not raise."""

    run: str
    trace: Trace


class Aborted(msgspec.Struct, frozen=True, kw_only=True, tag="aborted"):
    """The run was cancelled or raises; always the last event of a run that does."""

    run: str
    error: Failure
    """The error that it raises; its kind is ``"cancelled"`` if the run was cancelled."""
    at: float


Event = CallStarted | Token | CallFinished | Failed | Skipped | Voted | Finished | Aborted
OnEvent = Callable[[Event], None]
"""Called with each event at once, in the event loop: must not block, and must not raise."""


async def stream_of(
    begin: Callable[[OnEvent], Coroutine[Any, Any, Trace]],
) -> AsyncGenerator[Event, None]:
    """The events of a run, in the order they happen; see :meth:`CollabGraph.stream`.

    ``begin``: starts the run with a function that is called with each event.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    running = asyncio.get_running_loop().create_task(begin(events.put_nowait))
    running.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        running.result()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
