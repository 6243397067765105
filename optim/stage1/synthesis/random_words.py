"""Random words for invented screens. Most are made up, so that a model must learn to match the
words of an instruction with those of the screen."""

from __future__ import annotations

import random
import string
from collections.abc import Sequence

_ONSETS = [*"bcdfghjklmnprstvwz", "br", "ch", "st", "tr"]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "en", "or"]
_SYLLABLES = [a + b for a in _ONSETS for b in _VOWELS]
_CHARACTERS = string.ascii_letters + string.digits


class WordSampler:
    """Samples words without repeating one, so that a label has one meaning on a screen."""

    def __init__(self, rng: random.Random, known: Sequence[str]) -> None:
        """``known``: ordinary words to mix in; the rest is made up."""
        self.rng = rng
        self._known = known
        self._used: set[str] = set()

    def word(self) -> str:
        for _ in range(50):
            drawn = self.any_word()
            if drawn.lower() not in self._used:
                break
        self._used.add(drawn.lower())
        return drawn

    def any_word(self) -> str:
        rng, kind = self.rng, self.rng.random()
        if kind < 0.4:
            made = "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(1, 3)))
            return made.capitalize() if rng.random() < 0.3 else made
        if kind < 0.6:
            return "".join(rng.choice(_CHARACTERS) for _ in range(rng.randint(2, 7)))
        if kind < 0.94:
            known = rng.choice(self._known)
            return known.capitalize() if rng.random() < 0.4 else known
        return str(rng.randint(0, 20) if rng.random() < 0.5 else rng.randint(21, 3000))

    def phrase(self, longer: float = 0.25) -> str:
        """One word, or with probability ``longer`` two or three."""
        count = 1 if self.rng.random() > longer else self.rng.randint(2, 3)
        return " ".join(self.word() for _ in range(count))

    def sentence(self, least: int, most: int) -> str:
        return " ".join(self.any_word() for _ in range(self.rng.randint(least, most)))

    def number(self) -> str:
        """A count, a time, an amount or a telephone number, as screens show them."""
        rng = self.rng
        return self.one_of(
            str(rng.randint(0, 99)),
            f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}",
            f"{rng.randint(1, 99)}.{rng.randint(0, 99):02d}",
            f"555-{rng.randint(1000, 9999)}",
        )

    def one_of(self, *texts: str) -> str:
        return self.rng.choice(texts)

    def quoted(self, text: str) -> str:
        """The text, in quotes with probability 0.6."""
        return f'"{text}"' if self.rng.random() < 0.6 else text
