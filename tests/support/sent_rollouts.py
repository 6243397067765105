"""Plays episodes with copies of policy and intervention, as a process that they are sent to."""

from __future__ import annotations

import pickle
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import cloudpickle

from swarm_ui.rollout import MakeEnvironment, Rollouts, rollout_many
from swarm_ui.trace.records import Episode


class SentRollouts(Rollouts):
    """Episodes come back as other objects, in another order than they were asked for."""

    def __init__(self, make_environment: MakeEnvironment) -> None:
        super().__init__([])
        self._make = make_environment
        self.played = 0

    async def stream(  # type: ignore[override]
        self,
        policy: Any,
        jobs: Any,
        *,
        intervention: Any = None,
        max_steps: int | None = None,
    ) -> AsyncGenerator[tuple[int, Episode], None]:
        sent = cloudpickle.dumps((policy, intervention))
        for number, job in reversed(list(enumerate(jobs))):
            acting, watching = pickle.loads(sent)
            (episode,) = await rollout_many(
                self._make, acting, [job], intervention=watching, max_steps=max_steps
            )
            self.played += 1
            yield number, pickle.loads(pickle.dumps(episode))


def figures(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of ``metrics.jsonl`` without times and memory."""
    return [_timeless(line) for line in lines]


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {k: _timeless(v) for k, v in value.items() if "seconds" not in k and "memory" not in k}
