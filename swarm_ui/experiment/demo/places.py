"""The environment that a model acts in, opened once for a run of the demo."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from swarm_ui.credit import Critic
from swarm_ui.environments.androidworld.environment import AndroidWorldEnvironment
from swarm_ui.environments.miniwob import REFERENCE_TASKS, MiniWobBrowser, MiniWobEnvironment
from swarm_ui.experiment.environments import miniwob, phone
from swarm_ui.experiment.environments.androidworld import device_jobs
from swarm_ui.experiment.settings import Settings
from swarm_ui.optim.adversary import Teacher
from swarm_ui.optim.credit.critic import name_of
from swarm_ui.optim.credit.llm import LLMCritic
from swarm_ui.rollout import Job, MakeEnvironment

if TYPE_CHECKING:
    from swarm_ui.nodes.models.openai.model import OpenAIModel
    from swarm_ui.optim.trainer import SampleJobs

EPISODES_AT_ONCE = 8


class Place(NamedTuple):
    """The environment in which a model acts."""

    split: str
    title: str
    label: str
    make_environment: MakeEnvironment
    jobs: tuple[Job, ...]
    concurrency: int
    critic: Critic | None
    sample_jobs: SampleJobs | None = None
    """Chooses training episodes; ``None``: nothing is trained there."""
    teacher: Teacher | None = None
    """Shows right actions in training."""


@asynccontextmanager
async def open_place(settings: Settings, judge: OpenAIModel | None) -> AsyncIterator[Place]:
    """The opened environment of the run."""
    critic: Critic | None = None if judge is None else LLMCritic(judge)
    source = "none" if critic is None else name_of(critic)
    if settings.env == "phone":
        scripted = phone.training_phone(settings)
        jobs = tuple(phone.test_jobs(settings)["parameters"])
        label = phone.training_label(settings) if critic is None else phone.label(source)
        yield Place("parameters", phone.SPLITS["parameters"], label, scripted.make_environment,
                     jobs, EPISODES_AT_ONCE, critic or scripted.critic,
                     lambda count, *, seed: phone.training_jobs(settings, count, Random(seed)),
                     scripted.teacher)  # fmt: skip
    elif settings.env == "miniwob":
        tasks, count = settings.tasks or REFERENCE_TASKS, settings.episodes_test
        jobs = tuple(miniwob.test_jobs(tasks, count if settings.tasks else 1))
        async with MiniWobBrowser(pages=1, binary=miniwob.checked_browser()) as browser:
            yield Place(
                miniwob.SPLIT,
                f"{miniwob.TITLE}, {len(tasks)} tasks",
                f"Real web pages; credit: {source}",
                lambda: MiniWobEnvironment(open_page=browser.open_page),
                jobs if settings.tasks else jobs[:count],
                EPISODES_AT_ONCE,
                critic,
                lambda count, *, seed: miniwob.training_jobs(settings, count, Random(seed)),
            )
    else:
        jobs = tuple(device_jobs(settings, AndroidWorldEnvironment().tasks))
        label = f"AndroidWorld on an emulator; credit: {source}"
        yield Place("device", "AndroidWorld (emulator)", label, AndroidWorldEnvironment, jobs, 1,
                     critic)  # fmt: skip
