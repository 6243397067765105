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
from statistics import fmean
from typing import Any

import torch
from msgspec.structs import replace

from benchmarks.arms import TEST_DRAW, phone_tests, tested, trained_by
from benchmarks.cell import Cell, origin_here
from benchmarks.study import Arm, Study
from swarm_ui import CollabGraph, Credit, Critic
from swarm_ui.environments.miniwob import MiniWobBrowser, MiniWobEnvironment
from swarm_ui.environments.miniwob.tasks import PRACTICE_TASKS, TEST_SEEDS, TRAIN_SEEDS
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.node import derive
from swarm_ui.nodes import CausalModel, adapter_folder
from swarm_ui.nodes.models.pretrained.catalogue import model_folder
from swarm_ui.observation import Observation
from swarm_ui.optim import GiGPO, LearnedCritic, Outcome, labelled_replies, train_critic
from swarm_ui.optim.config import FinetuneConfig, TeamConfig, UpdateConfig
from swarm_ui.optim.credit.learned import LabelledReply, critic_figures
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.rollout import GraphPolicy, Job
from swarm_ui.trace.records import Episode

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


def team(model: CausalModel, votes: int, *, explores: bool = False) -> CollabGraph:
    """One agent, which is greedy unless it explores; or several with one adapter, which explore
    and vote."""
    if votes:
        own = [ADAPTER] * votes
        return CollabGraph.collaborative(votes, 1, model=model, adapters=own, temperature=1.0)
    return CollabGraph.solo(model, adapter=ADAPTER, temperature=1.0 if explores else None)


async def played(cell: Cell, agents: CollabGraph, *, quick: bool) -> Cell:
    """The cell with the test episodes of an agent, or of a team."""
    policy, pages = GraphPolicy(agents), tests(quick=quick)
    phone = {PHONE: pages.pop(PHONE)}
    async with MiniWobBrowser(pages=2) as browser:
        make = partial(MiniWobEnvironment, browser.open_page)
        cell = await tested(cell, policy, pages, make, **TEST)
    return await tested(cell, policy, phone, PhoneEnvironment, **TEST)


