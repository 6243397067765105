"""The calls to models of a corpus, kept on disk, so that no reply is paid for twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from swarm_ui.budget import Budget, most_tokens
from swarm_ui.errors import TraceError
from swarm_ui.files import LineFile, whole_lines
from swarm_ui.message import Usage
from swarm_ui.model import ChatModel, Completion, Request
from swarm_ui.optim.stage1.samples import short_hash
from swarm_ui.prompts import as_chat, transcript

T = TypeVar("T")


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: a call."""

    key: str
    model: str
    text: str | None = None
    """The reply; ``None`` for a failed call."""
    usage: Usage
    """For a failed call: the most that it may have used."""
    prompt_format: str = "json"
    """The format of the reply, see :mod:`swarm_ui.prompts`."""


class CallLog:
    """The calls of a corpus, in one file, and the budget of all of them."""

    def __init__(self, path: Path, budget: Budget) -> None:
        """The calls in the file count against the budget. Raises ``TraceError`` if it cannot be
        read."""
        self.budget = budget
        self.known: dict[str, CallRecord] = {}
        """Calls with a reply, by key."""
        for called in read_lines(path, CallRecord, "a call"):
            budget.count(called.usage, price=budget.prices.get(called.model))
            if called.text is not None:
                self.known[called.key] = called
        self._lines = LineFile(path)

    def add(self, called: CallRecord) -> None:
        if called.text is not None:
            self.known[called.key] = called
        self._lines.append(msgspec.json.encode(called))

    def close(self) -> None:
        self._lines.close()


def read_lines(path: Path, kind: type[T], what: str) -> Iterator[T]:
    """The complete lines of a file. Raises ``TraceError`` if one cannot be decoded; ``what`` says
    what it should be."""
    for number, line in enumerate(whole_lines(path), start=1):
        try:
            yield msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TraceError(f"'{path}', line {number}: not {what}: {error}") from error


class LoggedModel:
    """A :class:`~swarm_ui.model.ChatModel` that takes known replies from the log."""

    def __init__(self, model: ChatModel, role: str, log: CallLog) -> None:
        self.name = model.name
        self._model, self._role, self._log = model, role, log

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request. Raises ``ModelError``, also for an exceeded budget."""
        return list(await asyncio.gather(*(self._one(request) for request in requests)))

    async def close(self) -> None:
        """Does nothing: the caller of ``synthesize`` owns the model."""

    async def _one(self, request: Request) -> Completion:
        read = transcript(as_chat(request))
        how = [self._role, self.name, request.temperature, request.max_tokens, request.seed, read]
        key = short_hash(json.dumps(how))
        called = self._log.known.get(key) or await self._ask(key, request, read)
        return Completion(
            text=called.text or "",
            prompt=read,
            usage=called.usage,
            model=called.model,
            prompt_format=called.prompt_format,
        )

    async def _ask(self, key: str, request: Request, read: str) -> CallRecord:
        most = Usage(prompt_tokens=most_tokens(read), completion_tokens=request.reply_tokens)
        budget = self._log.budget
        hold = budget.reserve(most, f"corpus, call to {self.name}", budget.prices.get(self.name))
        called = CallRecord(key=key, model=self.name, usage=most)
        try:
            (reply,) = await self._model.generate([request])
            text = reply.text.encode("utf-8", "replace").decode()
            called = msgspec.structs.replace(
                called, text=text, usage=reply.usage, prompt_format=reply.prompt_format
            )
        finally:
            budget.settle(hold, called.usage)
            self._log.add(called)
        return called
