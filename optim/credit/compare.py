"""Comparison of critics on the same recorded episodes: AUC, calibration and cost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from swarm_ui.credit import Credit, Critic
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.critic import calls_of, credit_of, name_of
from swarm_ui.optim.credit.figures import auc_by_bootstrap, calibration_error, inside_auc
from swarm_ui.stats import Interval
from swarm_ui.trace.records import Episode


class CriticComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One critic in a comparison; scores are in [0, 1]. AUCs are with intervals over episodes."""

    name: str
    scored: int
    """Number of messages that it scored."""
    auc: Interval | None
    """AUC of the score against the reference."""
    inside: Interval | None
    """Probability that, of a right and a wrong message in one decision, the right one has the
    higher score. 0.5: the score cannot tell them apart. ``None``: no decision has both."""
    outcome_auc: Interval | None
    """AUC of the score against the episode's outcome."""
    calibration: float | None
    """Expected calibration error. ``None`` for signed credit, which is not a probability, and
    without a reference."""
    calls: int | None
    """Number of calls to agents and models; ``None``: the critic does not count them."""
    seconds: float


async def compare_critics(
    episodes: Sequence[Episode], critics: Sequence[Critic], *, reference: Critic | None = None
) -> list[CriticComparison]:
    """Compare critics on recorded episodes, of which masked ones are left out.

    Args:
        episodes: what was played.
        critics: counterfactual ones among them ask their team again.
        reference: its credit counts as right, such as that of a
            :class:`~swarm_ui.optim.credit.scripted.ScriptedCritic`; 0.5 is neither right nor wrong.

    Raises:
        ConfigError: no episode was played without a fault.
    """
    played = [episode for episode in episodes if episode.success is not None]
    if not played:
        raise ConfigError(
            f"compare_critics: none of {len(episodes)} episodes ended without a fault; name a run "
            "or a file that has episodes"
        )
    truth = None if reference is None else await credit_of(reference, played)
    found = []
    for critic in critics:
        before, began = calls_of(critic), time.perf_counter()
        credit = await credit_of(critic, played)
        seconds = time.perf_counter() - began
        rows = list(_messages(credit, truth))
        known = [row for row in rows if row.right is not None]
        scores, right = [row.score for row in known], [bool(row.right) for row in known]
        signed = any(each.signed for each in credit)
        solved = [bool(played[row.episode].success) for row in rows]
        found.append(
            CriticComparison(
                name=name_of(critic),
                scored=len(rows),
                auc=auc_by_bootstrap(scores, right, [row.episode for row in known]),
                inside=inside_auc(
                    [(r.episode, (r.episode, r.step), bool(r.right), r.score) for r in known]
                ),
                outcome_auc=auc_by_bootstrap(
                    [row.score for row in rows], solved, [row.episode for row in rows]
                ),
                calibration=None if signed else calibration_error(scores, right),
                calls=None if before is None else (calls_of(critic) or 0) - before,
                seconds=seconds,
            )
        )
    return found


class _Message(NamedTuple):
    episode: int
    step: int
    score: float
    right: bool | None
    """Whether the reference judges it right; ``None``: it does not judge it."""


def _messages(credit: Sequence[Credit], truth: Sequence[Credit] | None) -> Iterator[_Message]:
    """All scored messages, in order."""
    for number, given in enumerate(credit):
        right = None if truth is None else truth[number].unit().values
        for k, matrix in enumerate(given.unit().values):
            for r, row in enumerate(matrix):
                for a, score in enumerate(row):
                    mark = None if right is None else right[k][r][a]
                    bit = None if mark is None or mark == 0.5 else mark > 0.5
                    if score is not None:
                        yield _Message(number, k, score, bit)
