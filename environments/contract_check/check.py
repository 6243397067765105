"""The environment contract as an executable check.

import asyncio
from swarm_ui.environments.contract_check.check import check_environment

print(asyncio.run(check_environment(MyEnvironment, tasks=["buy-milk"])))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from itertools import product

from swarm_ui.environment import Environment, check_factory
from swarm_ui.environments.contract_check.contract_rules import (
    closed,
    closes,
    episode_rules,
    members,
    outside,
)
from swarm_ui.environments.contract_check.report import RULES, Finding, Report, Rule
from swarm_ui.environments.contract_check.trial import CannotGoOn, Trial
from swarm_ui.errors import ConfigError

__all__ = ["RULES", "Finding", "Report", "Rule", "check_environment"]


async def check_environment(
    make: Callable[[], Environment],
    *,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] = (0, 1),
    budget: int = 200,
    without: Collection[str] = (),
    raises: bool = True,
) -> Report:
    """Check that an environment keeps the contract of :mod:`swarm_ui.environment`.

    :data:`RULES` lists the rules and how to fix each. Two environments are made, reset many times,
    and closed.

    Args:
        make: makes a fresh environment; called twice.
        tasks: the tasks to check; all by default.
        seeds: the seeds to check of each task.
        budget: maximum number of steps of an episode.
        without: rules to skip, such as ``"determinism"`` for an environment with a clock.
        raises: raise if a rule is broken; otherwise see ``report.ok``.

    Returns:
        the number of checks and the findings.

    Raises:
        AssertionError: a rule is broken; the message is the whole report.
        ConfigError: there are no tasks or seeds, or a rule in ``without`` does not exist.
    """
    strange = sorted(set(without) - set(RULES))
    if strange:
        raise ConfigError(
            f"check_environment: no rule {strange[0]!r}; expected one of {', '.join(RULES)}"
        )
    check_factory(make)
    trial = Trial(without)
    name, chosen = await _checked(trial, make(), make(), tasks, seeds, budget)
    report = Report(
        environment=name,
        tasks=chosen,
        seeds=tuple(seeds),
        tried=dict(trial.tried),
        findings=tuple(trial.findings),
    )
    if raises and not report.ok:
        raise AssertionError(str(report))
    return report


async def _checked(
    trial: Trial,
    one: Environment,
    two: Environment,
    tasks: Sequence[str] | None,
    seeds: Sequence[int],
    budget: int,
) -> tuple[str, tuple[str, ...]]:
    """Check all rules, and return the environment's name and the tasks."""
    chosen: tuple[str, ...] = ()
    name = type(one).__name__
    try:
        if members(trial, one):
            name = one.name
            chosen = tuple(one.tasks if tasks is None else tasks)
            if not chosen or not seeds:
                raise ConfigError(f"check_environment: {name} has no tasks or no seeds to check")
            await outside(trial, one)
            for task, seed in product(chosen, seeds):
                trial.where = f"task {task!r}, seed {seed}"
                await episode_rules(trial, one, two, task, seed, budget)
            trial.where = ""
            with suppress(CannotGoOn):
                await closes(trial, one, chosen[0], seeds[0])
    finally:
        for env in (one, two):
            await closed(trial, env)
    return name, chosen
