"""Episodes of the demo on the phone, its critic and its teacher."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from swarm_ui.environments.phone.benchmark import Phone
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.environments import phone_jobs
from swarm_ui.experiment.settings import Settings
from swarm_ui.node import derive
from swarm_ui.rollout import Job, MakeEnvironment

if TYPE_CHECKING:
    from swarm_ui.optim.adversary import Teacher
    from swarm_ui.optim.credit.scripted import ScriptedCritic

TEST_DRAW = 1
"""Seed for choosing test episodes: the same for every run, so that runs can be compared."""
CONCURRENCY = 128
_FIRST_DEVICE = 500_000
"""The demo's invented devices begin at this number; no study trains or tests on them."""
_WORDINGS: Literal["few"] = "few"
"""Plain wordings, as on the phone."""
SPLITS = {
    "parameters": "simulated phone: known templates, new parameters",
    "templates": "simulated phone: new templates, known apps",
    "apps": "simulated phone: new apps",
    "validation": "simulated phone: known templates, tuning parameters",
}


def label(credit: str) -> str:
    """The note below every table of phone results. ``credit``: the source of the credit."""
    return f"{Phone.label}; credit: {credit}"


def training_label(settings: Settings) -> str:
    """The note below tables of a team that the demo trained."""
    source = training_phone(settings).critic.name
    if settings.devices:
        source += f"; half of the training episodes are on {settings.devices} invented devices"
    if settings.teacher:
        source += "; where no agent was right in training, the solver showed the action"
    return label(source)


def check_tasks(settings: Settings) -> None:
    """Raise ``ConfigError`` if ``--tasks`` names a task that is not a stage 2 training task."""
    from swarm_ui.environments.phone import tasks

    known = tasks("train")
    for task in settings.tasks:
        if task not in known:
            raise ConfigError(f"--tasks: no task '{task}'; the phone has: {', '.join(known)}")


class TrainingPhone(NamedTuple):
    """Where a team of the demo learns, and from whom."""

    make_environment: MakeEnvironment
    critic: ScriptedCritic
    teacher: Teacher | None


def training_phone(settings: Settings) -> TrainingPhone:
    """The phone, and the invented devices if there are any, with their scripted roles."""
    from swarm_ui.environments.phone import PhoneEnvironment
    from swarm_ui.environments.phone.invented import MixedPhone
    from swarm_ui.optim.adversary import ScriptedTeacher
    from swarm_ui.optim.credit.scripted import ScriptedCritic

    make: Callable[[], PhoneEnvironment] = PhoneEnvironment
    if settings.devices:
        make = partial(MixedPhone, devices=1, wordings=_WORDINGS)
    seed = derive(settings.seed, "critic")
    critic = ScriptedCritic(make, flips=settings.critic_noise, seed=seed)
    return TrainingPhone(make, critic, ScriptedTeacher(make) if settings.teacher else None)


def training_jobs(settings: Settings, count: int, rng: random.Random) -> list[Job]:
    """Draw training episodes as (task, seed), half of them on invented devices if there are any."""
    from swarm_ui.environments.phone import tasks
    from swarm_ui.environments.phone.invented import simple_tasks

    invented: tuple[str, ...] = ()
    if settings.devices:
        invented = simple_tasks(_FIRST_DEVICE, settings.devices, _WORDINGS)
    known = settings.tasks or tasks("train")
    return phone_jobs.mixed_training_jobs(known, invented, count, rng)


def test_jobs(settings: Settings) -> dict[str, list[Job]]:
    """Test episodes by split. Their parameters occur in no training episode."""
    from swarm_ui.environments.phone import TEST_SEEDS, draw_jobs, jobs

    if settings.tasks:
        chosen = draw_jobs(settings.tasks, settings.episodes_test, TEST_DRAW, seeds=TEST_SEEDS)
        return {"parameters": chosen}
    found = {"parameters": jobs("parameters", settings.episodes_test, TEST_DRAW)}
    if settings.episodes_other:
        found["templates"] = jobs("templates", settings.episodes_other, TEST_DRAW)
        found["apps"] = jobs("apps", settings.episodes_other, TEST_DRAW)
    return found


def validation_jobs(settings: Settings) -> list[Job]:
    """Episodes of the learning curve, which are neither training nor test episodes."""
    from swarm_ui.environments.phone import VALIDATION_SEEDS, draw_jobs, tasks

    names = settings.tasks or tasks("train")
    return draw_jobs(names, settings.episodes_validation, TEST_DRAW, seeds=VALIDATION_SEEDS)


def scripted_critic(settings: Settings) -> ScriptedCritic:
    """The critic that knows the solution of the simulated tasks; ``critic_noise`` is the share of
    its verdicts that are wrong."""
    return training_phone(settings).critic
