"""One run of a store: reads earlier calls, writes new ones, and checks the identity of the run."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import Any, Protocol

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.message import Message
from swarm_ui.observation import Observation
from swarm_ui.storage.protocol import Head, Spoken
from swarm_ui.storage.run_lines import Past, call_line, end_line, plain
from swarm_ui.trace.records import Call


class Lines(Protocol):
    """Where the lines of one run go."""

    async def append(self, line: bytes) -> None:
        """Safe when it returns. Raises ``ConfigError``."""
        ...

    def close(self) -> None: ...


class LineJournal:
    """A :class:`~swarm_ui.storage.protocol.Journal` that writes lines."""

    __slots__ = ("_finished", "_lines", "_past")

    def __init__(self, past: Past, lines: Lines) -> None:
        self._past = past.spoken
        self._finished = past.finished
        self._lines = lines

    @property
    def past(self) -> Mapping[str, Spoken]:
        return self._past

    async def write(self, message: Message, call: Call) -> None:
        self._finished = False
        await self._lines.append(call_line(message, call))

    async def finish(self) -> None:
        if not self._finished:
            await self._lines.append(end_line(now()))
            self._finished = True

    def close(self) -> None:
        self._lines.close()


async def opened(pool: Executor, open: Callable[[Head], LineJournal], head: Head) -> LineJournal:
    """Open a journal in a thread. Cancelled, it leaves none open."""
    opening: Future[LineJournal] = pool.submit(open, head)
    try:
        return await asyncio.wrap_future(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close)
        raise


def _close(opening: Future[LineJournal]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


# -- errors -----------------------------------------------------------------------------------


def check_name(run: str) -> None:
    """Raises ``ConfigError`` if a run has no name: all of these would be one run."""
    if not run:
        raise ConfigError("a run that is saved in a store needs a unique name: run='...'")


def is_open(run: str, where: str) -> ConfigError:
    return ConfigError(
        f"the run {run!r} in {where} is open, here or in another process; wait until it is over, "
        "or stop it (a process that was killed holds nothing)"
    )


def is_closed(where: str) -> ConfigError:
    return ConfigError(f"the store {where} is closed; close it when its runs are over")


def no_run(run: str, where: str) -> ConfigError:
    return ConfigError(f"there is no run {run!r} in {where}; runs() lists what there is")


def not_kept(where: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"{where} cannot be used: {error}. What was written before is safe: once that is put "
        "right, start the run again under the same name, and it goes on from there"
    )


def check_same(old: Head, new: Head, where: str) -> None:
    """Raises ``ConfigError`` that names the difference, if these are two different runs."""
    new = plain(new)
    if old == new:
        return
    differences = [f"the name {old.run!r} instead of {new.run!r}"] if old.run != new.run else []
    if old.seed != new.seed:
        differences.append(f"the seed {old.seed} instead of {new.seed}")
    if old.graph != new.graph:
        differences.append(f"another graph ({_graphs(old.graph, new.graph)})")
    if old.observation != new.observation:
        differences.append(f"another screen ({_screens(old.observation, new.observation)})")
    if old.version != new.version:
        differences.append(f"version {old.version} instead of {new.version}")
    raise ConfigError(
        f"the run {new.run!r} in {where} was started with {', '.join(differences)}. "
        f"Use the original arguments, choose another name, or delete({new.run!r}) it"
    )


def _graphs(old: str, new: str) -> str:
    was, now = (msgspec.json.decode(text, type=dict[str, Any]) for text in (old, new))
    parts = []
    for key in {**was, **now}:
        before, after = was.get(key), now.get(key)
        if before == after:
            continue
        if not isinstance(before, list) or not isinstance(after, list):
            parts.append(f"{key} {before!r} instead of {after!r}")
            continue
        gone = [_short(each) for each in before if each not in after]
        added = [_short(each) for each in after if each not in before]
        parts.append(
            f"{key} with {', '.join(gone) or 'nothing more'} instead of "
            f"{', '.join(added) or 'nothing more'}"
            if gone or added
            else f"{key} in another order"
        )
    return "; ".join(parts)


def _short(part: Any) -> str:
    if isinstance(part, dict):
        return f"{part.get('id')} ({part.get('kind')})"
    return " -> ".join(map(str, part)) if isinstance(part, list) else str(part)


def _screens(old: Observation, new: Observation) -> str:
    if old.goal != new.goal:
        return f"the goal {old.goal!r} instead of {new.goal!r}"
    fields = [f for f in old.__struct_fields__ if getattr(old, f) != getattr(new, f)]
    return f"other {', '.join(fields)}"
