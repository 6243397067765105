"""Phones with invented apps: any number of training devices, test devices, and the blind set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from swarm_ui.experiment.config import EnvironmentSection, Finding
from swarm_ui.experiment.environments import phone_jobs
from swarm_ui.experiment.environments.spec import (
    EnvironmentSpec,
    OpenEnvironment,
    Opening,
)
from swarm_ui.rollout import Job, MakeEnvironment

if TYPE_CHECKING:
    from swarm_ui.environments.phone.invented import InventedPhone
    from swarm_ui.optim.stage1 import HeldOut


def _phone(section: EnvironmentSection) -> InventedPhone:
    from swarm_ui.environments.phone.invented import BLIND, BLIND_DEVICES, UNSEEN, InventedPhone

    first = {"": UNSEEN, "devices": UNSEEN, "blind": BLIND}.get(section.split, 0)
    return InventedPhone(
        devices=BLIND_DEVICES if first == BLIND else section.devices,
        first=first,
        wordings=section.wordings,
        screenshots=section.screenshots,
    )


@asynccontextmanager
async def _open(section: EnvironmentSection) -> Opening:
    yield OpenEnvironment(lambda: _phone(section))


def _findings(section: EnvironmentSection) -> Iterator[Finding]:
    phone = _phone(section)
    if section.split == "blind" and section.devices != EnvironmentSection().devices:
        at = ("environment", "devices")
        yield at, f"devices = {section.devices} has no effect on split 'blind'; leave it out"
    for task in section.tasks:
        if not phone.has(task):
            at = ("environment", "tasks")
            yield at, f"'invented' has no task '{task}'; such as {phone.tasks[0]}"


def _test_jobs(section: EnvironmentSection) -> list[Job]:
    return phone_jobs.test_jobs(section, _phone(section).tasks)


def _solver() -> MakeEnvironment:
    from swarm_ui.environments.phone.invented import InventedPhone

    return InventedPhone


def _held_out() -> HeldOut:
    """The tasks of the test devices and the blind set, and the seeds of validation and tests."""
    from swarm_ui.environments.phone import TEST_SEEDS, VALIDATION_SEEDS
    from swarm_ui.environments.phone.invented import UNSEEN, InventedPhone, blind_tasks
    from swarm_ui.optim.stage1 import HeldOut

    tested = InventedPhone(devices=EnvironmentSection().devices, first=UNSEEN).tasks
    return HeldOut.of(tasks=[*tested, *blind_tasks()], seeds=[VALIDATION_SEEDS, TEST_SEEDS])


SPEC = EnvironmentSpec(
    name="invented",
    label="The phone and its apps are invented: scores on it are not AndroidWorld scores",
    open=_open,
    splits=("devices", "blind", "parameters", "validation", "train"),
    trains_on="train",
    reads=("devices", "wordings", "screenshots"),
    findings=_findings,
    test_jobs=_test_jobs,
    training_jobs=phone_jobs.training_jobs,
    held_out=_held_out,
    solver=_solver,
)
