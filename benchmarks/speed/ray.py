"""The overhead of rollouts on Ray, and the rate of many workers of one driver.

    python -m benchmarks.speed.ray [--quick] [--part overhead weak] [--record]

A scripted model waits for a fixed time (or one drawn from recorded latencies of SmolLM2,
``latencies.json``) and clicks. The phone is simulated; MiniWoB++ is real pages in a real Chromium.
Each section has processes of its own. Needs Linux, the extras ``ray`` and ``web``, and a Chromium.

- *overhead*: the same episodes in the local pool (8 concurrent) and on Ray (2 processes with 4
  each), with decisions of 1, 20 and 200 ms. Both are warm and take turns; medians of wall time.
  ``overhead_200ms``: Ray's time divided by the local time, minus 1, the larger of both
  environments; ``episodes_lost``, ``episodes_twice``, ``bit_equal`` (whether all episodes on Ray
  equal the local ones except for times).
- *weak*: 8, 64 and 512 workers (the last in groups of 64) on a Ray cluster of four nodes on this
  machine, with latencies of 200 ms on average. ``weak_scaling``: episodes per second divided by
  those of as many workers that wait only for the model.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, aclosing, contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.speed.paced import DECISIONS, Latencies, Tally, pages, policy, work
from benchmarks.speed.report import ROOT, Figures, Rows, Section, command
from benchmarks.speed.usage import cpu_seconds, family
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.rollout import (
    Job,
    LocalWorker,
    Rollouts,
    ray_cluster,
    ray_rollouts,
)
from swarm_ui.trace.jsonl import append_jsonl
from swarm_ui.trace.records import Episode

PROCESSES, PLACES = 2, 8
"""Processes on Ray, and concurrent episodes in all of them or in the local pool."""
DELAYS = {"1ms": 0.001, "20ms": 0.020, "200ms": 0.200}
MEAN = 0.2
"""Mean latency in seconds of the section *weak*."""
PLACE = {"CPU": 0.0, "place": 1.0}
"""What a worker needs. Ray would start a process for each CPU of a node in advance."""
WINDOW = (0.2, 0.8)
"""A rate is that between these shares of all episodes: without start and end."""


def apart(work: Callable[..., Figures], *arguments: Any) -> Figures:
    """Do work in a process of its own, after which no process of it is left."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


async def all_started(rollouts: Rollouts, workers: int, world: str = "phone") -> None:
    """Play until so many workers are running."""

    def waiting() -> bool:
        return sum(getattr(w, "pid", None) is not None for w in rollouts.workers) < workers

    jobs = itertools.takewhile(lambda _: waiting(), itertools.cycle(work(world, 8)))
    acting = policy(world, Latencies((0.01,)))
    async with aclosing(rollouts.stream(acting, jobs, max_steps=1)) as episodes:
        async for _, episode in episodes:
            if episode.fault is not None:
                raise RuntimeError(f"an episode failed: {episode.fault}")


# ---- overhead ----------------------------------------------------------------------------------


def overhead(quick: bool) -> Figures:
    """Ratios of the wall time of the same episodes, minus 1, by environment and delay."""
    with ray_cluster(cpus=PROCESSES):
        found = {world: asyncio.run(_world(world, quick)) for world in DECISIONS}
    tallies = [tally for world in found.values() for tally in world.pop("tallies")]
    worst = {f"overhead_{d}": max(found[w][d]["overhead"] for w in found) for d in DELAYS}
    return {
        "overhead": found,
        **worst,
        "episodes_lost": sum(tally.lost for tally in tallies),
        "episodes_twice": sum(tally.twice for tally in tallies),
        "bit_equal": all(tally.equal for tally in tallies),
    }


