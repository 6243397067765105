"""Can the base agent act on real web pages that it never saw?"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.arms import tested
from benchmarks.cell import Cell
from benchmarks.study import Arm, Study
from benchmarks.support.origin import origin_here
from swarm_ui import Action, ChatModel, CollabGraph, Request
from swarm_ui.environments.miniwob import REFERENCE_TASKS, MiniWobBrowser, MiniWobEnvironment
from swarm_ui.environments.miniwob.tasks import TEST_SEEDS
from swarm_ui.node import derive
from swarm_ui.nodes import LocalModel, ScriptedModel
from swarm_ui.rollout import GraphPolicy, Job

EACH = 20
"""Episodes of each task."""
AGENT, RANDOM = "base agent", "random actions"


def random_reply(request: Request) -> str:
    """Click something, or type a word of the goal into a field: the control without an agent."""
    assert request.decision is not None  # an agent on a screen always sends one
    screen, rng = request.decision.observation, random.Random(request.seed)
    if not screen.elements:
        return Action(action_type="scroll", direction="down").json()
    element = rng.choice(screen.elements)
    if not element.editable:
        return Action(action_type="click", index=element.index).json()
    text = rng.choice(screen.goal.split() or [""])
    return Action(action_type="input_text", index=element.index, text=text).json()


@dataclass(frozen=True, kw_only=True)
class OnPages:
    """One greedy agent on real pages; it needs a Chromium."""

    model: Callable[[], ChatModel]
    seeded: bool = False

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> Iterable[Cell]:
        """See :class:`benchmarks.study.Arm`."""
        jobs = [
            (task, random.Random(derive(1, "web", task, k)).choice(TEST_SEEDS))
            for task in REFERENCE_TASKS[: 2 if quick else None]
            for k in range(2 if quick else EACH)
        ]
        cell = Cell(arm=name, origin=origin_here())
        yield asyncio.run(_played(cell, GraphPolicy(CollabGraph.solo(self.model())), jobs))


async def _played(cell: Cell, policy: GraphPolicy, jobs: Sequence[Job]) -> Cell:
    async with MiniWobBrowser(pages=1) as browser:
        make = partial(MiniWobEnvironment, browser.open_page)
        return await tested(cell, policy, {"reference tasks": jobs}, make, concurrency=1)


ARMS: Mapping[str, Arm] = {
    AGENT: OnPages(model=LocalModel.load),
    RANDOM: OnPages(model=partial(ScriptedModel, random_reply)),
}
STUDY = Study(
    arms=ARMS,
    named=((AGENT, RANDOM),),
    shown=(AGENT, RANDOM),
    note="Real pages, but not comparable with published scores: the observation is this project's, "
    "there is no clock, and success is a raw reward above 0.",
)
