"""The main job: a team learns on the embedded phone and is tested there and on real pages."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from swarm_ui.environments.miniwob import REFERENCE_TASKS, MiniWobBrowser
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.experiment import miniwob_jobs, phone_jobs
from swarm_ui.experiment.arms import BASE, TRAINED, Arm, base_arms, trained_arms
from swarm_ui.experiment.console import Bar
from swarm_ui.experiment.evaluation import Plan
from swarm_ui.experiment.report import finish
from swarm_ui.experiment.session import Session
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.tables import CURVE_SPLIT
from swarm_ui.experiment.team_training import (
    Trained,
    World,
    kept_adapters,
    rollout_work,
    train_team,
)
from swarm_ui.experiment.workers import Lanes, used
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.trace.records import Episode

_ELSEWHERE = frozenset({BASE, "base-vote", TRAINED, "trained-vote"})
"""Arms that are measured on new templates and apps too; the DAG costs twice the vote."""
_QUICK_TASKS = 6
_WEB_ARMS = frozenset({BASE, "base-vote", "trained-vote"})


async def phone_run(session: Session) -> Path:
    """All stages; returns the report's path."""
    settings, results = session.settings, session.results
    critic = phone_jobs.scripted_critic(settings)
    session.describe(
        [phone_jobs.label(critic.name)],
        {**phone_jobs.SPLITS, miniwob_jobs.SPLIT: f"{miniwob_jobs.TITLE}, "
         f"{len(_web_tasks(settings))} tasks, never trained on"},
    )  # fmt: skip
    world = World(
        PhoneEnvironment,
        lambda iteration, count, rng: phone_jobs.training_jobs(settings, count, rng),
        critic,
        phone_jobs.CONCURRENCY,
    )
    before = [Plan(s, arm, tuple(jobs)) for s, arm, jobs in _grid(settings, base_arms(settings))]
    model = LocalModel.load(session.agent)
    agent = str(session.agent)
    with Lanes(settings.processes) as lanes:
        base = session.evaluation.in_lanes(
            before, agent, lanes, lanes=1, label="evaluation of the base agent"
        )
        trained = await alongside(base, stage_two(session, model, world))
        after = _after(session, trained)
        await session.evaluation.in_lanes(
            after, agent, lanes, lanes=settings.processes, label="evaluation of the trained team"
        )
    await _on_pages(session, model, trained)
    results.sort([*phone_jobs.SPLITS, miniwob_jobs.SPLIT])
    session.reached("evaluated")
    path = finish(session.run, settings, results, session.screen, phone_jobs.with_pictures)
    session.reached("done")
    return path


async def stage_two(session: Session, model: LocalModel, world: World) -> Trained:
    """Train the team and note what that cost."""
    settings, run = session.settings, session.run
    label = f"stage 2 ({settings.method}, {settings.edges} edges)"
    with session.screen.bar(label, settings.iterations) as bar:
        trained = await train_team(settings, run, model, world, bar)
    session.results.rollouts = rollout_work(run, trained.history)
    session.results.training_cpu_seconds = sum(m.cpu_seconds for m in trained.history)
    session.reached("trained")
    return trained


async def alongside(aside: Coroutine[Any, Any, None], main: Coroutine[Any, Any, Any]) -> Any:
    """Run both; the first failure of either ends the other and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(aside)
            task = group.create_task(main)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures.exceptions[0].__cause__
    return task.result()


def _grid(settings: Settings, arms: list[Arm]) -> list[tuple[str, Arm, list[Any]]]:
    """Which arm plays on which split."""
    return [
        (split, arm, jobs)
        for split, jobs in phone_jobs.test_jobs(settings).items()
        for arm in arms
        if split == "parameters" or arm.name in _ELSEWHERE
    ]


def _after(session: Session, trained: Trained) -> list[Plan]:
    """The trained arms, and the learning curve."""
    settings, run = session.settings, session.run
    arms = trained_arms(settings, trained.edges, trained.drawn)
    plans = [Plan(s, a, tuple(j), str(run.adapters)) for s, a, j in _grid(settings, arms)]
    if settings.episodes_validation:
        jobs = tuple(phone_jobs.validation_jobs(settings))
        plans.append(Plan(CURVE_SPLIT, Arm(name="after-0", label="base, greedy"), jobs))
        for k in range(1, settings.iterations + 1):
            arm = Arm(name=f"after-{k}", label=f"after {k} iterations, greedy", trained=True)
            plans.append(Plan(CURVE_SPLIT, arm, jobs, str(kept_adapters(run, k))))
    return plans


async def _on_pages(session: Session, model: LocalModel, trained: Trained) -> None:
    """Base agent and trained team on real pages, where there is a browser."""
    settings, results = session.settings, session.results
    if not settings.web_episodes:
        return
    binary, reason = miniwob_jobs.browser_or_reason()
    if binary is None:
        results.notes = (f"Real web pages were not tried: {reason}",)
        session.screen.say(results.notes[0])
        return
    results.notes = ()
    jobs = tuple(miniwob_jobs.test_jobs(_web_tasks(settings), settings.web_episodes))
    arms = [*base_arms(settings), *trained_arms(settings, trained.edges, trained.drawn)]
    chosen = _WEB_ARMS - {"base-vote"} if settings.quick else _WEB_ARMS
    plans = [Plan(miniwob_jobs.SPLIT, _on_page(arm), jobs) for arm in arms if arm.name in chosen]
    await play_on_pages(session, model, plans, binary)


def _on_page(arm: Arm) -> Arm:
    """A trained arm with the page's own order: on pages, unlike on the phone, order has a meaning
    (a caption before its field, the second link), and a shuffled view loses it."""
    if not arm.trained:
        return arm
    return dataclasses.replace(arm, views="same", label=f"{arm.label}, page order")


async def play_on_pages(
    session: Session, model: LocalModel, plans: list[Plan], binary: Path
) -> None:
    """Arms on real pages, in this process."""
    plans = session.evaluation.left(plans)
    if not plans:
        return
    model.set_linger(miniwob_jobs.LINGER)
    async with MiniWobBrowser(pages=miniwob_jobs.PAGES, binary=binary) as browser:
        for plan in plans:
            with session.screen.bar(f"web pages: {plan.arm.label}", len(plan.jobs)) as bar:
                before, began = used(model), time.perf_counter()
                policy = plan.arm.policy(model)
                episodes = await miniwob_jobs.play_pages(browser, policy, plan.jobs, moving(bar))
            seconds = time.perf_counter() - began
            session.evaluation.keep_episodes(plan, episodes, used(model, before), seconds)
    model.set_linger(0.0)


def moving(bar: Bar) -> Callable[[str, Sequence[Episode]], None]:
    """Moves a bar by each task's episodes."""
    played = 0

    def move(task: str, episodes: Sequence[Episode]) -> None:
        nonlocal played
        played += len(episodes)
        bar.update(played, task)

    return move


def _web_tasks(settings: Settings) -> tuple[str, ...]:
    return REFERENCE_TASKS[:_QUICK_TASKS] if settings.quick else REFERENCE_TASKS
