"""Does a team of the best shipped agent learn a phone whose apps no agent was trained on?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.arms import TEST_DRAW, Jobs, Roles, Train, phone_tests, played, shortened, team
from benchmarks.cell import Cell
from benchmarks.study import Arm, Study
from benchmarks.support.critics import NoisyCritic
from swarm_ui import CollabGraph
from swarm_ui.environments.phone import TEST_SEEDS, TRAIN_SEEDS
from swarm_ui.environments.phone.invented import InventedPhone, simple_tasks
from swarm_ui.node import derive
from swarm_ui.nodes import GENERAL_AGENT, LocalModel
from swarm_ui.optim import ScriptedAdversary, ScriptedCritic
from swarm_ui.rollout import GraphPolicy, Job, spread_jobs

make = partial(InventedPhone, devices=1, wordings="few")
OWN, OTHER = "the phone of the training, new values", "another new phone"
UNTRAINED, CRITIC, OUTCOME = "four untrained agents", "scripted critic", "outcome"


def phone_of(seed: int) -> tuple[str, ...]:
    """The tasks of the phone of a seed: one goal in one app."""
    return simple_tasks(720_000 + seed, 1, "few")


def tests(seed: int) -> Jobs:
    """Test episodes on the phone of this seed, on that of the next one, and on the known phone."""
    return {
        OWN: spread_jobs(phone_of(seed), 150, TEST_DRAW, TEST_SEEDS),
        OTHER: spread_jobs(phone_of(seed + 1), 150, TEST_DRAW, TEST_SEEDS),
        **phone_tests(parameters=76),
    }


def training_jobs(tasks: tuple[str, ...], count: int, /, *, seed: int) -> list[Job]:
    return spread_jobs(tasks, count, seed, TRAIN_SEEDS)


def roles(seed: int, team: CollabGraph, *, critic: bool) -> Roles:
    """A critic that knows the solution, with 3 % of its verdicts inverted; or only the outcome."""
    if not critic:
        return Roles(adversary=ScriptedAdversary())
    scripted = NoisyCritic(ScriptedCritic(make), flip=0.03, seed=derive(seed, "critic"))
    return Roles(critic=scripted, adversary=ScriptedAdversary())


@dataclass(frozen=True, kw_only=True)
class OnPhone:
    """Four agents on the phone of each seed. ``critic``: whether it gives the credit; ``None``: the
    agents do not learn."""

    critic: bool | None
    seeded: bool = True

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> Iterable[Cell]:
        """See :class:`benchmarks.study.Arm`."""
        assert seed is not None
        if self.critic is None:
            agents = team(LocalModel.load(GENERAL_AGENT), trained=False)
            chosen = shortened(tests(seed), quick=quick)
            return [played(name, GraphPolicy(agents), chosen, seed=seed, make=make)]
        jobs = partial(training_jobs, phone_of(seed))
        trained = Train(
            tests=partial(tests, seed), set=SETTINGS, roles=partial(roles, critic=self.critic),
            agent=GENERAL_AGENT, make=make, jobs=lambda _: jobs,
        )  # fmt: skip
        return trained.play(name, seed, quick=quick, folder=folder)


SETTINGS = {
    "team.edges": "none", "team.temperature": 1.1, "train.edges": "fixed", "train.iterations": 5,
    "train.shared_iterations": 5, "train.episodes": 128, "train.update.steps": 75,
    "train.update.lr": 3e-3,
}  # fmt: skip
"""Chosen on the phone with number 700,000, which is not in the study."""
ARMS: Mapping[str, Arm] = {
    UNTRAINED: OnPhone(critic=None),
    CRITIC: OnPhone(critic=True),
    OUTCOME: OnPhone(critic=False),
}
STUDY = Study(
    arms=ARMS,
    seeds=(1, 2, 3),
    named=((CRITIC, UNTRAINED), (CRITIC, OUTCOME)),
    named_on=(OWN,),
    explored=((OUTCOME, UNTRAINED),),
    shown=(UNTRAINED, CRITIC, OUTCOME),
    note="Phones and apps are invented, and the critic is a script that knows the tasks. Each seed "
    "has a phone of its own.",
)
