"""The environments that an experiment can name; any other name is a plug-in, or the user's code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from swarm_ui.environments.androidworld.benchmark import AndroidWorld, Handset
from swarm_ui.environments.benchmark import Benchmark, Opened
from swarm_ui.environments.coordination.benchmark import Coordination
from swarm_ui.environments.miniwob.benchmark import MiniWob
from swarm_ui.environments.phone.benchmark import Invented, Phone, SplitScreen
from swarm_ui.environments.recorded.benchmark import AutoWebBench, Demonstrations, Mind2Web
from swarm_ui.environments.web.benchmark import BrowserGym, Web
from swarm_ui.experiment.plugins import (
    named_by_user,
    plugins,
    told,
    unknown_name,
    user_environment,
)
from swarm_ui.experiment.wrapping import wrapped

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import HeldOut


class UserBenchmark(Benchmark):
    """An environment that a plug-in or ``module:factory`` makes."""

    label: ClassVar[str] = "An environment of your own"

    name: str

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        yield Opened(partial(user_environment, self.name))

    @property
    def screenshots_given(self) -> bool:
        return True  # it may have some

    def missing(self) -> str:
        if named_by_user("environments", self.name):
            return ""
        return unknown_name("environments", self.name, ENVIRONMENTS)


_OURS = (Phone, Invented, SplitScreen, MiniWob, AndroidWorld, Handset, Mind2Web, AutoWebBench, Web,
         BrowserGym, Coordination)  # fmt: skip
ENVIRONMENTS: dict[str, type[Benchmark]] = {
    kind.model_fields["name"].default: kind for kind in _OURS
}
"""The environments of this package by name."""
SOURCES: dict[str, type[Benchmark]] = {"demonstrations": Demonstrations}
"""Sources of training data that no agent is evaluated on: recordings."""


def kind_of_environment(name: str) -> type[Benchmark]:
    """The class of the section ``[env]`` of that name."""
    return ENVIRONMENTS.get(name) or SOURCES.get(name) or UserBenchmark


def note_on(env: Benchmark) -> str:
    """The note below tables of results in an environment."""
    if not isinstance(env, UserBenchmark):
        return env.label
    return told("environments", env.name) if env.name in plugins("environments") else env.name


@asynccontextmanager
async def opened(env: Benchmark, split: str) -> AsyncIterator[Opened]:
    """Open an environment in the wrappers of its settings."""
    async with env.open(split) as found:
        yield replace(found, make=wrapped(found.make, env.wrap))


def held_out_rule(envs: Sequence[Benchmark]) -> HeldOut:
    """The tasks and seeds that no training in these environments may use."""
    from swarm_ui.optim.stage1 import HeldOut

    rule = HeldOut()
    for env in envs:
        seeds = [env.validation_seeds, env.test_seeds]
        rule |= HeldOut.of(tasks=env.held_out_tasks(), seeds=seeds)
    return rule
