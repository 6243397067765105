"""A served model as the team: it acts and is rated, on the phone, web pages or AndroidWorld.

Its weights are not ours to train; nothing here needs torch.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from swarm_ui.budget import Budget
from swarm_ui.credit import CreditAssigner
from swarm_ui.environments.androidworld.environment import AndroidWorldEnvironment
from swarm_ui.environments.miniwob import (
    REFERENCE_TASKS,
    MiniWobBrowser,
    MiniWobEnvironment,
)
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.experiment import miniwob_jobs, phone_jobs
from swarm_ui.experiment.arms import BASE, Arm
from swarm_ui.experiment.evaluation import Plan
from swarm_ui.experiment.report import Pictured, finish
from swarm_ui.experiment.results import Work
from swarm_ui.experiment.session import Session
from swarm_ui.experiment.settings import Settings
from swarm_ui.graph.topology import random_dag
from swarm_ui.model import ChatModel
from swarm_ui.node import derive
from swarm_ui.nodes import OpenAIModel
from swarm_ui.optim.credit.assigners.llm_critic import LLMCritic
from swarm_ui.optim.rollout_supervisor import RolloutSupervisor
from swarm_ui.rollout.episodes import Job, MakeEnvironment

_EPISODES_AT_ONCE = 8
_DEVICE_SPLIT = "device"


class Place(NamedTuple):
    """Where the model acts."""

    split: str
    title: str
    label: str
    make_environment: MakeEnvironment
    jobs: tuple[Job, ...]
    concurrency: int
    critic: CreditAssigner | None
    pictured: Pictured


def served(settings: Settings) -> OpenAIModel:
    """The model that acts."""
    return OpenAIModel(settings.model or "", settings.base_url, budget=Budget(settings.max_calls))


def judge(settings: Settings) -> OpenAIModel | None:
    """The model that gives credit, if one is named."""
    if settings.critic_model is None:
        return None
    return OpenAIModel(settings.critic_model, settings.base_url, budget=Budget(settings.max_calls))


async def check(settings: Settings) -> None:
    """Raises ``ModelError`` if nobody answers there or a model is not served."""
    for model in (served(settings), judge(settings)):
        if model is not None:
            try:
                await model.check()
            finally:
                await model.close()


async def endpoint_run(session: Session) -> Path:
    """One agent against the team; returns the report's path."""
    settings = session.settings
    model, critic = served(settings), judge(settings)

    def work(before: Work | None) -> Work:
        spent, old = model.spent, before or Work()
        return Work(
            calls=spent.calls - old.calls,
            prompt_tokens=spent.prompt_tokens - old.prompt_tokens,
            completion_tokens=spent.completion_tokens - old.completion_tokens,
        )

    session.screen.say(
        f"'{settings.model}' is served by an endpoint: it is evaluated, its weights are not "
        "trained. One agent against the team."
    )
    try:
        async with contextlib.AsyncExitStack() as stack:
            place = await find_place(settings, critic, stack)
            await compare(session, place, model, endpoint_arms(settings), work)
    finally:
        await model.close()
        if critic is not None:
            await critic.close()
    path = finish(session.run, settings, session.results, session.screen, place.pictured)
    session.reached("done")
    return path


async def compare(
    session: Session,
    place: Place,
    model: ChatModel,
    arms: list[Arm],
    work: Callable[[Work | None], Work],
) -> None:
    """Every arm on the place's episodes, with credit for each message where there is a critic."""
    session.describe([place.label], {place.split: place.title})
    plans = [Plan(place.split, arm, place.jobs) for arm in arms]
    for plan in session.evaluation.left(plans):
        seed = derive(session.settings.seed, "referee")
        await session.evaluation.here(
            plan,
            plan.arm.policy(model),
            place.make_environment,
            concurrency=place.concurrency,
            work=work,
            intervention=None
            if place.critic is None
            else RolloutSupervisor(place.critic, seed=seed),
        )


def endpoint_arms(settings: Settings) -> list[Arm]:
    """One agent, and the team on a random DAG."""
    names = [f"agent_{k}" for k in range(settings.agents)]
    edges = random_dag(names, settings.density, random.Random(derive(settings.seed, "team")))
    team = Arm(
        name="team",
        label=f"{settings.agents} agents, {settings.rounds} rounds on a DAG, majority vote",
        agents=settings.agents,
        rounds=settings.rounds,
        edges=edges,
        temperature=settings.temperature,
        views="shuffle",
    )
    return [Arm(name=BASE, label="one agent, greedy"), team]


async def find_place(
    settings: Settings, judge: OpenAIModel | None, stack: contextlib.AsyncExitStack
) -> Place:
    """The environment that was asked for, ready to act in."""
    critic: CreditAssigner | None = None if judge is None else LLMCritic(judge)
    given = "none" if critic is None else critic.name
    if settings.env == "phone":
        critic = critic or phone_jobs.scripted_critic(settings)
        return Place(
            "parameters",
            phone_jobs.SPLITS["parameters"],
            phone_jobs.label(critic.name),
            PhoneEnvironment,
            tuple(phone_jobs.test_jobs(settings)["parameters"]),
            _EPISODES_AT_ONCE,
            critic,
            phone_jobs.with_pictures,
        )
    if settings.env == "miniwob":
        tasks = settings.tasks or REFERENCE_TASKS
        browser = await stack.enter_async_context(
            MiniWobBrowser(pages=1, binary=miniwob_jobs.checked_browser())
        )
        jobs = miniwob_jobs.test_jobs(tasks, 1 if not settings.tasks else settings.episodes_test)
        return Place(
            miniwob_jobs.SPLIT,
            f"{miniwob_jobs.TITLE}, {len(tasks)} tasks",
            f"Real web pages; credit: {given}",
            lambda: MiniWobEnvironment(open_page=browser.open_page),
            tuple(jobs[: settings.episodes_test] if not settings.tasks else jobs),
            _EPISODES_AT_ONCE,
            critic,
            list,
        )
    return Place(
        _DEVICE_SPLIT,
        "AndroidWorld (emulator)",
        f"AndroidWorld on an emulator; credit: {given}",
        AndroidWorldEnvironment,
        tuple(device_jobs(settings)),
        1,
        critic,
        list,
    )


def device_jobs(settings: Settings) -> list[Job]:
    """AndroidWorld tasks: those named, or all in turn.

    Raises:
        ConfigError: android_world is not installed, or has no such task.
    """
    known = AndroidWorldEnvironment().tasks
    for task in settings.tasks:
        if task not in known:
            raise ConfigError(f"--tasks: AndroidWorld has no task '{task}'")
    names = settings.tasks or tuple(known)
    return [
        (names[k % len(names)], derive(settings.seed, "device", k) % 1_000_000)
        for k in range(settings.episodes_test)
    ]
