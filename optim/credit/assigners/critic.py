"""Credit from an environment that grades actions, and credit from the outcome only."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.credit import CreditTable, credited
from swarm_ui.errors import ConfigError
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.assigners.assigner import (
    as_matrix,
    proposal_messages,
    unparsed_messages,
    unscored,
)
from swarm_ui.trace.records import Episode, Trace

_CACHED_STATES = 50_000
_ENDED = {True: "the episode was solved", False: "the episode was not solved"}
_NEARER = {True: "nearer to success", False: "not nearer to success"}


@runtime_checkable
class Grader(Protocol):
    """The part of an environment that a scripted critic uses; see
    :class:`~swarm_ui.environment.Graded`."""

    def restore(self, state: object) -> Observation: ...

    def grade(self, action: Action) -> float: ...


class ScriptedCritic:
    """Grades each distinct proposal with its own environment, set to the same state.

    Grades are cached by episode and step (the name that a rollout gives its runs), history and
    screen. Together they determine the state of a deterministic environment. Errors, if there are
    any, are drawn once for each screen and action, so that an agent that repeats an action gets
    the same grade. Implements :class:`~swarm_ui.credit.CreditAssigner`.
    """

    calls = 0
    """Of models: none."""

    def __init__(
        self, make_environment: Callable[[], Grader], *, flips: float = 0.0, seed: int = 0
    ) -> None:
        """
        Args:
            make_environment: makes an environment that can restore the given snapshots. It is
                called once, when first needed.
            flips: share of grades to invert, in [0, 1].
            seed: decides which grades are inverted.
        """
        if not 0.0 <= flips <= 1.0:
            raise ConfigError(f"flips must be in [0, 1], got {flips}")
        self._make_environment = make_environment
        self._environment: Grader | None = None
        self._flips = flips
        self._seed = seed
        self._grades: dict[tuple[str, str], dict[ActionKey, float]] = {}

    @property
    def name(self) -> str:
        return f"scripted critic{f', {100 * self._flips:g} % flipped' if self._flips else ''}"

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """1.0 for a proposal that brings the state nearer to success, else 0.0.

        A reply without a valid action gets 0.0. A node that failed or abstained is unscored
        (``None``).

        Raises:
            ConfigError: no snapshot was given.
        """
        if state is None:
            raise ConfigError(
                f"{self.name}: no snapshot of the environment at run {trace.run}; it needs an "
                "environment with snapshot() and restore(). Use a language-model critic instead"
            )
        actions = {m.action.key: m.action for m in trace.messages if m.action is not None}
        verdicts = self._grade(actions, trace, state)
        noisy = {key: self._noisy(trace.observation, key, v) for key, v in verdicts.items()}
        values = {m.id: noisy[m.action.key] for m in trace.messages if m.action is not None}
        values |= dict.fromkeys(unparsed_messages(trace), 0.0)
        why = {
            m.id: _NEARER[verdicts[m.action.key] > 0]
            + (", turned round" if noisy[m.action.key] != verdicts[m.action.key] else "")
            for m in trace.messages
            if m.action is not None
        }
        why |= dict.fromkeys(unparsed_messages(trace), "no valid action")
        return CreditTable(
            values=as_matrix(trace, values), source=self.name, rationale=_by_round(trace, why)
        )

    def _grade(
        self, actions: dict[ActionKey, Action], trace: Trace, state: object
    ) -> dict[ActionKey, float]:
        """Grades without errors, from the cache if the episode has a name."""
        place = (trace.run, _digest(msgspec.structs.replace(trace.observation, png=None)))
        known = self._grades.setdefault(place, {}) if trace.run else {}
        missing = sorted(actions.keys() - known.keys(), key=repr)
        if missing:
            if self._environment is None:
                self._environment = self._make_environment()
            self._environment.restore(state)
            known.update((key, self._environment.grade(actions[key])) for key in missing)
        if len(self._grades) > _CACHED_STATES:
            self._grades.clear()
        return {key: known[key] for key in actions}

    def _noisy(self, observation: Observation, key: ActionKey, verdict: float) -> float:
        if not self._flips:
            return verdict
        # Without the history, so that the same screen gives the same error later.
        screen = _digest(msgspec.structs.replace(observation, history=(), png=None))
        flipped = derive(self._seed, screen, repr(key)) / 2**53 < self._flips
        return 1.0 - verdict if flipped else verdict


class OutcomeCredit:
    """The episode's outcome as the credit of all its messages: learning *without* a critic.

    Implements :class:`~swarm_ui.credit.EpisodeAssigner`.
    """

    name = "outcome"
    calls = 0
    """Of models: none."""

    async def assess(
        self, episode: Episode, states: Sequence[object] | None = None
    ) -> tuple[CreditTable, ...]:
        """1.0 or 0.0 for all proposals and unreadable replies."""
        return self.tables(episode)

    def tables(self, episode: Episode) -> tuple[CreditTable, ...]:
        """As :meth:`assess`, but synchronous."""
        if episode.success is None:
            return unscored(episode, self.name)
        value = float(episode.success)
        tables = []
        for record in episode.steps:
            values = dict.fromkeys(proposal_messages(record.trace), value)
            matrix = as_matrix(record.trace, values)
            why = (_ENDED[episode.success],) * record.trace.rounds
            tables.append(CreditTable(values=matrix, source=self.name, rationale=why))
        return tuple(tables)

    def credit(self, episode: Episode) -> Episode:
        """The episode with this credit in its steps; a masked one is not changed."""
        return episode if episode.success is None else credited(episode, self.tables(episode))


def _by_round(trace: Trace, why: Mapping[str, str]) -> tuple[str, ...]:
    """Reasons by message id as one text for each round, grouped by reason."""
    texts = []
    for round in range(trace.rounds):
        agents: dict[str, list[str]] = {}
        for message in trace.messages:
            if message.round == round and message.sender in trace.agents and message.id in why:
                agents.setdefault(why[message.id], []).append(message.sender)
        texts.append("; ".join(f"{', '.join(names)}: {reason}" for reason, names in agents.items()))
    return tuple(texts)


def _digest(observation: Observation) -> str:
    return hashlib.blake2b(msgspec.json.encode(observation), digest_size=16).hexdigest()
