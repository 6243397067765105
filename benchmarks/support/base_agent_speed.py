"""Speed of the base agent in this process with four adapters, and the overhead of the team.

Used by ``benchmarks/local_model.py``, which describes the figures.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import msgspec
import torch

from benchmarks.support.solver_screens import screens
from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, draw_jobs
from swarm_ui.environments.phone.templates import CORE
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.observation import Observation
from swarm_ui.rollout import GraphPolicy, rollout_many

REQUESTS = 64
ADAPTERS = 4
ROUNDS = 3
EPISODES = 16
NOISE = 0.02
PEFT = "peft's"
MIXED, BASE, ONE_BY_ONE = "4 adapters at once", "base model at once", "4 adapters one by one"


def team_model() -> LocalModel:
    """The shipped agent with four adapters that differ."""
    model = LocalModel.load()
    generator = torch.Generator().manual_seed(0)
    for k in range(ADAPTERS):
        model.add_adapter(f"agent_{k}")
        with model.activate(f"agent_{k}"), torch.no_grad():
            for weight in model.adapter_parameters(f"agent_{k}"):
                weight.add_(NOISE * torch.randn(weight.shape, generator=generator))
    return model


def requests() -> tuple[list[Request], list[Request]]:
    """The same requests to the base model, and to the adapters in turn."""
    plain = [
        Request(decision=Decision(observation=screen)) for screen in screens(tuple(CORE), REQUESTS)
    ]
    return plain, [
        msgspec.structs.replace(request, adapter=f"agent_{k % ADAPTERS}")
        for k, request in enumerate(plain)
    ]


async def at_once(model: LocalModel, asked: list[Request]) -> list[Completion]:
    """Send every request from a separate coroutine, as agents do."""
    model.forget_prompts()
    return [c for [c] in await asyncio.gather(*(model.generate([r]) for r in asked))]


async def one_by_one(model: LocalModel, asked: list[Request]) -> list[Completion]:
    model.forget_prompts()
    return [(await model.generate([request]))[0] for request in asked]


def measure_batches(model: LocalModel, repeats: int) -> dict[str, float]:
    """Median CPU seconds for all requests, by the way they are sent."""
    plain, mixed = requests()
    ways: dict[str, Callable[[], Awaitable[list[Completion]]]] = {
        MIXED: lambda: at_once(model, mixed),
        BASE: lambda: at_once(model, plain),
        ONE_BY_ONE: lambda: one_by_one(model, mixed),
    }

    async def run() -> dict[str, float]:
        times: dict[str, list[float]] = {name: [] for name in ways}
        texts = {name: [c.text for c in await ask()] for name, ask in ways.items()}  # warms up
        if texts[MIXED] != texts[ONE_BY_ONE]:
            raise SystemExit("the mixed batch and one-by-one give different replies")
        for _ in range(repeats):
            for name, ask in ways.items():
                began = time.process_time()
                await ask()
                times[name].append(time.process_time() - began)
        return {name: statistics.median(each) for name, each in times.items()}

    return asyncio.run(run())


def measure_forward(model: LocalModel, tokens: int, repeats: int) -> dict[str, float]:
    """Median CPU seconds of one forward with this number of rows, by routing method."""
    ids = torch.randint(3, 600, (REQUESTS, tokens), generator=torch.Generator().manual_seed(0))
    names = sorted(f"agent_{k % ADAPTERS}" for k in range(REQUESTS))
    peft = model.module
    leased = [model.lease(name) for name in names]

    def ours() -> None:
        with model.routed(leased) as network:
            network(input_ids=ids)

    def base() -> None:
        with model.routed([None] * REQUESTS) as network:
            network(input_ids=ids)

    ways: dict[str, Callable[[], object]] = {
        "base": base,
        "ours": ours,
        PEFT: lambda: peft(input_ids=ids, adapter_names=names),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    with torch.inference_mode():
        for _ in range(repeats):
            for name, run in ways.items():
                began = time.process_time()
                run()
                times[name].append(time.process_time() - began)
    for version in leased:
        model.release(version)
    return {name: statistics.median(each) for name, each in times.items()}


@dataclass
class Clock:
    """Adds up periods of wall time."""

    seconds: float = field(default=0.0)

    async def during(self, work: Awaitable[Observation] | Awaitable[Step]) -> Observation | Step:
        # The phone never awaits anything, so no other coroutine runs during a step.
        began = time.perf_counter()
        done = await work
        self.seconds += time.perf_counter() - began
        return done


class TimedPhone(PhoneEnvironment):
    """A phone that measures the time spent in it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def reset(self, *, task: str, seed: int) -> Observation:
        done = await self._clock.during(super().reset(task=task, seed=seed))
        assert isinstance(done, Observation)
        return done

    async def step(self, action: Action) -> Step:
        done = await self._clock.during(super().step(action))
        assert isinstance(done, Step)
        return done


