"""``kill -9`` of workers and nodes at random moments: the episodes of an undisturbed run, once."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'swarm-ui[ray]'")

from local_ray import local_ray, ray_environment

from benchmarks.speed.paced import DECISIONS, Latencies, Tally, policy, work
from benchmarks.speed.ray import PLACE
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.rollout import Job, RayWorker, Rollouts, ray_rollouts, rollout_many
from swarm_ui.trace.records import Episode

pytestmark = [
    pytest.mark.ray,
    pytest.mark.soak,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads Linux's /proc"),
]

WORKER_KILLS = 8
NODE_KILLS = 6
JOBS = work("phone", 40)
POLICY = policy("phone", Latencies.recorded(mean=0.05))


@pytest.fixture(autouse=True)
def every_loss_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swarm_ui.rollout.rollouts.LOSSES", 10)


async def played(rollouts: Rollouts, after: int, strike: Callable[[], Any]) -> Any:
    """The episodes of all jobs. ``strike`` is called when ``after`` of them were received."""
    found: list[tuple[int, Episode]] = []
    stream = rollouts.stream(POLICY, JOBS, max_steps=DECISIONS["phone"])
    async with aclosing(stream) as episodes:
        async for numbered in episodes:
            found.append(numbered)
            if len(found) == after:
                strike()
    return found


async def both_running(rollouts: Rollouts, watch: Watch, losses: int) -> None:
    """Play until so many losses are noticed, and the workers are replaced."""

    def waiting(_: Job) -> bool:
        return watch.losses < losses or len(watch.running(rollouts)) < 2

    jobs = itertools.takewhile(waiting, itertools.cycle(JOBS))
    async with aclosing(rollouts.stream(POLICY, jobs, max_steps=1)) as episodes:
        async for _, episode in episodes:
            assert episode.fault is None


async def undisturbed() -> Tally:
    """The episodes of the local run are those that all others are compared with."""
    tally = Tally(len(JOBS))
    episodes = await rollout_many(PhoneEnvironment, POLICY, JOBS, max_steps=DECISIONS["phone"])
    tally.add([*enumerate(episodes)])
    return tally


def expect_whole(tally: Tally) -> None:
    assert (tally.lost, tally.twice, tally.equal) == (0, 0, True)


def gone(pid: int) -> bool:
    """Whether a process has ended; waits up to a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z":
                time.sleep(0.2)
                continue
        return True
    return False


class Watch:
    """The processes of the workers, and their losses."""

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self.killed: set[int] = set()
        self.losses = 0

    def __call__(self, told: str) -> None:
        self.losses += "played again" in told

    def running(self, rollouts: Rollouts) -> list[int]:
        pids = [w.pid for w in rollouts.workers if isinstance(w, RayWorker)]
        found = sorted(pid for pid in pids if pid is not None)
        self.pids.update(found)
        return found

    def strike(self, rollouts: Rollouts, rng: random.Random) -> None:
        """Kill a worker in a moment."""
        asyncio.get_running_loop().call_later(rng.uniform(0.0, 0.1), self._kill, rollouts, rng)

    def _kill(self, rollouts: Rollouts, rng: random.Random) -> None:
        pid = rng.choice(self.running(rollouts))
        self.killed.add(pid)
        os.kill(pid, signal.SIGKILL)


async def test_killed_workers_lose_and_double_nothing() -> None:
    tally, watch = await undisturbed(), Watch()
    with local_ray(cpus=2):
        async with ray_rollouts(PhoneEnvironment, workers=2, slots=4, warn=watch) as rollouts:
            for seed in range(WORKER_KILLS):
                rng = random.Random(seed)
                strike = partial(watch.strike, rollouts, rng)
                await both_running(rollouts, watch, losses=seed)
                tally.add(await played(rollouts, rng.randint(1, len(JOBS) - 12), strike))
                expect_whole(tally)
            await both_running(rollouts, watch, losses=WORKER_KILLS)
    assert watch.losses == len(watch.killed) == WORKER_KILLS
    assert all(map(gone, watch.pids))


@contextmanager
def two_nodes() -> Iterator[Any]:
    """A cluster of two nodes, each with room for one worker."""
    import ray
    from ray.cluster_utils import Cluster

    fast = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}
    arguments = {"num_cpus": 1, "resources": {"place": 1}, "include_dashboard": False}
    with (
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        ray_environment(Path(folder)),
    ):
        cluster = Cluster(
            initialize_head=True, head_node_args={**arguments, "_system_config": fast}
        )
        try:
            cluster.add_node(num_cpus=1, resources={"place": 1})
            ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def test_killed_nodes_lose_and_double_nothing() -> None:
    tally, watch = asyncio.run(undisturbed()), Watch()
    with two_nodes() as cluster:
        asyncio.run(nodes_under_fire(cluster, tally, watch))
    assert watch.losses == NODE_KILLS
    assert all(map(gone, watch.pids))


async def nodes_under_fire(cluster: Any, tally: Tally, watch: Watch) -> None:
    """Kill a node in each stream, whose episodes the other one plays then; after the stream,
    another node joins the cluster."""
    async with ray_rollouts(
        PhoneEnvironment, workers=2, slots=4, resources=PLACE, warn=watch,
    ) as rollouts:  # fmt: skip
        for seed in range(NODE_KILLS):
            rng = random.Random(seed)
            node = next(n for n in cluster.list_all_nodes() if n is not cluster.head_node)
            strike = partial(strike_node, node, rng, alone=bool(seed % 2))
            await both_running(rollouts, watch, losses=seed)
            tally.add(await played(rollouts, rng.randint(1, len(JOBS) - 12), strike))
            expect_whole(tally)
            cluster.remove_node(node, allow_graceful=False)
            cluster.add_node(num_cpus=1, resources={"place": 1})
        await both_running(rollouts, watch, losses=NODE_KILLS)


def strike_node(node: Any, rng: random.Random, alone: bool) -> None:
    """Kill the raylet of a node in a moment, and unless ``alone`` its workers with it.

    Workers that outlive their raylet end by themselves, but play on for a second.
    """
    raylet = node.all_processes["raylet"][0].process.pid

    def kill() -> None:
        below = [] if alone else children(raylet)
        for pid in (raylet, *below):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    asyncio.get_running_loop().call_later(rng.uniform(0.0, 0.1), kill)


def children(parent: int) -> list[int]:
    """The processes that another one started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found
