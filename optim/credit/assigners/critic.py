"""Critics that know the solution (with or without simulated errors), and credit from the outcome
alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.credit import (
    SOLVER_CREDIT,
    CreditAssigner,
    CreditTable,
    as_matrix,
    assigned,
    credited,
)
from swarm_ui.environment import Graded, check_factory
from swarm_ui.errors import ConfigError
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.assigners.assigner import (
    EpisodeCredit,
    States,
    Tables,
    calls_of,
    proposal_messages,
    unparsed_messages,
)
from swarm_ui.optim.credit.assigners.progress_credit import screen_key
from swarm_ui.trace.records import Call, Episode, Trace

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

    Grades are cached by run name (a rollout names runs by episode and step), history and screen.
    Together they determine the state of a deterministic environment. Simulated errors are drawn
    once for each screen and action, so a repeated action gets the same grade. Implements
    :class:`~swarm_ui.credit.CreditAssigner`.
    """

    calls = 0
    """Number of model calls; always 0."""

    def __init__(
        self,
        make_environment: Callable[[], Grader],
        *,
        flips: float = 0.0,
        seed: int = 0,
        abstentions: bool = False,
    ) -> None:
        """
        Args:
            make_environment: makes an environment that can restore the given snapshots. It is
                called once, when first needed.
            flips: share of grades to invert, in [0, 1].
            seed: decides which grades are inverted.
            abstentions: whether right abstentions get credit. It needs an environment with a
                solver.
        """
        if not 0.0 <= flips <= 1.0:
            raise ConfigError(f"ScriptedCritic: flips must be in [0, 1], got {flips}")
        check_factory(make_environment)
        self.name = SOLVER_CREDIT + (f", {100 * flips:g} % flipped" if flips else "")
        self._make_environment, self._flips, self._seed = make_environment, flips, seed
        self._abstentions = abstentions
        self._environment: Grader | None = None
        self._grades: dict[tuple[str, str], dict[ActionKey, float]] = {}

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """1.0 for a proposal that brings the state nearer to success, else 0.0.

        A reply without a valid action gets 0.0. A node that failed is unscored, and so is an
        abstention. With ``abstentions`` it gets 1.0 if the agent could refer neither to the
        solver's next action nor to a right proposal of this decision.
        Raises ``ConfigError`` without a snapshot.
        """
        if state is None:
            raise ConfigError(
                f"{self.name}: no snapshot of the environment at run {trace.run}; it needs an "
                "environment with snapshot() and restore(). Use a language-model critic instead"
            )
        actions = {m.action.key: m.action for m in trace.messages if m.action is not None}
        verdicts = self._grade(actions, trace, state)
        values = dict.fromkeys(unparsed_messages(trace), 0.0)
        why = dict.fromkeys(values, "no valid action")
        for message in trace.messages:
            if message.action is not None:
                verdict = verdicts[message.action.key]
                values[message.id] = given = self._noisy(trace, message.action.key, verdict)
                turned = ", inverted" if given != verdict else ""
                why[message.id] = _NEARER[verdict > 0] + turned
        if self._abstentions:
            right = [actions[key] for key, verdict in verdicts.items() if verdict > 0]
            for id in self._right_abstentions(trace, right, state):
                values[id], why[id] = 1.0, "saw no right action"
        return CreditTable(
            values=as_matrix(trace, values), source=self.name, rationale=_by_round(trace, why)
        )

    def _right_abstentions(self, trace: Trace, right: Sequence[Action], state: object) -> list[str]:
        """Ids of the abstentions of agents that could refer to no right action."""
        passed = set(trace.passed)
        calls = [call for call in trace.calls if call.message in passed]
        if not calls:
            return []
        environment = self._at(state)
        if not isinstance(environment, Graded):
            raise ConfigError(
                f"{self.name}: abstentions need an environment with expert(), and "
                f"{type(environment).__name__} has none. Leave abstentions out"
            )
        known = [*right, environment.expert()]
        return [call.message for call in calls if not _any_reachable(trace, call, known)]

    def _at(self, state: object) -> Grader:
        """The critic's own environment, restored to this state."""
        if self._environment is None:
            self._environment = self._make_environment()
        self._environment.restore(state)
        return self._environment

    def _grade(
        self, actions: dict[ActionKey, Action], trace: Trace, state: object
    ) -> dict[ActionKey, float]:
        """The environment's grades, before simulated errors; cached if the episode has a name."""
        screen = msgspec.json.encode(msgspec.structs.replace(trace.observation, png=None))
        place = (trace.run, digest(screen))
        known = self._grades.setdefault(place, {}) if trace.run else {}
        missing = sorted(actions.keys() - known.keys(), key=repr)
        if missing:
            environment = self._at(state)
            known.update((key, environment.grade(actions[key])) for key in missing)
        if len(self._grades) > _CACHED_STATES:
            self._grades.clear()
        return {key: known[key] for key in actions}

    def _noisy(self, trace: Trace, key: ActionKey, verdict: float) -> float:
        if not self._flips:
            return verdict
        # Without the history, so that the same screen gives the same error later.
        screen = digest(screen_key(trace.observation))
        flipped = derive(self._seed, screen, repr(key)) / 2**53 < self._flips
        return 1.0 - verdict if flipped else verdict


