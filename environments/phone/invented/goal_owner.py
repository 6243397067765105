"""The app and table of an invented task, and the wording of its goal."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.invented.invented_apps import InventedApp
from swarm_ui.environments.phone.invented.wordings import ClauseSet, both, phrase
from swarm_ui.environments.phone.invented.words import VALUE_OF
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Goal

_FORMS = {"time": "at {}", "date": "on {}", "amount": "for {}", "mass": "weighing {}"}
"""Kind of value -> a phrase with the value that does not name its field."""


class Owner(msgspec.Struct, frozen=True):
    """An app, one of its tables if the task is about records, and the wording of goals."""

    app: InventedApp
    table: Table | None
    wordings: ClauseSet
    part: bool = False
    """Whether its goals are parts of a compound goal."""

    @property
    def records(self) -> Table:
        """The table of the task's records; only for tasks about a table."""
        assert self.table is not None
        return self.table

    @property
    def mention(self) -> bool:
        """Whether a goal must name the app, because nothing else in the goal identifies it."""
        table = self.table
        return not (self.app.named and table is not None and table is self.app.app.tables[0])

    def slots(self, **words: str) -> dict[str, str]:
        """The words for the placeholders of a goal text."""
        found = {"app": self.app.name, **words}
        table = self.table
        if table is not None:
            found |= {"record": table.name, "delete": table.delete, "add": table.add}
            found |= {"edit": table.edit or "change", "add_verb": table.add.split()[0]}
        if found.get("add_verb") == "new":
            found["add_verb"] = "add"
        return found

    def text(self, kind: str, rng: random.Random, **words: str) -> str:
        """The text of a goal of this kind; see :func:`.wordings.phrase`."""
        slots = self.slots(**words)
        return phrase(
            kind, slots, rng, wordings=self.wordings, mention=self.mention, part=self.part
        )

    def half(self) -> Owner:
        """A copy for goals that are part of a compound goal."""
        return msgspec.structs.replace(self, part=True)


Make = Callable[[Owner, Sampler, Device], Goal]


def record(sampler: Sampler, table: Table) -> dict[str, str]:
    """A record of the table, with a random value for each field."""
    return {field.name: field.random_value(sampler) for field in table.fields}


def goal(text: str, **end: object) -> Goal:
    """A goal with this text; ``end``: other fields of :class:`Goal`."""
    return msgspec.structs.replace(Goal(words={"goal": text}), **end)


def free_fields(table: Table) -> tuple[str, ...]:
    """The names of the fields of the form that accept any text."""
    return tuple(field.name for field in table.form if field.kind == "text")


def self_telling(table: Table) -> dict[str, str]:
    """Fields that a goal need not name, because their values identify them; each with a phrase for
    its value."""
    forms = {f.name: _FORMS[VALUE_OF[f.name]] for f in table.form if VALUE_OF.get(f.name) in _FORMS}
    return forms | {f.name: "{}" for f in table.form if f.kind == "choice"}


def joined(first: Goal, second: Goal, owner: Owner, sampler: Sampler) -> Goal:
    """One goal with the conditions and the texts of both."""
    texts = first.words["goal"], second.words["goal"]
    text = both(*texts, sampler.rng, wordings=owner.wordings)
    return goal(text, wants=(*first.wants, *second.wants))
