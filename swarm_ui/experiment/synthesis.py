"""Stage 1's corpus, made in an environment or from recordings that are chosen by name."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from swarm_ui.budget import Budget
from swarm_ui.environment import Graded
from swarm_ui.environments.benchmark import Benchmark, Opened
from swarm_ui.environments.recorded.benchmark import Demonstrations
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import ENVIRONMENTS, held_out_rule, opened
from swarm_ui.experiment.model_settings import Agent, AnyModel
from swarm_ui.experiment.models import describe_model, open_model
from swarm_ui.experiment.progress import Bar
from swarm_ui.rollout import Job

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import CorpusConfig, HeldOut, Models, Totals

SCRIPTED, NONE = "scripted", "none"
"""Names of roles that are not models; only the critic may be ``none``."""
ROLES = ("agent", "adversary", "critic")
DEFAULT_WALKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """The settings of a corpus that is to be made."""

    env: Benchmark
    """An environment, or a source of demonstrations."""
    config: CorpusConfig
    roles: dict[str, AnyModel | Literal["scripted"] | None]
    """A model, ``"scripted"``, or ``None`` (only for the critic) for each role."""
    budget: Budget
    """Calls and tokens of all models."""
    walks: int | None = None
    """Number of walks; ``None``: 100, or all recordings."""
    parallel: int = 1


class _Source(NamedTuple):
    """The opened environment of a synthesis, its walks, and the held-out rule."""

    environment: Opened
    jobs: list[Job]
    held_out: HeldOut


async def make_corpus(work: Synthesis, out: Path, bar: Bar) -> Totals:
    """Make the corpus, or complete one that was interrupted.

    Raises:
        ConfigError: wrong settings, a folder that holds something else, or a full disk.
        BudgetExceeded, ModelError, EnvironmentFault: see ``optim.stage1.synthesize``.
    """
    from swarm_ui.optim.stage1 import synthesize

    known = False

    def report(done: int, count: int, _: Any) -> None:
        nonlocal known
        bar.resize(count)
        if not known:  # walks of an earlier attempt are counted too
            bar.start_from(done - 1)
            known = True
        bar.update(done)

    async with _opened(work) as source, AsyncExitStack() as stack:
        await _expect_solver(work, source)
        models = await _models(work, stack)
        most = source.environment.max_concurrency
        try:
            return await synthesize(
                source.environment.make,
                models,
                source.jobs,
                out,
                held_out=source.held_out,
                config=work.config,
                budget=work.budget,
                parallel=work.parallel if most is None else min(most, work.parallel),
                report=report,
            )
        except OSError as error:
            raise ConfigError(
                f"synthesize: cannot write '{out}': {error.strerror or error}; the finished walks "
                "are kept: make room, and repeat the command"
            ) from error


@asynccontextmanager
async def _opened(work: Synthesis) -> AsyncIterator[_Source]:
    """The environment, the walks, and what is held out."""
    env = work.env
    split = env.training_split()
    async with opened(env, split) as environment:
        if environment.jobs is not None:
            jobs = environment.jobs(env.tasks)[: work.walks or None]
        else:
            names = await env.task_names(split, environment)
            count, rng = work.walks or DEFAULT_WALKS, random.Random(work.config.seed)
            jobs = env.training_jobs(names, count, rng)
        rule = held_out_rule([env])
        if isinstance(env, Demonstrations):
            rule = await rule_of_recordings(environment, jobs)
        yield _Source(environment, jobs, rule)


async def rule_of_recordings(environment: Opened, jobs: list[Job]) -> HeldOut:
    """The rule of the environment in which episodes were recorded, which are checked against it.

    Environments of one family, such as ``phone`` and ``phone-split``, are not told apart by the
    names in recordings, so the rules of the whole family apply.
    """
    async with environment.one() as one:
        recorded = str(one.name).removeprefix("demonstrations on ")
    family = [
        kind() for name, kind in ENVIRONMENTS.items()
        if recorded.startswith(name.partition("-")[0])
    ]  # fmt: skip
    rule = held_out_rule(family)
    rule.check(recorded, jobs, "synthesize")
    return rule


async def _expect_solver(work: Synthesis, source: _Source) -> None:
    """Raise ``ConfigError`` if a role is scripted and the environment has no script."""
    wanted = [role for role in ("agent", "critic") if work.roles[role] == SCRIPTED]
    if not wanted:
        return
    async with source.environment.one() as environment:
        able = isinstance(environment, Graded)
    if not able:
        raise ConfigError(
            f"'{work.env.name}' cannot solve its own tasks, so there is no scripted "
            f"{' or '.join(wanted)}: name a model with --{wanted[0]} (or --model for all roles)"
            + (", or leave out the critic with --critic none" if "critic" in wanted else "")
        )


async def _models(work: Synthesis, stack: AsyncExitStack) -> Models:
    """The model or script of each role. A model that several roles use is opened once."""
    from swarm_ui.optim.stage1 import Models

    scripts = Models.scripted()
    found: dict[AnyModel, Any] = {}
    roles: dict[str, Any] = {}
    for role, model in work.roles.items():
        if model is None:
            roles[role] = None
        elif isinstance(model, str):
            roles[role] = getattr(scripts, role)
        else:
            if model not in found:
                if isinstance(model, Agent):
                    raise ConfigError(
                        f"--{role} {model.name}: {describe_model(model)} reads screens only, not "
                        "requests in words; name a language model, or scripted"
                    )
                found[model] = await stack.enter_async_context(open_model(model))
            roles[role] = found[model]
    return Models(**roles)
