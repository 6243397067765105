"""The modes of the demo: training on the phone, training on web pages, or evaluation only."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from swarm_ui.budget import Budget
from swarm_ui.credit import Judge, as_matrix, proposals
from swarm_ui.engine.scheduler import together
from swarm_ui.environment import Environment, Restorable
from swarm_ui.environments.miniwob import REFERENCE_TASKS, MiniWobBrowser, MiniWobEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.demo.demo_report import CURVE_SPLIT
from swarm_ui.experiment.demo.demo_run import (
    DemoRun,
    model_section,
    served_model,
    start_adapters,
)
from swarm_ui.experiment.demo.places import Place, open_place
from swarm_ui.experiment.environments import miniwob, phone
from swarm_ui.experiment.evaluation import Trial
from swarm_ui.experiment.models import load_in_process
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.split_facts.need_of_a_team import need_of_a_team
from swarm_ui.experiment.teams import (
    Arm,
    agent_names,
    base_arms,
    endpoint_arms,
    general_arm,
    trained_arms,
    trained_model_arms,
    untrained_model_arms,
)
from swarm_ui.experiment.workers import phone_workers
from swarm_ui.nodes.models.tiny_agent.shipped_agents import BASE_AGENT, GENERAL_AGENT
from swarm_ui.optim.credit.critic import inmost, judge_of, name_of
from swarm_ui.rollout import Intervention, LocalWorker, Rollouts
from swarm_ui.trace.records import Trace

if TYPE_CHECKING:
    from swarm_ui.experiment.training.stage2 import TrainedTeam
    from swarm_ui.nodes.models.openai.model import OpenAIModel

_EVERYWHERE = frozenset(
    {"base-greedy", "base-vote", "trained-greedy", "trained-vote", general_arm().name}
)
"""Arms that are measured on new templates and apps too; the DAG costs twice the vote."""
_ON_PAGES = frozenset({"base-greedy", "base-vote", "trained-vote"})
_LEARNED_ON_PAGES = frozenset({*_EVERYWHERE, "trained-team"})
_ON_DEVICES = frozenset({"base-greedy", "base-vote"})
_QUICK_TASKS = 6
_TRAINING_PAGES = 16


async def learn_on_phone(run: DemoRun) -> Path:
    """Train on the embedded phone; test there and on real pages. Returns the report's path."""
    from swarm_ui.experiment.training.stage2 import TrainingEnvironment
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

    settings, taught = run.settings, phone.training_phone(run.settings)
    title = f"{miniwob.TITLE}, {len(_web_tasks(settings))} tasks, never trained on"
    run.describe([phone.training_label(settings)], {**phone.SPLITS, miniwob.SPLIT: title})
    environment = TrainingEnvironment(
        taught.make_environment,
        lambda count, *, seed: phone.training_jobs(settings, count, Random(seed)),
        taught.critic,
        phone.CONCURRENCY,
        teacher=taught.teacher,
    )
    model, agent, play = LocalModel.load(run.agent), str(run.agent), run.evaluator.play_in_workers

    async def train_and_test() -> None:
        trained = await run.train(model, environment)
        arms = trained_arms(settings, trained.edges, trained.edges_label)
        trials = _phone_trials(settings, arms, str(run.directory.adapters)) + _curve_trials(run)
        tested = play(trials, agent, every_core, label="evaluation of the trained team")
        await together([tested, _try_pages(run, model, trained)])

    # This process trains, which takes a core.
    beside = phone_workers(max(1, settings.processes - 1))
    async with beside, phone_workers(settings.processes) as every_core:
        await together([_untrained(run, beside), train_and_test()])
    need = await need_of_a_team()
    return run.finish([*phone.SPLITS, miniwob.SPLIT], need)


