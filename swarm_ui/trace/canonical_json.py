"""Canonical JSON: equal records give equal bytes. Values that JSON cannot represent are refused.

Values that are equal in Python can differ in JSON: a default may be left out or given, and a number
may be an ``int``, a ``float`` or ``-0.0``. JSON also has no infinity, and msgspec would write
``null`` for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import copysign
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

_Rule = Callable[[Any], Any]


class Unwritable(ValueError):
    """A value inside a record cannot be written as JSON."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def within(self, outer: str) -> Unwritable:
        """The same error for the enclosing record: its path begins with ``outer``."""
        return Unwritable(outer + self.path, self.why)

    def __str__(self) -> str:
        return f"'{self.path.lstrip('.')}' is {self.why}"


def encoded(record: msgspec.Struct) -> bytes:
    """A record as JSON; equal records give equal bytes, and reading them gives an equal record.

    Raises:
        Unwritable: a number is infinite or not a number, or a text has a lone surrogate.
    """
    rule = _rule(type(record))
    plain = record if rule is None else rule(record)
    try:
        return msgspec.json.encode(plain, order="deterministic")
    except UnicodeEncodeError:
        raise _broken_text(plain) from None


@cache
def _rule(kind: Any) -> _Rule | None:
    """A function that converts values of a type to plain ones; ``None`` if they are plain."""
    if kind is float:
        return _number
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        rules = [rule for rule in map(_rule, args) if rule is not None]
        return _optional(rules[0]) if rules else None
    if origin is tuple:
        inner = _rule(args[0])
        return None if inner is None else _every(inner)
    if origin is dict:
        inner = _rule(args[1])
        return None if inner is None else _values(inner)
    return None


def _number(value: float) -> float:
    if value - value != 0.0:
        raise Unwritable("", f"{value} cannot be written as JSON; use None for an unknown number")
    if type(value) is float and (value or copysign(1.0, value) > 0):
        return value
    return float(value) + 0.0


def _optional(rule: _Rule) -> _Rule:
    return lambda value: None if value is None else rule(value)


def _every(rule: _Rule) -> _Rule:
    def plain(values: tuple[Any, ...]) -> tuple[Any, ...]:
        new: list[Any] = []
        try:
            for value in values:
                new.append(rule(value))  # in a loop: its length locates a wrong value
        except Unwritable as error:
            raise error.within(f"[{len(new)}]") from None
        same = all(a is b for a, b in zip(new, values, strict=True))
        return values if same else tuple(new)

    return plain


def _values(rule: _Rule) -> _Rule:
    def plain(values: dict[str, Any]) -> dict[str, Any]:
        new: dict[str, Any] = {}
        for key, value in values.items():
            try:
                new[key] = rule(value)
            except Unwritable as error:
                raise error.within(f"[{key!r}]") from None
        return new

    return plain


def _struct(kind: type[T]) -> Callable[[T], T] | None:
    fields: list[tuple[str, _Rule, Any]] = []
    for field in msgspec.structs.fields(kind):
        rule = _rule(field.type)
        # msgspec leaves a default out only if it is that very object: give it back. Of equal
        # records, one that came from another process has objects of its own, texts included.
        if rule is not None or _has_copies(field.default):
            fields.append((field.name, rule or _same, field.default))
    if not fields:
        return None

    def plain(record: T) -> T:
        changes: dict[str, Any] = {}
        for name, rule, default in fields:
            old = getattr(record, name)
            if old is default or old is None:
                continue
            try:
                new = rule(old)
            except Unwritable as error:
                raise error.within(f".{name}") from None
            if new == default:
                new = default
            if new is not old:
                changes[name] = new
        return msgspec.structs.replace(record, **changes) if changes else record

    return plain


def _has_copies(default: Any) -> bool:
    """Whether an equal value may be another object."""
    return isinstance(default, msgspec.Struct | str | tuple) and bool(default)


def _same(value: Any) -> Any:
    return value


def _broken_text(record: msgspec.Struct) -> Unwritable:
    """The text that has a lone surrogate, half of a character outside the basic plane."""
    pending: list[tuple[str, Any]] = [("", msgspec.to_builtins(record, builtin_types=(bytes,)))]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            pending += [(f"{path}.{key}", inside) for key, inside in value.items()]
            pending += [(f"{path}[a key]", key) for key in value]
        elif isinstance(value, list | tuple):
            pending += [(f"{path}[{i}]", inside) for i, inside in enumerate(value)]
        elif isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError as error:
                half = f"U+{ord(value[error.start]):04X}"
                return Unwritable(
                    path, f"a text with half a character ({half} at {error.start}); replace it"
                )
    raise AssertionError("no such text")
