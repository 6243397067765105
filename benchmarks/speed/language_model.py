"""Decisions per second of a language model in this process, compared with other ways to run it.

A decision is one action of the environment. The screens are those of the solver's episodes on the
simulated phone. They are the same for every way to run the model, and in order, so a prompt may
share a prefix with that of the step before. Prompts and replies are in the compact format. Times
are medians of interleaved runs.

- ``decisions_per_s``: of one agent (``solo``), four agents without messages (``team``), and four
  agents on a DAG in three rounds (``talk``), by the number of concurrent episodes. All agents use
  one adapter and see the elements in the same order. In ``team_shuffled`` each agent has its own
  order, and in ``team_adapters`` its own adapter, so both share less of their prompts;
- ``team_cost``: time of a team's decision over that of a single agent;
- ``vs_generate``, ``vs_generate_batched``: one agent against ``generate`` of transformers with the
  adapter merged, on the same prompts, one by one and in one batch. ``generate`` may write as
  many tokens as our reply has (in a batch, as the longest), and its prompts are tokenised before;
- ``merged_vs_routed``: time of concurrent episodes of one agent with the adapter added row by row,
  over that with the adapter merged into the weights;
- ``at_once``: the number of concurrent episodes in these ratios; ``repeats``, with other screens
  each time. ``talk``, which takes as long as all the others together, is measured once.

The agents' own adapters are the given one, changed a little for each but the first (``CHANGE``), as
separate training does: adapters with equal weights are computed as one.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch
from peft import PeftModel

from benchmarks.speed.report import Figures, Rows
from benchmarks.speed.screens import walks
from swarm_ui.environments.phone.templates import CORE
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes import CausalModel, adapter_folder
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Trace

AGENTS, ROUNDS = 4, 3
MAX_TOKENS = 12
"""A trained reply has 3 to 10; an untrained model goes on wherever text is free."""
TEMPERATURES = (0.2, 0.5, 0.6, 0.8)
"""Those of the paper."""
NOISE = 0.01
CHANGE = 0.02
"""Standard deviation of the relative change of weights between agents with the same adapter."""
SECONDS = 120.0
"""No repeat begins later."""
LABELS = {
    "solo": "one agent",
    "team": "four agents, no messages",
    "team_shuffled": "the same, each with its own order of elements",
    "team_adapters": "the same, each with its own adapter",
    "talk": "four agents, three rounds with messages",
    "generate": "`generate` of transformers, one agent, adapter merged",
}
Walks = Sequence[list[Observation]]


def with_adapters(
    model: CausalModel, names: Sequence[str], folders: Sequence[Path], rank: int = 8
) -> CausalModel:
    """Give the model an adapter for each name: those in the folders and changes of them, or, if
    there are none, random ones."""
    for k, own in enumerate(names):
        draw = torch.Generator().manual_seed(k)
        if folders:
            model.load_adapter(folders[k % len(folders)], own)
        else:
            model.add_adapter(own, rank=rank, alpha=2 * rank)
        with model.activate(own), torch.no_grad():
            for weight in model.adapter_parameters(own):
                noise = torch.randn(weight.shape, generator=draw)
                if not folders:
                    weight.copy_(NOISE * noise)
                elif k >= len(folders):
                    weight.mul_(1.0 + CHANGE * noise)
    return model


def teams(model: Any, names: Sequence[str | None]) -> dict[str, CollabGraph]:
    """The graphs to measure."""
    options: dict[str, Any] = {
        "model": model, "temperature": TEMPERATURES, "max_tokens": MAX_TOKENS, "seed": 0,
    }  # fmt: skip
    silent: dict[str, Any] = {"edges": [], **options}
    shared = [names[0]] * AGENTS
    made = CollabGraph.collaborative
    return {
        "solo": CollabGraph.solo(model, adapter=names[0], max_tokens=MAX_TOKENS),
        "team": made(AGENTS, 1, adapters=shared, **silent),
        "talk": made(AGENTS, ROUNDS, adapters=shared, **options),
        "team_shuffled": made(AGENTS, 1, adapters=shared, views="shuffle", **silent),
        "team_adapters": made(AGENTS, 1, adapters=names, **silent),
    }


async def decide(graph: CollabGraph, walks: Walks, at_once: int) -> list[Trace]:
    """Decide on every screen, with this number of concurrent episodes."""
    waiting, traces = list(reversed(walks)), list[Trace]()

    async def play() -> None:
        while waiting:
            for number, screen in enumerate(waiting.pop()):
                traces.append(await graph.run(screen, seed=number))

    await asyncio.gather(*(play() for _ in range(at_once)))
    return traces


@dataclass
class Ways:
    """All ways to run the model, and the decisions per second of each."""

    model: CausalModel
    names: Sequence[str]
    rates: dict[str, dict[int, list[float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        network = copy.deepcopy(self.model.module)
        assert isinstance(network, PeftModel)
        network.set_adapter(self.names[0])
        self._merged: Any = network.merge_and_unload(adapter_names=[self.names[0]])
        self._merged.train(False)
        self._bare = CausalModel(self._merged, self.model.tokenizer, prompt_format="compact")
        self._graphs = {
            **teams(self.model, self.names),
            "merged": CollabGraph.solo(self._bare, max_tokens=MAX_TOKENS),
        }

    def warm_up(self) -> None:
        """Run what is slow at first."""
        first = walks(tuple(CORE), 1, 1, seed=1)
        for name in ("solo", "merged"):
            [trace] = asyncio.run(decide(self._graphs[name], first, 1))
        self._generate([trace.calls[0].prompt], [2], 1)

    def measure(self, screens: Walks, at_once: int) -> None:
        """Decide on these screens in every way."""
        traces: dict[str, list[Trace]] = {}
        for name, graph in self._graphs.items():
            if name == "talk" and at_once in self.rates.get(name, {}):
                continue
            self.model.forget_prompts()
            self._bare.forget_prompts()
            began = time.perf_counter()
            traces[name] = asyncio.run(decide(graph, screens, at_once))
            self._add(name, at_once, len(traces[name]), time.perf_counter() - began)
        calls = [trace.calls[0] for trace in traces["solo"]]
        lengths = [call.usage.completion_tokens for call in calls]
        began = time.perf_counter()
        self._generate([call.prompt for call in calls], lengths, at_once)
        self._add("generate", at_once, len(calls), time.perf_counter() - began)

    def _add(self, name: str, at_once: int, decisions: int, seconds: float) -> None:
        self.rates.setdefault(name, {}).setdefault(at_once, []).append(decisions / seconds)

    def _generate(self, prompts: Sequence[str], lengths: Sequence[int], batch: int) -> None:
        """Continue all prompts greedily with transformers."""
        tokenizer, pad = self.model.tokenizer, self.model.pad_id
        read = [tokenizer(p, add_special_tokens=False)["input_ids"] for p in prompts]
        for first in range(0, len(read), batch):
            part = read[first : first + batch]
            longest = max(map(len, part))
            ids = torch.tensor([[pad] * (longest - len(p)) + p for p in part])
            mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in part])
            with torch.inference_mode():
                self._merged.generate(
                    input_ids=ids, attention_mask=mask, do_sample=False, pad_token_id=pad,
                    max_new_tokens=max(lengths[first : first + batch]),
                )  # fmt: skip


def measure_ways(ways: Ways, at_once: int, alone: int, repeats: int) -> Figures:
    """Measure all ways in turn, several times.

    Args:
        ways: what to measure.
        at_once: concurrent episodes of one decision each, beside one alone.
        alone: decisions of the episode alone.
        repeats: at most so many.
    """
    ways.warm_up()
    began = time.monotonic()
    for repeat in range(repeats):
        if repeat and time.monotonic() - began > SECONDS:
            break
        for many, count, steps in ((1, 1, alone), (at_once, at_once, 1)):
            ways.measure(walks(tuple(CORE), count, steps, seed=100 * repeat + many), many)
    rates = {
        name: {str(many): round(median(each), 2) for many, each in by.items()}
        for name, by in ways.rates.items()
    }
    one, more = "1", str(at_once)
    others = {name: rates.pop(name) for name in ("generate", "merged")}
    solo = rates["solo"]
    return {
        "decisions_per_s": rates,
        "others_per_s": others,
        "team_cost": {
            name: {n: round(solo[n] / by[n], 2) for n in (one, more)}
            for name, by in rates.items()
            if name != "solo"
        },
        "vs_generate": round(solo[one] / others["generate"][one], 2),
        "vs_generate_batched": round(solo[more] / others["generate"][more], 2),
        "merged_vs_routed": round(others["merged"][more] / solo[more], 2),
        "at_once": at_once,
        "repeats": len(ways.rates["solo"][1]),
    }


def measure(given: argparse.Namespace) -> Figures:
    """The figures of the language model that is named."""
    torch.set_num_threads(1)
    names = [f"agent_{k}" for k in range(AGENTS)]
    folders = [] if given.adapter is None else [adapter_folder(given.adapter)]
    model = with_adapters(CausalModel.named(given.model, prompt_format="compact"), names, folders)
    sizes = (4, 1, 1) if given.quick else (16, 2, 3)
    return measure_ways(Ways(model, names), *sizes)


def tables(found: Figures) -> Iterator[Rows]:
    """Decisions per second of all ways."""
    one, many = "1", str(found["at_once"])
    cells = []
    for name, label in LABELS.items():
        rates = {**found["decisions_per_s"], **found["others_per_s"]}[name]
        cost = found["team_cost"].get(name, {})
        shown = [f"{rates[n]:.2f}" if n in rates else "–" for n in (one, many)]
        times = ", ".join(f"{cost[n]:.2f}" for n in (one, many)) if cost else "–"
        cells.append([label, *shown, times])
    heads = ("", "one episode", f"{many} episodes", "time relative to one agent")
    yield Rows(f"Decisions per second, medians of {found['repeats']} repeats", heads, cells)
