"""What a task wants of a device. The same description drives the success check and the solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from swarm_ui.environments.phone.device.screen import Effect, Path


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
    tap: Effect | None = None
    """What makes the record; ``None``: saving the form."""
    form: Mapping[str, str] = {}
    """What must be filled in or chosen before ``tap``, where it is not ``fields``."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Other values in an existing record."""

    table: str
    row: int
    fields: Mapping[str, str]
    source: Source | None = None
    via: str = ""
    """App to do it in, for records that several apps show."""


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    """A record gone."""

    table: str
    row: int
    via: str = ""


class Configure(msgspec.Struct, frozen=True, kw_only=True):
    """A switch or choice of the device."""

    key: str
    value: str


class AppInFront(msgspec.Struct, frozen=True, kw_only=True):
    """An app in front."""

    app: str


class ScreenInFront(msgspec.Struct, frozen=True, kw_only=True):
    """A screen in front, with nothing over it."""

    path: Path


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """What an app is permitted, such as ``"maps location"``; grants not wanted may change."""

    key: str
    value: Literal["ask", "allow", "deny"]


class Dismiss(msgspec.Struct, frozen=True, kw_only=True):
    """A notification gone. If a task wants this of one, all others must stay."""

    notice: int


Want = Create | Change | Delete | Configure | AppInFront | ScreenInFront | Permit | Dismiss


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """The end state of a task. Whatever it does not want changed must be as it was."""

    words: Mapping[str, str]
    """Values for the phrasings of the goal."""
    wants: tuple[Want, ...] = ()
    answer: str | None = None
    """What must be answered; ``None``: no answer is wanted."""
    look: Path = ()
    """Screens to where the answer, or the lack of what the goal names, can be seen."""
    sources: tuple[Source, ...] = ()
    """Values that must be looked up before the answer can be given."""
    infeasible: bool = False
    """The goal cannot be reached, and the right end is to say so."""
