"""Teams whose every message depends on all that it heard, for tests of replays."""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import sha256

from graph_fakes import HashModel, click

from swarm_ui import CollabGraph, Completion, Request, Trace
from swarm_ui.nodes import AgentNode, MajorityVote
from swarm_ui.prompts import as_chat, transcript
from swarm_ui.topology import random_dag


class Telling:
    """A model whose every reply is as different as its request; counts what it is asked."""

    name = "telling"

    def __init__(self, accent: str = "") -> None:
        self.accent = accent
        self.requests: list[Request] = []

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        self.requests += requests
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Completion:
        prompt = transcript(as_chat(request))
        word = sha256(f"{self.accent}{prompt}{request.seed}".encode()).hexdigest()[:12]
        text = f"because {word}: {click(int(word, 16) % 6)}"
        return Completion(text=text, prompt=prompt, adapter=request.adapter)

    async def close(self) -> None: ...


def team(model: Telling | HashModel, seed: int, size: int, rounds: int) -> CollabGraph:
    names = [f"a{i}" for i in range(size)]
    agents = [AgentNode(name, model, view="shuffle") for name in names]
    edges = random_dag(names, 0.5, random.Random(seed))
    return CollabGraph([*agents, MajorityVote()], edges, rounds=rounds)


def after(trace: Trace, ids: set[str]) -> set[str]:
    """Messages of agents that heard one of these, or heard one that did."""
    reached, before = set(ids), set[str]()
    while reached != before:
        before = set(reached)
        reached |= {call.id for call in trace.calls if reached & set(call.heard)}
    return {id for id in reached - ids if not id.startswith("vote")}
