"""Events of a run.

Times are seconds since the start of the run. Every event contains the name of its run.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from swarm_ui.trace.records import Call, Trace


class CallEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The base of events of a call that has not finished; ``id`` is that of its message."""

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
    """A call has finished, and its message is sent to the successors. If it failed, the call has
    an ``error``, and its message is a tombstone."""

    run: str
    call: Call


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """The run has finished; always the last event of a run that did not raise."""

    run: str
    trace: Trace


Event = CallStarted | Token | CallFinished | Finished
OnEvent = Callable[[Event], None]
"""Called with each event at once, in the event loop: must not block, and must not raise."""
