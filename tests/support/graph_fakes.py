"""What the graph tests share: a clock that jumps, nodes that take time, a model that hashes."""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import Callable, Coroutine, Sequence
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from swarm_ui import (
    Completion,
    Element,
    Message,
    NodeContext,
    NodeReply,
    Observation,
    Request,
    Trace,
)

T = TypeVar("T")

SCREEN = Observation(
    goal="open settings",
    elements=tuple(Element(index=i, role="button", text=f"button {i}") for i in range(6)),
)
BLANK = Observation(goal="", elements=())


class JumpingSelector(selectors.DefaultSelector):
    """Never waits: moves the clock instead. Nothing to wait for is a deadlock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("deadlock: every task waits for another")
            self.now += max(0.0, timeout)
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self.jumping = JumpingSelector()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now


def in_virtual_time(coroutine: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(coroutine)


class Sleeper:
    """Sleeps, then says what it heard; fails if told to."""

    def __init__(self, id: str, seconds: float = 0.0, fails: Exception | None = None) -> None:
        self.id, self.seconds, self.fails = id, seconds, fails

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if self.fails is not None:
            raise self.fails
        heard = ",".join(f"[{m.error}]" if m.error else m.sender for m in inbox)
        return NodeReply(content=f"{context.node}({heard})")


class HashModel:
    """Its reply is a click on an element that depends on all it was asked; takes ``wait`` time."""

    name = "hash"

    def __init__(self, wait: Callable[[Request], float] = lambda request: 0.0) -> None:
        self.wait = wait
        self.requests: list[Request] = []

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        self.requests.extend(requests)
        answers = []
        for request in requests:
            await asyncio.sleep(self.wait(request))
            prompt = msgspec.json.encode(request).decode()
            digest = int(sha256(prompt.encode()).hexdigest(), 16)
            shown = len(request.decision.observation.elements) if request.decision else 1
            text = click(digest % max(shown, 1))
            answers.append(
                Completion(text=text, prompt=prompt, adapter=request.adapter, logprob=-0.5)
            )
        return answers

    async def close(self) -> None: ...


class FixedModel:
    """Says the same by adapter name; counts the calls."""

    name = "fixed"

    def __init__(self, replies: dict[str | None, str]) -> None:
        self.replies = replies
        self.requests: list[Request] = []

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        self.requests.extend(requests)
        return [
            Completion(text=self.replies[r.adapter], prompt="p", adapter=r.adapter)
            for r in requests
        ]

    async def close(self) -> None: ...


def click(index: int) -> str:
    return json.dumps({"action_type": "click", "index": index})


def timeless(trace: Trace) -> bytes:
    """A trace as bytes, timings aside."""
    calls = tuple(msgspec.structs.replace(c, started=0.0, ended=0.0) for c in trace.calls)
    return msgspec.json.encode(msgspec.structs.replace(trace, calls=calls))
