"""The environments that an experiment can name, and their wrappers.

Any other name is a plug-in, or the user's code.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from swarm_ui.environment import Environment
from swarm_ui.environments.androidworld.benchmark import AndroidWorld, Handset
from swarm_ui.environments.benchmark import Benchmark, Opened
from swarm_ui.environments.coordination.policy import Coordination
from swarm_ui.environments.miniwob.benchmark import MiniWob
from swarm_ui.environments.phone.benchmark import Invented, Phone, SplitScreen
from swarm_ui.environments.recorded.benchmark import AutoWebBench, Demonstrations, Mind2Web
from swarm_ui.environments.web.benchmark import BrowserGym
from swarm_ui.environments.wrappers import DELETION, PAYMENT, SENDING, ActionFilter
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.plugins import UserEnvironment, make, plugins, told, unknown
from swarm_ui.rollout import MakeEnvironment

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import HeldOut


class UserBenchmark(Benchmark):
    """An environment that a plug-in or ``module:factory`` makes."""

    label: ClassVar[str] = "An environment of your own"

    name: str

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        yield Opened(partial(_made, self.name))

    @property
    def screenshots_given(self) -> bool:
        return True  # it may have some

    def missing(self) -> str:
        return unknown("environments", self.name, ENVIRONMENTS)


def _made(name: str) -> Environment:
    return UserEnvironment(make("environments", name))


_OURS = (Phone, Invented, SplitScreen, MiniWob, AndroidWorld, Handset, Mind2Web, AutoWebBench,
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

    return HeldOut.of(
        tasks=[task for env in envs for task in env.held_out_tasks()],
        seeds=[env.seeds[kind] for env in envs for kind in ("validation", "test")],
    )


WRAPPERS = {"action-filter": ("deny", "apps")}
"""The wrappers of this package that have a name, and their options."""
_RULES = {rule.name: rule for rule in (PAYMENT, DELETION, SENDING)}


def wrapped(make_inner: MakeEnvironment, texts: Sequence[str]) -> MakeEnvironment:
    """A factory of environments in wrappers; the first of ``texts`` is the innermost. Raises
    ``ConfigError`` for a wrong one."""
    wraps = [_wraps(text) for text in texts]
    if not wraps:
        return make_inner

    async def make_wrapped() -> Environment:
        made: Any = make_inner()
        env: Environment = await made if inspect.isawaitable(made) else made
        try:
            for wrap in wraps:
                env = wrap(env)
        except BaseException:
            await env.close()
            raise
        return env

    return make_wrapped


def wrapper_mistake(text: str) -> str:
    """What is wrong with a wrapper's text; empty: nothing. No code of the user is imported."""
    try:
        _wraps(text)
    except ConfigError as error:
        return str(error)
    return ""


def is_users(text: str) -> bool:
    """Whether a wrapper is a plug-in or ``module:callable``, and not one of this package."""
    return text.partition(":")[0] not in WRAPPERS


def _wraps(text: str) -> Callable[[Environment], Environment]:
    """The wrapper that ``name:key=value,key=value`` names; a key that is repeated makes a list."""
    if is_users(text):
        if problem := unknown("wrappers", text, WRAPPERS):
            raise ConfigError(problem)
        return lambda env: UserEnvironment(make("wrappers", text, env))
    name, _, rest = text.partition(":")
    given: dict[str, list[str]] = {key: [] for key in WRAPPERS[name]}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        if key not in given or (key == "deny" and value not in (*_RULES, "nothing")):
            raise ConfigError(
                f"wrapper '{name}': got '{part}'; expected {name}:KEY=VALUE,... with "
                f"{', '.join(given)}, and of deny {', '.join(_RULES)} or nothing"
            )
        given[key].append(value)
    rules = [_RULES[rule] for rule in given["deny"] or ["payment", "deletion"] if rule in _RULES]
    return partial(ActionFilter, deny=rules, apps=tuple(given["apps"]) or None)
