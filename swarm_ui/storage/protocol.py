"""The protocol of stores, which save the messages of runs so that they survive a crash.

A run with a store writes each finished call, and its successors start only after that.
A run that is started again under the same name reuses the written calls and makes the others.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from swarm_ui.message import Message, Question
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Call

RecordedCall = tuple[Message, Call]
"""A message and the record of the call that produced it."""


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The properties that two runs of the same name must share to be the same run."""

    version: int = 1
    run: str
    seed: int
    graph: str
    """The graph's structure as JSON."""
    observation: Observation


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the list of a store."""

    name: str
    calls: int
    """Number of written calls; a call that was repeated with another inbox counts again."""
    finished: bool
    """Whether the run finished; false if it was stopped or is still running."""
    begun: datetime.datetime
    written: datetime.datetime
    """Time of the last write."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The stored information about a run, read without executing it."""

    head: Head
    calls: tuple[RecordedCall, ...]
    """Each call once with its message, in the order they were written."""
    finished: bool
    questions: tuple[Question, ...] = ()
    """The questions that wait for a person's answer, in the order they were asked."""


class Journal(Protocol):
    """One run in a store."""

    @property
    def past(self) -> Mapping[str, RecordedCall]:
        """Calls written before this journal was opened, by message id."""
        ...

    async def write(self, message: Message, call: Call) -> None:
        """Save a call. It is on disk when this returns.

        After a cancellation the call is either saved completely or not at all.

        Raises:
            ConfigError: the call cannot be saved.
        """
        ...

    async def ask(self, question: Question) -> None:
        """Record that a call waits for a person, unless that is recorded already."""
        ...

    async def finish(self) -> None:
        """Record that the run has finished."""
        ...

    def close(self) -> None:
        """Release the run, so that it can be opened again. Waits for a write in progress."""
        ...


class Store(Protocol):
    """Keeps any number of runs."""

    async def open(self, head: Head) -> Journal:
        """The journal of a run, which is created if the store does not have the run yet.

        Raises:
            ConfigError: a run of that name exists with another graph, seed or screen, is open
                elsewhere, or cannot be written.
            TraceError: the stored run cannot be read.
        """
        ...


class ReadableStore(Store, Protocol):
    """A store whose runs can be read without executing them."""

    def read(self, run: str) -> RunRecord:
        """A stored run.

        Raises:
            ConfigError: there is no run of that name.
            TraceError: the run is damaged.
        """
        ...


def hears_the_same(call: Call, inbox: Sequence[Message], past: Mapping[str, RecordedCall]) -> bool:
    """Whether a recorded call received exactly these messages."""
    if len(call.heard) != len(inbox):
        return False
    for heard, message in zip(call.heard, inbox, strict=True):
        if heard != message.id:
            return False
        before = past.get(heard)
        if before is None or (before[0] is not message and before[0] != message):
            return False
    return True
