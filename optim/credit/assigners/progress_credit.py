"""Credit from what a decision changed, or from who agrees: cheap, and no critic is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from swarm_ui.credit import CreditTable
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.assigners.assigner import (
    as_matrix,
    check_states,
    proposal_messages,
    unscored,
)
from swarm_ui.trace.records import Episode, StepRecord, Trace


class ProgressCredit:
    """The change of a measure of progress, for those who proposed what was executed; signed.

    What others proposed was never tried, so it stays unscored. The last step gets 1 if the episode
    succeeded and -1 if it was ended without success; cut off by the step limit it is unscored,
    since nothing was measured after it. Implements :class:`~swarm_ui.credit.EpisodeAssigner`.
    """

    calls = 0

    def __init__(
        self, measure: Callable[[object], float], *, scale: float = 1.0, name: str = "progress"
    ) -> None:
        """
        Args:
            measure: how far a snapshot of the environment is on the way; more is better.
            scale: a change so large is a credit of 1; larger ones count no more.
        """
        if scale <= 0:
            raise ConfigError(f"ProgressCredit: scale must be above 0, got {scale}")
        self._measure, self._scale, self.name = measure, scale, name

    async def assess(
        self, episode: Episode, states: Sequence[object] | None = None
    ) -> tuple[CreditTable, ...]:
        """See the class."""
        if episode.success is None:
            return unscored(episode, self.name)
        if states is None:
            raise ConfigError(
                f"{self.name}: episode {episode.task}/{episode.seed} comes without snapshots; see "
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


class NoveltyCredit:
    """1 for who proposed what led to a screen not yet seen in the episode, 0 for what led to one
    seen before: an action without effect, or a walk in a circle.

    Of the last step nothing is seen, so it gets the outcome. Needs nothing but the trace.
    Implements :class:`~swarm_ui.credit.EpisodeAssigner`.
    """

    name = "new screen"
    calls = 0

    async def assess(
        self, episode: Episode, states: Sequence[object] | None = None
    ) -> tuple[CreditTable, ...]:
        """See the class."""
        if episode.success is None:
            return unscored(episode, self.name)
        screens = [screen_key(record.trace.observation) for record in episode.steps]
        tables = []
        for k, record in enumerate(episode.steps):
            last = k + 1 == len(screens)
            value = float(episode.success if last else screens[k + 1] not in screens[: k + 1])
            tables.append(CreditTable(values=_to_movers(record, value), source=self.name))
        return tuple(tables)


class AgreementCredit:
    """The share of the others, in the last round, who proposed the same: self-consistency.

    Implements :class:`~swarm_ui.credit.CreditAssigner`; a team of one is unscored.
    """

    name = "agreement"
    calls = 0

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """See the class; what is no proposal is agreed with by nobody."""
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
    """What makes two screens the same: all but the history and the picture."""
    return msgspec.json.encode(msgspec.structs.replace(observation, history=(), png=None))


def _to_movers(record: StepRecord, value: float | None) -> tuple[tuple[float | None, ...], ...]:
    """The value for the messages that proposed what was executed."""
    done = record.executed
    if done is None or value is None:
        return as_matrix(record.trace, {})
    movers = [
        m.id for m in record.trace.messages if m.action is not None and m.action.key == done.key
    ]
    return as_matrix(record.trace, dict.fromkeys(movers, value))
