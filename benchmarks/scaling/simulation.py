"""Discrete-event simulation of rollouts in many workers, with simpy.

A driver hands a job to each free worker. The worker plays it: for each decision it computes, asks
the limiter if its permits are used up, and waits for the model server. The driver then receives the
episode, after which the worker continues, and a thread writes all episodes that have arrived with
one write. Receiving and encoding occupy the driver's interpreter, so the episodes of all workers
queue there; the wait for the disk occupies only the thread. At most as many episodes as there are
workers wait beside those that are being written. Failures are not simulated, and neither is the
network, except that Ray's measured costs contain it for one machine.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.scaling.latencies import Latencies
from swarm_ui.trace.jsonl import UNWRITTEN

Process = Generator[Any, Any, None]

WINDOW = (0.2, 0.8)
"""The rate is that between these shares of all episodes: without start and end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Measured seconds of work."""

    receive: float
    """Seconds in which the driver's event loop hands out a job and receives its episode."""
    write: float
    """Seconds in which the driver encodes an episode for the trace. A thread does this, but the
    event loop cannot run meanwhile."""
    commit: float
    """Seconds of the disk for a group of episodes of any size; only the thread waits."""
    flush: float = 0.0
    """Additional seconds of the disk for each episode of a group."""
    ray: float
    """CPU of Ray's own processes for an episode."""
    episode: float
    """CPU of a worker for an episode, besides its decisions."""
    decision: float
    """CPU of a worker for a decision."""
    limiter: float
    """Of the limiter, for one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A cluster, and the work of each worker."""

    workers: int
    episodes: int = 8
    """Episodes of a worker."""
    decisions: int = 5
    latencies: Latencies
    jobs: tuple[str, ...] = ()
    """Names of the episodes, from which their latencies are drawn; empty: their numbers."""
    slots: int = 0
    """Requests that the model server answers at the same time; 0: any number."""
    lease: int = 0
    """Decisions that a worker may make for one request to the limiter; 0: no limiter."""
    together: int = UNWRITTEN
    """The most episodes that are written at once, if so many have arrived."""
    cores: int = 0
    """Cores that all processes share, as on one machine; 0: the driver and Ray's processes beside
    it have a core each, and so has each group of 16 workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a simulation."""

    rate: float
    """Episodes per second, without start and end."""
    efficiency: float
    """``rate`` over that of workers that never wait for anything but the model's latency."""
    busy: Mapping[str, float]
    """Share of the time in which each shared part was busy. Of the trace writer, the share of the
    most that it can write: with few episodes it is busy with small groups."""

    @property
    def bottleneck(self) -> str:
        """The part that was busy for the largest share of the time."""
        return max(self.busy, key=lambda part: self.busy[part])


def ideal_rate(setup: Setup, costs: Costs) -> float:
    """Episodes per second of one worker that waits for nothing but the model's latency."""
    return 1 / (costs.episode + setup.decisions * (costs.decision + setup.latencies.mean))


def capacity(setup: Setup, costs: Costs) -> dict[str, float]:
    """The most episodes per second that each shared part can serve."""
    group = costs.commit + setup.together * (costs.write + costs.flush)
    parts = {
        "driver's loop": 1 / (costs.receive + costs.write),
        "trace writer": setup.together / group if group else float("inf"),
    }
    parts["Ray's processes"] = 1 / costs.ray if costs.ray else float("inf")
    if setup.slots:
        parts["model server"] = setup.slots / (setup.decisions * setup.latencies.mean)
    if setup.lease:
        parts["limiter"] = setup.lease / (setup.decisions * costs.limiter)
    if setup.cores:
        work = costs.receive + costs.write + costs.ray + costs.episode
        parts["cores"] = setup.cores / (work + setup.decisions * costs.decision)
    return parts


def binds_at(setup: Setup, costs: Costs) -> dict[str, float]:
    """The number of workers at which each shared part would be always busy."""
    one = ideal_rate(setup, costs)
    return {part: rate / one for part, rate in capacity(setup, costs).items()}


def simulate(setup: Setup, costs: Costs) -> Outcome:
    """Play all episodes of all workers. Equal arguments give equal outcomes."""
    import simpy

    return _Run(simpy, setup, costs).outcome()


