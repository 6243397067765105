"""Wrappers of environments by name: ``step-limit:steps=12``, a plug-in, or ``module:callable``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from swarm_ui.environment import Environment
from swarm_ui.environments.benchmark import Count
from swarm_ui.environments.wrappers import (
    DELETION,
    PAYMENT,
    SENDING,
    ActionFilter,
    Recorder,
    StepLimit,
)
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.plugins import UserEnvironment, make, named_by_user, unknown_name
from swarm_ui.rollout import MakeEnvironment

Wrap = Callable[[Environment], Environment]
_RULES = {rule.name: rule for rule in (PAYMENT, DELETION, SENDING)}


class _Options(BaseModel):
    """The options of a wrapper."""

    model_config = ConfigDict(extra="forbid")
    example: ClassVar[str]

    def wrap(self) -> Wrap:
        raise NotImplementedError


class _StepLimit(_Options):
    example: ClassVar[str] = "step-limit:steps=12"

    steps: Count

    def wrap(self) -> Wrap:
        return partial(StepLimit, steps=self.steps)


class _ActionFilter(_Options):
    example: ClassVar[str] = "action-filter:deny=payment,deny=sending,apps=contacts"

    deny: tuple[Literal["payment", "deletion", "sending", "nothing"], ...] = ("payment", "deletion")
    apps: tuple[str, ...] = ()

    def wrap(self) -> Wrap:
        rules = [_RULES[name] for name in self.deny if name in _RULES]
        return partial(ActionFilter, deny=rules, apps=self.apps or None)


class _Recorder(_Options):
    example: ClassVar[str] = "recorder:path=episodes.jsonl"

    path: str
    actor: str = "recorded"

    def wrap(self) -> Wrap:
        return partial(Recorder, path=Path(self.path), actor=self.actor)


WRAPPERS: dict[str, type[_Options]] = {
    "action-filter": _ActionFilter,
    "recorder": _Recorder,
    "step-limit": _StepLimit,
}
"""The wrappers of this package that have a name."""
ONLY_WATCH = ("recorder",)
"""Wrappers that change neither screens nor actions."""


def wrapped(make_inner: MakeEnvironment, texts: Sequence[str]) -> MakeEnvironment:
    """A factory of environments in wrappers; the first of ``texts`` is the innermost.

    Raises:
        ConfigError: there is no such wrapper, or an option is wrong.
    """
    wraps = [_wrap_of(text) for text in texts]
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


def wrapper_mistakes(texts: Sequence[str]) -> Iterator[str]:
    """Mistakes in the choice of wrappers. No code of the user is imported."""
    for text in texts:
        try:
            if not is_users(text):
                _options_of(text)
        except ConfigError as error:
            yield str(error)


def wrapper_demands(texts: Sequence[str]) -> Iterator[str]:
    """What the wrappers in a folder's settings do that needs the user's consent."""
    for text in texts:
        if is_users(text):
            yield f"import and call '{text}' (a wrapper)"
        elif isinstance(options := _options_of(text), _Recorder):
            yield f"write episodes to '{options.path}' (a wrapper)"


def is_users(text: str) -> bool:
    """Whether a wrapper is a plug-in or ``module:callable``, and not one of this package.

    Raises:
        ConfigError: there is no wrapper of that name.
    """
    if text.partition(":")[0] in WRAPPERS:
        return False
    if named_by_user("wrappers", text):
        return True
    raise ConfigError(unknown_name("wrappers", text, WRAPPERS))


def _wrap_of(text: str) -> Wrap:
    if is_users(text):
        return lambda env: UserEnvironment(make("wrappers", text, env))
    return _options_of(text).wrap()


def _options_of(text: str) -> _Options:
    """The options in ``name:key=value,key=value``; a key that is repeated makes a list."""
    name, _, rest = text.partition(":")
    kind = WRAPPERS[name]
    given: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        field = kind.model_fields.get(key)
        if not equals or field is None:
            problem = f"expected KEY=VALUE with {', '.join(kind.model_fields)}, got '{part}'"
            raise ConfigError(f"wrapper '{name}': {problem}; for example {kind.example}")
        if get_origin(field.annotation) is tuple:
            given.setdefault(key, []).append(value)
        elif key in given:
            raise ConfigError(f"wrapper '{name}': '{key}' is given twice")
        else:
            given[key] = value
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][:1]))
        raise ConfigError(
            f"wrapper '{name}': '{where}': {first['msg'].lower()}; for example {kind.example}"
        ) from error
