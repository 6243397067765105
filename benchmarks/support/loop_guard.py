"""A control for teams: part of the gain of a vote is only the escape from loops."""

from __future__ import annotations

from swarm_ui import CollabGraph, Observation, Trace
from swarm_ui.model import ChatModel
from swarm_ui.rollout import Decide


class LoopGuard:
    """One greedy agent, which sees the elements in another order on a screen that occurs again."""

    name = "greedy, loop guard"

    def __init__(self, model: ChatModel) -> None:
        self._usual = CollabGraph.solo(model)
        self._stuck = CollabGraph.solo(model, view="shuffle")

    def begin(self, *, task: str, seed: int) -> Decide:
        seen: set[tuple[object, ...]] = set()

        async def decide(observation: Observation, seed: int, run: str) -> Trace:
            key = observation.screen_key()
            graph = self._stuck if key in seen else self._usual
            seen.add(key)
            return await graph.run(observation, seed=seed, run_id=run)

        return decide
