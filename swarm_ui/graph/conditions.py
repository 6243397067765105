"""Conditions of edges that are made of other functions, and the names of conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from swarm_ui.errors import ConfigError, GraphError
from swarm_ui.message import Message
from swarm_ui.node import Condition

Value = str | int | bool
"""What a routing function returns for a message."""

Key = Callable[[Message], Value | None]
"""A routing function. ``None``: the message is sent to none of the listeners."""


@dataclass(frozen=True, slots=True)
class Otherwise:
    """True for messages that none of the conditions accepts."""

    conditions: tuple[Condition, ...]

    def __call__(self, message: Message) -> bool:
        return not any(condition(message) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class RouteBy:
    """True for messages for which a function returns a given value."""

    by: Key
    value: Value | None
    """The value of this route; ``None``: any value that is not in ``known``."""
    known: tuple[Value, ...]
    """The values of all routes."""
    complete: bool
    """Whether a value that is not in ``known`` is an error."""

    def __call__(self, message: Message) -> bool:
        """Whether the message is sent over this route. Raises ``ConfigError`` for a value that no
        route has, if ``complete``."""
        found = self.by(message)
        if found is None:
            return False
        if self.value is None:
            return found not in self.known
        if self.complete and found not in self.known:
            values = ", ".join(map(repr, self.known))
            raise ConfigError(
                f"with_route(by={function_name(self.by)}): got {found!r} for message "
                f"'{message.id}', expected {values}, or None for no listener; "
                "set 'otherwise' to route other values"
            )
        return found == self.value


def routes_by(
    sender: str,
    by: Key,
    routes: Mapping[str, Value] | Iterable[str],
    otherwise: str | None,
) -> dict[str, Condition]:
    """The condition of each listener of a node whose messages are routed by a value.

    Args:
        sender: the node whose messages are routed.
        by: gives the value of a message.
        routes: the value of each listener; without values, a listener's value is its name.
        otherwise: the listener of messages with another value; ``None``: they are an error.

    Raises:
        GraphError: a value is not a string, a whole number or a bool, or ``by`` is not a function.
    """
    if not callable(by):
        raise GraphError(
            f"routes from '{sender}': 'by' is a function from a message to a value, got a "
            f"{type(by).__name__}"
        )
    values = dict(routes) if isinstance(routes, Mapping) else {name: name for name in routes}
    for listener, value in values.items():
        if not isinstance(value, str | int):
            raise GraphError(
                f"route {sender} -> {listener}: with 'by', expected the value that sends a message "
                f"there, a string, a whole number or a bool, got a {type(value).__name__}"
            )
    known = tuple(dict.fromkeys(values.values()))
    ways: dict[str, Condition] = {
        listener: RouteBy(by, value, known, complete=otherwise is None)
        for listener, value in values.items()
    }
    if otherwise is not None:
        ways[otherwise] = RouteBy(by, None, known, complete=False)
    return ways


class ConditionNames:
    """Names of conditions: the name of the function, with ``#2`` and so on if several conditions
    share it.
    """

    def __init__(self) -> None:
        self._seen: dict[str, list[object]] = {}

    def of(self, condition: Condition) -> str:
        """The name of a condition, for pictures."""
        if isinstance(condition, Otherwise):
            return "otherwise"
        if isinstance(condition, RouteBy):
            named = self.function(condition.by)
            return "otherwise" if condition.value is None else f"{named}: {condition.value}"
        return self.function(condition)

    def function(self, function: object) -> str:
        """The name of one function."""
        name = function_name(function)
        seen = self._seen.setdefault(name, [])
        if function not in seen:
            seen.append(function)
        place = seen.index(function)
        return name if place == 0 else f"{name}#{place + 1}"


def function_name(function: object) -> str:
    """The name of a function; for other callables that of their class."""
    return str(getattr(function, "__name__", type(function).__name__))
