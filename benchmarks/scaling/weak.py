"""Weak scaling: the same work for each of ever more workers, measured and simulated."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.scaling.cluster import PLACE, nodes
from benchmarks.scaling.latencies import Latencies
from benchmarks.scaling.play import DECISIONS, all_started, policy, work
from benchmarks.scaling.simulation import (
    WINDOW,
    Costs,
    Setup,
    binds_at,
    ideal_rate,
    simulate,
)
from benchmarks.scaling.usage import cpu_by_process, cpu_since
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.rollout import Job, Policy, Rollouts, ray_rollouts
from swarm_ui.trace.jsonl import UNWRITTEN, append_jsonl, write_stream
from swarm_ui.trace.records import Episode

MEAN = 0.2
"""Seconds to which the mean of the recorded latencies is scaled."""
EPISODES = 8
"""Episodes of a worker."""
SIZES = (8, 64, 512, 1000)
SLOTS = 256
"""Requests at the same time of one model server: the default of vLLM (``max_num_seqs``)."""
LEASE = 32
"""Number of calls for which a worker requested permits at once in earlier versions; now it requests
each (``swarm_ui.nodes.models.acting.limits``)."""
TOGETHER = (1, 8, UNWRITTEN)
"""Episodes that are finished at once, in the measurement of writing."""
WRITES = 15
"""Number of groups of each size that are written in a measurement."""
PROCESSES = 2
"""Number of processes in the measurement of costs; each has ``SLOTS_PER_PROCESS`` concurrent
episodes."""
SLOTS_PER_PROCESS = 4


@dataclass(frozen=True, slots=True)
class Group:
    """Workers on this machine: processes, each with a number of environments."""

    processes: int
    each: int = 1

    @property
    def workers(self) -> int:
        return self.processes * self.each


GROUPS = (Group(8), Group(64), Group(8, 64))
QUICK_GROUPS = (Group(2, 4),)


@dataclass(slots=True)
class Played:
    """The measurements of a stream whose episodes were written as the evaluator writes them."""

    arrived: list[float]
    """For each episode, the seconds from the start until it was on disk."""
    cpu: dict[str, float]
    """CPU seconds by kind of process; ``loop``: of the thread of the driver's event loop."""
    episodes: list[Episode]
    """The first ``UNWRITTEN`` ones."""

    @property
    def rate(self) -> float:
        """Episodes per second, without start and end."""
        low, high = (int((len(self.arrived) - 1) * share) for share in WINDOW)
        return (high - low) / (self.arrived[high] - self.arrived[low])


def measure(quick: bool) -> dict[str, Any]:
    """Costs, rates of real workers, and rates of simulated ones with these costs."""
    groups = QUICK_GROUPS if quick else GROUPS
    with tempfile.TemporaryDirectory(prefix="scale-", dir=os.getcwd()) as folder:
        began = time.perf_counter()
        most = max(group.processes for group in groups)
        with nodes(2 if quick else 4, most):
            started = time.perf_counter() - began
            return asyncio.run(_measure(groups, quick, Path(folder))) | {"nodes_start_s": started}


async def _measure(groups: Sequence[Group], quick: bool, folder: Path) -> dict[str, Any]:
    costs, writing = await _costs(120 if quick else 480, 256 if quick else 4096, folder)
    runs = []
    cores = len(os.sched_getaffinity(0))
    for group in groups:
        began = time.perf_counter()
        async with ray_rollouts(
            PhoneEnvironment, workers=group.processes, slots=group.each,
            resources=PLACE,
        ) as rollouts:  # fmt: skip
            await all_started(rollouts, group.processes, "phone")
            await _play(rollouts, work("phone", group.workers), 0.0, 1, folder)
            started = time.perf_counter() - began
            each = 3 if quick else EPISODES if group.workers <= 64 else EPISODES // 2
            jobs = work("phone", group.workers * each)
            played = await _play(rollouts, jobs, MEAN, DECISIONS["phone"], folder)
        setup = Setup(
            workers=group.workers, episodes=each,
            latencies=Latencies.recorded(MEAN), cores=cores,
            jobs=tuple(f"{task}/{seed}" for task, seed in jobs),
        )  # fmt: skip
        told = simulate(setup, costs)
        runs.append(
            asdict(group)
            | {
                "workers": group.workers,
                "start_s": started,
                "episodes_per_s": played.rate,
                "efficiency": played.rate / (group.workers * ideal_rate(setup, costs)),
                "simulated_episodes_per_s": told.rate,
                "error": told.rate / played.rate - 1,
                "bottleneck": told.bottleneck,
                "busy": told.busy,
            }
        )
    return _figures(costs, runs) | {"written_per_s": writing}


def _figures(costs: Costs, runs: list[dict[str, Any]]) -> dict[str, Any]:
    simulated = {str(size): _simulated(size, costs) for size in SIZES}
    measured = {str(run["workers"]): run for run in runs if run["workers"] <= 64}
    weak = {size: told["efficiency"] for size, told in simulated.items()}
    weak |= {size: run["efficiency"] for size, run in measured.items()}
    return {
        "weak_scaling": weak,
        "weak_scaling_simulated": simulated,
        "weak_scaling_measured": runs,
        "simulation_error": max(abs(run["error"]) for run in measured.values()),
        "costs_ms": {name: value * 1000 for name, value in asdict(costs).items()},
        "binds_at": _limits(costs),
        "lifted": _lifted(costs),
        "latency_mean_s": MEAN,
    }


def _simulated(size: int, costs: Costs) -> dict[str, Any]:
    """Workers on machines of their own, with as many model servers as they need."""
    told = simulate(_cluster(size), costs)
    return {
        "efficiency": told.efficiency,
        "episodes_per_s": told.rate,
        "bottleneck": told.bottleneck,
        "busy": told.busy,
    }


