"""Old names that keep working for one version, each with a :class:`DeprecationWarning`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed_keywords(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function also accept the old names of some keyword arguments.

    Args:
        names: the new name of each old one: ``@renamed_keywords(tell="on_event")``.

    Raises:
        TypeError: (when the function is called) both names of one argument were given.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if kwargs.keys() & names.keys():
                _rename(function.__qualname__, kwargs, names)
            return function(*args, **kwargs)

        return call

    return decorate


def renamed_property(old: str, new: str) -> Any:
    """An attribute under its old name, to stand in a class that has it under the new one."""

    def get(self: object) -> Any:
        warnings.warn(
            f"{type(self).__name__}.{old} was renamed to '{new}'; "
            "the old name will be removed in the next version",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(self, new)

    return property(get)


def _rename(function: str, kwargs: dict[str, Any], names: dict[str, str]) -> None:
    for old, new in names.items():
        if old not in kwargs:
            continue
        if new in kwargs:
            raise TypeError(f"{function}() got both '{new}' and '{old}', its old name")
        warnings.warn(
            f"{function}(): the argument '{old}' was renamed to '{new}'; "
            "the old name will be removed in the next version",
            DeprecationWarning,
            stacklevel=3,
        )
        kwargs[new] = kwargs.pop(old)
