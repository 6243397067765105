"""The two sides of a worker, in one process without a cluster: what it plays, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mortal_worlds import MortalWorld, Spender

from swarm_ui.graph.graph import CollabGraph
from swarm_ui.rollout.distributed import LOSSES, WorkerResources, remote_worker
from swarm_ui.rollout.distributed.job_queue import NumberedJob
from swarm_ui.rollout.distributed.remote_worker import NotBegun, RemoteWorker
from swarm_ui.rollout.distributed.worker import Hello, RolloutWorker, Setup, Work
from swarm_ui.rollout.policy import GraphPolicy, Policy
from swarm_ui.rollout.pool import Restarts
from swarm_ui.rollout.rollouts import PerWorker
from swarm_ui.version import __version__

pytest.importorskip("ray")


def setup(folder: Path) -> Setup:
    return Setup(
        make_environment=partial(MortalWorld, str(folder)),
        concurrency=2,
        restarts=Restarts(retries=0),
        folder="",
    )


def clicker(name: str) -> Policy:
    return GraphPolicy(CollabGraph.solo(Spender()), name=name)


def work(policy: Policy | PerWorker[Policy]) -> Work:
    return Work(policy=policy, intervention=None, max_steps=None)


async def test_a_stream_that_was_given_up_while_it_began_does_not_replace_the_next(
    tmp_path: Path,
) -> None:
    loaded = asyncio.Event()

    async def slowly() -> Policy:
        await loaded.wait()
        return clicker("old")

    worker = RolloutWorker(setup(tmp_path))
    first = asyncio.create_task(worker.begin(work(PerWorker(slowly))))
    await asyncio.sleep(0)
    second = asyncio.create_task(worker.begin(work(clicker("new"))))
    await asyncio.sleep(0.01)
    loaded.set()
    assert (await first, await second) == ("old", "new")
    played = await worker.play(("count", 1))
    assert b'"policy":"new"' in played.encoded
    await worker.close()


class Actor:
    """A worker of this process that is called as an actor is."""

    def __init__(self, worker: RolloutWorker) -> None:
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        call: Callable[..., Awaitable[Any]] = getattr(self._worker, name)
        if name == "hello":
            call = self._hello

        class Method:
            remote = staticmethod(lambda *given: asyncio.ensure_future(call(*given)))

        return Method

    async def _hello(self, node: str) -> Hello:
        return Hello(node=node, pid=1, version=__version__, python="")


async def test_a_worker_gets_no_job_before_it_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of its slots starts it again, while another one has a job already."""
    loaded = asyncio.Event()

    async def slowly() -> Policy:
        await loaded.wait()
        return clicker("loaded")

    class Made:
        remote = staticmethod(lambda given: Actor(RolloutWorker(given)))

    monkeypatch.setattr(remote_worker, "remote_class", lambda **_: Made)
    worker = RemoteWorker(
        0, setup(tmp_path), 2, WorkerResources(), LOSSES, lambda: 60.0, lambda _: None
    )
    beginning = asyncio.create_task(worker.ready(1, work(PerWorker(slowly))))
    while not worker.started:
        await asyncio.sleep(0.01)
    job = NumberedJob(0, ("count", 1))
    with pytest.raises(NotBegun):
        await worker.play(job)
    loaded.set()
    await beginning
    assert (await worker.play(job)).episode.policy == "loaded"