@dataclass(frozen=True)
class Rollout:
    """The time of a rollout by its use, in seconds, and its counts."""

    wall: float
    model: float
    environment: float
    decisions: int
    calls: int
    tokens: int

    @property
    def orchestration(self) -> float:
        return (self.wall - self.model - self.environment) / self.wall


def measure_rollout(model: LocalModel, first: int) -> Rollout:
    """One rollout of the team, on the jobs from number ``first``."""
    names = [f"agent_{k}" for k in range(ADAPTERS)]
    graph = CollabGraph.collaborative(
        ADAPTERS, ROUNDS, model=model, adapters=names, temperature=0.8, views="shuffle",
        density=0.5, seed=0,
    )  # fmt: skip
    jobs = draw_jobs(tuple(CORE), first + EPISODES, seed=1, seeds=TRAIN_SEEDS)[first:]
    clock, before = Clock(), replace(model.counters)
    began = time.perf_counter()
    episodes = asyncio.run(
        rollout_many(lambda: TimedPhone(clock), GraphPolicy(graph), jobs, concurrency=EPISODES)
    )
    wall = time.perf_counter() - began
    done = model.counters
    return Rollout(
        wall=wall,
        model=done.seconds - before.seconds,
        environment=clock.seconds,
        decisions=sum(len(episode.steps) for episode in episodes),
        calls=done.calls - before.calls,
        tokens=done.prompt_tokens + done.completion_tokens
        - before.prompt_tokens - before.completion_tokens,
    )  # fmt: skip


def measure_agent(quick: bool) -> tuple[dict[str, str], dict[str, object]]:
    """Rows of the table and fields of the JSON line: of the base agent."""
    model = team_model()
    cpu = measure_batches(model, 2 if quick else 7)
    measure_rollout(model, 0)  # warms up
    rollouts = [measure_rollout(model, EPISODES * k) for k in range(1, 2 if quick else 5)]
    wall = sum(r.wall for r in rollouts)
    forwards = {
        str(tokens): {
            way: round(seconds * 1000, 2)
            for way, seconds in measure_forward(model, tokens, 10 if quick else 50).items()
        }
        for tokens in (48, 1)
    }
    figures: dict[str, object] = {
        "mixed_vs_one_by_one": round(cpu[ONE_BY_ONE] / cpu[MIXED], 2),
        "mixed_vs_base": round(cpu[BASE] / cpu[MIXED], 3),
        "orchestration_share": round(statistics.median(r.orchestration for r in rollouts), 3),
        "tokens_per_s": round(statistics.median(r.tokens / r.wall for r in rollouts)),
        "forward_ms": forwards,
    }
    rows = {
        **{
            f"{REQUESTS} requests, {name}, ms CPU": f"{seconds * 1000:.1f}"
            for name, seconds in cpu.items()
        },
        **{
            f"a forward of {REQUESTS} x {tokens} tokens, {way}, ms CPU": f"{ms:.2f}"
            for tokens, ways in forwards.items()
            for way, ms in ways.items()
        },
        "one by one / mixed": f"{figures['mixed_vs_one_by_one']}",
        "base / mixed": f"{figures['mixed_vs_base']}",
        "rollouts, decisions, calls": f"{len(rollouts)}, {sum(r.decisions for r in rollouts)}, "
        f"{sum(r.calls for r in rollouts)}",
        "rollout: in the model": f"{sum(r.model for r in rollouts) / wall:.1%}",
        "rollout: in the environment": f"{sum(r.environment for r in rollouts) / wall:.1%}",
        "rollout: orchestration": f"{sum(r.orchestration * r.wall for r in rollouts) / wall:.1%}",
        "rollout: tokens/s": f"{figures['tokens_per_s']:,}",
        "torch threads": f"{torch.get_num_threads()}",
    }
    return rows, figures
