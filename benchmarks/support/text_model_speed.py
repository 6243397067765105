"""Decisions per second of a language model in this process, compared with other ways to run it.

Used by ``benchmarks/local_model.py --model NAME``. A decision is one action of the environment.
The screens are those of the solver's episodes on the simulated phone. They are the same for every
way to run the model, and in order, so a prompt may share a prefix with that of the step before.
Prompts and replies are in the compact format.

- ``decisions_per_s``: of one agent (``solo``), four agents without messages (``team``), and four
  agents on a DAG in three rounds (``talk``), by the number of concurrent episodes. All agents use
  one adapter and see the elements in the same order. In ``team_shuffled`` each agent has its own
  order, and in ``team_adapters`` its own adapter, so both share less of their prompts;
- ``team_cost``: time of a team's decision over that of a single agent;
- ``vs_generate``, ``vs_generate_batched``: one agent against ``generate`` of transformers with the
  adapter merged, on the same prompts, one by one and in one batch. ``generate`` may write as
  many tokens as our reply has (in a batch, as the longest), and its prompts are tokenised before;
- ``vs_vllm``: concurrent episodes of one agent against a server of the same model, which loads the
  same adapter and writes without a constraint; null without a server;
- ``merged_vs_routed``: time of concurrent episodes of one agent with the adapter added row by row,
  over that with the adapter merged into the weights;
- ``at_once``: the number of concurrent episodes in these ratios;
- ``repeats``: of all measurements, with other screens each time. ``talk``, which takes as long as
  all the others together, is measured once.

The agents' own adapters are the given one, changed a little for each but the first (``CHANGE``), as
separate training does: adapters with equal weights are computed as one.

``OMP_NUM_THREADS`` sets the number of threads of torch.
"""

from __future__ import annotations

import asyncio
import copy
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel

from benchmarks.support.solver_screens import walks
from swarm_ui.environments.phone.templates import CORE
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes import (
    ActorModel,
    CausalModel,
    ChatOptions,
    OpenAIModel,
    RateLimits,
    adapter_folder,
)
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
Walk = list[Observation]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    at_once: int = 16
    """Concurrent episodes, beside one alone; one decision in each."""
    alone: int = 2
    """Decisions of one episode alone."""
    repeats: int = 3
    seconds: float = 120.0
    """No repeat begins later, so that all takes at most six minutes with the start of a server."""


QUICK = Sizes(at_once=4, alone=1, repeats=1)


@dataclass(frozen=True)
class TextFigures:
    """Rows of the table, and fields of the JSON line."""

    rows: dict[str, str]
    figures: dict[str, object]


def teams(model: Any, names: Sequence[str | None]) -> dict[str, CollabGraph]:
    """The graphs to measure."""
    options: dict[str, Any] = {
        "model": model, "temperature": TEMPERATURES, "max_tokens": MAX_TOKENS, "seed": 0,
    }  # fmt: skip
    shared = [names[0]] * AGENTS
    return {
        "solo": CollabGraph.solo(model, adapter=names[0], max_tokens=MAX_TOKENS),
        "team": CollabGraph.collaborative(AGENTS, 1, edges=[], adapters=shared, **options),
        "talk": CollabGraph.collaborative(AGENTS, ROUNDS, adapters=shared, **options),
        "team_shuffled": CollabGraph.collaborative(
            AGENTS, 1, edges=[], adapters=shared, views="shuffle", **options
        ),
        "team_adapters": CollabGraph.collaborative(AGENTS, 1, edges=[], adapters=names, **options),
    }


async def decide(graph: CollabGraph, walks: Sequence[Walk], at_once: int) -> list[Trace]:
    """Decide on every screen, with this number of concurrent episodes."""
    waiting, traces = list(reversed(walks)), list[Trace]()

    async def play() -> None:
        while waiting:
            for number, screen in enumerate(waiting.pop()):
                traces.append(await graph.run(screen, seed=number))

    await asyncio.gather(*(play() for _ in range(at_once)))
    return traces


