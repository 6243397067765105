"""Evaluates a run: plays the episodes of its splits, and keeps those that are finished."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from swarm_ui.environments.benchmark import Opened
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import UserBenchmark, is_users, note_on, opened
from swarm_ui.experiment.config import Config, Evaluation
from swarm_ui.experiment.loggers import check_loggers, opened_log, result_scalars
from swarm_ui.experiment.model_settings import Code, Endpoint, Language
from swarm_ui.experiment.models import open_model
from swarm_ui.experiment.place import check_actor, opened_placement
from swarm_ui.experiment.plugins import load as load_code
from swarm_ui.experiment.progress import ProgressDisplay, recorded_progress
from swarm_ui.experiment.run import Run, wait_for
from swarm_ui.experiment.stored import running, trace_name
from swarm_ui.files import only_writer
from swarm_ui.nodes import model_folder
from swarm_ui.report.results import (
    ArmResult,
    Comparison,
    Results,
    compared,
    existing_results,
    in_order,
)
from swarm_ui.rollout import Acting, Job, Rollouts, solver_grades
from swarm_ui.stats import Interval, Measure
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import append_jsonl, iter_jsonl, write_jsonl
from swarm_ui.trace.records import Episode


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


async def _evaluated(
    run: Run, wanted: Evaluation, model: Any, show: ProgressDisplay, warn: Callable[[str], None]
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
                async for trial in _trials(config, wanted, split, environment):
                    await play(
                        run.folder, results, trial, placed.policy, rollouts, show,
                        max_steps=config.env.max_steps, score=environment.score,
                    )  # fmt: skip
                    played.append((trial.split, trial.seed))
    arms = [arm for arm in results.arms if (arm.split, arm.seed) in played]
    return msgspec.structs.replace(results, arms=arms)


def compare(ours: Results, theirs: Results) -> Interval:
    """Ours minus theirs over the episodes that both played, paired, with Tango's score interval.

    Raises:
        ConfigError: they have no episode in common, or faults masked too many.
    """
    last = _compared(ours.arms, theirs.arms, "the two results")[-1]
    if last.difference is None:
        raise ConfigError(f"the two results cannot be compared: {last.masked} episodes are masked "
                          "by faults")  # fmt: skip
    return last.difference


def compare_runs(ours: str | Path, theirs: str | Path) -> list[Comparison]:
    """Two runs, or trace files: a row for each split, and one for all if there are several. Raises
    ``ConfigError`` if they have no episode in common, or cannot be read."""
    return _compared(arms_of(ours), arms_of(theirs), f"'{ours}' and '{theirs}'")


def _compared(
    ours: Sequence[ArmResult], theirs: Sequence[ArmResult], names: str
) -> list[Comparison]:
    if rows := compared(ours, theirs):
        return rows
    raise ConfigError(
        f"{names} have no episode in common (same split, task, seed and version of the success "
        "check): play both with the same environment, split, seed and number of episodes"
    )


def arms_of(source: str | Path) -> list[ArmResult]:
    """The results of a run's folder, or of the episodes of a trace file. Raises ``ConfigError``."""
    path = Path(source)
    if path.is_file():
        return [ArmResult.of_episodes("", iter_jsonl(path))]
    return existing_results(path).arms


class Trial(NamedTuple):
    """The episodes of one split."""

    split: str
    jobs: tuple[Job, ...]
    name: str
    """Name of the trace file."""
    seed: int = 0
    """Seed for choosing the episodes."""


def evaluation_of(
    config: Config,
    split: str | Sequence[str] | None = None,
    seed: int | Sequence[int] | None = None,
    episodes: int | None = None,
) -> Evaluation:
    """The settings of ``[eval]`` with these instead, and the default split filled in. Raises
    ``ConfigError``."""
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
    found: list[Trial] = []
    for split in wanted.split:
        async with opened(config.env, split) as environment:
            found += [trial async for trial in _trials(config, wanted, split, environment)]
    return found


async def _trials(
    config: Config, wanted: Evaluation, split: str, environment: Opened
) -> AsyncIterator[Trial]:
    for seed in wanted.seed:
        jobs = await config.env.jobs(split, wanted.episodes, seed, environment)
        yield Trial(split, tuple(jobs), trace_name(split, seed, wanted.seed), seed)


async def play(
    run: RunDirectory,
    results: Results,
    trial: Trial,
    policy: Acting,
    rollouts: Rollouts,
    show: ProgressDisplay,
    *,
    max_steps: int | None = None,
    score: Callable[[Sequence[Episode]], tuple[Measure, ...]] | None = None,
) -> None:
    """Play the remaining episodes of a trial; each is saved by this process when it ends.

    An episode counts in the progress when it is safely on disk. Those of an earlier attempt are
    kept, except those with a fault. ``score`` computes the benchmark's own measures."""
    path = run.traces / f"{trial.name}.jsonl"
    with only_writer(run.path, "episodes"):
        kept = finished_episodes(run, trial)
        if path.exists():
            write_jsonl(path, kept)
        left = list((Counter(trial.jobs) - Counter((e.task, e.seed) for e in kept)).elements())
        if left:
            found, together = Counter(e.success for e in kept), min(rollouts.concurrency, len(left))
            stream = rollouts.stream(policy, left, intervention=solver_grades, max_steps=max_steps)
            with show.bar(trial.name, len(trial.jobs), share=False, together=together) as bar:
                bar.start_from(found.total())
                async with aclosing(stream):
                    async for _, episode in stream:
                        append_jsonl(path, [episode])
                        found[episode.success] += 1
                        masked = f", {found[None]} masked" if found[None] else ""
                        bar.update(found.total(), f"{found[True]} solved{masked}")
        episodes = in_order(trial.jobs, list(iter_jsonl(path)) if path.exists() else [])
        about = {"split": trial.split, "seed": trial.seed}
        measures = () if score is None else score(episodes)
        results.put(ArmResult.of_episodes(trial.name, episodes, **about, measures=measures))
        results.save(run.path)


def finished_episodes(run: RunDirectory, trial: Trial) -> list[Episode]:
    """The episodes of a trial that need not be played again; changes nothing. A last line that is
    cut off, as by a kill, does not count."""
    path = run.traces / f"{trial.name}.jsonl"
    saved = iter_jsonl(path, whole=False) if path.exists() else ()
    return [episode for episode in saved if episode.fault is None]


async def expect_ready(config: Config, *, learning: bool) -> None:
    """Check, before anything is written, that the model and the environment are available. Raises
    ``ModelError``, ``EnvironmentFault`` or ``ConfigError``."""
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
    """Import and make the code of the user that a run needs. Raises ``ConfigError`` or
    ``EnvironmentFault``."""
    check_loggers(config.run.log)
    if isinstance(config.model, Code) and config.model.script is None:
        async with open_model(config.model):
            pass
    wraps = [text for text in config.env.wrap if is_users(text)]
    for text in wraps:
        load_code("wrappers", text)
    trains_in_code = learning and isinstance(config.env, UserBenchmark)
    if wraps or trains_in_code:
        async with opened(config.env, "") as environment, environment.one():
            if trains_in_code:
                await config.env.task_names("", environment)
