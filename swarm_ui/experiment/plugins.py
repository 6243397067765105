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
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
_MEMBERS: dict[Kind, tuple[str, ...]] = {
    "environments": ("name", "tasks", "reset", "step", "close"),
    "wrappers": ("name", "tasks", "reset", "step", "close"),
    "models": ("name", "generate"),
    "loggers": ("__call__",),
    "critics": ("__call__",),
    "losses": ("__call__",),
}
"""The attributes that each kind of object must have."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_VALUE = re.compile(r"\s*([\w.]+)\s*:\s*([\w.]+)\s*(\[.*\])?\s*")
_LIBRARY = os.path.dirname(swarm_ui.__file__)
_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


# -- names of installed packages ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plugin:
    """A name that a package gives to something that swarm-ui can use."""

    kind: Kind
    name: str
    package: str
    """The distribution and its version, such as ``"swarm-ui-kitchen 1.0"``."""
    place: str
    """What the entry point refers to, as ``module:callable``."""
    problem: str = ""
    """The reason why the name cannot be used, if it can be found without importing it."""

    def __str__(self) -> str:
        return f"plug-in '{self.name}' of {self.package} ({self.place})"


def plugins(kind: Kind) -> tuple[Plugin, ...]:
    """The plug-ins of a kind, sorted by name. A name that two packages claim is a problem."""
    return _found(kind, tuple(sys.path))


def plugin(kind: Kind, name: str) -> Plugin | None:
    """The plug-in of that name, or ``None`` if no package declares it."""
    return next((found for found in plugins(kind) if found.name == name), None)


def plugin_names(kind: Kind) -> tuple[str, ...]:
    """The names that can be used."""
    return tuple(found.name for found in plugins(kind) if not found.problem)


def unknown_name(kind: Kind, name: str, own: Iterable[str]) -> str:
    """The error text for a name that nothing has; ``own``: the names of this package."""
    names = [*own, *plugin_names(kind)]
    near = get_close_matches(name.partition(":")[0], names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"no {kind[:-1]} '{name}': expected {', '.join(names)}, or module:name{hint}"


def named_by_user(kind: Kind, name: str) -> bool:
    """Whether a name refers to a plug-in, or to code as ``module:name``."""
    return ":" in name or plugin(kind, name) is not None


@lru_cache(maxsize=16)
def _found(kind: Kind, path: tuple[str, ...]) -> tuple[Plugin, ...]:
    """The plug-ins on a path. Reading the metadata of all packages takes some milliseconds."""
    by_name: dict[str, list[Plugin]] = {}
    for entry in entry_points(group=f"swarm_ui.{kind}"):
        read = _read(kind, entry)
        same = by_name.setdefault(read.name, [])
        if read not in same:  # a folder may be on the path twice
            same.append(read)
    return tuple(
        each[0] if len(each) == 1 else _claimed(name, each)
        for name, each in sorted(by_name.items())
    )


def _read(kind: Kind, entry: EntryPoint) -> Plugin:
    dist, parts = entry.dist, _VALUE.fullmatch(entry.value)
    package = f"{dist.name} {dist.version}" if dist is not None else "a package without a name"
    place, problem = entry.value, ""
    if parts is None:
        problem = f"its value is {entry.value!r}; expected module:callable"
    else:
        place = f"{parts[1]}:{parts[2]}"
    if not _NAME.fullmatch(entry.name):
        problem = f"the name {entry.name!r} must consist of letters, digits, '.', '_' and '-'"
    return Plugin(kind, entry.name, package, place, problem)


def _claimed(name: str, each: list[Plugin]) -> Plugin:
    packages = " and ".join(sorted(found.package for found in each))
    first = each[0]
    problem = "several packages declare this name; uninstall all but one, or use module:callable"
    return Plugin(first.kind, name, packages, first.place, problem)


# -- import and call ------------------------------------------------------------------------------


def load(kind: Kind, name: str) -> Any:
    """What a plug-in's name, or ``module:name``, refers to. A module of ``module:name`` may be in
    the working directory.

    Raises:
        ConfigError: it cannot be imported, or cannot be called.
    """
    found = plugin(kind, name)
    if found is None:
        return named_in_code(name)
    with _of_plugin(found):
        return named_in_code(found.place, here=False)


def make(kind: Kind, name: str, *given: Any) -> Any:
    """Call what a plug-in's name, or ``module:name``, refers to, and check what it returns.

    Raises:
        ConfigError: it cannot be called with these arguments, or the value is not of this kind.
    """
    found = plugin(kind, name)
    if found is None:
        return _made(kind, name, load(kind, name), given)
    with _of_plugin(found):
        return _made(kind, found.place, load(kind, name), given)


def function_of(kind: Kind, name: str) -> Any:
    """A critic or a loss by name: a function as it is, or what a class or factory makes."""
    found = load(kind, name)
    asked = [
        p for p in inspect.signature(found).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    return found if asked and not isinstance(found, type) else make(kind, name)


@contextmanager
def _of_plugin(found: Plugin) -> Iterator[None]:
    """A context in which errors name the package of the plug-in."""
    if found.problem:
        raise ConfigError(f"{found} cannot be used: {found.problem}")
    try:
        yield
    except ConfigError as error:
        raise (
            error
            if str(error).startswith("plug-in")
            else ConfigError(f"{found} cannot be used: {error}")
        ) from error


def named_in_code(place: str, *, here: bool = True) -> Any:
    """The callable that ``module:name`` refers to. ``here``: the module may be in the working
    directory.

    Raises:
        ConfigError: it cannot be imported, or cannot be called.
    """
    module, _, name = place.partition(":")
    if here and "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    expected = "expected MODULE:NAME of a callable"
    try:
        value: Any = importlib.import_module(module)
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
    return value


def _as_module(file: str) -> str:
    """A hint for the path of a Python file in the place of a module's name."""
    if not file.endswith(".py"):
        return ""
    name = file.removesuffix(".py").strip("./").replace("/", ".")
    return f", such as '{name}:NAME' for the file '{file}'"


def _made(kind: Kind, place: str, factory: Any, given: Sequence[Any]) -> Any:
    value = called(place, factory, *given)
    lacking = [name for name in _MEMBERS[kind] if not _has(value, name)]
    if lacking:
        raise ConfigError(
            f"'{place}' returns a {type(value).__name__}, which is no {kind[:-1]}: it lacks "
            f"{', '.join(lacking)}"
        )
    return value


def called(place: str, factory: Any, *given: Any) -> Any:
    """Call a factory. ``place``: its name in errors.

    Raises:
        ConfigError: it needs other arguments, is an async function, or raised an exception that
            this library does not define.
    """
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


def _has(value: object, name: str) -> bool:
    """Whether an attribute exists, also if reading it fails: its use says where."""
    try:
        return hasattr(value, name)
    except Exception:
        return True


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


def user_environment(name: str) -> Environment:
    """The environment that a plug-in or ``module:factory`` makes. Errors: see :func:`make`."""
    return UserEnvironment(make("environments", name))


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
