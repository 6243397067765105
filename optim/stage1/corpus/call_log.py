"""A log of calls to models, written before and after each call.

It ensures that no call is paid for twice, and that the budget of a corpus is kept even if the
synthesis is interrupted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from swarm_ui.budget import Budget, Hold, Price, most_tokens
from swarm_ui.errors import TraceError
from swarm_ui.files import LineFile
from swarm_ui.message import Usage
from swarm_ui.model import ChatModel, Completion, Request
from swarm_ui.optim.stage1.corpus.samples import short_hash
from swarm_ui.prompts import as_chat, transcript

T = TypeVar("T")


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: the start or the end of a call."""

    key: str
    model: str
    most: Usage | None = None
    """Maximum usage of the call; only in the line of its start."""
    text: str | None = None
    """The reply; ``None`` in the line of the start, and for a failed call."""
    usage: Usage = Usage()
    prompt: str = ""
    """Short hash of the transcript of the prompt, as in ``Origin.prompt`` of samples."""
    prompt_format: str = "json"
    """The format of the reply, see :mod:`swarm_ui.prompts`."""
    failed: bool = False


class CallLog:
    """The calls of a corpus, in one file, and their cost."""

    def __init__(
        self, path: Path, *, budget: Budget | None, prices: Mapping[str, Price] | None
    ) -> None:
        """
        Args:
            path: the file; existing lines are read.
            budget: the budget of all calls in the file, also earlier ones; a call whose end is
                missing counts with the maximum that it may have used.
            prices: the price of each model by name, for a budget in money.

        Raises:
            TraceError: the file cannot be read.
        """
        self._budget = budget or Budget()
        self._prices = dict(prices or {})
        self._past: list[tuple[str, Usage]] = []
        self.known: dict[str, CallRecord] = {}
        """Calls with a reply, by key."""
        begun: dict[str, list[CallRecord]] = {}
        for called, _ in read_records(path, CallRecord, "a call"):
            if called.most is not None:
                begun.setdefault(called.key, []).append(called)
                continue
            most = [line.most for line in begun.pop(called.key, []) if line.most is not None]
            own = most.pop() if most else Usage()
            self._past.append((called.model, own if called.failed else called.usage))
            self._past += [(called.model, usage) for usage in most]  # cut off by a kill
            if not called.failed:
                self.known[called.key] = called
        for lines in begun.values():
            self._past += [(line.model, line.most) for line in lines if line.most is not None]
        self._lines = LineFile(path)

    def begin(self, key: str, model: str, most: Usage) -> Hold:
        """Record the start of a call; pass the result to :meth:`end`.

        Raises:
            BudgetExceeded: the call could exceed the budget; nothing is written.
        """
        where = f"corpus, call to {model}"
        while self._past:
            before, usage = self._past[-1]
            price = self._prices.get(before)
            self._budget.settle(self._budget.reserve(usage, where, price), usage)
            self._past.pop()
        hold = self._budget.reserve(most, where, self._prices.get(model))
        self._lines.append(msgspec.json.encode(CallRecord(key=key, model=model, most=most)))
        return hold

    def end(self, hold: Hold, called: CallRecord) -> None:
        self._budget.settle(hold, None if called.failed else called.usage)
        if not called.failed:
            self.known[called.key] = called
        self._lines.append(msgspec.json.encode(called))

    def close(self) -> None:
        self._lines.close()


def read_records(
    path: Path, kind: type[T], what: str, *, end: int | None = None
) -> Iterator[tuple[T, int]]:
    """The complete lines in the first ``end`` bytes of a file, each with the position of its end.

    Raises:
        TraceError: a line cannot be decoded; ``what`` says what it should be.
    """
    if not path.exists():
        return
    at = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n") or (end is not None and at >= end):
                return
            at += len(line)
            try:
                yield msgspec.json.decode(line, type=kind), at
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise TraceError(f"'{path}', line {number}: not {what}: {error}") from error


def spent(path: Path) -> tuple[int, Usage]:
    """Number of calls, and the tokens of those with a reply."""
    calls, used = 0, Usage()
    for record, _ in read_records(path, CallRecord, "a call"):
        calls += record.most is not None
        used += record.usage
    return calls, used


class LoggedModel:
    """A :class:`~swarm_ui.model.ChatModel` that takes known replies from the log."""

    def __init__(self, model: ChatModel, role: str, log: CallLog) -> None:
        self.name = model.name
        self._model, self._role, self._log = model, role, log
        self._asking: dict[str, asyncio.Event] = {}

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request. Raises ``ModelError``, also for an exceeded budget."""
        return list(await asyncio.gather(*(self._one(request) for request in requests)))

    async def close(self) -> None:
        """Does nothing: the caller of ``synthesize`` owns the model."""

    async def _one(self, request: Request) -> Completion:
        read = transcript(as_chat(request))
        key = self._key(request, read)
        while key not in self._log.known:
            if key in self._asking:
                await self._asking[key].wait()
                continue
            self._asking[key] = asyncio.Event()
            try:
                return await self._ask(key, request, read)
            finally:
                self._asking.pop(key).set()
        said = self._log.known[key]
        return self._completion(said, read)

    async def _ask(self, key: str, request: Request, read: str) -> Completion:
        most = Usage(prompt_tokens=most_tokens(read), completion_tokens=request.reply_tokens)
        hold = self._log.begin(key, self.name, most)
        called = CallRecord(key=key, model=self.name, failed=True)
        try:
            (reply,) = await self._model.generate([request])
            text = reply.text.encode("utf-8", "replace").decode()
            called = CallRecord(
                key=key,
                model=self.name,
                text=text,
                usage=reply.usage,
                prompt=short_hash(read),
                prompt_format=reply.prompt_format,
            )
        finally:
            self._log.end(hold, called)
        return self._completion(called, read)

    def _completion(self, called: CallRecord, read: str) -> Completion:
        return Completion(
            text=called.text or "",
            prompt=read,
            usage=called.usage,
            model=called.model,
            prompt_format=called.prompt_format,
        )

    def _key(self, request: Request, read: str) -> str:
        how = [self._role, self.name, request.adapter, request.temperature, request.max_tokens]
        return short_hash(json.dumps([*how, request.seed, request.json_schema, read]))
