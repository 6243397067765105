"""Calls to models, written down before and after they are made: none is paid twice, and the budget
holds for a corpus however often its making was interrupted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from swarm_ui.budget import Budget, Hold, Price, guess_tokens
from swarm_ui.errors import TraceError
from swarm_ui.message import Usage
from swarm_ui.model import ChatModel, Completion, Request
from swarm_ui.optim.stage1.corpus.samples import short_hash
from swarm_ui.prompts import as_chat, transcript
from swarm_ui.storage.durable import LineFile


class Called(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: a call that is about to be made, or one that is over."""

    key: str
    model: str
    most: Usage | None = None
    """What it may use; only before it is made."""
    text: str | None = None
    """The reply; ``None``: not over, or it failed."""
    usage: Usage = Usage()
    prompt: str = ""
    """Short hash of the transcript of the prompt, as in the provenance of samples."""
    failed: bool = False


class CallLog:
    """The calls of a corpus, kept in one file, and what they cost."""

    def __init__(
        self, path: Path, *, budget: Budget | None, prices: Mapping[str, Price] | None
    ) -> None:
        """
        Args:
            path: where lines are appended; what is there is read.
            budget: of all calls in the file, those of earlier sessions included; a call without
                an end counts as all that it might have used.
            prices: by name of model, for a budget in money.

        Raises:
            TraceError: the file cannot be read.
        """
        self._lines = LineFile(path)
        self._budget = budget or Budget()
        self._prices = dict(prices or {})
        self._past: list[tuple[str, Usage]] = []
        self.known: dict[str, Called] = {}
        """Calls with a reply, by key."""
        begun: dict[str, list[Called]] = {}
        for called in read_calls(path):
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

    def begin(self, key: str, model: str, most: Usage) -> Hold:
        """Write down a call that is about to be made; give the result to :meth:`end`.

        Raises:
            BudgetExceeded: it could cross the budget; nothing is written.
        """
        where = f"corpus, call to {model}"
        while self._past:
            before, usage = self._past[-1]
            price = self._prices.get(before)
            self._budget.settle(self._budget.reserve(usage, where, price), usage)
            self._past.pop()
        hold = self._budget.reserve(most, where, self._prices.get(model))
        self._lines.append(msgspec.json.encode(Called(key=key, model=model, most=most)))
        return hold

    def end(self, hold: Hold, called: Called) -> None:
        """Write down how it ended."""
        self._budget.settle(hold, None if called.failed else called.usage)
        if not called.failed:
            self.known[called.key] = called
        self._lines.append(msgspec.json.encode(called))

    def close(self) -> None:
        """Let go of the file."""
        self._lines.close()


def read_calls(path: Path) -> Iterator[Called]:
    """The lines of a log that are whole. Raises ``TraceError`` if one is not a call."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield msgspec.json.decode(line, type=Called)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise TraceError(f"'{path}', line {number}: not a call: {error}") from error


def spent(path: Path) -> tuple[int, Usage]:
    """Calls that were begun, and the tokens of those that gave a reply."""
    calls, used = 0, Usage()
    for called in read_calls(path):
        calls += called.most is not None
        used += called.usage
    return calls, used


class LoggedModel:
    """A :class:`~swarm_ui.model.ChatModel` that answers from the log what was asked before."""

    def __init__(self, model: ChatModel, role: str, log: CallLog) -> None:
        self._model, self._role, self._log = model, role, log
        self._asking: dict[str, asyncio.Event] = {}

    @property
    def name(self) -> str:
        return self._model.name

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion a request. Raises ``ModelError``, ``BudgetExceeded`` among them."""
        return list(await asyncio.gather(*(self._one(request) for request in requests)))

    async def close(self) -> None:
        """The model belongs to whoever gave it."""

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
        return Completion(text=said.text or "", prompt=read, usage=said.usage, model=said.model)

    async def _ask(self, key: str, request: Request, read: str) -> Completion:
        most = Usage(prompt_tokens=guess_tokens(read), completion_tokens=request.max_tokens)
        hold = self._log.begin(key, self.name, most)
        called = Called(key=key, model=self.name, failed=True)
        try:
            (reply,) = await self._model.generate([request])
            called = Called(
                key=key,
                model=self.name,
                text=reply.text.encode("utf-8", "replace").decode(),
                usage=reply.usage,
                prompt=short_hash(read),
            )
        finally:
            self._log.end(hold, called)
        return Completion(text=called.text or "", prompt=read, usage=reply.usage, model=self.name)

    def _key(self, request: Request, read: str) -> str:
        how = [self._role, self.name, request.adapter, request.temperature, request.max_tokens]
        return short_hash(json.dumps([*how, request.seed, request.json_schema, read]))
