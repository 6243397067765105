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
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import swarm_ui
from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.wrappers import Wrapper
from swarm_ui.errors import ConfigError, EnvironmentFault, SwarmError
from swarm_ui.observation import Observation

T = TypeVar("T")
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


def unknown(kind: Kind, name: str, own: Collection[str]) -> str:
    """The error text for a name that is neither one of this package (``own``), nor a plug-in, nor
    ``module:name``; empty if it is. Nothing is imported."""
    names = [*own, *plugins(kind)]
    if ":" in name or name in names:
        return ""
    near = get_close_matches(name, names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"no {kind[:-1]} '{name}': expected {', '.join(names)}, or module:name{hint}"


def load(kind: Kind, name: str) -> Any:
    """What a plug-in's name, or ``module:name``, refers to; the module may be in the working
    directory. Raises ``ConfigError`` if it cannot be imported or called."""
    entry = plugins(kind).get(name)
    module, _, path = (name if entry is None else entry.value).partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: Any = importlib.import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except SwarmError:
        raise
    except (Exception, SystemExit) as error:  # a script may exit when it is imported
        problem = f"{told(kind, name)} cannot be used: {described(error)}"
        raise ConfigError(f"{problem}; expected module:name of a callable") from error
    if not callable(value):
        raise ConfigError(f"{told(kind, name)} is a {type(value).__name__}; expected a callable")
    return value


def make(kind: Kind, name: str, *given: Any) -> Any:
    """Call what a plug-in's name, or ``module:name``, refers to, and check what it returns. Raises
    ``ConfigError``."""
    factory, title = load(kind, name), told(kind, name)
    try:
        value = factory(*given)
    except SwarmError:
        raise
    except Exception as error:
        raise ConfigError(f"{title} cannot be used: {described(error)}") from error
    if inspect.iscoroutine(value):
        value.close()
        raise ConfigError(f"{title} is an async function; write it without async")
    if lacking := [each for each in _MEMBERS.get(kind, ("__call__",)) if each not in dir(value)]:
        got, lacks = type(value).__name__, ", ".join(lacking)
        raise ConfigError(f"{title} returns a {got}, which is no {kind[:-1]}: it lacks {lacks}")
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
    """An environment of the user, whose exceptions become faults that name the file and line; those
    of this library are passed on."""

    @property
    def tasks(self) -> Sequence[str]:
        with self._faults("tasks"):
            return tuple(self.env.tasks)

    async def reset(self, *, task: str, seed: int) -> Observation:
        with self._faults("reset"):
            found = await self.env.reset(task=task, seed=seed)
        return self._expected("reset", found, Observation)

    async def step(self, action: Action) -> Step:
        with self._faults("step"):
            found = await self.env.step(action)
        return self._expected("step", found, Step)

    async def close(self) -> None:
        with self._faults("close"):
            await self.env.close()

    @contextmanager
    def _faults(self, method: str) -> Iterator[None]:
        try:
            yield
        except SwarmError:
            raise
        except Exception as error:
            text = f"the environment's '{method}' failed: {described(error)}"
            raise EnvironmentFault(text) from error

    @staticmethod
    def _expected(method: str, found: object, kind: type[T]) -> T:
        if not isinstance(found, kind):
            got = f"returned a {type(found).__name__}, expected a {kind.__name__}"
            raise EnvironmentFault(f"the environment's '{method}' {got}")
        return found


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
