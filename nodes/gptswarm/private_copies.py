"""Private copies of GPTSwarm's operations: what makes one of them serve many runs at a time.

A GPTSwarm ``Node`` keeps inputs, outputs and working notes on itself, and writes to a memory that
the whole process shares. GPTSwarm's way out is a ``deepcopy`` of the graph for every run, language
models, prompts and the memory's whole history included. Here a call takes a shallow copy with its
own containers and its own empty memory; objects that are not containers stay shared.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from swarm_ui.errors import ConfigError, MissingExtra

# Operations of the package that block inside their async code: downloads, searches, readers of
# files, programs under test. The latter two also share state of their modules, so that they must
# take turns.
BLOCKING = frozenset({"CodeWriting", "FileAnalyse", "GenerateQuery", "UnitestGeneration",
                      "WebSearch"})  # fmt: skip

_REPLACED = frozenset({"inputs", "memory", "outputs", "predecessors", "successors"})
_PLAIN = frozenset({bool, bytes, float, int, str, type(None)})


def check_is(value: Any, kind: str) -> None:
    """Refuse what is not a GPTSwarm ``Node``, ``Graph`` or ``Swarm``.

    Raises:
        MissingExtra: GPTSwarm, or something it needs, is not installed.
        ConfigError: it is another kind of object.
    """
    try:
        if kind == "Node":
            from swarm.graph.node import Node as expected
        elif kind == "Graph":
            from swarm.graph.graph import Graph as expected
        else:
            from swarm.graph.swarm import Swarm as expected
    except ImportError as error:
        raise MissingExtra("gptswarm", "GPTSwarm interop", error.name or "swarm") from error
    if not isinstance(value, expected):
        raise ConfigError(f"expected a GPTSwarm {kind}, got a {type(value).__name__}")


def new_memory() -> Any:
    """An empty memory of GPTSwarm's that belongs to nobody else."""
    from swarm.memory.memory import Memory

    return Memory()


def blocks(operation: Any) -> bool:
    """Whether an operation is one of the package's that block, or derived from one."""
    return any(
        kind.__name__ in BLOCKING and kind.__module__.startswith("swarm.")
        for kind in type(operation).__mro__
    )


class Failures:
    """What went wrong inside a call; GPTSwarm itself would print it and go on."""

    __slots__ = ("_cut_short", "_first")

    def __init__(self) -> None:
        self._first: Exception | None = None
        self._cut_short: dict[int, str] = {}

    def check(self) -> None:
        """Raise the first failure, or for an operation that never came to its end."""
        if self._first is not None:
            raise self._first
        if self._cut_short:
            names = ", ".join(self._cut_short.values())
            raise TimeoutError(f"{names} did not finish in the time GPTSwarm gives an operation")

    def watch(self, operation: Any) -> None:
        """Note what the operation's ``_execute`` raises, before GPTSwarm swallows it."""
        work, number, name = operation._execute, id(operation), type(operation).__name__

        async def watched(*args: Any, **kwargs: Any) -> Any:
            if self._first is not None:
                return []  # the call has failed: ask no model any more
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
    """Copies of operations, sharing one new memory; edges and other references among them stay."""
    memory = new_memory()
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
    """A value with its own containers, at any depth; other objects are shared."""
    if type(value) in _PLAIN:
        return value
    if id(value) in known:
        return known[id(value)]
    twin: Any = value
    if isinstance(value, dict | list | set | deque | bytearray):
        twin = known[id(value)] = copy.copy(value)
    elif isinstance(value, tuple) and type(value) is tuple:
        return tuple(_own(item, known) for item in value)
    if isinstance(value, dict):
        _refill(twin, value.items(), known)
    elif isinstance(value, list | deque):
        _refill(twin, enumerate(value), known)
    return twin


def _refill(twin: Any, items: Iterable[tuple[Any, Any]], known: dict[int, Any]) -> None:
    for key, item in items:
        own = _own(item, known)
        if own is not item:
            twin[key] = own


def model_of(operation: Any) -> Any:
    """The operation's language model, or ``None``: not every operation has one."""
    attributes: Mapping[str, Any] = vars(operation)
    return attributes.get("llm")
