"""Exceptions that are sent from a worker to the driver."""

from __future__ import annotations

import builtins
import traceback
from typing import Any

import msgspec

from swarm_ui.errors import SwarmError


class SentError(msgspec.Struct, frozen=True, kw_only=True):
    """An exception of a worker.

    Errors of this library keep their type and their attributes, such as partial episodes, even if
    their constructor does not take just a message. Built-in exceptions keep their type. Others,
    which the driver may not be able to import, become a ``RuntimeError`` with their name.
    """

    kind: type[BaseException]
    arguments: tuple[Any, ...]
    attributes: dict[str, Any]
    trace: str
    """The traceback, as text."""

    @classmethod
    def of(cls, error: BaseException, where: str) -> SentError:
        """The form in which an exception is sent. ``where``: a readable name of the worker."""
        told = f"in {where}:\n{''.join(traceback.format_exception(error))}"
        if isinstance(error, SwarmError):
            attributes = {k: v for k, v in vars(error).items() if k != "__notes__"}
            return cls(kind=type(error), arguments=error.args, attributes=attributes, trace=told)
        if getattr(builtins, type(error).__name__, None) is type(error):
            plain = tuple(a if isinstance(a, str | int | float) else repr(a) for a in error.args)
            return cls(kind=type(error), arguments=plain, attributes={}, trace=told)
        text = f"{type(error).__name__}: {error}"
        return cls(kind=RuntimeError, arguments=(text,), attributes={}, trace=told)

    def error(self) -> BaseException:
        """The exception, to be raised in the driver. A note holds the worker's traceback."""
        try:
            made = self.kind.__new__(self.kind, *self.arguments)
            made.args = self.arguments
            vars(made).update(self.attributes)
        except TypeError:  # a built-in exception whose constructor needs other arguments
            made = RuntimeError(f"{self.kind.__name__}: {self.arguments}")
        made.add_note(self.trace)
        return made
