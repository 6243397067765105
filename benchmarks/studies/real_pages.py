"""Does SmolLM2 go on learning on real pages, without demonstrations, from outcomes or a critic?

The learner starts from ``smollm2-phone``, which was fine-tuned on the simulated phone alone. It
plays training seeds of real MiniWoB++ pages and learns from how the episodes end; no solver, no
recording and no other model shows it anything. The training pages were chosen on validation seeds,
as those that the start solves sometimes, and the held-out pages are the others of their families.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from msgspec.structs import replace

from benchmarks.arms import TEST_DRAW, phone_tests, tested, trained_by
from benchmarks.cell import Cell, origin_here
from benchmarks.study import Arm, Study
from swarm_ui import CollabGraph, Critic
from swarm_ui.environments.miniwob import MiniWobBrowser, MiniWobEnvironment
from swarm_ui.environments.miniwob.tasks import PRACTICE_TASKS, TEST_SEEDS, TRAIN_SEEDS
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.node import derive
from swarm_ui.nodes import CausalModel, adapter_folder
from swarm_ui.observation import Observation
from swarm_ui.optim import GiGPO, Outcome
from swarm_ui.optim.config import TeamConfig, UpdateConfig
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.rollout import GraphPolicy, Job

FAMILY = (
    "click-checkboxes-large", "click-checkboxes-transfer", "click-tab-2-easy", "click-tab-2-hard",
    "click-tab-2-medium", "email-inbox-forward", "email-inbox-forward-nl", "email-inbox-nl-turk",
    "email-inbox-noscroll", "email-inbox-star-reply", "login-user-popup",
)  # fmt: skip
"""Other pages of the families of the training pages."""
FAR = (
    "choose-list", "click-dialog-2", "click-link", "click-shape", "enter-date", "find-greatest",
    "form-sequence-3", "generate-number", "navigate-tree", "phone-book", "sign-agreement",
    "use-spinner",
)  # fmt: skip
"""Pages of other families."""
OWN, NEAR, AWAY = "training pages, new seeds", "held-out pages of the families", "other pages"
EACH = {OWN: (PRACTICE_TASKS, 8), NEAR: (FAMILY, 8), AWAY: (FAR, 2)}
"""The pages of each split, and the test episodes of each page."""
PHONE = "phone: new parameters"
ATTEMPTS = 4
"""Training episodes of each start."""
STEPS = 8
"""Most actions of an episode."""
ADAPTER = "team"
TEST = {"concurrency": 16, "max_steps": STEPS}


class RepeatedPage(MiniWobEnvironment):
    """A page on which :data:`ATTEMPTS` successive seeds have one start. With the seed alone, two
    attempts would be the same episode, because decisions are drawn from it."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        """See :class:`~swarm_ui.environments.miniwob.MiniWobEnvironment`."""
        return await super().reset(task=task, seed=seed // ATTEMPTS)


def training_jobs(count: int, /, *, seed: int) -> list[Job]:
    """Episodes of the training pages: several of each start, all pages about equally often."""
    rng = random.Random(seed)
    pages: list[str] = []
    while len(pages) < count // ATTEMPTS:
        pages += rng.sample(PRACTICE_TASKS, len(PRACTICE_TASKS))
    starts = [(page, rng.choice(TRAIN_SEEDS)) for page in pages[: count // ATTEMPTS]]
    return [(page, own * ATTEMPTS + k) for page, own in starts for k in range(ATTEMPTS)]


def tests(*, quick: bool) -> dict[str, list[Job]]:
    """Test episodes, by split."""
    found = {
        split: [
            (page, random.Random(derive(TEST_DRAW, "real pages 2", page, k)).choice(TEST_SEEDS))
            for page in (pages[:1] if quick else pages)
            for k in range(1 if quick else each)
        ]
        for split, (pages, each) in EACH.items()
    }
    phone = phone_tests(parameters=38)["new parameters"]
    return found | {PHONE: list(phone[: 1 if quick else None])}


def learner(start: str = "smollm2-phone") -> CausalModel:
    """SmolLM2 with the adapter that it starts from. Its weights are float32, also on a
    processor with bfloat16, so that the study is the same."""
    torch.set_num_threads(1)
    model = CausalModel.named("smollm2", dtype=torch.float32)
    model.load_adapter(adapter_folder(start), ADAPTER)
    return model


def agent(model: CausalModel, *, explores: bool = False) -> CollabGraph:
    """One agent, which is greedy unless it explores."""
    return CollabGraph.solo(model, adapter=ADAPTER, temperature=1.0 if explores else None)


async def played(cell: Cell, team: CollabGraph, *, quick: bool) -> Cell:
    """The cell with the test episodes of an agent, or of a team."""
    policy, pages = GraphPolicy(team), tests(quick=quick)
    phone = {PHONE: pages.pop(PHONE)}
    async with MiniWobBrowser(pages=2) as browser:
        make = partial(MiniWobEnvironment, browser.open_page)
        cell = await tested(cell, policy, pages, make, **TEST)
    return await tested(cell, policy, phone, PhoneEnvironment, **TEST)


@dataclass(frozen=True, kw_only=True)
class OnPages:
    """An agent of SmolLM2 on real pages, as it starts or after a training on them."""

    critic: Critic | None = None
    """``None``: nothing is trained."""
    iterations: int = 4
    start: str = "smollm2-phone"
    votes: int = 0
    """Agents of a team with these weights that explore and vote; 0: one agent, which is greedy."""

    @property
    def seeded(self) -> bool:
        """Whether it is trained."""
        return self.critic is not None

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> Iterable[Cell]:
        """See :class:`benchmarks.study.Arm`."""
        model, cell = learner(self.start), Cell(arm=name, seed=seed, origin=origin_here())
        if seed is not None:
            rollouts, work = asyncio.run(self._train(model, seed, folder, quick=quick))
            cell = replace(cell, notes={"rollouts": rollouts}, work={"training": work})
        team = agent(model)
        if self.votes:
            team = CollabGraph.collaborative(
                self.votes, 1, model=model, adapters=[ADAPTER] * self.votes, temperature=1.0
            )
        yield asyncio.run(played(cell, team, quick=quick))

    async def _train(
        self, model: CausalModel, seed: int, folder: Path, *, quick: bool
    ) -> tuple[list[float], Mapping[str, float]]:
        assert self.critic is not None
        config = TeamConfig(
            iterations=1 if quick else self.iterations, concurrency=32,
            episodes=2 * ATTEMPTS if quick else 112, edges="fixed", easy_share=1.0, seed=seed,
            update=UpdateConfig(steps=1 if quick else 12, batch_size=16, lr=3e-4),
        )  # fmt: skip
        began = time.process_time()

        def tell(iteration: int, what: str, done: int, total: int) -> None:
            if done in (0, total) or done % 20 == 0:
                minutes = (time.process_time() - began) / 60
                said = f"  iteration {iteration + 1}: {what} {done}/{total}, {minutes:.1f} CPU-min"
                print(said, file=sys.stderr, flush=True)

        async with MiniWobBrowser(pages=2) as browser:
            trainer = TeamTrainer(
                agent(model, explores=True),
                partial(RepeatedPage, browser.open_page), training_jobs,
                critic=self.critic, config=config, folder=folder,
            )  # fmt: skip
            trainer.on_progress, trainer.max_steps = tell, STEPS
            result, work = await trained_by(trainer)
        return [at["success"] for at in result.history], work


ALONE, GROUPS = "start, one agent", "one agent: rft, state-wise groups"
OUTCOME = "one agent: rft, outcome"
LONGER = f"{GROUPS}, 8 iterations"
"""The training of seed 3 went on; its work is that of the last four iterations."""
SHIPPED, VOTE = "smollm2-pages, one agent", "smollm2-pages, vote of four"
"""The agent of seed 3 after eight iterations; and four times, with four times its calls."""
ARMS: Mapping[str, Arm] = {
    ALONE: OnPages(),
    GROUPS: OnPages(critic=GiGPO()),
    LONGER: OnPages(critic=GiGPO(), iterations=8),
    OUTCOME: OnPages(critic=Outcome()),
    VOTE: OnPages(start="smollm2-pages", votes=4),
}


def shipped(cells: Sequence[Cell]) -> Iterable[Cell]:
    """The agent that is in the package, as a row of its own."""
    for cell in cells:
        if cell.arm == LONGER and cell.seed == 3:
            found = {at: [replace(o, run=0) for o in own] for at, own in cell.outcomes.items()}
            yield replace(cell, arm=SHIPPED, seed=None, outcomes=found, notes={}, work={})


STUDY = Study(
    arms=ARMS,
    trial=(GROUPS,),
    named=((GROUPS, ALONE),),
    named_on=(OWN, NEAR),
    own_seeds={OUTCOME: (1,)},
    derived=shipped,
    explored=(
        (LONGER, ALONE),
        (LONGER, GROUPS),
        (OUTCOME, ALONE),
        (GROUPS, OUTCOME),
        (VOTE, SHIPPED),
    ),
    shown=(ALONE, OUTCOME, GROUPS, LONGER, VOTE),
    picture=True,
    curves=True,
    note="The pages are real; success is a raw reward above 0 without a clock, so it is not "
    "comparable with published scores. SmolLM2 needs: swarm-ui models pull smollm2.",
)
