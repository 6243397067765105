"""A served actor compared with the model in this process: decisions per second, equal replies.

Both answer the same screens of the phone's training tasks (compact format, greedy, no constraint on
decoding) with the same LoRA adapters in bfloat16, one adapter for each of the agents, who take
turns. The server is vLLM's CPU build, started here with one thread; it loads the adapters while it
runs. Rounds of both are interleaved, each with screens of its own, so that no round finds its
prompts in a cache.

- ``decisions_per_s``: by wall time, for ``in_process``, ``served``, and both without adapters;
- ``decisions_per_cpu_s``: the same by CPU time, the server's processes included;
- ``equal``: share of replies that are equal, with adapters and without;
- ``ties``: share of replies that differ because of rounding to bfloat16: in this process, the
  log-probabilities of the first two different tokens are at most ``TIE`` nats apart;
- ``largest_gap``: the largest such distance, in nats.

Without ``--adapter`` the adapters are random: more replies differ than with trained ones, because
random changes make the probabilities of tokens more equal.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from benchmarks.speed.environments import interpreter
from benchmarks.speed.language_model import with_adapters
from benchmarks.speed.report import Figures, Rows
from benchmarks.speed.screens import screens
from benchmarks.speed.usage import group_cpu
from benchmarks.speed.vllm import VLLMServer
from swarm_ui.environments.phone import tasks
from swarm_ui.model import ChatModel, Completion, Decision, Request
from swarm_ui.nodes import (
    ActorModel,
    CausalModel,
    ChatOptions,
    OpenAIModel,
    RateLimits,
    adapter_folder,
    model_folder,
)

TIE = 0.25
"""Nats. Logits of about 20 have steps of 0.125 in bfloat16."""
MAX_TOKENS = 20
AGENTS = 2
CONCURRENCY = 16
SECONDS = 170.0
"""No round begins later, so that a run with the start of the server takes at most six minutes."""


class Timed(NamedTuple):
    """The result of one round."""

    replies: list[Completion]
    wall: float
    cpu: float


def learner(folder: Path, adapters: Sequence[Path], agents: int) -> CausalModel:
    """The model in this process, with an adapter for each agent."""
    model = CausalModel.from_pretrained(folder, prompt_format="compact", constrained=False)
    return with_adapters(model, [f"agent_{k}" for k in range(agents)], adapters, rank=16)


def rounds_of(count: int, prompts: int, agents: int) -> list[list[Request]]:
    """A round that warms up, and ``count`` rounds of requests from agents that take turns."""
    shown = screens(tasks("train"), count * prompts + agents)
    asked = [
        Request(
            decision=Decision(observation=screen), adapter=f"agent_{k % agents}",
            max_tokens=MAX_TOKENS,
        )
        for k, screen in enumerate(shown)
    ]  # fmt: skip
    rest = asked[agents:]
    return [asked[:agents], *(rest[k : k + prompts] for k in range(0, len(rest), prompts))]


def base(requests: Sequence[Request]) -> list[Request]:
    """The same requests to the base model."""
    return [msgspec.structs.replace(request, adapter=None) for request in requests]


async def play(
    model: CausalModel, url: str, group: int, rounds: Sequence[Sequence[Request]], folder: Path
) -> dict[str, list[Timed]]:
    """Rounds of each variant, interleaved; their number is limited by their time too.

    Args:
        model: the model in this process.
        url, group: address and process group of a server of the same model, named ``actor``.
        rounds: requests; the first round warms up.
        folder: where the server reads the adapters.
    """
    engine = OpenAIModel(
        "actor", url, limits=RateLimits(concurrency=CONCURRENCY), max_retries=1, timeout=1800.0,
        options=ChatOptions(send_seed=True),
    )  # fmt: skip
    actor = ActorModel(engine, model, folder, constrained=False)
    await actor.check()
    found: dict[str, list[Timed]] = {
        name: [] for name in ("in_process", "served", "in_process_base", "served_base")
    }

    def both() -> float:
        return time.process_time() + group_cpu(group)

    async def timed(
        answers: ChatModel, asked: Sequence[Request], cpu: Callable[[], float]
    ) -> Timed:
        wall, began = time.perf_counter(), cpu()
        replies = await answers.generate(asked)
        return Timed(replies, time.perf_counter() - wall, cpu() - began)

    try:
        first, *measured = rounds
        await actor.generate([*first, *base(first[:1])])  # loads the adapters, and warms up
        await model.generate(first)
        began = time.monotonic()
        for asked in measured:
            if found["served"] and time.monotonic() - began > SECONDS:
                break
            for end, requests in (("", asked), ("_base", base(asked))):
                found["in_process" + end].append(await timed(model, requests, time.process_time))
                found["served" + end].append(await timed(actor, requests, both))
    finally:
        await actor.close()
    return found


def gap(model: CausalModel, request: Request, here: Completion, there: Completion) -> float:
    """Distance in nats, in this process, between the first two different tokens of two replies."""
    one, other = (
        [*model.tokenizer(reply.text, add_special_tokens=False)["input_ids"],
         model.tokenizer.eos_token_id]
        for reply in (here, there)
    )  # fmt: skip
    same = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if same is None:  # texts that differ have tokens that differ
        same = min(len(one), len(other)) - 1
    prompt = model.prompt(request).ids
    with model.routed([here.adapter]) as network, torch.inference_mode():
        logits = network(torch.tensor([prompt + one[:same]])).logits[0, -1].float()
    return abs(float(logits[one[same]] - logits[other[same]]))


def compared(
    model: CausalModel, asked: Sequence[Request], found: Mapping[str, list[Timed]]
) -> Figures:
    """Share of equal replies, and the distances of the others; ``asked``: of all rounds."""
    result: Figures = {"equal": {}, "ties": {}, "largest_gap": {}}
    for label, end in (("adapters", ""), ("base", "_base")):
        here, there = (
            [reply for part in found[kind + end] for reply in part.replies]
            for kind in ("in_process", "served")
        )
        gaps = [
            gap(model, request, a, b)
            for request, a, b in zip(asked, here, there, strict=True)
            if a.text != b.text
        ]
        result["equal"][label] = round(1.0 - len(gaps) / len(asked), 3)
        result["ties"][label] = round(sum(each <= TIE for each in gaps) / len(asked), 3)
        result["largest_gap"][label] = round(max(gaps, default=0.0), 3)
    return result


def measure(given: argparse.Namespace) -> Figures:
    """Start the server, measure, and compare; nothing without ``--peers``."""
    if not given.peers:
        return {}
    torch.set_num_threads(1)
    count, prompts = (1, 16) if given.quick else (4, 32)
    folder = model_folder(given.model)
    adapters = [] if given.adapter is None else [adapter_folder(given.adapter)]
    model, rounds = learner(folder, adapters, AGENTS), rounds_of(count, prompts, AGENTS)
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "vllm.log"
        with VLLMServer(interpreter("vllm"), folder, log=log, max_loras=AGENTS + 1) as server:
            own = Path(name) / "served"
            found = asyncio.run(play(model, server.url, server.group, rounds, own))
    asked = [request for part in rounds[1:] for request in part]
    asked = asked[: prompts * len(found["served"])]
    summary: dict[str, Any] = {
        "prompts": len(asked), "rounds": len(found["served"]), "agents": AGENTS,
    }  # fmt: skip
    for name, pick in (("decisions_per_s", "wall"), ("decisions_per_cpu_s", "cpu")):
        summary[name] = {
            kind: round(prompts / statistics.median(getattr(r, pick) for r in runs), 3)
            for kind, runs in found.items()
        }
    return {"served": summary | compared(model, asked, found)}


def tables(found: Figures) -> Iterator[Rows]:
    """Decisions per second of both."""
    labels = {
        "in_process": "the model in this process", "served": "vLLM's CPU build",
        "in_process_base": "the model in this process, no adapters",
        "served_base": "vLLM's CPU build, no adapters",
    }  # fmt: skip
    if "served" not in found:
        return
    rates = found["served"]
    cells = [
        [name, *(f"{rates[f'decisions_per_{unit}'][kind]:.2f}" for unit in ("s", "cpu_s"))]
        for kind, name in labels.items()
    ]
    title = f"{rates['prompts']} screens, medians of {rates['rounds']} rounds"
    yield Rows(title, ("who answers", "decisions / s", "decisions / CPU-s"), cells)


def note(found: Figures) -> str:
    """The share of equal replies, in words."""
    told, said = found["served"], []
    for kind, name in (("adapters", "With adapters"), ("base", "Without adapters")):
        if told["equal"][kind] == 1:
            said.append(f"{name}, all greedy replies are equal.")
            continue
        said.append(
            f"{name}, {100 * told['equal'][kind]:.1f} % of the greedy replies are equal and "
            f"{100 * told['ties'][kind]:.1f} % differ at a tie; the largest distance between the "
            f"first two different tokens is {told['largest_gap'][kind]:.2f} nats."
        )
    return (
        f"{told['agents']} agents, each with its own adapter, take turns. Two replies differ at a "
        f"*tie* if their first two different tokens are at most {TIE:g} nats apart; the rounding "
        f"of bfloat16 can cause such a distance. {' '.join(said)}"
    )