class Generate:
    """The ``generate`` of transformers, with the adapter merged."""

    def __init__(self, model: CausalModel, merged: Any) -> None:
        self.network, self.tokenizer, self.pad = merged, model.tokenizer, model.pad_id

    def seconds(
        self, prompts: Sequence[str], lengths: Sequence[int], batch: int, clock: Clock
    ) -> float:
        """Time to continue all prompts greedily."""
        read = [self.tokenizer(p, add_special_tokens=False)["input_ids"] for p in prompts]
        began = clock()
        for first in range(0, len(read), batch):
            part = read[first : first + batch]
            longest = max(map(len, part))
            ids = torch.tensor([[self.pad] * (longest - len(p)) + p for p in part])
            mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in part])
            with torch.inference_mode():
                self.network.generate(
                    input_ids=ids, attention_mask=mask, do_sample=False, pad_token_id=self.pad,
                    max_new_tokens=max(lengths[first : first + batch]),
                )  # fmt: skip
        return clock() - began


def with_adapters(name: str, adapter: str | None) -> tuple[CausalModel, list[str]]:
    """The model, and the names of four adapters: from a given one, or random ones."""
    model = CausalModel.named(name, prompt_format="compact")
    names = [f"agent_{k}" for k in range(AGENTS)]
    generator = torch.Generator().manual_seed(0)
    for k, own in enumerate(names):
        if adapter is None:
            model.add_adapter(own)
        else:
            model.load_adapter(adapter_folder(adapter), own)
        with model.activate(own), torch.no_grad():
            for weight in model.adapter_parameters(own):
                noise = torch.randn(weight.shape, generator=generator)
                if adapter is None:
                    weight.add_(NOISE * noise)
                elif k:
                    weight.mul_(1.0 + CHANGE * noise)
    return model, names


def merged(model: CausalModel, name: str) -> Any:
    """A copy of the network with an adapter in its weights."""
    network = copy.deepcopy(model.module)
    assert isinstance(network, PeftModel)
    network.set_adapter(name)
    whole = network.merge_and_unload(adapter_names=[name])
    whole.train(False)
    return whole


class Rates:
    """Decisions per second, by way and number of concurrent episodes."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, int], list[float]] = {}

    def add(self, name: str, at_once: int, decisions: int, seconds: float) -> None:
        self._all.setdefault((name, at_once), []).append(decisions / seconds)

    def has(self, name: str, at_once: int) -> bool:
        """Whether there is a measurement."""
        return (name, at_once) in self._all

    def median(self, name: str, at_once: int) -> float:
        return statistics.median(self._all[name, at_once])

    @property
    def repeats(self) -> int:
        """Number of measurements of what was measured most often."""
        return max(len(each) for each in self._all.values())

    def table(self) -> dict[str, dict[str, float]]:
        out: dict[str, dict[str, float]] = {}
        for name, at_once in self._all:
            out.setdefault(name, {})[str(at_once)] = round(self.median(name, at_once), 2)
        return out


def measure_text_model(
    name: str,
    adapter: str | None,
    url: str | None,
    *,
    sizes: Sizes,
    clock: Clock = time.perf_counter,
) -> TextFigures:
    """Run all ways in turn, several times; ``url``: of a vLLM server that serves the model."""
    model, names = with_adapters(name, adapter)
    with tempfile.TemporaryDirectory() as beside:
        served = None if url is None else asyncio.run(actor(model, url, Path(beside)))
        ways = _Ways(model, names, served)
        ways.warm_up(clock)
        began = time.monotonic()
        for repeat in range(sizes.repeats):
            if repeat and time.monotonic() - began > sizes.seconds:
                break
            for at_once, count, steps in ((1, 1, sizes.alone), (sizes.at_once, sizes.at_once, 1)):
                screens = walks(tuple(CORE), count, steps, seed=100 * repeat + at_once)
                ways.measure(screens, at_once, clock)
        if served is not None:
            asyncio.run(served.close())
    return _figures(ways, sizes.at_once)


async def actor(model: CausalModel, url: str, folder: Path) -> ActorModel:
    """A server's model with the adapters of the model in this process."""
    options: dict[str, Any] = {
        "api_key": "none", "limits": RateLimits(concurrency=64),
        "max_retries": 1, "timeout": 1800.0, "options": ChatOptions(send_seed=True),
    }  # fmt: skip
    asked = OpenAIModel("unknown", url, **options)
    [base] = [each.name for each in await asked.served() if each.parent is None]
    await asked.close()
    found = ActorModel(OpenAIModel(base, url, **options), model, folder, constrained=False)
    await found.check()
    return found


