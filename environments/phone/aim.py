"""What a task wants of a device. The same description drives the success check and the solver."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from swarm_ui.environments.phone.screen import Path


class Source(msgspec.Struct, frozen=True):
    """Where a value must be looked up (and copied) before it can be written elsewhere."""

    table: str
    row: int
    field: str
    value: str


class Create(msgspec.Struct, frozen=True, kw_only=True):
    """A new record with these values; fields that are not named may hold anything."""

    table: str
    fields: Mapping[str, str]
    source: Source | None = None
    path: Path = ()
    """Screens to the form; empty: the usual ones."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Other values in an existing record."""

    table: str
    row: int
    fields: Mapping[str, str]
    source: Source | None = None


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    """A record gone."""

    table: str
    row: int


class Put(msgspec.Struct, frozen=True, kw_only=True):
    """A switch or choice of the device."""

    key: str
    value: str


class Front(msgspec.Struct, frozen=True, kw_only=True):
    """An app in front."""

    app: str


Want = Create | Change | Delete | Put | Front


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """The end state of a task. Whatever it does not want changed must be as it was."""

    words: Mapping[str, str]
    """Values for the phrasings of the goal."""
    wants: tuple[Want, ...] = ()
    answer: str | None = None
    """What must be answered; ``None``: no answer is wanted."""
    look: Path = ()
    """Screens to where the answer, or the lack of what the goal names, can be seen."""
    infeasible: bool = False
    """The goal cannot be reached, and the right end is to say so."""


def same(left: str, right: str) -> bool:
    """Texts that a person would take for equal: without case and surplus blanks."""
    return left == right or left.casefold().split() == right.casefold().split()
