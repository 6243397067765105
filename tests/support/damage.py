"""Damage for fuzzing: parts of a file that are cut out, overwritten, repeated or added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st


class Edit(NamedTuple):
    """A part of a file, which is replaced."""

    at: float
    """Where it begins, as a share of the file."""
    length: int
    times: int
    """How often the part stands there afterwards."""
    added: bytes

    def apply(self, data: bytes) -> bytes:
        at = int(self.at * len(data))
        end = at + self.length
        return data[:at] + data[at:end] * self.times + self.added + data[end:]


def edits(added: Sequence[bytes] = (b"",), most: int = 3) -> st.SearchStrategy[list[Edit]]:
    """Up to ``most`` edits; ``added``: what is put in besides any bytes."""
    at, length = st.floats(0, 1, exclude_max=True), st.integers(0, 60)
    new = st.sampled_from(added) | st.binary(max_size=8)
    return st.lists(st.builds(Edit, at, length, st.integers(0, 2), new), max_size=most)


def damaged(data: bytes, changes: Sequence[Edit]) -> bytes:
    """The file after all edits."""
    for change in changes:
        data = change.apply(data)
    return data
