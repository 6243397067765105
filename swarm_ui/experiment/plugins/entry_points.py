"""Names that installed packages give to environments, models, wrappers and loggers.

A package declares them as entry points, whose value is ``module:callable``::

    [project.entry-points."swarm_ui.environments"]
    kitchen = "swarm_ui_kitchen:Kitchen"

Nothing of a package is imported before one of its names is used.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, get_args

Kind = Literal["environments", "models", "wrappers", "loggers"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The groups of entry points, without ``swarm_ui.``."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_VALUE = re.compile(r"\s*([\w.]+)\s*:\s*([\w.]+)\s*(\[.*\])?\s*")


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


def unknown_name(kind: Kind, name: str, own: Iterable[str], form: str) -> str:
    """The error text for a name that nothing has.

    Args:
        kind: the kind of plug-in that could have the name.
        name: what the user wrote.
        own: the names of this package.
        form: how code is named, such as ``"module:factory"``.
    """
    names = [*own, *plugin_names(kind)]
    near = get_close_matches(name.partition(":")[0], names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"no {kind[:-1]} '{name}': expected {', '.join(names)}, or {form}{hint}"


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
