"""Random values of invented records. As on the phone, the split of the seed decides the values.

Every kind has thousands of values, enough for a long list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from swarm_ui.environments.phone.invented.words import MONTHS, SYLLABLES
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.word_pools import NOUNS

_CODE_LETTERS = "ABCDEFGHKLMNPRSTUVWXYZ"


def made_up_word(sampler: Sampler) -> str:
    """A word of two or three syllables that means nothing."""
    count = 2 + int(sampler.rng.random() * 2)
    return "".join(sampler.pick(SYLLABLES) for _ in range(count))


def _between(sampler: Sampler, low: int, high: int) -> int:
    return low + int(sampler.rng.random() * (high - low + 1))


def _word(sampler: Sampler) -> str:
    return sampler.fresh(lambda: made_up_word(sampler))


def _thing(sampler: Sampler) -> str:
    def make() -> str:
        return sampler.pick(NOUNS) if sampler.rng.random() < 0.6 else made_up_word(sampler)

    return sampler.fresh(make)


def _title(sampler: Sampler) -> str:
    return sampler.phrase() if sampler.rng.random() < 0.6 else _thing(sampler)


def _phrase(sampler: Sampler) -> str:
    return sampler.phrase(3 if sampler.rng.random() < 0.2 else 2)


def _count(sampler: Sampler) -> str:
    return sampler.fresh(lambda: str(_between(sampler, 2, 3000)))


def _code(sampler: Sampler) -> str:
    def make() -> str:
        letters = sampler.pick(_CODE_LETTERS) + sampler.pick(_CODE_LETTERS)
        return f"{letters}-{_between(sampler, 10, 999)}"

    return sampler.fresh(make)


def _date(sampler: Sampler) -> str:
    def make() -> str:
        day, month = _between(sampler, 1, 28), sampler.pick(MONTHS)
        return f"{day} {month} {_between(sampler, 2001, 2060)}"

    return sampler.fresh(make)


def _share(sampler: Sampler) -> str:
    return sampler.fresh(lambda: f"{_between(sampler, 0, 99)}.{_between(sampler, 0, 99):02d}%")


def _mass(sampler: Sampler) -> str:
    return sampler.fresh(lambda: f"{_between(sampler, 1, 900)}.{_between(sampler, 0, 9)} kg")


VALUES: Mapping[str, Callable[[Sampler], str]] = {
    "phrase": _phrase,
    "title": _title,
    "thing": _thing,
    "word": _word,
    "chore": Sampler.chore,
    "person": Sampler.full_name,
    "time": Sampler.time,
    "amount": Sampler.amount,
    "count": _count,
    "phone": Sampler.phone,
    "email": Sampler.email,
    "street": Sampler.street,
    "code": _code,
    "date": _date,
    "share": _share,
    "mass": _mass,
}
"""Kind of value -> draws one."""
