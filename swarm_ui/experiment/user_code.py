"""Imports and calls plug-ins and code of the user (``module:name``), and locates their errors."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import swarm_ui
from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.wrappers import Wrapper
from swarm_ui.errors import ConfigError, EnvironmentFault, SwarmError
from swarm_ui.experiment.plugins.entry_points import Kind, Plugin, plugin
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.observation import Observation

_MEMBERS = ("name", "tasks", "reset", "step", "close")
_LIBRARY = os.path.dirname(swarm_ui.__file__)
_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def callable_of(kind: Kind, name: str) -> Callable[..., Any]:
    """The callable that a plug-in's name, or ``module:name``, refers to.

    Raises:
        ConfigError: it cannot be imported, or cannot be called.
    """
    found = plugin(kind, name)
    if found is None:
        return named_in_code(name)
    with _of_plugin(found):
        return named_in_code(found.place, here=False)


def made_of(kind: Kind, name: str, protocol: type, members: Sequence[str], *given: Any) -> Any:
    """Call a plug-in, or ``module:factory``, and check what it returns.

    Args:
        kind: the kind of plug-in to look for.
        name: the plug-in, or ``module:factory``.
        protocol: the protocol that the value has to satisfy, for the error text.
        members: the attributes that the protocol requires.
        given: the arguments of the factory.

    Raises:
        ConfigError: the factory cannot be called, or the value is not of this kind.
    """
    found = plugin(kind, name)
    if found is None:
        return _checked(made_by(name, *given), name, protocol, members)
    with _of_plugin(found):
        value = made_by(found.place, *given, here=False)
        return _checked(value, found.place, protocol, members)


@contextmanager
def _of_plugin(found: Plugin) -> Iterator[None]:
    """A context in which errors name the package of the plug-in."""
    if found.problem:
        raise ConfigError(f"{found} cannot be used: {found.problem}")
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{found} cannot be used: {error}") from error


def named_in_code(place: str, *, here: bool = True) -> Callable[..., Any]:
    """The callable that ``module:name`` refers to.

    Args:
        place: the module and the name, which may have dots.
        here: the module may be in the working directory.

    Raises:
        ConfigError: it cannot be imported, or cannot be called.
    """
    module, _, name = place.partition(":")
    if here and "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    expected = "expected MODULE:NAME of a callable"
    try:
        found = importlib.import_module(module)
    except SwarmError:
        raise
    except ValueError as error:  # such as an empty name
        raise ConfigError(f"cannot make '{place}': {error}; {expected}") from error
    except (Exception, SystemExit) as error:  # a script may exit when it is imported
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{module}.".startswith(f"{missing}."):
            raise ConfigError(
                f"cannot make '{place}': no module '{missing}' is installed or is in the current "
                f"folder; {expected}{_as_module(module)}"
            ) from error
        raise ConfigError(f"cannot import '{module}': {described(error)}") from error
    value: Any = found
    for part in name.split("."):
        if not hasattr(value, part):
            close = get_close_matches(part, dir(value), n=1)
            hint = f" (did you mean '{close[0]}'?)" if close else ""
            raise ConfigError(
                f"cannot make '{place}': '{module}' has no '{name}'{hint}; {expected}"
            )
        value = getattr(value, part)
    if not callable(value):
        raise ConfigError(f"'{place}' is a {type(value).__name__}; expected a callable")
    return value  # type: ignore[no-any-return]


def _as_module(file: str) -> str:
    """A hint for the path of a Python file in the place of a module's name."""
    if not file.endswith(".py"):
        return ""
    name = file.removesuffix(".py").strip("./").replace("/", ".")
    return f", such as '{name}:NAME' for the file '{file}'"


def made_by(place: str, *given: Any, here: bool = True) -> Any:
    """Call ``module:factory``.

    Args:
        place: the module and the factory.
        given: the arguments.
        here: the module may be in the working directory.

    Raises:
        ConfigError: it needs other arguments, or raised an exception that this library does not
            define.
    """
    factory = named_in_code(place, here=here)
    try:
        inspect.signature(factory).bind(*given)
    except TypeError as error:
        how = f"with {len(given)} argument" if given else "without arguments"
        raise ConfigError(
            f"'{place}' is called {how}: {error} ({_definition(factory)}); name a "
            "function that passes its other arguments"
        ) from error
    except ValueError:
        pass  # code in C may have no signature
    try:
        value = factory(*given)
    except SwarmError:
        raise
    except Exception as error:
        raise ConfigError(f"'{place}' failed: {described(error)}") from error
    if inspect.iscoroutine(value):
        value.close()
        raise ConfigError(
            f"'{place}' is an async function ({_definition(factory)}); write it without async"
        )
    return value


