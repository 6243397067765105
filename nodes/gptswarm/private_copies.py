"""Private copies of GPTSwarm's operations, so that one operation can serve many runs at a time.

A GPTSwarm ``Node`` stores inputs, outputs and its own state as attributes, and writes to a memory
that the whole process shares. Here a call gets a shallow copy with its own containers and its own
empty memory; objects that are not containers stay shared.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from swarm_ui.errors import ConfigError, MissingExtra

# Operations of the package that block inside their async code: downloads, searches, reading files,
# running programs. The last two also share state of their modules, so only one may run at a time.
BLOCKING = frozenset({"CodeWriting", "FileAnalyse", "GenerateQuery", "UnitestGeneration",
                      "WebSearch"})  # fmt: skip

_REPLACED = frozenset({"inputs", "memory", "outputs", "predecessors", "successors"})


def check_is(value: Any, kind: str) -> None:
    """Check that a value is a GPTSwarm ``Node``, ``Graph`` or ``Swarm``. Raises ``MissingExtra`` if
    GPTSwarm, or something it needs, is not installed, and ``ConfigError`` for other objects."""
    try:
        expected = getattr(import_module(f"swarm.graph.{kind.lower()}"), kind)
    except ImportError as error:
        raise MissingExtra("gptswarm", "GPTSwarm interop", error.name or "swarm") from error
    if not isinstance(value, expected):
        raise ConfigError(f"expected a GPTSwarm {kind}, got a {type(value).__name__}")


def blocks(operation: Any) -> bool:
    """Whether an operation is a blocking one of the package, or derived from one."""
    return any(
        kind.__name__ in BLOCKING and kind.__module__.startswith("swarm.")
        for kind in type(operation).__mro__
    )


class Failures:
    """The errors inside a call. GPTSwarm itself would print them and continue."""

    __slots__ = ("_cut_short", "_first")

    def __init__(self) -> None:
        self._first: Exception | None = None
        self._cut_short: dict[int, str] = {}

    def check(self) -> None:
        """Raise the first error, or a ``TimeoutError`` if an operation was cut off."""
        if self._first is not None:
            raise self._first
        if self._cut_short:
            names = ", ".join(self._cut_short.values())
            raise TimeoutError(f"{names} did not finish in the time GPTSwarm gives an operation")

    def watch(self, operation: Any) -> None:
        """Record the errors of the operation's ``_execute``, which GPTSwarm catches."""
        work, number, name = operation._execute, id(operation), type(operation).__name__

        async def watched(*args: Any, **kwargs: Any) -> Any:
            if self._first is not None:
                return []  # the call has failed: do not call models any more
            try:
                result = await work(*args, **kwargs)
            except asyncio.CancelledError:
                self._cut_short[number] = name
                raise
            except Exception as failure:
                self._first = self._first or failure
                return []
            self._cut_short.pop(number, None)  # GPTSwarm tried again, and it worked
            return result

        operation._execute = watched


def private_copies(operations: Sequence[Any], failures: Failures) -> list[Any]:
    """Copies of operations with one new memory. References among them lead to the copies."""
    from swarm.memory.memory import Memory

    memory = Memory()
    twins = {id(operation): object.__new__(type(operation)) for operation in operations}
    known: dict[int, Any] = dict(twins)
    for operation in operations:
        twin = twins[id(operation)]
        for name, value in vars(operation).items():
            if name not in _REPLACED:
                vars(twin)[name] = _own(value, known)
        twin.predecessors = [twins[id(p)] for p in operation.predecessors if id(p) in twins]
        twin.successors = [twins[id(s)] for s in operation.successors if id(s) in twins]
        twin.memory, twin.inputs, twin.outputs = memory, [], []
        failures.watch(twin)
    return [twins[id(operation)] for operation in operations]


def _own(value: Any, known: dict[int, Any]) -> Any:
    """A copy of nested containers; other objects are shared."""
    if id(value) in known:
        return known[id(value)]
    if type(value) is tuple:
        return tuple(_own(item, known) for item in value)
    if not isinstance(value, dict | list | set | deque | bytearray):
        return value
    twin: Any = copy.copy(value)
    known[id(value)] = twin
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | deque):
        items = enumerate(value)
    for key, item in items:
        own = _own(item, known)
        if own is not item:
            twin[key] = own
    return twin
