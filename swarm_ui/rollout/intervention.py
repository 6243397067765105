"""Interventions: code that sees each decision before it is executed, such as a critic."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, runtime_checkable

import msgspec

from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.trace.records import Episode, Trace


class Intervention(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an intervention before a step is executed."""

    credit: tuple[tuple[float | None, ...], ...] | None = None
    """Credit of each message, ``[rounds, agents]``."""
    credit_source: str = ""
    """Name of the assigner of the credit."""
    rationale: tuple[str, ...] = ()
    """Rationale of the credit: a text for each round."""
    execute: Action | None = None
    """Action to execute instead of the decision; ``None``: the decision itself."""
    expert: Action | None = None
    """A right action in this state, by the environment's own solver; it is only recorded."""


class Intervene(Protocol):
    """Receives each decision while the environment is still in the state of that decision.

    On other machines a copy of it is called, in the process of the environment. So its random
    draws may depend only on its own seed, ``trace.run`` and ``trace.seed``, never on the order of
    the calls. If it keeps results of its own, it also implements :class:`KeepsNotes`.
    """

    def __call__(
        self, index: int, trace: Trace, environment: Environment
    ) -> Awaitable[Intervention | None]: ...


@runtime_checkable
class KeepsNotes(Protocol):
    """An intervention that keeps results in itself, which an episode's record does not contain.

    Both methods are called only if the episode was played in another process: ``take_notes`` on the
    copy in that process, when the episode has ended, and then ``add_notes`` on the original, with
    the same episode after the transport. The episode then contains new objects, so notes refer to
    decisions by their position in ``episode.steps``.
    """

    def take_notes(self, episode: Episode) -> object:
        """Remove and return the notes on this episode, which must be picklable; ``None`` if there
        are none.
        """
        ...

    def add_notes(self, episode: Episode, notes: object) -> None:
        """Keep the notes that ``take_notes`` returned for this episode."""
        ...
