"""Credit without a critic: from progress, from new screens, and from agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import msgspec

from swarm_ui.credit import CreditTable, Matrix, as_matrix
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.assigners.assigner import (
    EpisodeCredit,
    States,
    Tables,
    check_states,
    proposal_messages,
)
from swarm_ui.trace.records import Episode, StepRecord, Trace


class ProgressCredit(EpisodeCredit):
    """The change of a measure of progress, for the messages that proposed the executed action.

    The credit is signed. Other proposals were not executed, so they are unscored. The last step
    gets 1 if the episode succeeded and -1 if it ended without success. If the step limit ended
    the episode, the last step is unscored, because nothing was measured after it.
    """

    calls = 0

    def __init__(
        self, measure: Callable[[object], float], *, scale: float = 1.0, name: str = "progress"
    ) -> None:
        """
        Args:
            measure: the progress of a snapshot of the environment; more is better.
            scale: the change that gives a credit of 1. Larger changes are clipped to it.
        """
        if scale <= 0:
            raise ConfigError(f"ProgressCredit: scale must be above 0, got {scale}")
        self._measure, self._scale, self._name = measure, scale, name

    @property
    def name(self) -> str:
        return self._name

    async def _assess(self, episode: Episode, states: States) -> Tables:
        if states is None:
            raise ConfigError(
                f"{self.name}: episode {episode.task}/{episode.seed} has no snapshots; see "
                "swarm_ui.optim.credit.assigners.assigner.replay_snapshots"
            )
        check_states(episode, states, self.name)
        far = [self._measure(state) for state in states]
        changes: list[float | None] = [
            max(-1.0, min(1.0, (b - a) / self._scale)) for a, b in pairwise(far)
        ]
        last = episode.steps[-1] if episode.steps else None
        ended = last is not None and (last.terminated or episode.success)
        changes.append((1.0 if episode.success else -1.0) if ended else None)
        return tuple(
            CreditTable(values=_to_movers(record, change), source=self.name, signed=True)
            for record, change in zip(episode.steps, changes, strict=False)
        )


class NoveltyCredit(EpisodeCredit):
    """1 for proposals of an executed action that led to a new screen of the episode, else 0.

    An action without effect, or one that returns to an earlier screen, gives 0. The screen after
    the last step is not recorded, so that step gets the outcome.
    """

    name = "new screen"
    calls = 0

    async def _assess(self, episode: Episode, states: States) -> Tables:
        screens = [screen_key(record.trace.observation) for record in episode.steps]
        new = [screen not in screens[:k] for k, screen in enumerate(screens)][1:]
        return tuple(
            CreditTable(values=_to_movers(record, float(value)), source=self.name)
            for record, value in zip(episode.steps, [*new, bool(episode.success)], strict=False)
        )


class AgreementCredit:
    """The share of the other agents that proposed the same in the last round (self-consistency).

    Implements :class:`~swarm_ui.credit.CreditAssigner`. A team of one agent is unscored.
    """

    name = "agreement"
    calls = 0

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """See the class. A reply without a proposal gets 0."""
        final = [m for m in trace.messages if m.round == trace.rounds - 1]
        said = {m.sender: m.action.key for m in final if m.action and m.sender in trace.agents}
        votes = Counter(said.values())
        values = {}
        for id in proposal_messages(trace):
            message = trace.message(id)
            others = len(said) - (message.sender in said)
            if message.sender not in trace.agents or others == 0:
                continue
            same = 0
            if message.action is not None:
                own = said.get(message.sender) == message.action.key
                same = votes[message.action.key] - own
            values[id] = same / others
        return CreditTable(values=as_matrix(trace, values), source=self.name)


def screen_key(observation: Observation) -> bytes:
    """A key of a screen: all of the observation but the history and the screenshot."""
    return msgspec.json.encode(msgspec.structs.replace(observation, history=(), png=None))


def _to_movers(record: StepRecord, value: float | None) -> Matrix:
    """The value for the messages that proposed the executed action."""
    done, trace = record.executed, record.trace
    if done is None or value is None:
        return as_matrix(trace, {})
    movers = [m.id for m in trace.messages if m.action is not None and m.action.key == done.key]
    return as_matrix(trace, dict.fromkeys(movers, value))
