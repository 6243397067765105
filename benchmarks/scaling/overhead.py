"""The time that Ray adds to an episode, against the pool of this process; and killed workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing
from statistics import median
from typing import Any

from benchmarks.scaling import faults
from benchmarks.scaling.latencies import Latencies
from benchmarks.scaling.play import (
    DECISIONS,
    WORLDS,
    Tally,
    World,
    all_started,
    environments,
    policy,
    work,
)
from benchmarks.scaling.usage import cpu_by_process, cpu_since
from swarm_ui.rollout import Job, LocalWorker, Rollouts, ray_cluster, ray_rollouts

PROCESSES = 2
PLACES = 8
"""Concurrent episodes, in one process or in ``PROCESSES``."""
DELAYS = {"1ms": 0.001, "20ms": 0.020, "200ms": 0.200}


def measure(quick: bool) -> dict[str, Any]:
    """Ratios of the wall time and of the CPU time of the same episodes, minus 1.

    Both systems are warm: their environments and processes have started, and have played every job.
    """
    began = time.perf_counter()
    with ray_cluster(cpus=PROCESSES):
        started = time.perf_counter() - began
        found = {world: asyncio.run(_world(world, quick)) for world in WORLDS}
        killed = faults.measure(quick)
    tallies = [found[world].pop("tally") for world in WORLDS]
    figures: dict[str, Any] = {"cluster_start_s": started, "overhead": found}
    for name in DELAYS:
        figures[f"overhead_{name}"] = max(found[world][name]["overhead"] for world in WORLDS)
    return figures | {
        "kills": killed["kills"],
        "episodes_lost": killed["episodes_lost"] + sum(tally.lost for tally in tallies),
        "episodes_twice": killed["episodes_twice"] + sum(tally.twice for tally in tallies),
        "bit_equal": killed["bit_equal"] and all(tally.equal for tally in tallies),
    }


async def _world(world: World, quick: bool) -> dict[str, Any]:
    rounds = 1 if quick else 5
    # So many that the shortest runs last a second.
    counts = {"1ms": 4, "20ms": 2, "200ms": 1} if quick else {"1ms": 16, "20ms": 8, "200ms": 3}
    jobs = work(world, PLACES * max(counts.values()))
    tally = Tally(0)
    found: dict[str, Any] = {}
    async with AsyncExitStack() as stack:
        make = environments(world)
        local = await stack.enter_async_context(Rollouts([LocalWorker(make, slots=PLACES)]))
        each = PLACES // PROCESSES
        ray = await stack.enter_async_context(ray_rollouts(make, workers=PROCESSES, slots=each))
        systems: dict[str, Rollouts] = {"local": local, "ray": ray}
        began = time.perf_counter()
        await all_started(ray, PROCESSES, world)
        for system in systems.values():
            await _play(system, world, jobs[: 2 * PLACES], 0.0)
        found["warm_s"] = time.perf_counter() - began
        for name, seconds in DELAYS.items():
            some = jobs[: PLACES * counts[name]]
            part = Tally(len(some))
            found[name] = await _delay(systems, world, some, seconds, rounds, part)
            tally.add_counts(part)
    return found | {"tally": tally}


async def _delay(
    systems: dict[str, Rollouts],
    world: World,
    jobs: Sequence[Job],
    seconds: float,
    rounds: int,
    tally: Tally,
) -> dict[str, float]:
    """Medians over the rounds; in each, the systems take turns."""
    wall: dict[str, list[float]] = {name: [] for name in systems}
    cpu: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, system in systems.items():
            before, began = cpu_by_process(), time.perf_counter()
            played = await _play(system, world, jobs, seconds)
            wall[name].append(time.perf_counter() - began)
            cpu[name].append(sum(cpu_since(before).values()))
            tally.add(played)
    decisions = sum(len(episode.steps) for _, episode in played)
    local, ray = median(wall["local"]), median(wall["ray"])
    return {
        "overhead": ray / local - 1,
        "local_s": local,
        "ray_s": ray,
        "local_cpu_ms_per_decision": median(cpu["local"]) / decisions * 1000,
        "ray_cpu_ms_per_decision": median(cpu["ray"]) / decisions * 1000,
        "episodes": len(jobs),
        "rounds": rounds,
    }


async def _play(
    system: Rollouts, world: World, jobs: Sequence[Job], seconds: float
) -> list[tuple[int, Any]]:
    stream = system.stream(
        policy(world, Latencies.constant(seconds)), jobs, max_steps=DECISIONS[world]
    )
    async with aclosing(stream) as episodes:
        return [numbered async for numbered in episodes]