def _checked(value: Any, place: str, protocol: type, members: Sequence[str]) -> Any:
    """Raise ``ConfigError`` if a value lacks members of the protocol."""
    lacking = [name for name in members if not _has(value, name)]
    if lacking:
        raise ConfigError(
            f"'{place}' returns a {type(value).__name__}, expected a {protocol.__name__}; it lacks "
            f"{', '.join(lacking)}"
        )
    return value


def _has(value: object, name: str) -> bool:
    """Whether an attribute exists, also if reading it fails: its use says where."""
    try:
        return hasattr(value, name)
    except Exception:
        return True


def graph_named(place: str) -> CollabGraph:
    """The graph ``module:name``, or the one that this function returns without arguments.

    The module is imported, so pass only a name that the user gave.

    Raises:
        ConfigError: it cannot be imported, or is not a graph.
    """
    found = named_in_code(place)
    if not isinstance(found, CollabGraph):
        found = made_by(place)
    if not isinstance(found, CollabGraph):
        raise ConfigError(
            f"'{place}' is a {type(found).__name__}; expected a CollabGraph, or a function that "
            "returns one"
        )
    return found


def user_environment(name: str) -> Environment:
    """The environment that a plug-in or ``module:factory`` makes.

    Raises the errors of :func:`made_of`.
    """
    return UserEnvironment(made_of("environments", name, Environment, _MEMBERS))


def user_wrapper(name: str, env: Environment) -> Environment:
    """Wrap ``env`` with a plug-in or ``module:callable``.

    Raises the errors of :func:`made_of`.
    """
    return UserEnvironment(made_of("wrappers", name, Environment, _MEMBERS, env))


class UserEnvironment(Wrapper):
    """An environment of the user, whose exceptions become faults that name the file and line.

    Exceptions of this library are passed on.
    """

    @property
    def tasks(self) -> Sequence[str]:
        with self._locating("tasks"):
            return tuple(self.env.tasks)

    async def reset(self, *, task: str, seed: int) -> Observation:
        with self._locating("reset"):
            found = await self.env.reset(task=task, seed=seed)
            self._expect(found, Observation, "reset")
        return found

    async def step(self, action: Action) -> Step:
        with self._locating("step"):
            found = await self.env.step(action)
            self._expect(found, Step, "step")
        return found

    async def close(self) -> None:
        with self._locating("close"):
            await self.env.close()

    def _restore(self, state: object) -> Observation:
        with self._locating("restore"):
            return super()._restore(state)

    def _snapshot(self) -> object:
        with self._locating("snapshot"):
            return super()._snapshot()

    def _expert(self) -> Action:
        with self._locating("expert"):
            return super()._expert()

    def _grade(self, action: Action) -> float:
        with self._locating("grade"):
            return super()._grade(action)

    def _expect(self, value: object, kind: type, method: str) -> None:
        if not isinstance(value, kind):
            raise EnvironmentFault(
                f"the environment's '{method}' returned a {type(value).__name__}, expected a "
                f"{kind.__name__} ({_definition(getattr(self.env, method))})"
            )

    @contextmanager
    def _locating(self, method: str) -> Iterator[None]:
        try:
            yield
        except SwarmError:
            raise
        except Exception as error:
            at = "" if _place(error) else f" ({_definition(getattr(type(self.env), method, None))})"
            raise EnvironmentFault(
                f"the environment's '{method}' failed: {described(error)}{at}"
            ) from error


def described(error: BaseException) -> str:
    """An exception in one line, with the file and line of the user's code that raised it."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({_shown(error.filename)}:{error.lineno})"
    text = " ".join(str(error).split())
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    place = _place(error)
    return f"{said} ({place})" if place else said


def _place(error: BaseException) -> str:
    """File and line of the innermost call outside of this library; empty: there is none.

    Calls in the standard library and in installed packages count only if there are no others.
    """
    calls = [
        call
        for call in traceback.extract_tb(error.__traceback__)
        if not call.filename.startswith(("<", _LIBRARY + os.sep))
    ]
    own = [call for call in calls if not call.filename.startswith(_INSTALLED)]
    for call in reversed(own or calls):
        if not call.filename.startswith(os.path.dirname(importlib.__file__) + os.sep):
            return f"{_shown(call.filename)}:{call.lineno}"
    return ""


def _definition(value: object) -> str:
    """File and line where a function or class is defined, if known."""
    try:
        found: Any = inspect.unwrap(value) if callable(value) else value
        line = inspect.getsourcelines(found)[1]
        return f"{_shown(inspect.getsourcefile(found))}:{line}"
    except (OSError, TypeError):
        return "in a file that is not known"


def _shown(file: str | None) -> str:
    """A path, relative to the working directory if it is inside."""
    if file is None:
        return "unknown file"
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
