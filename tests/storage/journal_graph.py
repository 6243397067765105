"""A graph whose every part can be resumed wrongly, and whose nodes tell a side file what they do.

Layers of nodes that really wait, over two rounds; a nested graph with a conditional edge; a node
that fails and one with a fallback; a vote. What each says depends on all it heard.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import pairwise

from swarm_ui import Action, CollabGraph, Element, Message, NodeContext, NodeReply, Observation
from swarm_ui.model import Completion
from swarm_ui.nodes import Fallback, MajorityVote

Log = Callable[[str, str, Sequence[str]], None]
"""Hears ``"start"`` or ``"end"``, the id of the message, and the ids of those heard."""

SCREEN = Observation(
    goal="open\nsettings",
    elements=tuple(Element(index=i, role="button", text=f"button {i}") for i in range(5)),
    png=bytes(range(256)),
)


def quiet(what: str, id: str, heard: Sequence[str]) -> None:
    """Tells nobody."""


class Waiter:
    """Waits a few milliseconds, then says a digest of what it heard; fails if told to."""

    def __init__(self, id: str, log: Log = quiet, wait: float = 0.003, fails: bool = False) -> None:
        self.id, self.log, self.wait, self.fails = id, log, wait, fails

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        self.log("start", context.message_id, [m.id for m in inbox])
        if self.wait:
            await asyncio.sleep(self.wait * context.rng().uniform(0.2, 2.0))
        said = "|".join(f"{m.id}={m.content}{m.error or ''}" for m in inbox)
        word = sha256(f"{context.seed}{said}".encode()).hexdigest()
        self.log("end", context.message_id, [])
        if self.fails:
            raise ValueError(f"cannot say {word[:6]}")
        act = Action(action_type="click", index=int(word, 16) % 5)
        made = Completion(text=word, prompt=said, logprob=-0.5)
        return NodeReply(content=word, action=act, completion=made)


def even(message: Message) -> bool:
    return message.content[-1:] in "02468ace"


def odd(message: Message) -> bool:
    return not even(message)


def layered(seed: int, log: Log = quiet, *, wait: float = 0.003) -> CollabGraph:
    """About thirty nodes, two rounds of them, and a vote: seventy calls and more."""
    rng = random.Random(seed)
    inner = CollabGraph(
        [Waiter(name, log, wait) for name in ("scout", "left", "right", "end")],
        [("scout", "left"), ("scout", "right"), ("left", "end"), ("right", "end")],
        when={("scout", "left"): even, ("scout", "right"): odd},
        rounds=2,
        name="inner",
        output="end",
    )
    layers = [[f"n{level}_{place}" for place in range(5)] for level in range(5)]
    nodes = [Waiter(name, log, wait) for layer in layers for name in layer]
    edges = [
        (sender, listener)
        for above, below in pairwise(layers)
        for listener in below
        for sender in rng.sample(above, 2)
    ]
    last = layers[-1][0]
    weak = Fallback(Waiter("weak", log, wait, fails=True), Waiter("stand_in", log, wait))
    return CollabGraph(
        [*nodes, Waiter("broken", log, wait, fails=True), weak, inner, Waiter("after", log, wait),
         MajorityVote()],
        [*edges, (layers[0][0], "broken"), ("broken", last), (layers[0][1], "weak"),
         ("weak", last), (layers[1][0], "inner"), ("inner", "after")],
        rounds=2,
    ).with_edge(layers[0][2], last, when=even)  # fmt: skip