async def _world(world: str, quick: bool) -> Figures:
    # So many episodes in each place that the shortest runs last a second.
    counts = {"1ms": 4, "20ms": 2, "200ms": 1} if quick else {"1ms": 16, "20ms": 8, "200ms": 3}
    jobs, found = work(world, PLACES * max(counts.values())), Figures(tallies=[])
    make: Any = PhoneEnvironment if world == "phone" else pages
    each = PLACES // PROCESSES
    async with AsyncExitStack() as stack:
        local = await stack.enter_async_context(Rollouts([LocalWorker(make, slots=PLACES)]))
        ray = await stack.enter_async_context(ray_rollouts(make, workers=PROCESSES, slots=each))
        await all_started(ray, PROCESSES, world)
        systems = {"local": local, "ray": ray}
        for system in systems.values():
            await _numbered(system, world, jobs[: 2 * PLACES], 0.0)
        for name, seconds in DELAYS.items():
            some = jobs[: PLACES * counts[name]]
            found["tallies"].append(tally := Tally(len(some)))
            found[name] = await _delay(systems, world, some, seconds, 1 if quick else 5, tally)
    return found


async def _delay(
    systems: Mapping[str, Rollouts], world: str, jobs: Sequence[Job], seconds: float, rounds: int,
    tally: Tally,
) -> Figures:  # fmt: skip
    """Medians over the rounds; in each, the systems take turns."""
    wall: dict[str, list[float]] = {name: [] for name in systems}
    cpu: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, system in systems.items():
            before, began = cpu_seconds(family()), time.perf_counter()
            played = await _numbered(system, world, jobs, seconds)
            wall[name].append(time.perf_counter() - began)
            cpu[name].append(spent_since(before))
            tally.add(played)
    decisions = sum(len(episode.steps) for _, episode in played)
    local, ray = median(wall["local"]), median(wall["ray"])
    return {
        "overhead": ray / local - 1, "local_s": local, "ray_s": ray,
        "local_cpu_ms_per_decision": median(cpu["local"]) / decisions * 1000,
        "ray_cpu_ms_per_decision": median(cpu["ray"]) / decisions * 1000,
        "episodes": len(jobs), "rounds": rounds,
    }  # fmt: skip


async def _numbered(
    system: Rollouts, world: str, jobs: Sequence[Job], seconds: float
) -> list[tuple[int, Episode]]:
    acting = policy(world, Latencies((seconds,)))
    stream = system.stream(acting, jobs, max_steps=DECISIONS[world])
    async with aclosing(stream) as episodes:
        return [numbered async for numbered in episodes]


def spent_since(before: Mapping[int, float]) -> float:
    """CPU seconds of this process and those below it since an earlier measurement."""
    now = cpu_seconds(family())
    return sum(seconds - before.get(process, 0.0) for process, seconds in now.items())


# ---- weak scaling ------------------------------------------------------------------------------


async def _written(
    rollouts: Rollouts, jobs: Sequence[Job], latencies: Latencies, decisions: int, path: Path
) -> list[float]:
    """Write a stream as an evaluation does: for each episode, the seconds until it was on disk."""
    arrived = list[float]()
    path.unlink(missing_ok=True)
    began = time.perf_counter()
    stream = rollouts.stream(policy("phone", latencies), jobs, max_steps=decisions)
    async with aclosing(stream):
        async for _, episode in stream:
            append_jsonl(path, [episode])
            if episode.fault is not None:
                raise RuntimeError(f"an episode failed: {episode.fault}")
            arrived.append(time.perf_counter() - began)
    if len(arrived) != len(jobs):
        raise RuntimeError(f"{len(arrived)} of {len(jobs)} episodes arrived")
    return arrived


def rate_of(arrived: Sequence[float]) -> float:
    """Episodes per second, without start and end."""
    low, high = (int((len(arrived) - 1) * share) for share in WINDOW)
    return (high - low) / (arrived[high] - arrived[low])


@contextmanager
def cluster(nodes: int, places: int) -> Iterator[None]:
    """Nodes on this machine, each with room for ``places`` workers; this process is connected."""
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster()
    try:
        for _ in range(nodes):
            made.add_node(num_cpus=1, resources={"place": places}, include_dashboard=False)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield
    finally:
        ray.shutdown()
        made.shutdown()