async def learn_on_pages(run: DemoRun) -> Path:
    """Train on real web pages, with credit by outcome; test on other seeds."""
    from swarm_ui.experiment.training.stage2 import TrainingEnvironment
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

    settings, binary = run.settings, miniwob.checked_browser()
    tasks = settings.tasks or REFERENCE_TASKS
    run.describe(
        ["Real web pages; credit: outcome of the episode, no critic"],
        {miniwob.SPLIT: f"{miniwob.TITLE}, {len(tasks)} tasks trained on, other seeds"},
    )
    model = LocalModel.load(run.agent)
    model.set_linger(miniwob.LINGER)
    async with MiniWobBrowser(pages=1, binary=binary) as browser:
        environment = TrainingEnvironment(
            lambda: MiniWobEnvironment(open_page=browser.open_page),
            lambda count, *, seed: miniwob.training_jobs(settings, count, Random(seed)),
            None,
            _TRAINING_PAGES,
        )
        trained = await run.train(model, environment)
    jobs = tuple(miniwob.test_jobs(tasks, settings.episodes_test))
    arms = [*base_arms(settings), *trained_arms(settings, trained.edges, trained.edges_label)]
    trials = [Trial(miniwob.SPLIT, arm, jobs) for arm in arms if arm.name in _LEARNED_ON_PAGES]
    await run.play_on_pages(model, trials, binary)
    return run.finish([miniwob.SPLIT])


async def evaluate_only(run: DemoRun) -> Path:
    """Compare one agent with the team, without training: a served model, or a real device."""
    settings = run.settings
    async with _acting_model(run) as (model, judge), open_place(settings, judge) as place:
        run.describe([place.label], {place.split: place.title})
        arms = endpoint_arms(settings, start_adapters(settings))
        if not settings.given_model:
            arms = [arm for arm in base_arms(settings) if arm.name in _ON_DEVICES]
        await _play(run, place, arms, model, judged=True)
    return run.finish()


async def learn_with_model(run: DemoRun) -> Path:
    """Train a team of a language model in this process, and test it before and after.

    The critic is that of the environment: scripted on the phone, the outcome on pages.
    """
    from swarm_ui.experiment.training.stage2 import TrainingEnvironment

    settings = run.settings
    model = load_in_process(model_section(settings), agent_names(settings.agents))
    async with open_place(settings, None) as place:
        run.describe([place.label], {place.split: place.title})
        # Adapters that it starts with are changed by the training, so this comes first.
        arms = untrained_model_arms(settings, start_adapters(settings))
        await _play(run, place, arms, model)
        assert place.sample_jobs is not None  # checked by Settings.trains_model
        environment = TrainingEnvironment(
            place.make_environment, place.sample_jobs, place.critic, place.concurrency,
            teacher=place.teacher,
        )  # fmt: skip
        trained = await run.train(model, environment)
        arms = trained_model_arms(settings, trained.edges, trained.edges_label)
        await _play(run, place, arms, model)
    return run.finish([place.split])


async def _play(
    run: DemoRun, place: Place, arms: Sequence[Arm], model: Any, *, judged: bool = False
) -> None:
    """Play the remaining arms in this process. ``judged``: the critic, if any, grades actions."""
    trials = [Trial(place.split, arm, place.jobs) for arm in arms]
    for trial in run.evaluator.left(trials):
        judge = judge_of(place.critic) if judged else None
        intervention = None if judge is None else partial(_grades, judge)
        policy = trial.arm.policy(model)
        async with Rollouts(
            [LocalWorker(place.make_environment, slots=place.concurrency)]
        ) as rollouts:
            await run.evaluator.play(trial, policy, rollouts, intervention=intervention)


async def _grades(judge: Judge, index: int, trace: Trace, environment: Environment) -> Intervention:
    """An intervention that records a judge's grades as credit, without any effect."""
    world = inmost(environment)
    state = world.snapshot() if isinstance(world, Restorable) else None
    said = {m.id: m.action for m in proposals(trace) if m.action is not None}
    distinct = {action.key: action for action in said.values()}
    grades = await judge.grade(trace.observation, list(distinct.values()), state)
    by_key = dict(zip(distinct, grades, strict=True))
    values = {id: by_key[action.key] for id, action in said.items()}
    return Intervention(credit=as_matrix(trace, values), credit_source=name_of(judge))


