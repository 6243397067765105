"""The state that a run shares with the runs of its nested graphs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from math import inf

import msgspec

from swarm_ui.engine.adapter_pins import lease
from swarm_ui.engine.deadlines import Deadlines
from swarm_ui.engine.events import OnEvent
from swarm_ui.engine.limits import Limits
from swarm_ui.errors import ConfigError
from swarm_ui.message import Message
from swarm_ui.model import ChatModel, Request, VersionedModel
from swarm_ui.storage.protocol import Journal, Spoken

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
    """Functions that change the requests of calls to their models."""


UNCHANGED = Edits()
_NOTHING: Mapping[str, Spoken] = {}


class RunContext:
    """Name, limits, time, record and edits of one run. Belongs to one event loop."""

    __slots__ = (
        "clock", "deadlines", "edits", "end", "gate", "inside", "journal", "limits", "on_event",
        "past", "pins", "run", "start",
    )  # fmt: skip

    def __init__(
        self,
        run: str,
        limits: Limits,
        *,
        on_event: OnEvent | None = None,
        journal: Journal | None = None,
        past: Mapping[str, Spoken] = _NOTHING,
        edits: Edits = UNCHANGED,
    ) -> None:
        """
        Args:
            on_event: called with every event.
            journal: keeps every call.
            past: recorded calls, taken from the record while their inbox is the recorded one.
            edits: changes to the recorded run.
        """
        self.run, self.limits = run, limits
        self.on_event, self.journal, self.past, self.edits = on_event, journal, past, edits
        self.inside = _inside(past)
        self.clock = asyncio.get_running_loop().time
        self.start = self.clock()
        self.end = inf if limits.run_timeout is None else self.start + limits.run_timeout
        self.deadlines = Deadlines(self.end)
        self.gate = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self.pins: dict[tuple[int, str], str] = {}

    def lease(self, leases: Sequence[Lease]) -> list[tuple[VersionedModel, str]]:
        """Pin the present adapter versions; give the result to :meth:`release`."""
        held: list[tuple[VersionedModel, str]] = []
        try:
            for model, adapter in leases:
                version = lease(model, adapter)
                held.append((model, version))
                self.pins[id(model), adapter] = version
        except BaseException:  # re-raised: no adapter version stays leased
            self.release(held)
            raise
        return held

    @staticmethod
    def release(held: list[tuple[VersionedModel, str]]) -> None:
        for model, version in held:
            model.release(version)

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
                f"the edit of call '{id}' gave a {type(changed).__name__}; expected a Request"
            )
        return changed


def _inside(past: Mapping[str, Spoken]) -> dict[str, tuple[Spoken, ...]]:
    """The calls made inside each recorded call of a nested graph, by its message id."""
    found: dict[str, list[Spoken]] = {}
    for id, spoken in past.items():
        place = id.find("/")
        while place >= 0:
            found.setdefault(id[:place], []).append(spoken)
            place = id.find("/", place + 1)
    return {id: tuple(pairs) for id, pairs in found.items()}
