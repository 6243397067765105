"""Speed of models in this process, and the cost of adapters.

    python -m benchmarks.speed.models [--quick] [--peers] [--only agent text]
    python -m benchmarks.speed.models --only agent text --record

On one thread. *agent*: the shipped base agent with four adapters that differ.

- ``mixed_vs_one_by_one``: CPU time of 64 requests over the four adapters, sent one after the
  other, divided by that of the same requests sent concurrently (more is better);
- ``mixed_vs_base``: CPU time of the same 64 requests to the base model without adapters, sent
  concurrently, divided by that of the mixed batch (1: adapters cost nothing);
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

os.environ.setdefault("OMP_NUM_THREADS", "1")

import msgspec
import torch

from benchmarks.speed import language_model
from benchmarks.speed.report import Figures, Rows, Section, command, number
from swarm_ui.environments.phone.templates import CORE
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

REQUESTS, ADAPTERS, NOISE = 64, 4, 0.02
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
    shown = language_model.screens(tuple(CORE), REQUESTS)
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


def measure_agent(given: argparse.Namespace) -> Figures:
    """The figures of the base agent."""
    torch.set_num_threads(1)
    model, quick = team_model(), given.quick
    cpu = measure_batches(model, 2 if quick else 7)
    return {
        "cpu_ms": {name: round(seconds * 1000, 1) for name, seconds in cpu.items()},
        "mixed_vs_one_by_one": round(cpu["one_by_one"] / cpu["mixed"], 2),
        "mixed_vs_base": round(cpu["base"] / cpu["mixed"], 3),
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
    names = ("mixed_vs_one_by_one", "mixed_vs_base")
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
