"""Plays episodes with copies of policy and intervention, as a process that they are sent to."""

from __future__ import annotations

import pickle
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import cloudpickle
import msgspec

from swarm_ui.rollout.episodes import LocalRollout
from swarm_ui.rollout.intervention import KeepsNotes
from swarm_ui.rollout.pool import MakeEnvironment
from swarm_ui.trace.records import Episode


class SentRollouts:
    """Episodes come back as other objects, in another order than they were asked for."""

    def __init__(self, make_environment: MakeEnvironment) -> None:
        self._make = make_environment
        self.played = 0

    async def stream(
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
            async with LocalRollout(self._make, concurrency=1) as place:
                (episode,) = [
                    each
                    async for _, each in place.stream(
                        acting, [job], intervention=watching, max_steps=max_steps
                    )
                ]
            back = msgspec.json.decode(msgspec.json.encode(episode), type=Episode)
            if isinstance(watching, KeepsNotes):
                notes = pickle.loads(pickle.dumps(watching.take_notes(episode)))
                if notes is not None:
                    intervention.add_notes(back, notes)
            self.played += 1
            yield number, back

    async def close(self) -> None: ...

    async def __aenter__(self) -> SentRollouts:
        return self

    async def __aexit__(self, *_: object) -> None: ...


def figures(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of ``metrics.jsonl`` without times and memory."""
    return [_timeless(line) for line in lines]


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {k: _timeless(v) for k, v in value.items() if "seconds" not in k and "memory" not in k}
