"""The episodes of ``run`` and ``eval``: listed, played and saved."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.environments.spec import OpenEnvironment
from swarm_ui.experiment.evaluation import Evaluator, Trial, trace_name
from swarm_ui.experiment.placement.opened import opened_placement
from swarm_ui.experiment.plugins.run_loggers import opened_log, result_scalars
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.runs.run_settings import Run, logged_settings, open_environment
from swarm_ui.experiment.teams import Arm
from swarm_ui.report.results import Results
from swarm_ui.rollout.solver_grades import solver_grades


async def trials_of(run: Run, split: str) -> list[Trial]:
    """The episodes of a split, for every seed."""
    async with open_environment(run.section(split, run.seeds[0])) as environment:
        return await _trials(run, split, environment, Arm(name="", label=""))


async def _trials(run: Run, split: str, environment: OpenEnvironment, arm: Arm) -> list[Trial]:
    spec, found = spec_of(run.config.environment.name), []
    for seed in run.seeds:
        jobs = await spec.jobs(run.section(split, seed), environment)
        name = trace_name(split, seed, run.seeds)
        found.append(Trial(split, arm, tuple(jobs), seed=seed, name=name))
    return found


async def evaluate(
    run: Run, model: Any, display: ProgressDisplay, warn: Callable[[str], None] = warnings.warn
) -> Results:
    """Play the remaining episodes of a run and save its results.

    Args:
        run: the run, which has begun.
        model: a model that this process has already loaded; ``None``: it is opened here.
        display: shows the progress.
        warn: called with one line when a logger fails, or workers of a cluster wait or are lost.
    """
    with opened_log(run.config.run.log, run.folder.path, logged_settings(run), warn) as log:
        results = await _evaluate(run, model, display, warn)
        log(result_scalars(results))
    return results


async def _evaluate(
    run: Run, model: Any, display: ProgressDisplay, warn: Callable[[str], None]
) -> Results:
    config, wraps = run.config, run.config.environment.wrap
    labels = [spec_of(config.environment.name).label]
    if wraps:
        labels.append(f"environment in {', '.join(wraps)}")
    results = Results(labels=tuple(labels))
    await _played(run, model, Evaluator(run.folder, results, display), warn)
    run.folder.set_status({"stage": "played"})
    return results


async def _played(run: Run, model: Any, evaluator: Evaluator, warn: Callable[[str], None]) -> None:
    config = run.config
    async with opened_placement(config, model, warn, run.folder) as placed:
        for split in run.splits:
            section = run.section(split, run.seeds[0])
            async with (
                open_environment(section) as environment,
                placed.rollouts(section, environment) as rollouts,
            ):
                for trial in await _trials(run, split, environment, placed.arm):
                    await evaluator.play(
                        trial,
                        placed.policy,
                        rollouts,
                        max_steps=config.environment.max_steps,
                        score=environment.score,
                        intervention=solver_grades,
                    )