class _Part:
    """A shared part with room for some jobs at a time, and how long it was busy."""

    def __init__(self, simpy: Any, env: Any, room: int) -> None:
        self._env, self._resource, self._room = env, simpy.Resource(env, room), room
        self._busy = 0.0

    def use(self, seconds: float) -> Process:
        """Occupy one place for some time."""
        return self.hold(_pause(self._env, seconds))

    def hold(self, work: Process) -> Process:
        """Occupy one place until ``work`` is done."""
        with self._resource.request() as turn:
            yield turn
            began = self._env.now
            yield from work
            self._busy += self._env.now - began

    def share(self, until: float) -> float:
        return self._busy / (until * self._room) if until else 0.0


def _pause(env: Any, seconds: float) -> Process:
    yield env.timeout(seconds)


class _Run:
    def __init__(self, simpy: Any, setup: Setup, costs: Costs) -> None:
        self._setup, self._costs = setup, costs
        self._env = env = simpy.Environment()
        self._loop = _Part(simpy, env, 1)
        shared = _Part(simpy, env, setup.cores) if setup.cores else None
        self._cores = shared
        self._ray = shared or _Part(simpy, env, 1)
        groups = -(-setup.workers // 16)
        self._own = [shared or _Part(simpy, env, 1) for _ in range(groups)]
        self._server = _Part(simpy, env, setup.slots) if setup.slots else None
        self._limiter = _Part(simpy, env, 1) if setup.lease else None
        count = setup.workers * setup.episodes
        self._jobs = iter(setup.jobs or map(str, range(count)))
        self._ended: list[float] = []
        self._unwritten = simpy.Store(env, setup.workers)
        env.process(self._writer())
        for worker in range(setup.workers):
            env.process(self._worker(worker))

    def outcome(self) -> Outcome:
        self._env.run()
        ends = sorted(self._ended)
        first, last = (ends[int((len(ends) - 1) * share)] for share in WINDOW)
        counted = int((len(ends) - 1) * WINDOW[1]) - int((len(ends) - 1) * WINDOW[0])
        rate = counted / (last - first) if last > first else float("inf")
        ideal = self._setup.workers * ideal_rate(self._setup, self._costs)
        parts = {"driver's loop": self._loop}
        parts |= {"Ray's processes": self._ray} if self._cores is None else {"cores": self._cores}
        if self._server is not None:
            parts["model server"] = self._server
        if self._limiter is not None:
            parts["limiter"] = self._limiter
        busy = {name: part.share(ends[-1]) for name, part in parts.items()}
        busy["trace writer"] = rate / capacity(self._setup, self._costs)["trace writer"]
        return Outcome(rate=rate, efficiency=rate / ideal, busy=busy)

    def _worker(self, worker: int) -> Process:
        setup, costs, own = self._setup, self._costs, self._own[worker // 16]
        allowed = 0
        for job in self._jobs:  # all workers take from the same list
            yield from own.use(costs.episode)
            for decision in range(setup.decisions):
                if self._limiter is not None:
                    if not allowed:
                        yield from self._limiter.use(costs.limiter)
                        allowed = setup.lease
                    allowed -= 1
                yield from own.use(costs.decision)
                latency = setup.latencies.of(f"{job}/{decision}")
                if self._server is None:
                    yield self._env.timeout(latency)
                else:
                    yield from self._server.use(latency)
            yield from self._ray.use(costs.ray)
            yield from self._received()

    def _received(self) -> Process:
        """Receiving takes the driver's interpreter and a core; then the episode waits for the
        writer."""
        yield from self._driver_works(self._costs.receive)
        yield self._unwritten.put(None)

    def _driver_works(self, seconds: float) -> Process:
        part, work = self._cores, _pause(self._env, seconds)
        yield from self._loop.hold(work if part is None else part.hold(work))

    def _writer(self) -> Process:
        """Writes all episodes that have arrived, one group after the other."""
        setup = self._setup
        while len(self._ended) < setup.workers * setup.episodes:
            yield self._unwritten.get()
            batch = 1
            while batch < setup.together and self._unwritten.items:
                yield self._unwritten.get()
                batch += 1
            yield from self._group(batch)
            self._ended += [self._env.now] * batch

    def _group(self, batch: int) -> Process:
        for _ in range(batch):  # the interpreter changes between the threads all the time
            yield from self._driver_works(self._costs.write)
        yield self._env.timeout(self._costs.commit + batch * self._costs.flush)