class _Ways:
    """All ways to run the model, and their rates."""

    def __init__(self, model: CausalModel, names: Sequence[str], served: ActorModel | None) -> None:
        plain = merged(model, names[0])
        self._model, self._generate = model, Generate(model, plain)
        self._bare = CausalModel(plain, model.tokenizer, prompt_format="compact")
        self._graphs = teams(model, names)
        self._alone = CollabGraph.solo(self._bare, max_tokens=MAX_TOKENS)
        self._served = (
            None
            if served is None
            else CollabGraph.solo(served, adapter=names[0], max_tokens=MAX_TOKENS)
        )
        self.rates, self.others = Rates(), Rates()

    def warm_up(self, clock: Clock) -> None:
        """Run what is slow at first; with a server, this loads the adapter."""
        graphs = [self._graphs["solo"], self._alone, *filter(None, [self._served])]
        for graph in graphs:
            [trace] = asyncio.run(decide(graph, walks(tuple(CORE), 1, 1, seed=1), 1))
        self._generate.seconds([trace.calls[0].prompt], [2], 1, clock)

    def measure(self, screens: Sequence[Walk], at_once: int, clock: Clock) -> None:
        """Decide on these screens in every way."""
        traces: dict[str, list[Trace]] = {}
        for name, graph in self._graphs.items():
            if name == "talk" and self.rates.has(name, at_once):
                continue
            self._model.forget_prompts()
            seconds, traces[name] = _timed(graph, screens, at_once, clock)
            self.rates.add(name, at_once, len(traces[name]), seconds)
        calls = [trace.calls[0] for trace in traces["solo"]]
        lengths = [call.usage.completion_tokens for call in calls]
        prompts = [call.prompt for call in calls]
        seconds = self._generate.seconds(prompts, lengths, at_once, clock)
        self.others.add("generate", at_once, len(calls), seconds)
        if at_once == 1:
            return
        self._bare.forget_prompts()
        seconds, done = _timed(self._alone, screens, at_once, clock)
        self.others.add("merged", at_once, len(done), seconds)
        if self._served is not None:
            seconds, done = _timed(self._served, screens, at_once, time.perf_counter)
            if any(call.error is not None for trace in done for call in trace.calls):
                raise SystemExit("the server left requests unanswered; see its log")
            self.others.add("vllm", at_once, len(done), seconds)


def _timed(
    graph: CollabGraph, walks: Sequence[Walk], at_once: int, clock: Clock
) -> tuple[float, list[Trace]]:
    began = clock()
    traces = asyncio.run(decide(graph, walks, at_once))
    return clock() - began, traces


def _figures(ways: _Ways, at_once: int) -> TextFigures:
    rates, others = ways.rates, ways.others
    rows = {
        f"{name}, {number} at once, decisions/s": f"{value:.2f}"
        for table in (rates.table(), others.table())
        for name, by in table.items()
        for number, value in by.items()
    }
    cost = {
        name: {
            str(n): round(rates.median("solo", n) / rates.median(name, n), 2) for n in (1, at_once)
        }
        for name in ("team", "talk", "team_shuffled", "team_adapters")
    }
    solo, many = rates.median("solo", 1), rates.median("solo", at_once)
    vllm = others.table().get("vllm")
    figures: dict[str, object] = {
        "decisions_per_s": rates.table(),
        "others_per_s": others.table(),
        "team_cost": cost,
        "vs_generate": round(solo / others.median("generate", 1), 2),
        "vs_generate_batched": round(many / others.median("generate", at_once), 2),
        "vs_vllm": None if vllm is None else round(many / others.median("vllm", at_once), 2),
        "merged_vs_routed": round(others.median("merged", at_once) / many, 2),
        "at_once": at_once,
        "repeats": rates.repeats,
    }
    rows |= {
        f"{name}: a decision's time / solo": f"{by['1']}, {by[str(at_once)]}"
        for name, by in cost.items()
    }
    rows["torch threads of the language model"] = f"{torch.get_num_threads()}"
    return TextFigures(rows, figures)
