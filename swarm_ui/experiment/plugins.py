"""Code that is not in this package: plug-ins by name, and ``module:name`` of the user.

A package declares names as entry points, whose value is ``module:callable``::

    [project.entry-points."swarm_ui.environments"]
    kitchen = "swarm_ui_kitchen:Kitchen"

Nothing of a package is imported before one of its names is used.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, get_args

import swarm_ui
from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.wrappers import Wrapper
from swarm_ui.errors import ConfigError, EnvironmentFault, SwarmError
from swarm_ui.observation import Observation

Kind = Literal["environments", "models", "wrappers", "loggers", "critics", "losses"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The groups of entry points, without ``swarm_ui.``."""
_ENVIRONMENT = ("name", "tasks", "reset", "step", "close")
_MEMBERS: dict[Kind, tuple[str, ...]] = {
    "environments": _ENVIRONMENT, "wrappers": _ENVIRONMENT, "models": ("name", "generate"),
}  # fmt: skip
"""The attributes that an object of a kind must have; one of another kind is called."""
_LIBRARY = os.path.dirname(swarm_ui.__file__)
_IMPORTING = os.path.dirname(importlib.__file__)
_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def plugins(kind: Kind) -> Mapping[str, EntryPoint]:
    """The plug-ins of a kind by name."""
    return _found(kind, tuple(sys.path))


@lru_cache(maxsize=16)
def _found(kind: Kind, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """The plug-ins on a path. Reading the metadata of all packages takes some milliseconds."""
    return {entry.name: entry for entry in sorted(entry_points(group=f"swarm_ui.{kind}"))}


def package_of(entry: EntryPoint) -> str:
    """The package of a plug-in and its version, such as ``"swarm-ui-kitchen 1.0"``."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def told(kind: Kind, name: str) -> str:
    """A name with the package that declares it, or ``module:name`` as it is."""
    entry = plugins(kind).get(name)
    if entry is None:
        return f"'{name}'"
    return f"plug-in '{name}' of {package_of(entry)} ({entry.value})"


def named_by_user(kind: Kind, name: str) -> bool:
    """Whether a name refers to a plug-in, or to code as ``module:name``."""
    return ":" in name or name in plugins(kind)


def unknown_name(kind: Kind, name: str, own: Iterable[str]) -> str:
    """The error text for a name that nothing has; ``own``: the names of this package."""
    names = [*own, *plugins(kind)]
    near = get_close_matches(name.partition(":")[0], names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"no {kind[:-1]} '{name}': expected {', '.join(names)}, or module:name{hint}"


def load(kind: Kind, name: str) -> Any:
    """What a plug-in's name, or ``module:name``, refers to.

    Raises:
        ConfigError: it cannot be imported, or cannot be called.
    """
    entry = plugins(kind).get(name)
    return imported(name if entry is None else entry.value, told(kind, name))


def imported(place: str, title: str) -> Any:
    """The callable ``module:name``, whose module may be in the working directory.

    ``title``: its name in errors, which are those of :func:`load`.
    """
    module, _, path = place.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: Any = importlib.import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except SwarmError:
        raise
    except (Exception, SystemExit) as error:  # a script may exit when it is imported
        raise ConfigError(
            f"{title} cannot be used: {described(error)}; expected module:name of a callable"
        ) from error
    if not callable(value):
        raise ConfigError(f"{title} is a {type(value).__name__}; expected a callable")
    return value


def make(kind: Kind, name: str, *given: Any) -> Any:
    """Call what a plug-in's name, or ``module:name``, refers to, and check what it returns.

    Raises:
        ConfigError: it fails with these arguments, or the value is not of this kind.
    """
    title = told(kind, name)
    value = called(title, load(kind, name), *given)
    lacking = [each for each in _MEMBERS.get(kind, ("__call__",)) if each not in dir(value)]
    if lacking:
        raise ConfigError(
            f"{title} returns a {type(value).__name__}, which is no {kind[:-1]}: it lacks "
            f"{', '.join(lacking)}"
        )
    return value


def called(title: str, factory: Any, *given: Any) -> Any:
    """The value of a factory. Raises ``ConfigError`` if it fails, or is an async function."""
    try:
        value = factory(*given)
    except SwarmError:
        raise
    except Exception as error:
        raise ConfigError(f"{title} cannot be used: {described(error)}") from error
    if inspect.iscoroutine(value):
        value.close()
        raise ConfigError(f"{title} is an async function; write it without async")
    return value


def function_of(kind: Kind, name: str) -> Any:
    """A critic or a loss by name: a function as it is, or what a class or factory makes."""
    found = load(kind, name)
    asked = [
        p for p in inspect.signature(found).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    return found if asked and not isinstance(found, type) else make(kind, name)


class UserEnvironment(Wrapper):
    """An environment of the user, whose exceptions become faults that name the file and line.

    Exceptions of this library are passed on.
    """

    @property
    def tasks(self) -> Sequence[str]:
        try:
            return tuple(self.env.tasks)
        except Exception as error:
            raise self._fault("tasks", f"failed: {described(error)}") from error

    async def reset(self, *, task: str, seed: int) -> Observation:
        found: Observation = await self._checked("reset", Observation, task=task, seed=seed)
        return found

    async def step(self, action: Action) -> Step:
        found: Step = await self._checked("step", Step, action)
        return found

    async def close(self) -> None:
        await self._checked("close", object)

    async def _checked(self, method: str, kind: type, *given: Any, **named: Any) -> Any:
        try:
            found = await getattr(self.env, method)(*given, **named)
        except SwarmError:
            raise
        except Exception as error:
            raise self._fault(method, f"failed: {described(error)}") from error
        if not isinstance(found, kind):
            got = f"returned a {type(found).__name__}, expected a {kind.__name__}"
            raise self._fault(method, got)
        return found

    def _fault(self, method: str, what: str) -> EnvironmentFault:
        return EnvironmentFault(f"the environment's '{method}' {what}")


def user_environment(name: str) -> Environment:
    """The environment that a plug-in or ``module:factory`` makes. Errors: see :func:`make`."""
    return UserEnvironment(make("environments", name))


def described(error: BaseException) -> str:
    """An exception in one line, with the file and line of the user's code that raised it.

    Calls in the standard library and in installed packages count only if there are no others.
    """
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({_shown(error.filename)}:{error.lineno})"
    text = " ".join(str(error).split())
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    calls = [
        call
        for call in traceback.extract_tb(error.__traceback__)
        if not call.filename.startswith(("<", _LIBRARY + os.sep, _IMPORTING + os.sep))
    ]
    own = [call for call in calls if not call.filename.startswith(_INSTALLED)] or calls
    return f"{said} ({_shown(own[-1].filename)}:{own[-1].lineno})" if own else said


def _shown(file: str | None) -> str:
    """A path, relative to the working directory if it is inside."""
    path, here = Path(file or "unknown file"), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