def weak(quick: bool) -> Figures:
    """Costs of the parts, and rates of more and more workers."""
    groups = [(2, 4)] if quick else [(8, 1), (64, 1), (8, 64)]
    with (
        tempfile.TemporaryDirectory(dir=os.getcwd()) as folder,  # not in memory
        cluster(2 if quick else 4, max(processes for processes, _ in groups)),
    ):
        return asyncio.run(_weak(groups, quick, Path(folder) / "traces.jsonl"))


async def _weak(groups: Sequence[tuple[int, int]], quick: bool, path: Path) -> Figures:
    latencies, decisions, runs = Latencies.recorded(MEAN), DECISIONS["phone"], []
    ideal = 1 / (decisions * MEAN)  # of a worker that waits only for the model
    for processes, each in groups:
        workers, began = processes * each, time.perf_counter()
        async with ray_rollouts(
            PhoneEnvironment, workers=processes, slots=each, resources=PLACE
        ) as rollouts:
            await all_started(rollouts, processes)
            await _written(rollouts, work("phone", workers), Latencies((0.0,)), 1, path)
            started = time.perf_counter() - began
            count = workers * (3 if quick else 8 if workers <= 64 else 4)
            arrived = await _written(rollouts, work("phone", count), latencies, decisions, path)
        rate = rate_of(arrived)
        runs.append({
            "workers": workers, "processes": processes, "each": each, "start_s": started,
            "episodes_per_s": rate, "efficiency": rate / (workers * ideal),
        })  # fmt: skip
    return {
        "weak_scaling": {str(run["workers"]): run["efficiency"] for run in runs},
        "weak_scaling_measured": runs,
        "latency_mean_s": MEAN,
    }


# ---- the command -------------------------------------------------------------------------------


def measure(given: argparse.Namespace) -> Figures:
    """The figures of the sections that are asked for, each in a process of its own."""
    found: Figures = {}
    with tempfile.TemporaryDirectory(prefix="ray-") as temporary:  # sockets need a short path
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        # Ray's other processes have 30 s to start, and its workers a niceness of 15 otherwise:
        # other load would slow only them.
        os.environ.update(
            PYTHONPATH=paths, OMP_NUM_THREADS="1", RAY_TMPDIR=temporary, RAY_ADDRESS="",
            RAY_agent_register_timeout_ms="120000", RAY_worker_niceness="0",
            RAY_USAGE_STATS_ENABLED="0",
        )  # fmt: skip
        if "overhead" in given.part:
            found |= apart(overhead, given.quick)
        if "weak" in given.part:
            found |= apart(weak, given.quick)
    return found


def tables(found: Figures) -> Iterator[Rows]:
    """The tables of the sections that were measured."""
    heads: tuple[str, ...]
    if "overhead" in found:
        cells = [
            [f"{world}, {name}", part["episodes"], f"{part['local_s']:.2f}", f"{part['ray_s']:.2f}",
             f"{part['overhead']:+.1%}", f"{part['local_cpu_ms_per_decision']:.1f}",
             f"{part['ray_cpu_ms_per_decision']:.1f}"]
            for world, parts in found["overhead"].items()
            for name in DELAYS
            for part in [parts[name]]
        ]  # fmt: skip
        heads = ("a decision", "episodes", "local s", "Ray s", "overhead",
                 "local CPU ms/decision", "Ray CPU ms/decision")  # fmt: skip
        yield Rows("Overhead of Ray against the local pool", heads, cells)
    if "weak_scaling" in found:
        cells = [
            [f"{run['workers']} ({run['processes']} × {run['each']})", f"{run['start_s']:.0f}",
             f"{run['episodes_per_s']:.1f}", f"{run['efficiency']:.0%}"]
            for run in found["weak_scaling_measured"]
        ]  # fmt: skip
        heads = ("workers (processes × each)", "start s", "episodes/s", "efficiency")
        yield Rows("Weak scaling on this machine", heads, cells)


SECTIONS = {"ray": Section(measure, tables, "scale", "howto/cluster.md")}
PARTS = ("overhead", "weak")

if __name__ == "__main__":
    options = {"nargs": "+", "choices": PARTS, "default": PARTS, "help": "what to measure"}
    sys.exit(command("ray", __doc__, SECTIONS, ("--part", options)))
