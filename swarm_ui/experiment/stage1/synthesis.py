"""Stage 1's corpus, made in an environment or from recordings that are chosen by name."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from swarm_ui.budget import Budget
from swarm_ui.environment import Graded
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import EnvironmentSection, ModelSection
from swarm_ui.experiment.environments import ENVIRONMENTS, environment_findings, spec_of
from swarm_ui.experiment.environments.sources import DEMONSTRATIONS, SOURCES
from swarm_ui.experiment.environments.spec import EnvironmentSpec, OpenEnvironment
from swarm_ui.experiment.models import (
    describe_model,
    kind_of,
    open_model,
)
from swarm_ui.experiment.progress import Bar
from swarm_ui.experiment.runs.unused_settings import unused_environment_settings
from swarm_ui.rollout import Job, Policy

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import CorpusConfig, HeldOut, Models, Totals

SCRIPTED, NONE = "scripted", "none"
"""Names of roles that are not models; only the critic may be ``none``."""
ROLES = ("agent", "adversary", "critic")
DEFAULT_WALKS = 100
_TEAM_FORMAT = "compact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """The settings of a corpus that is to be made."""

    place: EnvironmentSection
    """An environment, or one of :data:`SOURCES`; its ``seed`` chooses the walks."""
    config: CorpusConfig
    roles: dict[str, str]
    """A model, ``scripted`` or ``none`` for each role; without an entry, ``scripted``."""
    model: ModelSection
    """Endpoint, limits and device of all models; its name is not used."""
    walks: int | None = None
    """Number of walks; ``None``: 100, or all recordings."""
    parallel: int = 1


class Opened(NamedTuple):
    """The opened environment of a synthesis, its walks, and the held-out rule."""

    environment: OpenEnvironment
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

    limits = Budget(work.model.max_calls, work.model.max_tokens_total)
    async with _opened(work) as opened, AsyncExitStack() as stack:
        names = await _role_names(work, opened)
        models = await _models(work, names, stack)
        models = dataclasses.replace(models, team=_team(work, names))
        most = opened.environment.max_concurrency
        try:
            return await synthesize(
                opened.environment.make,
                models,
                opened.jobs,
                out,
                held_out=opened.held_out,
                config=work.config,
                budget=limits,
                parallel=work.parallel if most is None else min(most, work.parallel),
                report=report,
            )
        except OSError as error:
            raise ConfigError(
                f"synthesize: cannot write '{out}': {error.strerror or error}; the finished walks "
                "are kept: make room, and repeat the command"
            ) from error


@asynccontextmanager
async def _opened(work: Synthesis) -> AsyncIterator[Opened]:
    """The environment, the walks, and what is held out."""
    spec, place = _checked(work.place)
    async with spec.opened(place) as environment:
        held_out = spec.held_out_rule()
        if environment.jobs is not None:
            jobs = environment.jobs(place)[: work.walks or None]
        else:
            names = await spec.task_names(place, environment)
            count, rng = work.walks or DEFAULT_WALKS, random.Random(place.seed)
            jobs = spec.training_jobs(place, names, count, rng, "train")
        if spec is DEMONSTRATIONS:
            held_out = await _rule_of_recordings(environment, jobs)
        yield Opened(environment, jobs, held_out)


def _checked(place: EnvironmentSection) -> tuple[EnvironmentSpec, EnvironmentSection]:
    """Raise ``ConfigError`` for a mistake, or for an environment that is only for tests."""
    spec = SOURCES.get(place.name)
    findings = spec.all_findings(place) if spec is not None else environment_findings(place)
    found = spec or spec_of(place.name)
    for _, mistake in [*findings, *unused_environment_settings(place, [found])]:
        if spec is None and mistake.startswith("no environment"):
            mistake += f"; or a source of demonstrations: {', '.join(SOURCES)}"
        raise ConfigError(mistake)
    if place.max_steps is not None:
        raise ConfigError(
            f"[environment] max_steps = {place.max_steps} has no effect in 'synthesize'; limit "
            f"walks with --set synthesize.max_steps={place.max_steps}"
        )
    return found, found.for_training(place)


async def _rule_of_recordings(environment: OpenEnvironment, jobs: list[Job]) -> HeldOut:
    """The rule of the environment in which episodes were recorded, which are checked against it.

    Environments of one family, such as ``phone`` and ``phone-split``, are not told apart by the
    names in recordings, so the rules of the whole family apply.
    """
    from swarm_ui.optim.stage1 import HeldOut

    async with environment.one() as one:
        recorded = str(one.name).removeprefix("demonstrations on ")
    rule = HeldOut()
    for name, spec in ENVIRONMENTS.items():
        if recorded.startswith(name.partition("-")[0]):
            rule |= spec.held_out_rule()
    rule.check(recorded, jobs, "synthesize")
    return rule


async def _role_names(work: Synthesis, opened: Opened) -> dict[str, str]:
    """The model or script of each role. Raises ``ConfigError`` if the environment has no script."""
    names = {role: work.roles.get(role) or SCRIPTED for role in ROLES}
    for role in ("agent", "adversary"):
        if names[role] == NONE:
            raise ConfigError(f"--{role} none: only the critic can be left out")
    scripted = [role for role in ("agent", "critic") if names[role] == SCRIPTED]
    if scripted:
        async with opened.environment.one() as environment:
            able = isinstance(environment, Graded)
        if not able:
            raise ConfigError(
                f"'{work.place.name}' cannot solve its own tasks, so there is no scripted "
                f"{' or '.join(scripted)}: name a model with --{scripted[0]} (or --model for all "
                "roles)"
                + (", or leave out the critic with --critic none" if "critic" in scripted else "")
            )
    return names


async def _models(work: Synthesis, names: dict[str, str], stack: AsyncExitStack) -> Models:
    """The model or script of each role. A model that several roles use is opened once."""
    from swarm_ui.optim.stage1 import Models

    scripts = Models.scripted()
    opened: dict[str, Any] = {}
    roles: dict[str, Any] = {}
    for role, name in names.items():
        if name == SCRIPTED:
            roles[role] = getattr(scripts, role)
        elif name == NONE:
            roles[role] = None
        else:
            if name not in opened:
                section = msgspec.structs.replace(work.model, name=name, adapters="")
                if kind_of(section) in ("base", "agent"):
                    raise ConfigError(
                        f"--{role} {name}: {describe_model(section)} reads screens only, not "
                        "requests in words; name a language model, or scripted"
                    )
                opened[name] = await stack.enter_async_context(open_model(section))
            roles[role] = opened[name]
    return Models(**roles)


def _team(work: Synthesis, names: dict[str, str]) -> Policy | None:
    """The scripted team of the environment, if it has one and no role is a model.

    Raises:
        ConfigError: it writes another prompt format.
    """
    make = None if work.place.name in SOURCES else spec_of(work.place.name).demonstrators
    if make is None or any(name != SCRIPTED for name in names.values()):
        return None
    if work.config.prompt_format != _TEAM_FORMAT:
        raise ConfigError(
            f"{work.place.name}: the scripted team writes the format {_TEAM_FORMAT}: add "
            f"--prompt-format {_TEAM_FORMAT}, or name models with --model"
        )
    return make(work.place)