class OnPolicyCritic:
    """A learned critic that knows nothing but this training: in every iteration it goes on
    learning, from the learner's own replies, whether their episodes succeeded.

    It starts from the adapter of the agent. Before it learns the replies of an iteration, its
    scores of them are compared with the outcomes; it scores them after it has learned them.
    """

    name = "learned critic, on-policy"

    def __init__(self, model: CausalModel, folder: Path, seed: int, *, steps: int) -> None:
        self._model, self._folder, self._last = model, folder, adapter_folder("smollm2-phone")
        self._config = FinetuneConfig(
            learning_rate=5e-4, batch_size=4, accumulate=4, max_steps=steps, bf16=False, seed=seed
        )
        self._replies: list[LabelledReply] = []
        self._critic: LearnedCritic | None = None
        self.notes: dict[str, list[float | None]] = {"auc": [], "disagreements": []}

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See :class:`swarm_ui.Critic`."""
        new = labelled_replies(episodes, await Outcome()(episodes))
        if self._critic is not None:
            found = (await critic_figures(self._critic, new))["auc"]
            self.notes["auc"].append(found and round(found.mean, 4))
            self.notes["disagreements"].append(await disagreements(self._critic, new))
        self._replies += new
        out = self._folder / f"critic-{len(self._replies)}"
        learned = partial(train_critic, config=self._config, start=self._last)
        await asyncio.to_thread(learned, model_folder("smollm2"), self._replies, out)
        self._model.load_adapter(out, "critic")
        self._last, self._critic = out, LearnedCritic(self._model)
        return await self._critic(episodes)


async def disagreements(critic: LearnedCritic, replies: Sequence[LabelledReply]) -> float | None:
    """Of pairs of different actions on one screen, one right and one wrong, the share in which the
    right one has the higher score; equal scores count half."""
    screens: dict[object, list[LabelledReply]] = {}
    for reply in replies:
        screens.setdefault(reply.observation.screen_key(), []).append(reply)
    found: list[float] = []
    for same in screens.values():
        scores = await critic.grade(same[0].observation, [reply.action for reply in same])
        scored = [(r.right, r.action.key, s or 0.0) for r, s in zip(same, scores, strict=True)]
        found += [
            0.5 + 0.5 * ((own > other) - (own < other))
            for right, action, own in scored
            for wrong, instead, other in scored
            if right and not wrong and action != instead
        ]
    return round(fmean(found), 4) if found else None


@dataclass(frozen=True, kw_only=True)
class OnPages:
    """An agent of SmolLM2 on real pages, as it starts or after a training on them."""

    critic: Critic | type[OnPolicyCritic] | None = None
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
            notes, work = asyncio.run(self._train(model, seed, folder, quick=quick))
            cell = replace(cell, notes=notes, work={"training": work})
        yield asyncio.run(played(cell, team(model, self.votes), quick=quick))

    async def _train(
        self, model: CausalModel, seed: int, folder: Path, *, quick: bool
    ) -> tuple[dict[str, Any], Mapping[str, float]]:
        assert self.critic is not None
        critic = self.critic
        if isinstance(critic, type):
            critic = critic(model, folder / "critic", seed, steps=1 if quick else 12)
        config = TeamConfig(
            iterations=1 if quick else self.iterations, concurrency=32,
            episodes=2 * ATTEMPTS if quick else 112 // (self.votes or 1),
            edges="fixed", easy_share=1.0, seed=seed,
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
                team(model, self.votes, explores=True),
                partial(RepeatedPage, browser.open_page), training_jobs,
                critic=critic, config=config, folder=folder,
            )  # fmt: skip
            trainer.on_progress, trainer.max_steps = tell, STEPS
            result, work = await trained_by(trainer)
        rollouts = [at["success"] for at in result.history]
        return {"rollouts": rollouts, **getattr(critic, "notes", {})}, work


ALONE, GROUPS = "start, one agent", "one agent: rft, state-wise groups"
OUTCOME, LEARNED = "one agent: rft, outcome", "one agent: rft, on-policy critic"
LONGER = f"{GROUPS}, 8 iterations"
"""The training of seed 3 went on; its work is that of the last four iterations."""
TEAM = "team of four: rft, state-wise groups"
"""In a quarter of the episodes, and so in as many calls and steps as one agent."""
SHIPPED, VOTE = "smollm2-pages, one agent", "smollm2-pages, vote of four"
"""The agent of seed 3 after eight iterations; and four times, with four times its calls."""
ARMS: Mapping[str, Arm] = {
    ALONE: OnPages(),
    GROUPS: OnPages(critic=GiGPO()),
    LONGER: OnPages(critic=GiGPO(), iterations=8),
    OUTCOME: OnPages(critic=Outcome()),
    LEARNED: OnPages(critic=OnPolicyCritic),
    TEAM: OnPages(critic=GiGPO(), votes=4),
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
    named=((GROUPS, ALONE), (LEARNED, OUTCOME), (TEAM, GROUPS)),
    named_on=(OWN, NEAR),
    own_seeds={OUTCOME: (1,), LEARNED: (1,), TEAM: (1,)},
    derived=shipped,
    explored=(
        (LONGER, ALONE),
        (LONGER, GROUPS),
        (OUTCOME, ALONE),
        (GROUPS, OUTCOME),
        (LEARNED, ALONE),
        (TEAM, ALONE),
        (VOTE, SHIPPED),
    ),
    shown=(ALONE, OUTCOME, LEARNED, GROUPS, TEAM, LONGER, VOTE),
    picture=True,
    curves=True,
    note="The pages are real; success is a raw reward above 0 without a clock, so it is not "
    "comparable with published scores. SmolLM2 needs: swarm-ui models pull smollm2.",
)
