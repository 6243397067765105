"""Wrappers of environments by name: ``step-limit:steps=12``, a plug-in, or ``module:callable``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from swarm_ui.environment import Environment
from swarm_ui.environments.benchmark import Count
from swarm_ui.environments.wrappers import (
    DELETION,
    PAYMENT,
    SENDING,
    ActionFilter,
    StepLimit,
)
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.plugins import UserEnvironment, make, named_by_user, unknown_name
from swarm_ui.rollout import MakeEnvironment

Wrap = Callable[[Environment], Environment]
_RULES = {rule.name: rule for rule in (PAYMENT, DELETION, SENDING)}


class _Options(BaseModel):
    """The options of a wrapper, which is made by :meth:`wrap`."""

    model_config = ConfigDict(extra="forbid")

    def wrap(self, env: Environment) -> Environment:
        raise NotImplementedError


class _StepLimit(_Options):
    steps: Count

    def wrap(self, env: Environment) -> Environment:
        return StepLimit(env, steps=self.steps)


class _ActionFilter(_Options):
    deny: tuple[Literal["payment", "deletion", "sending", "nothing"], ...] = ("payment", "deletion")
    apps: tuple[str, ...] = ()

    def wrap(self, env: Environment) -> Environment:
        rules = [_RULES[name] for name in self.deny if name in _RULES]
        return ActionFilter(env, deny=rules, apps=self.apps or None)


WRAPPERS: dict[str, type[_Options]] = {
    "action-filter": _ActionFilter,
    "step-limit": _StepLimit,
}
"""The wrappers of this package that have a name."""


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
    return _options_of(text).wrap


def _options_of(text: str) -> _Options:
    """The options in ``name:key=value,key=value``; a key that is repeated makes a list."""
    name, _, rest = text.partition(":")
    kind, given = WRAPPERS[name], dict[str, Any]()
    for key, _, value in (part.partition("=") for part in filter(None, rest.split(","))):
        field = kind.model_fields.get(key)
        if field is not None and get_origin(field.annotation) is tuple:
            given.setdefault(key, []).append(value)
        else:
            given[key] = value
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first, known = error.errors()[0], ", ".join(kind.model_fields)
        raise ConfigError(
            f"wrapper '{name}': '{first['loc'][0]}': {first['msg'].lower()}; expected "
            f"{name}:KEY=VALUE,... with {known}"
        ) from error