class OutcomeCredit(EpisodeCredit):
    """The episode's outcome as the credit of all its messages: learning *without* a critic.

    1.0 or 0.0 for all proposals and unreadable replies.
    """

    name = "outcome"
    calls = 0
    """Number of model calls; always 0."""

    def __init__(self, *, abstentions: bool = False) -> None:
        """``abstentions``: whether abstentions in solved episodes get credit 1.0. Those in failed
        episodes get none."""
        self._abstentions = abstentions

    async def _assess(self, episode: Episode, states: States) -> Tables:
        return self._tables(episode)

    def _tables(self, episode: Episode) -> Tables:
        value, why = float(bool(episode.success)), _ENDED[bool(episode.success)]
        passes = self._abstentions and bool(episode.success)

        def credited_in(trace: Trace) -> tuple[str, ...]:
            return (*proposal_messages(trace), *(trace.passed if passes else ()))

        return tuple(
            CreditTable(
                values=as_matrix(trace, dict.fromkeys(credited_in(trace), value)),
                source=self.name,
                rationale=(why,) * trace.rounds,
            )
            for trace in (record.trace for record in episode.steps)
        )

    def credit(self, episode: Episode) -> Episode:
        """The episode with this credit in its steps; a masked one is not changed."""
        return episode if episode.success is None else credited(episode, self._tables(episode))


def _any_reachable(trace: Trace, call: Call, actions: Sequence[Action]) -> bool:
    """Whether the agent of a call could propose any of these actions of the screen."""
    view, decision = trace.view(call), trace.decision(call)
    told = [view.from_screen_with_hidden(action) for action in actions]
    return any(action is not None and decision.reaches(action) for action in told)


def _by_round(trace: Trace, why: Mapping[str, str]) -> tuple[str, ...]:
    """One text for each round, which groups the agents by the reason that their message got."""
    texts = []
    for round in range(trace.rounds):
        agents: dict[str, list[str]] = {}
        for message in trace.messages:
            if message.round == round and message.sender in trace.agents and message.id in why:
                agents.setdefault(why[message.id], []).append(message.sender)
        texts.append("; ".join(f"{', '.join(names)}: {reason}" for reason, names in agents.items()))
    return tuple(texts)


def digest(data: bytes) -> str:
    """A short hash of the data of a screen, which identifies the screen."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class NoisyCritic:
    """Adds errors to the scores of a critic.

    An error is drawn once for each screen and proposal, because a real critic repeats its errors.
    With ``fresh`` it is drawn for each message instead, so errors average out. Implements
    :class:`~swarm_ui.credit.CreditAssigner`.
    """

    def __init__(
        self,
        critic: CreditAssigner,
        *,
        flip: float = 0.0,
        bias: float = 0.0,
        anti: bool = False,
        fresh: bool = False,
        seed: int = 0,
    ) -> None:
        """
        Args:
            critic: gives the scores without errors.
            flip: share of scores ``s`` that become ``1 - s``.
            bias: added to every score, which is then clipped to [0, 1].
            anti: whether every score is inverted first, so that the critic prefers wrong actions.
            fresh: see the class.
            seed: decides which scores are inverted.
        """
        if not 0.0 <= flip <= 1.0:
            raise ConfigError(f"NoisyCritic: flip must be in [0, 1], got {flip}")
        if not -1.0 <= bias <= 1.0:
            raise ConfigError(f"NoisyCritic: bias must be in [-1, 1], got {bias}")
        self._critic, self._flip, self._bias = critic, flip, bias
        self._anti, self._fresh, self._seed = anti, fresh, seed
        parts = [
            f"{100 * flip:g} % {'fresh ' if fresh else ''}errors" if flip else "",
            f"bias {bias:+g}" if bias else "",
            "inverted" if anti else "",
        ]
        self.name = ", ".join([critic.name, *filter(None, parts)])

    @property
    def calls(self) -> int | None:
        """Number of calls of the critic so far, or ``None`` if it does not count them."""
        return calls_of(self._critic)

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """The critic's table with errors. Unscored messages stay unscored."""
        table = await assigned(self._critic, trace, state)
        said = {(m.round, m.sender): m for m in trace.messages}
        screen = digest(screen_key(trace.observation))

        def worse(score: float | None, round: int, agent: str) -> float | None:
            if score is None:
                return None
            message = said[round, agent]
            what = repr(message.action.key) if message.action else message.content
            if self._fresh:
                what = f"{trace.run}/{trace.seed}/{message.id}"
            score = 1.0 - score if self._anti else score
            if derive(self._seed, screen, what) / 2**53 < self._flip:
                score = 1.0 - score
            return max(0.0, min(1.0, score + self._bias))

        values = tuple(
            tuple(worse(v, r, agent) for v, agent in zip(row, trace.agents, strict=True))
            for r, row in enumerate(table.values)
        )
        return msgspec.structs.replace(table, values=values, source=self.name, errors=None)
