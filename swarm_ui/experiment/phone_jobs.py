"""The embedded phone as the demo uses it: what is trained on, what is tested on, pictures."""

from __future__ import annotations

import random

from swarm_ui.cli.pictures import with_pictures as with_pictures
from swarm_ui.environments.phone import (
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    PhoneEnvironment,
    draw_jobs,
    jobs,
    tasks,
)
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.settings import Settings
from swarm_ui.node import derive
from swarm_ui.optim.credit.assigners.critic import ScriptedCritic
from swarm_ui.rollout.episodes import Job

TEST_DRAW = 1
"""Seed of the draw of test episodes: the same for every run, so that runs can be compared."""
CONCURRENCY = 128
SPLITS = {
    "parameters": "simulated phone: known templates, new parameters",
    "templates": "simulated phone: new templates, known apps",
    "apps": "simulated phone: new apps",
    "validation": "simulated phone: known templates, tuning parameters",
}


def label(credit: str) -> str:
    """What stands below every table of phone results."""
    return f"The phone is simulated: its scores are not AndroidWorld scores; credit: {credit}"


def check_tasks(settings: Settings) -> None:
    """Raises ``ConfigError`` if ``--tasks`` names one that stage 2 does not train on."""
    known = tasks("train")
    for task in settings.tasks:
        if task not in known:
            raise ConfigError(f"--tasks: no task '{task}'; the phone has: {', '.join(known)}")


def training_jobs(settings: Settings, count: int, rng: random.Random) -> list[Job]:
    names = settings.tasks or tasks("train")
    return draw_jobs(names, count, rng.getrandbits(32), seeds=TRAIN_SEEDS)


def test_jobs(settings: Settings) -> dict[str, list[Job]]:
    """Test episodes by split. Their parameters occur in no training episode."""
    if settings.tasks:
        from swarm_ui.environments.phone import TEST_SEEDS

        chosen = draw_jobs(settings.tasks, settings.episodes_test, TEST_DRAW, seeds=TEST_SEEDS)
        return {"parameters": chosen}
    found = {"parameters": jobs("parameters", settings.episodes_test, TEST_DRAW)}
    if settings.episodes_other:
        found["templates"] = jobs("templates", settings.episodes_other, TEST_DRAW)
        found["apps"] = jobs("apps", settings.episodes_other, TEST_DRAW)
    return found


def validation_jobs(settings: Settings) -> list[Job]:
    """Episodes of the learning curve: neither training's nor the test's."""
    names = settings.tasks or tasks("train")
    return draw_jobs(names, settings.episodes_validation, TEST_DRAW, seeds=VALIDATION_SEEDS)


def scripted_critic(settings: Settings) -> ScriptedCritic:
    seed = derive(settings.seed, "critic")
    return ScriptedCritic(PhoneEnvironment, flips=settings.critic_noise, seed=seed)
