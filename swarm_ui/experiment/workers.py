"""Episodes on the phone in processes beside the main one.

A tiny network gains nothing from a second thread, so a second core is used by a second process.
Each lane is one process with a queue of its own: what is handed in runs on, whatever the main
process is busy with.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from swarm_ui.errors import SwarmError
from swarm_ui.experiment.arms import Arm
from swarm_ui.experiment.quiet import hush_transformers
from swarm_ui.experiment.results import Work
from swarm_ui.rollout.episodes import Job, rollout_many
from swarm_ui.trace.records import Episode

if TYPE_CHECKING:
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

PIECE = 64
"""Episodes that are played together: enough to fill the batches."""
_FAILED, _SOLVED = 2, 1
"""Episodes of a piece that come back whole."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some episodes of one arm."""

    arm: Arm
    agent: str
    adapters: str | None
    """Folder of the trained adapters."""
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """What became of a piece."""

    outcomes: tuple[float | None, ...]
    sample: tuple[Episode, ...]
    """A few whole episodes, failed ones first."""
    work: Work


class Lanes:
    """Worker processes. Use it in a ``with``; leaving it drops what has not begun."""

    def __init__(self, processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._lanes = [
            ProcessPoolExecutor(1, mp_context=context, initializer=_enter) for _ in range(processes)
        ]

    def __enter__(self) -> Lanes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for lane in self._lanes:
            lane.shutdown(wait=False, cancel_futures=True)
        for lane in self._lanes:
            lane.shutdown(wait=True)

    async def play(
        self, pieces: Sequence[Piece], *, lanes: int, done: Callable[[int, Played], None]
    ) -> list[Played]:
        """Play all pieces on the first ``lanes`` lanes, dealt out in turn.

        Args:
            done: told the number of a piece and what became of it.

        Raises:
            SwarmError: a process died.
        """
        lanes = min(lanes, len(self._lanes))
        loop = asyncio.get_running_loop()

        async def one(number: int) -> Played:
            lane = self._lanes[number % lanes]
            try:
                played = await loop.run_in_executor(lane, play, pieces[number])
            except BrokenProcessPool as error:
                raise SwarmError(
                    "a process of the evaluation died (out of memory?); resume with --resume"
                ) from error
            done(number, played)
            return played

        return await asyncio.gather(*(one(number) for number in range(len(pieces))))


def play(piece: Piece) -> Played:
    """Play a piece in this process."""
    # Here and not at the top: the script's other ways do without torch.
    from swarm_ui.environments.phone import PhoneEnvironment

    model = _model(piece.agent, piece.adapters)
    before, began = used(model), time.perf_counter()
    policy = piece.arm.policy(model)
    episodes = asyncio.run(
        rollout_many(PhoneEnvironment, policy, piece.jobs, concurrency=len(piece.jobs))
    )
    work = used(model, before)
    work.seconds = time.perf_counter() - began
    work.decisions = sum(len(episode.steps) for episode in episodes)
    outcomes = tuple(None if e.success is None else float(e.success) for e in episodes)
    return Played(outcomes, sample(episodes), work)


def used(model: LocalModel, before: Work | None = None) -> Work:
    """What a model has done so far, or since ``before``."""
    counters, old = model.counters, before or Work()
    return Work(
        calls=counters.calls - old.calls,
        scored=counters.scored - old.scored,
        prompt_tokens=counters.prompt_tokens - old.prompt_tokens,
        completion_tokens=counters.completion_tokens - old.completion_tokens,
        model_seconds=counters.seconds - old.model_seconds,
    )


def sample(episodes: Sequence[Episode]) -> tuple[Episode, ...]:
    """A few failed episodes, and a solved one."""
    failed = [episode for episode in episodes if episode.success is False]
    solved = [episode for episode in episodes if episode.success]
    return (*failed[:_FAILED], *solved[:_SOLVED])


@lru_cache(maxsize=2)
def _model(agent: str, adapters: str | None) -> LocalModel:
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

    model = LocalModel.load(Path(agent))
    if adapters is not None:
        model.load_adapters(Path(adapters))
    return model


def _enter() -> None:
    """Set a worker up: one thread, no part in Ctrl-C, and no life after the main process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        sentinel = parent

        def follow() -> None:
            sentinel.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()
    import torch

    torch.set_num_threads(1)
    hush_transformers()
