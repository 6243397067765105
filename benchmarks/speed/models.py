"""Speed of models in this process, and the overhead of the team.

    python -m benchmarks.speed.models [--quick] [--peers] [--only agent text]
    python -m benchmarks.speed.models --only agent text --record

On one thread. *agent*: the shipped base agent with four adapters that differ.

- ``mixed_vs_one_by_one``: CPU time of 64 requests over the four adapters, sent one after the
  other, divided by that of the same requests sent concurrently (more is better);
- ``mixed_vs_base``: CPU time of the same 64 requests to the base model without adapters, sent
  concurrently, divided by that of the mixed batch (1: adapters cost nothing);
- ``orchestration_share``: the share of the wall time of a rollout (16 concurrent episodes on the
  phone; four agents on a DAG, three rounds, a vote) that is spent neither in the model nor in the
  environment, but in agents, graph, parsing, trace and event loop; ``tokens_per_s`` of it;
- ``forward_ms``: CPU time of one forward of 64 rows with 48 tokens or 1 token each, over the four
  adapters: of the base model alone, with this library's routing, and with peft's ``adapter_names``.

*text*: a language model (``--model``, default SmolLM2); see benchmarks.speed.language_model.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace

os.environ.setdefault("OMP_NUM_THREADS", "1")

import msgspec
import torch

from benchmarks.speed import language_model
from benchmarks.speed.report import Figures, Rows, Section, command, number
from benchmarks.speed.screens import screens
from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, draw_jobs
from swarm_ui.environments.phone.templates import CORE
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.observation import Observation
from swarm_ui.rollout import GraphPolicy, rollout_many

REQUESTS, ADAPTERS, ROUNDS, EPISODES, NOISE = 64, 4, 3, 16, 0.02
PEFT = "peft's"


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


async def at_once(model: LocalModel, asked: list[Request]) -> list[Completion]:
    """Send every request from a separate coroutine, as agents do."""
    model.forget_prompts()
    return [c for [c] in await asyncio.gather(*(model.generate([r]) for r in asked))]


async def one_by_one(model: LocalModel, asked: list[Request]) -> list[Completion]:
    model.forget_prompts()
    return [(await model.generate([request]))[0] for request in asked]


def measure_batches(model: LocalModel, repeats: int) -> dict[str, float]:
    """Median CPU seconds for all requests, by the way they are sent."""
    shown = screens(tuple(CORE), REQUESTS)
    plain = [Request(decision=Decision(observation=screen)) for screen in shown]
    mixed = [
        msgspec.structs.replace(request, adapter=f"agent_{k % ADAPTERS}")
        for k, request in enumerate(plain)
    ]
    ways: dict[str, Callable[[], Awaitable[list[Completion]]]] = {
        "mixed": lambda: at_once(model, mixed),
        "base": lambda: at_once(model, plain),
        "one_by_one": lambda: one_by_one(model, mixed),
    }

    async def run() -> dict[str, float]:
        times: dict[str, list[float]] = {name: [] for name in ways}
        texts = {name: [c.text for c in await ask()] for name, ask in ways.items()}  # warms up
        if texts["mixed"] != texts["one_by_one"]:
            raise SystemExit("the mixed batch and one-by-one give different replies")
        for _ in range(repeats):
            for name, ask in ways.items():
                began = time.process_time()
                await ask()
                times[name].append(time.process_time() - began)
        return {name: statistics.median(each) for name, each in times.items()}

    return asyncio.run(run())


def measure_forward(model: LocalModel, tokens: int, repeats: int) -> dict[str, float]:
    """Median CPU seconds of one forward with this number of tokens a row, by routing method."""
    ids = torch.randint(3, 600, (REQUESTS, tokens), generator=torch.Generator().manual_seed(0))
    names = sorted(f"agent_{k % ADAPTERS}" for k in range(REQUESTS))
    peft = model.module
    leased = [model.lease(name) for name in names]

    def routed(versions: list[str | None]) -> None:
        with model.routed(versions) as network:
            network(input_ids=ids)

    ways: dict[str, Callable[[], object]] = {
        "base": lambda: routed([None] * REQUESTS),
        "ours": lambda: routed([*leased]),
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


class TimedPhone(PhoneEnvironment):
    """A phone that measures the time spent in it: no other coroutine runs during its steps."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def reset(self, *, task: str, seed: int) -> Observation:
        began = time.perf_counter()
        screen = await super().reset(task=task, seed=seed)
        self._clock.seconds += time.perf_counter() - began
        return screen

    async def step(self, action: Action) -> Step:
        began = time.perf_counter()
        step = await super().step(action)
        self._clock.seconds += time.perf_counter() - began
        return step