def _cluster(size: int) -> Setup:
    return Setup(workers=size, episodes=EPISODES, latencies=Latencies.recorded(MEAN), lease=LEASE)


def _limits(costs: Costs) -> dict[str, dict[str, float]]:
    """For each part, the number of workers that make it always busy: with latencies of ``MEAN``,
    and with the recorded ones."""
    found: dict[str, dict[str, float]] = {}
    for name, latencies in (
        ("scaled", Latencies.recorded(MEAN)), ("recorded", Latencies.recorded())
    ):  # fmt: skip
        setup = replace(_cluster(1), latencies=latencies, slots=SLOTS)
        found[name] = binds_at(setup, costs)
        one = ideal_rate(setup, costs)
        alone = binds_at(replace(setup, together=1), costs)["trace writer"]
        found[name]["trace writer, each episode alone"] = alone
        found[name]["limiter, asked for each call"] = 1 / (setup.decisions * costs.limiter) / one
    return found


def _lifted(costs: Costs) -> dict[str, float]:
    """Efficiency of 1,000 workers with a bottleneck, and without it."""
    base = _cluster(SIZES[-1])
    variants = {
        "as it is": base,
        "each episode written alone": replace(base, together=1),
        f"one model server of {SLOTS} requests": replace(base, slots=SLOTS),
        "limiter, asked for each call": replace(base, lease=1),
    }
    found = {name: simulate(setup, costs).efficiency for name, setup in variants.items()}
    half = replace(base, workers=base.workers // 2)
    found["two drivers of 500 workers"] = simulate(half, costs).efficiency
    return found


async def _costs(count: int, calls: int, folder: Path) -> tuple[Costs, dict[str, float]]:
    """The costs of each part, from CPU times of runs with long and short episodes; and how many
    episodes a second are written, by the number that is finished at once."""
    long, jobs = DECISIONS["phone"], work("phone", count)
    async with ray_rollouts(
        PhoneEnvironment, workers=PROCESSES, slots=SLOTS_PER_PROCESS,
        resources=PLACE,
    ) as rollouts:  # fmt: skip
        await all_started(rollouts, PROCESSES, "phone")
        await _play(rollouts, jobs[:16], 0.0, long, folder)
        whole = await _play(rollouts, jobs, 0.001, long, folder)
        short = await _play(rollouts, jobs, 0.001, 1, folder)
    decision = (whole.cpu["workers"] - short.cpu["workers"]) / count / (long - 1)
    episode = short.cpu["workers"] / count - decision
    writes = {size: _group_write(whole.episodes, size, folder) for size in TOGETHER}
    one, many = writes[1], writes[UNWRITTEN]
    write = many.cpu / UNWRITTEN
    threads = whole.cpu["driver"] - whole.cpu["loop"] - count * write
    costs = Costs(
        receive=whole.cpu["loop"] / count,
        write=write,
        commit=one.disk,
        flush=max(0.0, (many.disk - one.disk) / (UNWRITTEN - 1)),
        ray=(whole.cpu.get("ray", 0.0) + max(0.0, threads)) / count,
        episode=max(0.0, episode),
        decision=max(0.0, decision),
        limiter=await _limiter(calls),
    )
    return costs, {str(size): size / (told.cpu + told.disk) for size, told in writes.items()}


class GroupWrite(NamedTuple):
    """The cost of one write of a group, in seconds."""

    cpu: float
    disk: float
    """Wall time until the group is safely on disk, minus the CPU time."""


def _group_write(episodes: Sequence[Episode], size: int, folder: Path) -> GroupWrite:
    """The median cost of a write of ``size`` episodes, as the evaluator makes it."""
    group = list(islice(cycle(episodes), size))
    path, cpu, disk = folder / "writes.jsonl", [], []
    for _ in range(WRITES):
        began, worked = time.perf_counter(), time.thread_time()
        append_jsonl(path, group)
        cpu.append(time.thread_time() - worked)
        disk.append(time.perf_counter() - began - cpu[-1])
    return GroupWrite(median(cpu), median(disk))


async def _limiter(calls: int) -> float:
    """Seconds of an actor for an empty call, with 64 callers: the least that a limiter costs."""
    import ray

    class Empty:
        async def ask(self) -> int:
            return 1

    actor = ray.remote(Empty).options(num_cpus=0).remote()
    samples = []
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(calls // 64):
            await asyncio.gather(*(actor.ask.remote() for _ in range(64)))
        samples.append((time.perf_counter() - began) / (calls // 64 * 64))
    ray.kill(actor)
    return median(samples)


async def _play(
    rollouts: Rollouts, jobs: Sequence[Job], mean: float, decisions: int, folder: Path
) -> Played:
    latencies = Latencies.recorded(mean) if mean >= 0.01 else Latencies.constant(mean)
    acting: Policy = policy("phone", latencies)
    arrived: list[float] = []
    first: list[Episode] = []
    path = folder / "traces.jsonl"
    path.unlink(missing_ok=True)
    before, thread, began = cpu_by_process(), time.thread_time(), time.perf_counter()
    stream = rollouts.stream(acting, jobs, max_steps=decisions)
    async with aclosing(write_stream(path, stream)) as groups:
        async for group in groups:
            for _, episode in group:
                if episode.fault is not None:
                    raise RuntimeError(f"an episode failed: {episode.fault}")
            arrived += [time.perf_counter() - began] * len(group)
            first += [episode for _, episode in group[: UNWRITTEN - len(first)]]
    loop = time.thread_time() - thread
    spent = dict(cpu_since(before))
    if len(arrived) != len(jobs):
        raise RuntimeError(f"{len(arrived)} of {len(jobs)} episodes arrived")
    return Played(arrived, spent | {"loop": loop}, first)
