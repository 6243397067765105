"""Facts: values that a task needs from an app, and the rules that turn them into fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Literal

import msgspec

from swarm_ui.environments.phone.apps.messages import MESSAGE
from swarm_ui.environments.phone.apps.record_apps import CONTACT, EVENT, NOTE
from swarm_ui.environments.phone.apps.search_apps import PAGE
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.parameters import Sampler

Rule = Literal["join", "sum", "least", "most", "first", "last"]
"""How the facts give the value that the goal needs. ``join``: all values with spaces between them
(one fact: its value). ``sum``, ``least`` and ``most`` are for amounts; ``first`` and ``last`` are
for times such as ``07:45``."""


class Fact(msgspec.Struct, frozen=True):
    """One field of a record that the goal names by its title."""

    table: Table
    field: str
    name: Callable[[Sampler], str]
    """Draws the title of the record, which is in the goal."""
    value: Callable[[Sampler], str]
    """Draws the value, which is only on the screen of the app. Wrong values are drawn alike."""

    @property
    def app(self) -> str:
        return self.table.app


class Fill(msgspec.Struct, frozen=True):
    """The rule that computes a field of the new record from facts."""

    rule: Rule
    of: tuple[int, ...]
    """Positions in the facts of the template."""


PHONE = Fact(CONTACT, "phone", Sampler.full_name, Sampler.phone)
EMAIL = Fact(CONTACT, "email", Sampler.full_name, Sampler.email)
PAGE_PHONE = Fact(PAGE, "phone", Sampler.address, Sampler.phone)
PRICE = Fact(PAGE, "price", Sampler.address, Sampler.amount)
OPENS = Fact(PAGE, "opens", Sampler.address, Sampler.time)
NOTE_EMAIL = Fact(NOTE, "body", Sampler.phrase, Sampler.email)
NOTE_AMOUNT = Fact(NOTE, "body", Sampler.phrase, Sampler.amount)
NOTE_TEXT = Fact(NOTE, "body", Sampler.phrase, Sampler.phrase)
SENT_AMOUNT = Fact(MESSAGE, "text", Sampler.full_name, Sampler.amount)
SENT_CHORE = Fact(MESSAGE, "text", Sampler.full_name, Sampler.chore)
TIME = Fact(EVENT, "time", Sampler.phrase, Sampler.time)
PLACE = Fact(EVENT, "place", Sampler.phrase, Sampler.phrase)

_RULES: Mapping[Rule, Callable[[Sequence[str]], str]] = {
    "join": " ".join,
    "sum": lambda values: str(sum(map(Decimal, values), Decimal())),
    "least": lambda values: min(values, key=Decimal),
    "most": lambda values: max(values, key=Decimal),
    "first": min,
    "last": max,
}


def computed(rule: Rule, values: Sequence[str]) -> str:
    """The text of a field.

    Raises:
        decimal.InvalidOperation: a rule for amounts got a value that is not an amount.

    Examples:
        >>> computed("sum", ["12.50", "7.25"]), computed("first", ["16:40", "09:05"])
        ('19.75', '09:05')
    """
    return _RULES[rule](values)
