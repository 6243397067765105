"""Evaluates a run: plays the episodes of its splits, and keeps those that are finished."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from swarm_ui.environments.benchmark import Opened
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.acting import check_actor
from swarm_ui.experiment.benchmarks import UserBenchmark, note_on, opened
from swarm_ui.experiment.config import Config, Evaluation
from swarm_ui.experiment.evaluation import Trial, play, trace_name
from swarm_ui.experiment.loggers import check_loggers, opened_log, result_scalars
from swarm_ui.experiment.model_settings import Code, Endpoint, Language
from swarm_ui.experiment.models import open_model
from swarm_ui.experiment.place import opened_placement
from swarm_ui.experiment.plugins import load as load_code
from swarm_ui.experiment.progress import ProgressDisplay, recorded_progress
from swarm_ui.experiment.run import Run, wait_for
from swarm_ui.experiment.stored import running
from swarm_ui.experiment.wrapping import is_users
from swarm_ui.nodes import model_folder
from swarm_ui.report.results import Results, compared
from swarm_ui.rollout.solver_grades import solver_grades
from swarm_ui.stats import Interval
from swarm_ui.storage.run_directory import RunDirectory


def evaluate(
    run: Run,
    *,
    split: str | Sequence[str] | None = None,
    seed: int | Sequence[int] | None = None,
    episodes: int | None = None,
    model: Any = None,
    show: ProgressDisplay | None = None,
    warn: Callable[[str], None] = warnings.warn,
) -> Results:
    """Play the episodes of a run that are not finished yet, and save its results.

    After a training, the trained team acts, with greedy replies.

    Args:
        run: the run. It may be evaluated on several splits, one after the other.
        split, seed, episodes: instead of those of ``[eval]``.
        model: a model that this process has already loaded; ``None``: it is opened here.
        show: shows the progress; ``None``: nobody.
        warn: called with one line when a logger fails, or workers of a cluster wait or are lost.

    Returns:
        The results of these splits. The folder keeps those of others too.

    Raises:
        ConfigError: a setting is wrong, or another process works on the run.
        ModelError: the endpoint does not answer, or the budget is used up.
    """
    wanted = evaluation_of(run.config, split, seed, episodes)
    run.folder = RunDirectory.open_existing(run.path)
    show = show or ProgressDisplay(quiet=True)
    with running(run.folder), recorded_progress(show, run.path, warn):
        settings = {**run.logged_settings(), "eval": wanted.model_dump(mode="json")}
        with opened_log(run.config.run.log, run.path, settings, warn) as log:
            results = wait_for(_evaluated(run, wanted, model, show, warn))
            log(result_scalars(results))
    run.folder.set_status({"stage": "played"})
    return results


def compare(ours: Results, theirs: Results) -> Interval:
    """Ours minus theirs over the episodes that both played, paired, with Tango's score interval.

    Raises:
        ConfigError: they have no episode in common, or faults masked too many.
    """
    rows = compared(ours.arms, theirs.arms)
    found = rows[-1].difference if rows else None
    if found is None:
        raise ConfigError(
            "the two results cannot be compared: "
            + (f"{rows[-1].masked} episodes are masked by faults" if rows else
               "they have no episode in common (same split, task, seed and version of the success "
               "check); play both with the same environment, split, seed and number of episodes")
        )  # fmt: skip
    return found


def evaluation_of(
    config: Config,
    split: str | Sequence[str] | None = None,
    seed: int | Sequence[int] | None = None,
    episodes: int | None = None,
) -> Evaluation:
    """The settings of ``[eval]`` with these instead, and the default split filled in.

    Raises:
        ConfigError: there is no such split, or a number is wrong.
    """
    given = {"split": split, "seed": seed, "episodes": episodes}
    values = config.eval.model_dump() | {k: v for k, v in given.items() if v is not None}
    try:
        found = Evaluation.model_validate(values)
    except ValueError as error:
        raise ConfigError(f"eval: {error}") from error
    if not found.split:
        found = found.model_copy(update={"split": (config.env.test_split(),)})
    for name, problem in config.env.mistakes(found.split):
        if name == "split":
            raise ConfigError(problem)
    return found


async def trials_of(config: Config, wanted: Evaluation) -> list[Trial]:
    """The episodes of an evaluation. The environments are opened for a moment."""
    found = []
    for split in wanted.split:
        async with opened(config.env, split) as environment:
            found += await _trials(config, wanted, split, environment)
    return found


async def _trials(
    config: Config, wanted: Evaluation, split: str, environment: Opened
) -> list[Trial]:
    found = []
    for seed in wanted.seed:
        jobs = await config.env.jobs(split, wanted.episodes, seed, environment)
        name = trace_name(split, seed, wanted.seed)
        found.append(Trial(split, tuple(jobs), name, seed))
    return found


async def _evaluated(
    run: Run,
    wanted: Evaluation,
    model: Any,
    show: ProgressDisplay,
    warn: Callable[[str], None],
) -> Results:
    config, team = run.tested()
    labels = [note_on(config.env)]
    if config.env.wrap:
        labels.append(f"environment in {', '.join(config.env.wrap)}")
    results = Results.load(run.path)
    results.labels = tuple(dict.fromkeys([*results.labels, *labels]))
    played = []
    async with opened_placement(config, team, model, warn, run.folder) as placed:
        for split in wanted.split:
            async with (
                opened(config.env, split) as environment,
                placed.rollouts(split, environment) as rollouts,
            ):
                for trial in await _trials(config, wanted, split, environment):
                    await play(
                        run.folder,
                        results,
                        trial,
                        placed.policy,
                        rollouts,
                        show,
                        max_steps=config.env.max_steps,
                        score=environment.score,
                        intervention=solver_grades,
                    )
                    played.append((trial.split, trial.seed))
    arms = [arm for arm in results.arms if (arm.split, arm.seed) in played]
    return msgspec.structs.replace(results, arms=arms)


async def expect_ready(config: Config, *, learning: bool) -> None:
    """Check, before anything is written, that the model and the environment are available.

    Raises:
        ModelError: the endpoint does not answer, or does not serve the model.
        EnvironmentFault: no emulator answers, or the environment cannot list its tasks.
        ConfigError: the environment or the model cannot be made, or a package is missing.
    """
    model, env = config.model, config.env
    if isinstance(model, Language):
        model_folder(model.name)  # downloads a model of the hub
    if isinstance(model, Endpoint):
        async with open_model(model):
            pass
    await check_code(config, learning=learning)
    if learning and isinstance(model, Language) and model.actor is not None:
        await check_actor(model.actor)
    if not learning and env.known_tasks() is None:  # the others were checked before
        await trials_of(config, evaluation_of(config))


async def check_code(config: Config, *, learning: bool) -> None:
    """Import and make the code of the user that a run needs.

    Raises:
        ConfigError: something cannot be made, or the environment has no such task.
        EnvironmentFault: it cannot list its tasks.
    """
    check_loggers(config.run.log)
    if isinstance(config.model, Code):
        async with open_model(config.model):
            pass
    wraps = [text for text in config.env.wrap if is_users(text)]
    for text in wraps:
        load_code("wrappers", text)
    trains_in_code = learning and isinstance(config.env, UserBenchmark)
    if wraps or trains_in_code:
        async with opened(config.env, "") as environment:
            if wraps:
                async with environment.one():
                    pass
            if trains_in_code:
                await config.env.task_names("", environment)