def measure_rollout(model: LocalModel, first: int) -> tuple[float, float]:
    """One rollout of the team, on the jobs from number ``first``: the share of orchestration, and
    tokens per second."""
    names = [f"agent_{k}" for k in range(ADAPTERS)]
    graph = CollabGraph.collaborative(
        ADAPTERS, ROUNDS, model=model, adapters=names, temperature=0.8, views="shuffle",
        density=0.5, seed=0,
    )  # fmt: skip
    jobs = draw_jobs(tuple(CORE), first + EPISODES, seed=1, seeds=TRAIN_SEEDS)[first:]
    clock, before = Clock(), replace(model.counters)
    began = time.perf_counter()
    asyncio.run(
        rollout_many(lambda: TimedPhone(clock), GraphPolicy(graph), jobs, concurrency=EPISODES)
    )
    wall, done = time.perf_counter() - began, model.counters
    tokens = done.prompt_tokens + done.completion_tokens
    tokens -= before.prompt_tokens + before.completion_tokens
    return (wall - (done.seconds - before.seconds) - clock.seconds) / wall, tokens / wall


def measure_agent(given: argparse.Namespace) -> Figures:
    """The figures of the base agent."""
    torch.set_num_threads(1)
    model, quick = team_model(), given.quick
    cpu = measure_batches(model, 2 if quick else 7)
    measure_rollout(model, 0)  # warms up
    rollouts = [measure_rollout(model, EPISODES * k) for k in range(1, 2 if quick else 5)]
    shares, rates = zip(*rollouts, strict=True)
    return {
        "cpu_ms": {name: round(seconds * 1000, 1) for name, seconds in cpu.items()},
        "mixed_vs_one_by_one": round(cpu["one_by_one"] / cpu["mixed"], 2),
        "mixed_vs_base": round(cpu["base"] / cpu["mixed"], 3),
        "orchestration_share": round(statistics.median(shares), 3),
        "tokens_per_s": round(statistics.median(rates)),
        "forward_ms": {
            str(tokens): {
                way: round(seconds * 1000, 2)
                for way, seconds in measure_forward(model, tokens, 10 if quick else 50).items()
            }
            for tokens in (48, 1)
        },
    }


def tables(found: Figures) -> Iterator[Rows]:
    """The figures of the base agent."""
    names = ("mixed_vs_one_by_one", "mixed_vs_base", "orchestration_share", "tokens_per_s")
    cells = [[name, number(found[name])] for name in names]
    for tokens, ways in found.get("forward_ms", {}).items():
        cells += [[f"a forward of 64 x {tokens}, {way}, CPU ms", ms] for way, ms in ways.items()]
    yield Rows("base agent, four adapters", ["", "value"], cells)


SECTIONS = {
    "agent": Section(measure_agent, tables),
    "text": Section(language_model.measure, language_model.tables, "local_model", "models.md"),
}

if __name__ == "__main__":
    sys.exit(
        command(
            "models", __doc__, SECTIONS,
            ("--model", {"default": "smollm2", "help": "name or folder of a language model"}),
            ("--adapter", {"help": "its adapter, such as smollm2-phone; else random ones"}),
        )
    )  # fmt: skip
