"""Plays phone episodes in worker processes.

A second thread does not make a tiny network faster, so each core gets a process. A worker takes the
next batch as soon as it is free, also while the event loop of the main process is busy.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import forkserver
from multiprocessing.context import BaseContext, ForkServerContext
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from swarm_ui.errors import SwarmError
from swarm_ui.experiment.long_lived import long_lived
from swarm_ui.experiment.models import silence_transformers
from swarm_ui.experiment.results import Cost, outcome
from swarm_ui.experiment.teams import Arm
from swarm_ui.rollout import Job, rollout_many
from swarm_ui.rollout.solver_grades import solver_grades
from swarm_ui.trace.failures import FailureClass, failure_class
from swarm_ui.trace.records import Episode

if TYPE_CHECKING:
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

BATCH_SIZE = 64
"""Number of concurrent episodes: enough to fill the batches of the model."""
_PRELOADED = ("swarm_ui.nodes.models.tiny_agent.local_model", "swarm_ui.environments.phone")
"""Modules that every worker uses."""
_KEPT_MODELS = 4
"""Models that a worker keeps. Batches of several evaluations alternate, and loading adapters takes
a third of a second."""
_FAILED, _SOLVED = 2, 1
"""Number of complete episodes kept per batch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of episodes of one arm."""

    arm: Arm
    agent: str
    adapters: str | None
    """Folder of the trained adapters."""
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The results of a batch."""

    outcomes: tuple[float | None, ...]
    failures: tuple[FailureClass | None, ...]
    sample: tuple[Episode, ...]
    """A few complete episodes, failed ones first."""
    cost: Cost


class WorkerPool:
    """Worker processes, for a ``with`` statement. Leaving it cancels batches not yet started."""

    def __init__(self, processes: int, *, at_first: int | None = None) -> None:
        """``at_first``: workers that play before :meth:`use_all`; ``None``: all of them."""
        context = _context()
        self._workers = [
            ProcessPoolExecutor(1, mp_context=context, initializer=_enter) for _ in range(processes)
        ]
        # Threads, because the event loop may be busy for seconds when a worker becomes free.
        self._threads = ThreadPoolExecutor(processes)
        self._free: SimpleQueue[ProcessPoolExecutor] = SimpleQueue()
        self._waiting = list(self._workers)
        self._use(processes if at_first is None else max(1, min(processes, at_first)))

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.shutdown(wait=False, cancel_futures=True)
        self.use_all()  # a thread that waits for a worker gets one, which takes no batch any more
        for worker in self._workers:
            worker.shutdown(wait=True)
        self._threads.shutdown(wait=True)

    @property
    def processes(self) -> int:
        """Number of workers that play."""
        return len(self._workers) - len(self._waiting)

    def use_all(self) -> None:
        """Let all workers play."""
        self._use(len(self._waiting))

    def _use(self, count: int) -> None:
        for _ in range(count):
            self._free.put(self._waiting.pop())

    async def play(self, batch: Batch) -> BatchResult:
        """Play a batch on the next free worker, in the order of the calls. Raises ``SwarmError`` if
        the process died."""
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, self._play, batch
            )
        except BrokenProcessPool as error:
            raise SwarmError(
                "a process of the evaluation died (out of memory?); resume with --resume"
            ) from error

    def _play(self, batch: Batch) -> BatchResult:
        worker = self._free.get()
        try:
            return worker.submit(play, batch).result()
        finally:
            self._free.put(worker)


def import_ahead() -> None:
    """Let the process from which workers are forked begin its imports, which take seconds, while
    this process does other work. Where workers are not forked, this does nothing."""
    if isinstance(_context(), ForkServerContext):
        forkserver.ensure_running()


def _context() -> BaseContext:
    """How workers are started: from a fork server, which imports torch once for all of them.

    On macOS, forking a process that has loaded system frameworks is not safe.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_PRELOADED])
    return context


def play(batch: Batch) -> BatchResult:
    """Play a batch in this process."""
    # Here and not at the top: the other uses of the script do not need torch.
    from swarm_ui.environments.phone import PhoneEnvironment

    model = _model(batch.agent, batch.adapters)
    before, began = Cost.of_model(model), time.perf_counter()
    policy = batch.arm.policy(model)
    episodes = asyncio.run(
        rollout_many(
            PhoneEnvironment, policy, batch.jobs, concurrency=len(batch.jobs),
            intervention=solver_grades,
        )
    )  # fmt: skip
    cost = Cost.of_model(model, before, episodes, time.perf_counter() - began)
    outcomes = tuple(outcome(e) for e in episodes)
    failures = tuple(failure_class(e) for e in episodes)
    return BatchResult(outcomes, failures, sample(episodes), cost)


def sample(episodes: Sequence[Episode]) -> tuple[Episode, ...]:
    """A few failed episodes, and a solved one."""
    failed = [episode for episode in episodes if episode.success is False]
    solved = [episode for episode in episodes if episode.success]
    return (*failed[:_FAILED], *solved[:_SOLVED])


@lru_cache(maxsize=_KEPT_MODELS)
def _model(agent: str, adapters: str | None) -> LocalModel:
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

    model = LocalModel.load(Path(agent))
    if adapters is not None:
        model.load_adapters(Path(adapters))
    return model


def _enter() -> None:
    """Set up a worker: one thread, Ctrl-C ignored, and an exit when the main process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        sentinel = parent

        def follow() -> None:
            sentinel.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()
    with long_lived():  # with the imports of the fork server
        import torch

        torch.set_num_threads(1)
        silence_transformers()
