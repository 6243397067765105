"""A compact form of JSON values: long lists are stored by column, and equal columns once.

Outcomes of test episodes are most of the files of a study. They are lists of objects or of tuples
with the same tasks and seeds in every file, and with outcomes that are 1.0, 0.0 or null. The form
loses nothing: :func:`unpacked` gives equal values of equal types in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

_LONG = 8
"""Shorter lists stay as they are."""
_ROWS, _TUPLES, _COLUMN, _OUTCOMES, _EQUAL = "$rows", "$tuples", "$column", "$outcomes", "$equal"
_DIGITS = {"0.0": "0", "1.0": "1", "None": "-"}
_VALUES: dict[str, float | None] = {"0": 0.0, "1": 1.0, "-": None}


class Columns:
    """The columns that several values share."""

    def __init__(self, columns: Sequence[Any] = ()) -> None:
        self.all: list[Any] = list(columns)
        self._places: dict[bytes, int] = {}

    def packed(self, value: Any) -> Any:
        """The compact form of a JSON value; its long columns are added to :attr:`all`."""
        if isinstance(value, dict):
            assert not any(key.startswith("$") for key in value), "a key that begins with $"
            return {key: self.packed(each) for key, each in value.items()}
        if not isinstance(value, list):
            return value
        if len(value) < _LONG:
            return [self.packed(each) for each in value]
        if value[0] and all(
            isinstance(each, dict) and list(each) == list(value[0]) for each in value
        ):
            return {_ROWS: {key: self.packed([each[key] for each in value]) for key in value[0]}}
        if all(isinstance(each, list) and len(each) == len(value[0]) > 0 for each in value):
            return {_TUPLES: [self.packed(list(each)) for each in zip(*value, strict=True)]}
        if any(isinstance(each, dict | list) for each in value):
            return [self.packed(each) for each in value]
        return self._column(value)

    def unpacked(self, value: Any) -> Any:
        """The JSON value of a compact form."""
        if isinstance(value, list):
            return [self.unpacked(each) for each in value]
        if not isinstance(value, dict):
            return value
        if _ROWS in value:
            names = list(value[_ROWS])
            columns = [self.unpacked(each) for each in value[_ROWS].values()]
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        if _TUPLES in value:
            columns = [self.unpacked(each) for each in value[_TUPLES]]
            return [list(row) for row in zip(*columns, strict=True)]
        if _OUTCOMES in value:
            return [_VALUES[digit] for digit in value[_OUTCOMES]]
        if _EQUAL in value:
            what, count = value[_EQUAL]
            return [what] * count
        if _COLUMN in value:
            return list(self.all[value[_COLUMN]])
        return {key: self.unpacked(each) for key, each in value.items()}

    def _column(self, values: list[Any]) -> Any:
        if all(repr(each) in _DIGITS for each in values):
            return {_OUTCOMES: "".join(_DIGITS[repr(each)] for each in values)}
        if len({msgspec.json.encode(each) for each in values}) == 1:
            return {_EQUAL: [values[0], len(values)]}
        place = self._places.setdefault(msgspec.json.encode(values), len(self.all))
        if place == len(self.all):
            self.all.append(values)
        return {_COLUMN: place}
