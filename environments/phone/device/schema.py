"""The kinds of records that an app stores, and the words on the screens that show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.parameters import Sampler


class Field(msgspec.Struct, frozen=True):
    """One property of a record."""

    name: str
    kind: Literal["text", "choice", "switch"] = "text"
    choices: tuple[str, ...] = ()
    default: str = ""
    sample: Callable[[Sampler], str] | None = None
    """Draws a random value; ``None``: one of ``choices``, or a switch that is mostly off."""

    def random_value(self, sampler: Sampler) -> str:
        """A value for a random record."""
        if self.sample is not None:
            return self.sample(sampler)
        return sampler.pick(self.choices or ("off", "off", "on"))


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of record, and the texts of its screens."""

    name: str
    """The name of one record, such as ``"contact"``."""
    app: str
    fields: tuple[Field, ...]
    """The first is the title that lists show; a form cannot be saved without it."""
    trail: Path
    """Screens from the app's first one to the list of these records."""
    add: str = "add"
    save: str = "save"
    edit: str = "edit"
    """Label of the edit button; empty: records cannot be edited."""
    delete: str = "delete"
    cancel: str = "cancel"
    checklist: bool = False
    """Whether list rows have check boxes for the first switch, instead of opening the record."""

    @property
    def title(self) -> str:
        return self.fields[0].name

    @property
    def form(self) -> tuple[Field, ...]:
        """The fields that forms show."""
        return tuple(field for field in self.fields if field.kind != "switch")

    @property
    def switches(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.kind == "switch")

    def path(self, kind: str, row: int = 0) -> Path:
        """The screens that lead to a record, or to a form or dialog about it."""
        if kind in ("detail", "new"):
            return (*self.trail, self.screen(kind, row))
        between = self.screen("remove") if self.checklist else self.screen("detail", row)
        return (*self.trail, between, self.screen(kind, row))

    def screen(self, kind: str, row: int = 0) -> Screen:
        return Screen(self.app, kind, self.name, row)


def same_text(left: str, right: str) -> bool:
    """Whether two texts are equal apart from case and repeated spaces."""
    return left == right or left.casefold().split() == right.casefold().split()
