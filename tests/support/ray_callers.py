"""Processes of a Ray cluster that ask models, for tests."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from loopback_client import ask

from swarm_ui.collab_graph import CollabGraph
from swarm_ui.errors import BudgetExceeded, ConfigError, Failure, RunFailed, SwarmError
from swarm_ui.model import ChatModel, Request
from swarm_ui.nodes import ScriptedModel


class Caller:
    """Asks a model that it is sent. Made into an actor with ``ray.remote``."""

    def pid(self) -> int:
        return os.getpid()

    async def spend(self, model: ChatModel, together: int = 1) -> int:
        """Call until the budget is used up; the number of calls."""

        async def calls() -> int:
            done = 0
            while True:
                try:
                    await model.generate([ask()])
                except BudgetExceeded:
                    return done
                done += 1

        counts = await asyncio.gather(*(calls() for _ in range(together)))
        close: Any = getattr(model, "close", None)
        await close()
        return sum(counts)

    async def generate(self, model: ChatModel, requests: list[Request]) -> list[Any]:
        """Text, adapter and log-probability of each reply."""
        done = await model.generate(requests)
        return [(each.text, each.adapter, each.logprob) for each in done]

    async def decide(self, team: CollabGraph, goal: str) -> Any:
        """The trace of a decision, also if no node succeeded."""
        try:
            return await team.run(goal)
        except RunFailed as failed:
            return failed.partial

    async def fails(self, model: ChatModel, requests: list[Request]) -> Failure:
        """Why the model cannot answer."""
        try:
            await model.generate(requests)
        except SwarmError as error:
            return Failure.of(error)
        raise AssertionError("it answered")


def greeter() -> ChatModel:
    """A model that an actor can make."""
    return ScriptedModel(lambda request: "hi")


def no_weights() -> ChatModel:
    raise ConfigError("no weights")
