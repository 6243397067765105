"""Decisions per second of a language model in this process, compared with other ways to run it.

A decision is one action of the environment. The screens are those of the solver's episodes on the
simulated phone, the same for every way to run the model, and in order, so a prompt may share a
prefix with that of the step before. Prompts and replies are in the compact format. Times are
medians of interleaved runs.

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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.speed.report import Figures, Rows
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment
from swarm_ui.environments.phone.templates import CORE
from swarm_ui.nodes import CausalModel, adapter_folder
from swarm_ui.observation import Observation
from swarm_ui.rollout import spread_jobs
from swarm_ui.trace.records import Trace

NAMES = tuple(f"agent_{k}" for k in range(4))
MAX_TOKENS = 12
"""A trained reply has 3 to 10; an untrained model goes on wherever text is free."""
TEMPERATURES = (0.2, 0.5, 0.6, 0.8)
"""Those of the paper."""
NOISE, CHANGE = 0.01, 0.02
"""Standard deviation of random weights, and of the relative change of given ones."""
LABELS = {
    "solo": "one agent",
    "team": "four agents, no messages",
    "team_shuffled": "the same, each with its own order of elements",
    "team_adapters": "the same, each with its own adapter",
    "talk": "four agents, three rounds with messages",
    "generate": "`generate` of transformers, one agent, adapter merged",
}


def walk(phone: PhoneEnvironment, task: str, seed: int, most: int) -> list[Observation]:
    """The first screens of an episode that the solver plays, at most ``most``."""
    found = [at_once(phone.reset(task=task, seed=seed))]
    while len(found) < most:
        step = at_once(phone.step(phone.expert()))
        if step.ended:
            break
        found.append(step.observation)
    return found


def walks(names: tuple[str, ...], count: int, most: int, seed: int) -> list[list[Observation]]:
    """The first screens of ``count`` training episodes of these tasks."""
    phone = PhoneEnvironment()
    return [walk(phone, *job, most) for job in spread_jobs(names, count, seed, TRAIN_SEEDS)]


def screens(names: tuple[str, ...], count: int) -> list[Observation]:
    """One screen of each of ``count`` training episodes, after zero to three steps."""
    phone = PhoneEnvironment()
    drawn = spread_jobs(names, count, 0, TRAIN_SEEDS)
    return [walk(phone, *job, 1 + place % 4)[-1] for place, job in enumerate(drawn)]


def with_adapters(model: CausalModel, folder: Path | None) -> CausalModel:
    """Give the model an adapter for each agent: that in the folder and changes of it, or random
    ones."""
    for k, own in enumerate(NAMES):
        draw = torch.Generator().manual_seed(k)
        if folder is None:
            model.add_adapter(own, rank=8, alpha=16)
        else:
            model.load_adapter(folder, own)
        with model.activate(own), torch.no_grad():
            for weight in model.adapter_parameters(own):
                noise = torch.randn(weight.shape, generator=draw)
                if folder is None:
                    weight.copy_(NOISE * noise)
                elif k:
                    weight.mul_(1.0 + CHANGE * noise)
    return model


def teams(model: Any) -> dict[str, CollabGraph]:
    """The graphs to measure."""
    options: dict[str, Any] = {
        "model": model, "temperature": TEMPERATURES, "max_tokens": MAX_TOKENS, "seed": 0,
    }  # fmt: skip
    silent: dict[str, Any] = {"edges": [], **options}
    shared, made = [NAMES[0]] * 4, CollabGraph.collaborative
    return {
        "solo": CollabGraph.solo(model, adapter=NAMES[0], max_tokens=MAX_TOKENS),
        "team": made(4, 1, adapters=shared, **silent),
        "talk": made(4, 3, adapters=shared, **options),
        "team_shuffled": made(4, 1, adapters=shared, views="shuffle", **silent),
        "team_adapters": made(4, 1, adapters=NAMES, **silent),
    }


def decided(
    graph: CollabGraph, walks: Sequence[list[Observation]], at_once: int
) -> tuple[list[Trace], float]:
    """Decisions on every screen, with this number of concurrent episodes, and the seconds."""
    waiting, traces = list(reversed(walks)), list[Trace]()

    async def play() -> None:
        while waiting:
            for number, screen in enumerate(waiting.pop()):
                traces.append(await graph.run(screen, seed=number))

    async def all_at_once() -> None:
        await asyncio.gather(*(play() for _ in range(at_once)))

    began = time.perf_counter()
    asyncio.run(all_at_once())
    return traces, time.perf_counter() - began


def generated(
    network: Any, model: CausalModel, prompts: Sequence[str], lengths: Sequence[int]
) -> float:
    """Seconds in which transformers continues all prompts greedily, in one batch."""
    pad = model.pad_id
    read = [model.tokenizer(p, add_special_tokens=False)["input_ids"] for p in prompts]
    longest = max(map(len, read))
    ids = torch.tensor([[pad] * (longest - len(p)) + p for p in read])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in read])
    began = time.perf_counter()
    with torch.inference_mode():
        network.generate(
            input_ids=ids, attention_mask=mask, do_sample=False, pad_token_id=pad,
            max_new_tokens=max(lengths),
        )  # fmt: skip
    return time.perf_counter() - began


def measure_ways(model: CausalModel, at_once: int, alone: int, repeats: int) -> Figures:
    """Measure all ways in turn, ``repeats`` times: ``at_once`` concurrent episodes of one decision
    each, and one alone of ``alone`` decisions."""
    network: Any = copy.deepcopy(model.module)
    network.set_adapter(NAMES[0])
    merged: Any = network.merge_and_unload(adapter_names=[NAMES[0]])
    merged.train(False)
    bare = CausalModel(merged, model.tokenizer, prompt_format="compact")
    graphs = {**teams(model), "merged": CollabGraph.solo(bare, max_tokens=MAX_TOKENS)}
    rates: dict[str, dict[str, list[float]]] = {}

    def measure(many: int, count: int, steps: int, repeat: int) -> None:
        screens, key = walks(tuple(CORE), count, steps, seed=100 * repeat + many), str(many)
        for name, graph in graphs.items():
            if name == "talk" and repeat:
                continue
            model.forget_prompts()
            bare.forget_prompts()
            traces, seconds = decided(graph, screens, many)
            rates.setdefault(name, {}).setdefault(key, []).append(len(traces) / seconds)
            if name == "solo":
                calls = [trace.calls[0] for trace in traces]
        prompts = [call.prompt for call in calls]
        lengths = [call.usage.completion_tokens for call in calls]
        parts = range(0, len(calls), many)
        seconds = sum(
            generated(merged, model, prompts[k : k + many], lengths[k : k + many]) for k in parts
        )
        rates.setdefault("generate", {}).setdefault(key, []).append(len(calls) / seconds)

    for name in ("solo", "merged"):  # what is slow at first
        decided(graphs[name], walks(tuple(CORE), 1, 1, seed=1), 1)
    for repeat in range(repeats):
        measure(1, 1, alone, repeat)
        measure(at_once, at_once, 1, repeat)
    return {**summary(rates, at_once), "at_once": at_once, "repeats": repeats}


def summary(rates: Mapping[str, Mapping[str, list[float]]], at_once: int) -> Figures:
    """Medians, and the ratios that the module describes."""
    found = {
        name: {many: round(median(each), 2) for many, each in by.items()}
        for name, by in rates.items()
    }
    one, more, solo = "1", str(at_once), found["solo"]
    others = {name: found.pop(name) for name in ("generate", "merged")}
    return {
        "decisions_per_s": found,
        "others_per_s": others,
        "team_cost": {
            name: {n: round(solo[n] / by[n], 2) for n in (one, more)}
            for name, by in found.items()
            if name != "solo"
        },
        "vs_generate": round(solo[one] / others["generate"][one], 2),
        "vs_generate_batched": round(solo[more] / others["generate"][more], 2),
        "merged_vs_routed": round(others["merged"][more] / solo[more], 2),
    }


def measure(given: argparse.Namespace) -> Figures:
    """The figures of the language model that is named."""
    torch.set_num_threads(1)
    folder = None if given.adapter is None else adapter_folder(given.adapter)
    model = with_adapters(CausalModel.named(given.model, prompt_format="compact"), folder)
    return measure_ways(model, *((4, 1, 1) if given.quick else (16, 2, 3)))


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
