"""The cost of a long queue of episodes, with the same number in flight."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

from benchmarks.scaling.latencies import Latencies
from benchmarks.scaling.play import all_started, policy, work
from benchmarks.scaling.usage import cpu_by_process, cpu_since, peak_memory
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.rollout import LocalWorker, Rollouts, ray_cluster, ray_rollouts
from swarm_ui.trace.jsonl import write_stream

IN_FLIGHT = 64
PROCESSES = 2
DELAY = 0.001
SYSTEMS = ("local", "ray")


def measure(quick: bool) -> dict[str, Any]:
    """Peak memory and CPU time with a short and a long queue; each run is a separate process."""
    short, long = (100, 1_000) if quick else (1_000, 10_000)
    found: dict[str, Any] = {"queued": [short, long], "in_flight": IN_FLIGHT}
    for system in SYSTEMS:
        sizes = (("short", short), ("long", long))
        parts = {name: _separately(system, count) for name, count in sizes}
        ratio = parts["long"]["peak_mb"] / parts["short"]["peak_mb"]
        found[system] = parts | {"memory_ratio": ratio}
    ratios = {f"memory_ratio_{system}": found[system]["memory_ratio"] for system in SYSTEMS}
    return {"bookkeeping": found} | ratios


def _separately(system: str, count: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scaling.bookkeeping", system, str(count)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def one(system: str, count: int) -> dict[str, float]:
    """Play ``count`` episodes of one decision, and write them as the evaluator does.

    ``peak_mb`` is that of this process, which holds the queue and the results.
    """
    with contextlib.ExitStack() as stack:
        if system == "ray":
            stack.enter_context(ray_cluster(cpus=PROCESSES))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scale-")))
        return asyncio.run(_play(system, count, folder / "traces.jsonl"))


async def _play(system: str, count: int, path: Path) -> dict[str, float]:
    rollouts: Rollouts
    if system == "ray":
        each = IN_FLIGHT // PROCESSES
        rollouts = ray_rollouts(PhoneEnvironment, workers=PROCESSES, slots=each)
    else:
        rollouts = Rollouts([LocalWorker(PhoneEnvironment, slots=IN_FLIGHT)])
    acting = policy("phone", Latencies.constant(DELAY))
    async with rollouts:
        if system == "ray":
            await all_started(rollouts, PROCESSES, "phone")
        for jobs in (work("phone", IN_FLIGHT), work("phone", count)):  # the first is the warm-up
            before, began = cpu_by_process(), time.perf_counter()
            numbers: set[int] = set()
            stream = rollouts.stream(acting, jobs, max_steps=1)
            async with aclosing(write_stream(path, stream)) as groups:
                async for group in groups:
                    numbers.update(number for number, _ in group)
        seconds = time.perf_counter() - began
        cpu = sum(cpu_since(before).values())
    if len(numbers) != count:
        raise RuntimeError(f"{system}: expected {count} episodes, got {len(numbers)}")
    return {
        "peak_mb": peak_memory() / 2**20,
        "cpu_ms_per_episode": cpu / count * 1000,
        "episodes_per_s": count / seconds,
    }


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], int(sys.argv[2]))))
