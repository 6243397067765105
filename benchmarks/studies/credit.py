"""Which source of credit teaches a team most, and what does each cost?"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from benchmarks.arms import TEST_DRAW, Evaluate, Jobs, Roles, Train, untrained_vote
from benchmarks.cell import Cell
from benchmarks.study import Arm, Study
from benchmarks.table import markdown_table
from swarm_ui import CollabGraph, Critic, Observation
from swarm_ui.environments.phone import (
    TEST_SEEDS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    PhoneEnvironment,
    tasks,
)
from swarm_ui.errors import ConfigError
from swarm_ui.nodes import CausalModel
from swarm_ui.nodes.models.pretrained.catalogue import CRITIC_ADAPTERS
from swarm_ui.optim import (
    MALT,
    DrMAS,
    GiGPO,
    ProgressAttribution,
    ScriptedAdversary,
    ScriptedCritic,
    learned_critic,
)
from swarm_ui.optim.trainer import SampleJobs
from swarm_ui.rollout import Job, spread_jobs

SOURCES = (
    "outcome", "scripted critic", "agent-wise advantage (Dr. MAS)",
    "state-wise advantage (GiGPO)", "search tree values (MALT)", "progress attribution (SPA-RL)",
    "leave one out", "resampling", "Shapley", "learned critic (SmolLM2)",
)  # fmt: skip
REPLAYED = ("leave one out", "resampling", "Shapley")
"""Their judge played each episode to its end after every message; commit 92750bf2 has it."""
CREDITS, GUIDES = ("outcome", "scripted critic"), ("guided 0", "guided 0.7")
GRADES = ("negatives not graded", "negatives graded")
FACTORS = tuple(f"DPO: {a}, {b}, {c}" for a in CREDITS for b in GUIDES for c in GRADES)
ATTEMPTS = 4
"""Training episodes of each start. Group-wise credit compares them, so all arms play them."""
LEVELS = {
    f"DPO, all with {level}": [
        name for name in FACTORS if name.split(": ")[1].split(", ")[k] == level
    ]
    for k, levels in enumerate((CREDITS, GUIDES, GRADES))
    for level in levels
}
"""Main effects: the mean of the four arms that have a level in common."""


def accuracy(cells: Sequence[Cell]) -> str:
    """How well the scores of each source agree with a Monte Carlo estimate, and what they cost."""
    lines = []
    for cell in cells:
        if cell.arm.startswith("scores of: "):
            note = cell.notes
            auc, inside = (_auc(note[key]) for key in ("auc", "inside"))
            lines.append((
                cell.arm.removeprefix("scores of: "), auc, inside, f"{100 * note['scored']:.0f}",
                f"{note['calls']:,}", f"{note['seconds']:.2f}",
            ))  # fmt: skip
    heads = ("source", "AUC", "AUC inside a decision", "scored %", "calls", "CPU-s")
    return markdown_table(heads, lines, "lllr")


def _auc(one: dict[str, float] | None) -> str:
    """With few templates, their number instead of an interval."""
    if one is None:
        return "–"
    few = one["n"] < 5
    interval = f"({one['n']} templates)" if few else f"[{one['low']:.2f}, {one['high']:.2f}]"
    return f"{one['mean']:.2f} {interval}"


class RepeatedPhone(PhoneEnvironment):
    """A phone on which :data:`ATTEMPTS` successive seeds have one start. With the seed alone, two
    attempts would be the same episode, because decisions are drawn from it."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        """See :class:`~swarm_ui.environments.phone.PhoneEnvironment`."""
        return await super().reset(task=task, seed=seed // ATTEMPTS)


def starts(seed: int) -> SampleJobs:
    """Training episodes: several of each start, the same for all arms and seeds of training."""

    def draw(count: int, /, *, seed: int) -> list[Job]:
        first = random.Random(seed).getrandbits(31)
        found = spread_jobs(tasks("train"), count // ATTEMPTS, first, TRAIN_SEEDS)
        return [(task, own * ATTEMPTS + k) for task, own in found for k in range(ATTEMPTS)]

    return draw


def tests() -> Jobs:
    """Known templates with new parameters; and validation, on which a source is chosen."""
    return {
        "new parameters": spread_jobs(tasks("train"), 111, TEST_DRAW, TEST_SEEDS),
        "validation": spread_jobs(tasks("train"), 37, TEST_DRAW, VALIDATION_SEEDS),
    }


def source(name: str) -> Critic | None:
    """The critic of a source for a team; ``None``: the outcome."""
    if name == "outcome":
        return None
    if name == "learned critic (SmolLM2)":
        return learned_critic(CausalModel.named("smollm2"), CRITIC_ADAPTERS["smollm2-critic"])
    plain: dict[str, Any] = {
        "scripted critic": partial(ScriptedCritic, RepeatedPhone),
        "agent-wise advantage (Dr. MAS)": DrMAS,
        "state-wise advantage (GiGPO)": GiGPO,
        "search tree values (MALT)": MALT,
        "progress attribution (SPA-RL)": ProgressAttribution,
    }
    if name in plain:
        found: Critic = plain[name]()
        return found
    raise ConfigError(f"there is no source '{name}'")


def roles(
    seed: int, team: CollabGraph, *, credit: str, judged: bool = False, adversary: bool = False
) -> Roles:
    """``judged``: the scripted critic says which single actions are right."""
    judge = ScriptedCritic(RepeatedPhone) if judged else None
    return Roles(source(credit), judge, ScriptedAdversary() if adversary else None)


BASE = Train(
    tests=tests,
    set={
        "train.iterations": 2, "train.shared_iterations": 2, "train.episodes": 16 * ATTEMPTS,
        "train.update.steps": 40, "train.guide": 0.0, "train.grade_negatives": False,
    },
    make=RepeatedPhone, jobs=starts, test_make=PhoneEnvironment,
)  # fmt: skip
GUIDED = {"train.guide": 0.7}
ARMS: dict[str, Arm] = {
    "untrained team": Evaluate(
        policy=untrained_vote, tests=tests
    ),
    **{
        name: BASE.but(roles=partial(roles, credit=name))
        for name in SOURCES
        if name not in REPLAYED
    },
    **{
        f"{name}, guided 0.7": BASE.but(GUIDED, roles=partial(roles, credit=name, judged=True))
        for name in CREDITS
    },
    **{
        f"DPO: {name}, {guide}, {graded}": BASE.but(
            {
                "train.update.method": "dpo", "train.guide": float(guide.split()[1]),
                "train.grade_negatives": graded == GRADES[1],
            },
            roles=partial(roles, credit=name, judged=True, adversary=True),
        )
        for name in CREDITS for guide in GUIDES for graded in GRADES
    },
}  # fmt: skip
STUDY = Study(
    arms=ARMS,
    trial=("untrained team", "outcome", "scripted critic"),
    named=(
        ("scripted critic", "outcome"),
        ("search tree values (MALT)", "outcome"),
        ("outcome, guided 0.7", "outcome"),
    ),
    named_on=("new parameters",),
    explored=(
        *((source, "outcome") for source in SOURCES[2:] if "MALT" not in source),
        ("scripted critic, guided 0.7", "outcome, guided 0.7"),
        ("scripted critic, guided 0.7", "scripted critic"),
        *((f"DPO, all with {b}", f"DPO, all with {a}") for a, b in (CREDITS, GUIDES, GRADES)),
    ),
    means=LEVELS,
    more=accuracy,
    note="The phone is simulated; critic and adversary are scripted. The second named difference "
    "is of the critic-free source with the highest success on validation episodes.",
)
