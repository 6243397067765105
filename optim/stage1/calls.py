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


def read_lines(path: Path, kind: type[T], what: str) -> Iterator[T]:
    """The complete lines of a file. Raises ``TraceError`` if one cannot be decoded; ``what`` says
    what it should be."""
    for number, line in enumerate(whole_lines(path), start=1):
        try:
            yield msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TraceError(f"'{path}', line {number}: not {what}: {error}") from error


class CallLog:
    """The calls of a corpus, in one file, and the budget of all of them."""

    def __init__(self, path: Path, budget: Budget) -> None:
        """The calls in the file count against the budget. Raises ``TraceError`` if it cannot be
        read."""
        self._budget, self._known = budget, dict[str, CallRecord]()
        for called in read_lines(path, CallRecord, "a call"):
            budget.count(called.usage, price=budget.prices.get(called.model))
            if called.text is not None:
                self._known[called.key] = called
        self._lines = LineFile(path)

    def close(self) -> None:
        self._lines.close()

    async def reply(self, model: ChatModel, role: str, request: Request) -> Completion:
        """The known reply to an equal request to a model in this role, or a new one."""
        read = transcript(as_chat(request))
        how = [role, model.name, request.temperature, request.max_tokens, request.seed, read]
        key = short_hash(json.dumps(how))
        called = self._known.get(key) or await self._ask(model, key, request, read)
        return Completion(
            text=called.text or "", prompt=read, usage=called.usage, model=called.model,
            prompt_format=called.prompt_format,
        )  # fmt: skip

    async def _ask(self, model: ChatModel, key: str, request: Request, read: str) -> CallRecord:
        most = Usage(prompt_tokens=most_tokens(read), completion_tokens=request.reply_tokens)
        price = self._budget.prices.get(model.name)
        hold = self._budget.reserve(most, f"corpus, call to {model.name}", price)
        called = CallRecord(key=key, model=model.name, usage=most)
        try:
            (reply,) = await model.generate([request])
            text = reply.text.encode("utf-8", "replace").decode()
            called = self._known[key] = msgspec.structs.replace(
                called, text=text, usage=reply.usage, prompt_format=reply.prompt_format
            )
        finally:
            self._budget.settle(hold, called.usage)
            self._lines.append(msgspec.json.encode(called))
        return called


class LoggedModel:
    """A :class:`~swarm_ui.model.ChatModel` that takes known replies from the log."""

    def __init__(self, model: ChatModel, role: str, log: CallLog) -> None:
        self.name, self._model, self._role, self._log = model.name, model, role, log

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request. Raises ``ModelError``, also for an exceeded budget."""
        asked = (self._log.reply(self._model, self._role, request) for request in requests)
        return list(await asyncio.gather(*asked))

    async def close(self) -> None:
        """Does nothing: the caller of ``synthesize`` owns the model."""
