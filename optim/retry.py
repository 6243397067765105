"""Retries of episodes in which a language model could not be reached.

Agents, critic and adversary may use an endpoint, which may be unreachable for a while. An episode
in which one of their calls got no answer gives no information about the team. Such episodes are
played again from the start when the model answers. Task and seed determine an episode, so the
training result is the same as without the interruption.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from swarm_ui.errors import Failure, FailureKind, ModelError, ModelUnavailable
from swarm_ui.rollout import Job
from swarm_ui.trace.records import Episode

Play = Callable[[Sequence[Job]], Awaitable[list[Episode]]]
"""Plays jobs; gives their episodes in the same order."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts, doubled each time."""
_BY_A_MODEL: tuple[FailureKind, ...] = ("model", "node", "timeout")


class Played(NamedTuple):
    """The episodes in the order of the jobs, and how many were played ``again``."""

    episodes: list[Episode]
    again: int


def unanswered(episode: Episode) -> Failure | None:
    """The first failure in an episode that was caused by an unreachable model.

    Returns ``None`` if there is none. A failure after which a fallback answered is not counted.
    """
    said = [episode.fault]
    said += [call.error for record in episode.steps for call in record.trace.calls]
    return next((each for each in said if each is not None and each.kind == "unavailable"), None)


async def play_with_retries(
    play: Play,
    jobs: Sequence[Job],
    *,
    patience: float,
    on_wait: Callable[[str], None] = lambda _: None,
) -> Played:
    """Play jobs, and play those again in which a model could not be reached.

    While the model is unreachable, one episode is tried from time to time. ``on_wait`` gets a text
    when the waiting begins.

    Raises:
        ModelUnavailable: the model did not answer within ``patience`` seconds since the first
            failure or its last answer.
        ModelError: all episodes were masked, and a model failed for a reason other than being
            unreachable.
    """
    clock = asyncio.get_running_loop().time
    episodes = await play(jobs)
    waiting = _to_replay(episodes)
    lost, began, pause = len(waiting), clock(), FIRST_PAUSE
    if waiting:
        on_wait(
            f"{len(waiting)} of {len(jobs)} episodes wait for a model that cannot be reached "
            f"(at most {patience:g} s): {unanswered(episodes[waiting[0]])}"
        )
    while waiting:
        left = patience - (clock() - began)
        if left <= 0:
            why = unanswered(episodes[waiting[0]])
            raise ModelUnavailable(
                f"{len(waiting)} of {len(jobs)} episodes were left unanswered for {patience:g} s; "
                f"expected a model that answers, got: {why.message if why else ''}"
            )
        await asyncio.sleep(min(pause, left))
        pause = min(LONGEST_PAUSE, 2.0 * pause)
        for some in (waiting[:1], waiting[1:]):
            for k, episode in zip(some, await play([jobs[k] for k in some]), strict=True):
                episodes[k] = episode
            missed = len(_to_replay([episodes[k] for k in some]))
            if missed < len(some):  # the model has answered, if only some
                began, pause = clock(), FIRST_PAUSE
            if missed:
                break
        waiting = [k for k in waiting if unanswered(episodes[k]) is not None]
    _check_some(episodes)
    return Played(episodes, lost)


def _to_replay(episodes: Sequence[Episode]) -> list[int]:
    return [k for k, episode in enumerate(episodes) if unanswered(episode) is not None]


def _check_some(episodes: Sequence[Episode]) -> None:
    """Raise ``ModelError`` if all episodes are masked and a failure of a model is the reason."""
    faults = [episode.fault for episode in episodes]
    ours = [fault for fault in faults if fault is not None and fault.kind in _BY_A_MODEL]
    if None not in faults and ours:
        raise ModelError(
            f"all {len(episodes)} episodes were lost to faults; expected models that answer, got: "
            f"{ours[0]}"
        )
