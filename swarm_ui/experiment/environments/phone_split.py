"""The phone whose apps are open side by side, one for each agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import EnvironmentSection, Finding
from swarm_ui.experiment.environments import phone_jobs
from swarm_ui.experiment.environments.spec import (
    EnvironmentSpec,
    OpenEnvironment,
    Opening,
)
from swarm_ui.rollout import Job, MakeEnvironment, Policy

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import HeldOut


@asynccontextmanager
async def _open(section: EnvironmentSection) -> Opening:
    from swarm_ui.environments.phone.split import SplitPhone

    yield OpenEnvironment(partial(SplitPhone, agents=section.apps))


def _findings(section: EnvironmentSection) -> Iterator[Finding]:
    from swarm_ui.environments.phone.split import SplitPhone

    try:
        SplitPhone(agents=section.apps)
    except ConfigError as error:
        yield ("environment", "apps"), str(error)


def _demonstrators(section: EnvironmentSection) -> Policy:
    """Scripted agents, on edges that vary from episode to episode."""
    from swarm_ui.environments.phone.split import SplitPhone
    from swarm_ui.experiment.split_facts import SplitTeams

    teams = SplitTeams(SplitPhone(agents=section.apps))
    return teams.policy("the scripted team", teams.varied)


def _known() -> Sequence[str]:
    from swarm_ui.environments.phone.split import SplitPhone

    return SplitPhone().tasks


def _tasks(section: EnvironmentSection) -> Sequence[str]:
    """The templates of a split; those of ``parameters`` are the training templates."""
    from swarm_ui.environments.phone.split import split_tasks

    return split_tasks("new_templates" if section.split == "templates" else "train")


def _test_jobs(section: EnvironmentSection) -> list[Job]:
    return phone_jobs.test_jobs(section, _tasks(section))


def _solver() -> MakeEnvironment:
    from swarm_ui.environments.phone.split import SplitPhone

    return SplitPhone


def _held_out() -> HeldOut:
    """Every template that is not for training, and the seeds of validation and tests."""
    from swarm_ui.environments.phone import TEST_SEEDS, VALIDATION_SEEDS
    from swarm_ui.environments.phone.split import split_tasks
    from swarm_ui.optim.stage1 import HeldOut

    others = [*split_tasks("validation"), *split_tasks("new_templates")]
    return HeldOut.of(tasks=others, seeds=[VALIDATION_SEEDS, TEST_SEEDS])


SPEC = EnvironmentSpec(
    name="phone-split",
    label="The phone is simulated, its apps are open side by side; not AndroidWorld scores",
    open=_open,
    splits=("parameters", "templates", "validation", "train"),
    trains_on="train",
    reads=("apps",),
    tasks=_tasks,
    known_tasks=_known,
    findings=_findings,
    test_jobs=_test_jobs,
    training_jobs=phone_jobs.training_jobs,
    held_out=_held_out,
    demonstrators=_demonstrators,
    solver=_solver,
)