async def _untrained(run: DemoRun, workers: Rollouts) -> None:
    """Play the base agent and, in a full run that starts from it, the general agent."""
    settings, play = run.settings, run.evaluator.play_in_workers
    trials = _phone_trials(settings, base_arms(settings))
    label = "evaluation of the base agent"
    await play(trials, str(run.agent), workers, label=label)
    if run.agent == BASE_AGENT and not settings.quick:
        trials = _phone_trials(settings, [general_arm()])
        label = "evaluation of the general agent"
        await play(trials, str(GENERAL_AGENT), workers, label=label)


def _phone_trials(settings: Settings, arms: list[Arm], adapters: str | None = None) -> list[Trial]:
    return [
        Trial(split, arm, tuple(jobs), adapters)
        for split, jobs in phone.test_jobs(settings).items()
        for arm in arms
        if split == "parameters" or arm.name in _EVERYWHERE
    ]


def _curve_trials(run: DemoRun) -> list[Trial]:
    """One agent after each iteration, for the learning curve."""
    from swarm_ui.experiment.training.stage2 import adapters_after

    if not run.settings.episodes_validation:
        return []
    jobs = tuple(phone.validation_jobs(run.settings))
    trials = [Trial(CURVE_SPLIT, Arm(name="after-0", label="base, greedy"), jobs)]
    for k in range(1, run.settings.iterations + 1):
        arm = Arm(name=f"after-{k}", label=f"after {k} iterations, greedy", trained=True)
        trials.append(Trial(CURVE_SPLIT, arm, jobs, str(adapters_after(run.directory, k))))
    return trials


async def _try_pages(run: DemoRun, model: Any, trained: TrainedTeam) -> None:
    """Evaluate the base agent and the trained team on real pages, if a browser is installed."""
    settings, results = run.settings, run.results
    if not settings.web_episodes:
        return
    try:
        binary = miniwob.checked_browser()
    except ConfigError as reason:
        results.notes = (f"Real web pages were not tried: {reason}",)
        run.display.say(results.notes[0])
        return
    results.notes = ()
    jobs = tuple(miniwob.test_jobs(_web_tasks(settings), settings.web_episodes))
    arms = [*base_arms(settings), *trained_arms(settings, trained.edges, trained.edges_label)]
    chosen = _ON_PAGES - {"base-vote"} if settings.quick else _ON_PAGES
    # On pages, unlike on the phone, the order has a meaning (a caption precedes its field).
    arms = [
        dataclasses.replace(arm, views="same", label=f"{arm.label}, page order")
        if arm.trained
        else arm
        for arm in arms
        if arm.name in chosen
    ]
    await run.play_on_pages(model, [Trial(miniwob.SPLIT, arm, jobs) for arm in arms], binary)


def _web_tasks(settings: Settings) -> tuple[str, ...]:
    return REFERENCE_TASKS[:_QUICK_TASKS] if settings.quick else REFERENCE_TASKS


@asynccontextmanager
async def _acting_model(run: DemoRun) -> AsyncIterator[tuple[Any, OpenAIModel | None]]:
    """The model that acts, and the model that assigns credit, if one is named."""
    settings = run.settings
    if not settings.given_model:
        from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

        run.display.say("On AndroidWorld the team is evaluated; stage 2 is not run there.")
        yield LocalModel.load(run.agent), None
        return
    if not settings.over_endpoint:
        run.display.say(
            f"'{settings.model}' runs in this process: it is evaluated, its weights are not "
            "trained (--iterations N trains them). One agent against the team."
        )
        yield load_in_process(model_section(settings)), None
        return
    run.display.say(
        f"'{settings.model}' is served by an endpoint: it is evaluated, its weights are not "
        "trained. One agent against the team."
    )
    budget = Budget(settings.max_calls)  # of all requests, whoever sends them
    async with (
        served_model(settings, settings.model, budget) as model,
        served_model(settings, settings.critic_model, budget) as judge,
    ):
        yield model, judge
