"""When a language model cannot be reached: its episodes wait, are played again, or end the run.

Agents, critic and adversary may all stand behind an endpoint, and an endpoint may be gone for a
while. An episode in which one of their calls went unanswered says nothing about the team, and a
decision that some of them missed is not the decision of that team. Both are played again from the
start once the model answers. Episodes are decided by their task and seed, so what is learned is
what would have been learned without the outage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from swarm_ui.errors import ModelError, ModelUnavailable
from swarm_ui.rollout.pool import Job
from swarm_ui.trace.records import Episode

Play = Callable[[Sequence[Job]], Awaitable[list[Episode]]]
"""Plays jobs; gives their episodes in the same order."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts, doubled each time."""
_AWAY = f"{ModelUnavailable.__name__}: "
_BY_A_MODEL = (
    "ModelError: ", "Refused: ", "RequestRejected: ", "NodeError: ", "NodeTimeout: ",
    "no agent answered",
)  # fmt: skip


class Played(NamedTuple):
    """What came of the jobs."""

    episodes: list[Episode]
    """In the order of the jobs."""
    again: int
    """How many of them are of a later attempt."""


def unanswered(episode: Episode) -> str | None:
    """The first call of an episode that a model out of reach left unanswered, in words.

    ``None``: there is none. A failure that a fallback made good is not counted.
    """
    said = [episode.fault]
    said += [call.error for record in episode.steps for call in record.trace.calls]
    return next((text for text in said if text is not None and _AWAY in text), None)


async def play_through(
    play: Play,
    jobs: Sequence[Job],
    *,
    patience: float,
    tell: Callable[[str], None] = lambda _: None,
) -> Played:
    """Play jobs, and those that an outage spoilt again until none is.

    While the model is gone, a single episode asks from time to time whether it is back.

    Args:
        play: plays jobs.
        jobs: what to play.
        patience: seconds to wait for a model, from when it went, or from when it last answered.
        tell: told when the waiting begins.

    Raises:
        ModelUnavailable: it did not come back.
        ModelError: no episode was whole, and it was models that failed, each for a reason that
            waiting does not mend.
    """
    clock = asyncio.get_running_loop().time
    episodes = await play(jobs)
    waiting = _spoilt(episodes)
    lost, began, pause = len(waiting), clock(), FIRST_PAUSE
    if waiting:
        tell(
            f"{len(waiting)} of {len(jobs)} episodes wait for a model that cannot be reached "
            f"(at most {patience:g} s): {unanswered(episodes[waiting[0]])}"
        )
    while waiting:
        left = patience - (clock() - began)
        if left <= 0:
            why = unanswered(episodes[waiting[0]]) or ""
            raise ModelUnavailable(
                f"{len(waiting)} of {len(jobs)} episodes were left unanswered for {patience:g} s; "
                f"expected a model that answers, got: {why.removeprefix(_AWAY)}"
            )
        await asyncio.sleep(min(pause, left))
        pause = min(LONGEST_PAUSE, 2.0 * pause)
        for some in (waiting[:1], waiting[1:]):
            for k, episode in zip(some, await play([jobs[k] for k in some]), strict=True):
                episodes[k] = episode
            if _spoilt([episodes[k] for k in some]):
                break
            began, pause = clock(), FIRST_PAUSE
        waiting = [k for k in waiting if unanswered(episodes[k]) is not None]
    _check_some(episodes)
    return Played(episodes, lost)


def _spoilt(episodes: Sequence[Episode]) -> list[int]:
    return [k for k, episode in enumerate(episodes) if unanswered(episode) is not None]


def _check_some(episodes: Sequence[Episode]) -> None:
    """Raise if models failed in such a way that nothing is left to learn from."""
    faults = [episode.fault for episode in episodes]
    whole = [fault for fault in faults if fault is None]
    ours = [fault for fault in faults if fault is not None and fault.startswith(_BY_A_MODEL)]
    if not whole and ours:
        raise ModelError(
            f"all {len(episodes)} episodes were lost to faults; expected models that answer, got: "
            f"{ours[0]}"
        )
