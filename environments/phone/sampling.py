"""Random parameters whose values belong to exactly one split of the seeds.

Every value (a name, a title, a number) falls into a bucket by a checksum of its text, and each
split of the seeds draws from its own buckets only. So no value of a test episode occurs in a
training episode. This includes the values of unrelated records. Closed choices (which switch,
which day) are shared by all splits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import TypeVar
from zlib import crc32

import msgspec

from swarm_ui.environments.base import Split

T = TypeVar("T")

_OWNERS: tuple[Split, ...] = ("train",) * 5 + ("validation",) * 2 + ("test",) * 3
"""Bucket -> its split."""


def owner(value: str) -> Split:
    """The split a value belongs to."""
    return _OWNERS[crc32(value.encode()) % 10]


POOLS = msgspec.json.decode(
    files(__package__).joinpath("words.json").read_bytes(), type=dict[str, tuple[str, ...]]
)
"""Words of random parameters by kind. ``distractors`` are buttons that do nothing."""
FIRST, LAST, NOUNS, VERBS = (POOLS[name] for name in ("first", "last", "nouns", "verbs"))


class Sampler:
    """Draws random values of one split, each at most once."""

    def __init__(self, rng: random.Random, split: Split) -> None:
        self.rng = rng
        self.values: set[str] = set()
        """Everything drawn so far."""
        self._split = split

    def fresh(self, make: Callable[[], str]) -> str:
        """A value of this split that was not drawn before; ``make`` must have enough values."""
        values, split = self.values, self._split
        while True:
            value = make()
            if _OWNERS[crc32(value.encode()) % 10] == split and value not in values:
                values.add(value)
                return value

    def pick(self, choices: Sequence[T]) -> T:
        """One value of a closed set."""
        return choices[int(self.rng.random() * len(choices))]

    def first_name(self) -> str:
        return self.fresh(lambda: self.pick(FIRST))

    def full_name(self, first: str = "") -> str:
        """First and last name."""
        return self.fresh(lambda: f"{first or self.pick(FIRST)} {self.pick(LAST)}")

    def noun(self) -> str:
        return self.fresh(lambda: self.pick(NOUNS))

    def phrase(self, words: int = 2) -> str:
        random, count = self.rng.random, len(NOUNS)
        if words == 2:  # the most frequent case, so it is fast
            return self.fresh(
                lambda: f"{NOUNS[int(random() * count)]} {NOUNS[int(random() * count)]}"
            )
        return self.fresh(lambda: " ".join([self.pick(NOUNS) for _ in range(words)]))

    def title(self) -> str:
        """One or two nouns."""
        return self.noun() if self.rng.random() < 0.5 else self.phrase()

    def chore(self) -> str:
        """A verb and a noun."""
        return self.fresh(lambda: f"{self.pick(VERBS)} {self.pick(NOUNS)}")

    def time(self) -> str:
        """A time such as ``07:45``."""
        return self.fresh(
            lambda: f"{int(self.rng.random() * 24):02d}:{int(self.rng.random() * 60):02d}"
        )

    def amount(self) -> str:
        """An amount such as ``42.50``."""
        return self.fresh(
            lambda: f"{1 + int(self.rng.random() * 98)}.{int(self.rng.random() * 100):02d}"
        )

    def phone(self) -> str:
        """A telephone number such as ``555-0172``."""
        return self.fresh(lambda: f"555-{int(self.rng.random() * 10000):04d}")

    def email(self) -> str:
        return self.fresh(lambda: f"{self.pick(FIRST)}.{self.pick(LAST)}@mail.com")

    def address(self) -> str:
        """The address of a web page, such as ``tea-garden.com``."""
        return self.fresh(lambda: f"{self.pick(NOUNS)}-{self.pick(NOUNS)}.com")

    def street(self) -> str:
        """A street address such as ``17 walker street``."""
        return self.fresh(lambda: f"{1 + int(self.rng.random() * 99)} {self.pick(LAST)} street")

    def number(self) -> str:
        """A whole number from 2 to 120."""
        return self.fresh(lambda: str(2 + int(self.rng.random() * 119)))

    def servings(self) -> str:
        """From 1 to 8 people."""
        return str(1 + int(self.rng.random() * 8))

    def state(self) -> str:
        """Of a switch."""
        return self.pick(("off", "on"))
