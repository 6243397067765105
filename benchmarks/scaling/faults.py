"""Workers that are killed while they play."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import aclosing
from typing import Any

from benchmarks.scaling.latencies import Latencies
from benchmarks.scaling.play import DECISIONS, Tally, policy, work
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.rollout import LocalWorker, RemoteWorker, Rollouts, ray_rollouts

PROCESSES = 2
PLACES = 8
DELAY = 0.020


def measure(quick: bool) -> dict[str, Any]:
    """Lost and doubled episodes with ``kill -9`` of workers, against the undisturbed local run.

    This process is connected to a cluster.
    """
    return asyncio.run(_measure(32 if quick else 96, (12,) if quick else (8, 32, 64)))


async def _measure(count: int, after: tuple[int, ...]) -> dict[str, Any]:
    """``after``: a worker is killed when so many episodes were received."""
    jobs, acting = work("phone", count), policy("phone", Latencies.constant(DELAY))
    tally, told = Tally(count), list[str]()
    async with Rollouts([LocalWorker(PhoneEnvironment, slots=PLACES)]) as local:
        stream = local.stream(acting, jobs, max_steps=DECISIONS["phone"])
        async with aclosing(stream) as episodes:
            tally.add([numbered async for numbered in episodes])
    played, killed, began = [], 0, time.perf_counter()
    each = PLACES // PROCESSES
    async with ray_rollouts(
        PhoneEnvironment, workers=PROCESSES, slots=each, warn=told.append
    ) as rollouts:
        stream = rollouts.stream(acting, jobs, max_steps=DECISIONS["phone"])
        async with aclosing(stream) as episodes:
            async for numbered in episodes:
                played.append(numbered)
                if len(played) in after:
                    worker = rollouts.workers[killed % PROCESSES]
                    assert isinstance(worker, RemoteWorker) and worker.pid is not None
                    os.kill(worker.pid, signal.SIGKILL)
                    killed += 1
    tally.add(played)
    return {
        "kills": {"workers": killed, "noticed": len(told), "seconds": time.perf_counter() - began},
        "episodes_lost": tally.lost,
        "episodes_twice": tally.twice,
        "bit_equal": tally.equal,
    }
