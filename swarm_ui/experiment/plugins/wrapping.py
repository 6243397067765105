"""Wrappers of environments by name: ``step-limit:steps=12``, a plug-in, or ``module:callable``."""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from swarm_ui.environment import Environment
from swarm_ui.environments.wrappers import (
    DELETION,
    PAYMENT,
    SENDING,
    ActionFilter,
    FaultInjector,
    Recorder,
    StepLimit,
)
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Finding
from swarm_ui.experiment.plugins.entry_points import plugin, unknown_name
from swarm_ui.experiment.user_code import callable_of, user_wrapper
from swarm_ui.rollout import MakeEnvironment

Wrap = Callable[[Environment], Environment]
_Chance = Annotated[float, Meta(ge=0.0, le=1.0)]
_RULES = {rule.name: rule for rule in (PAYMENT, DELETION, SENDING)}


class _Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a wrapper."""


class _StepLimit(_Options, frozen=True, kw_only=True):
    steps: Annotated[int, Meta(ge=1)]

    def wrap(self) -> Wrap:
        return partial(StepLimit, steps=self.steps)


class _ActionFilter(_Options, frozen=True, kw_only=True):
    deny: tuple[Literal["payment", "deletion", "sending", "nothing"], ...] = ("payment", "deletion")
    apps: tuple[str, ...] | None = None
    sites: tuple[str, ...] | None = None

    def wrap(self) -> Wrap:
        rules = [_RULES[name] for name in self.deny if name in _RULES]
        return partial(ActionFilter, deny=rules, apps=self.apps, sites=self.sites)


class _FaultInjector(_Options, frozen=True, kw_only=True):
    reset: _Chance = 0.0
    step: _Chance = 0.0
    close: _Chance = 0.0
    seed: int = 0
    how: Literal["raise", "tell"] = "raise"

    def wrap(self) -> Wrap:
        # One generator: the same seed would break all environments at the same calls.
        rng = random.Random(self.seed)
        return partial(
            FaultInjector, seed=rng, reset=self.reset, step=self.step, close=self.close,
            how=self.how,
        )  # fmt: skip


class _Recorder(_Options, frozen=True, kw_only=True):
    path: str
    actor: str = "recorded"

    def wrap(self) -> Wrap:
        return partial(Recorder, path=Path(self.path), actor=self.actor)


@dataclass(frozen=True, slots=True)
class _Known:
    """A wrapper of this package."""

    options: type[Any]
    example: str


WRAPPERS: dict[str, _Known] = {
    "action-filter": _Known(_ActionFilter, "action-filter:deny=payment,deny=sending,apps=contacts"),
    "fault-injector": _Known(_FaultInjector, "fault-injector:step=0.05,seed=1"),
    "recorder": _Known(_Recorder, "recorder:path=episodes.jsonl"),
    "step-limit": _Known(_StepLimit, "step-limit:steps=12"),
}
"""The wrappers of this package that have a name."""


def wrapped(make: MakeEnvironment, texts: Sequence[str]) -> MakeEnvironment:
    """A factory of environments in wrappers.

    Args:
        make: makes the inner environment.
        texts: the wrappers; the first is the innermost.

    Raises:
        ConfigError: there is no such wrapper, or an option is wrong.
    """
    wraps = [_wrap_of(text) for text in texts]
    if not wraps:
        return make

    async def make_wrapped() -> Environment:
        made: Any = make()
        env: Environment = await made if inspect.isawaitable(made) else made
        try:
            for wrap in wraps:
                env = wrap(env)
        except BaseException:
            await env.close()
            raise
        return env

    return make_wrapped


def wrapper_findings(texts: Sequence[str]) -> Iterator[Finding]:
    """Mistakes in the choice of wrappers. No code of the user is imported."""
    for text in texts:
        try:
            if not is_users(text):
                _options_of(text)
        except ConfigError as error:
            yield ("environment", "wrap"), str(error)


def check_users_wrappers(texts: Sequence[str]) -> bool:
    """Import the wrappers of plug-ins and of the user; returns whether there are any.

    Raises:
        ConfigError: one cannot be imported.
    """
    users = [text for text in texts if is_users(text)]
    for text in users:
        callable_of("wrappers", text)
    return bool(users)


def wrapper_demands(texts: Sequence[str]) -> Iterator[str]:
    """Actions of the wrappers in a folder's settings that need the user's consent."""
    for text in texts:
        try:
            if is_users(text):
                yield f"import and call '{text}' (a wrapper)"
            elif isinstance(options := _options_of(text), _Recorder):
                yield f"write episodes to '{options.path}' (a wrapper)"
        except ConfigError:
            continue  # reported when the environment is made


def is_users(text: str) -> bool:
    """Whether a wrapper is a plug-in or ``module:callable``, and not one of this package.

    Raises:
        ConfigError: there is no wrapper of that name.
    """
    if text.partition(":")[0] in WRAPPERS:
        return False
    if ":" in text or plugin("wrappers", text) is not None:
        return True
    raise ConfigError(unknown_name("wrappers", text, WRAPPERS, "module:callable"))


def _wrap_of(text: str) -> Wrap:
    if is_users(text):
        return partial(user_wrapper, text)
    wrap: Wrap = _options_of(text).wrap()
    return wrap


def _options_of(text: str) -> Any:
    """The options in ``name:key=value,key=value``; a key that is repeated makes a list."""
    name, _, rest = text.partition(":")
    known = WRAPPERS[name]
    kinds = get_type_hints(known.options)
    given: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key not in kinds:
            problem = f"expected KEY=VALUE with {', '.join(kinds)}, got '{part}'"
            raise ConfigError(f"wrapper '{name}': {problem}; for example {known.example}")
        if "tuple" in str(kinds[key]):
            given.setdefault(key, []).append(value)
        elif key in given:
            raise ConfigError(f"wrapper '{name}': '{key}' is given twice")
        else:
            given[key] = value
    try:
        return msgspec.convert(given, known.options, strict=False)
    except msgspec.ValidationError as error:
        problem = re.sub(r"^(.*) - at `\$\.(\w+).*`$", r"'\2': \1", str(error))
        problem = problem.replace("Object missing required field", "it needs").replace("`", "'")
        raise ConfigError(f"wrapper '{name}': {problem}; for example {known.example}") from error
