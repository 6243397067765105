"""A served actor compared with the model in this process: decisions per second, and equal replies.

    python -m benchmarks.served_actor --model FOLDER [--python P] [--adapters FOLDER …] [--quick]

Both answer the same screens of the phone's training tasks (compact format, greedy, no constraint on
decoding) with the same LoRA adapters in bfloat16, one adapter for each of the agents, who take
turns. The server is vLLM's CPU build, from the environment that
``benchmarks/vllm_server/environment.py`` makes; it loads the adapters while it runs. Rounds of both
are interleaved. Prints a table; the last line is JSON:

- ``decisions_per_s``: by wall time, for ``in_process``, ``served``, and both without adapters;
- ``decisions_per_cpu_s``: the same by CPU time, the server's processes included. Other load on the
  machine changes it less;
- ``equal``: share of replies that are equal, with adapters and without;
- ``ties``: share of replies that differ because of rounding to bfloat16: in this process, the
  log-probabilities of the first two different tokens are at most ``TIE`` nats apart;
- ``largest_gap``: the largest such distance, in nats.

Without ``--adapters`` the adapters are random. More replies differ than with trained adapters,
because random changes make the probabilities of tokens more equal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import msgspec
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.vllm_server.environment import default_folder, interpreter
from benchmarks.vllm_server.server import VLLMServer, group_cpu_seconds
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, draw_jobs, tasks
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.nodes import ActorModel, CausalModel, OpenAIModel, RateLimits, RetryPolicy

TIE = 0.25
"""Nats. Logits of about 20 have steps of 0.125 in bfloat16."""
MAX_TOKENS = 20
NOISE = 0.01


class Server(NamedTuple):
    """A running vLLM server that serves the model as ``actor``."""

    url: str
    group: int
    """Process group of the server."""


class Timed(NamedTuple):
    """The result of one round."""

    replies: list[Completion]
    wall: float
    cpu: float


def screens(count: int) -> list[Decision]:
    """Screens at different steps of different training episodes that the expert plays."""
    phone, found = PhoneEnvironment(), []
    for place, (task, seed) in enumerate(
        draw_jobs(tasks("train"), count, seed=0, seeds=TRAIN_SEEDS)
    ):
        observation = phone.begin(task, seed)
        for _ in range(place % 4):
            step = phone.act(phone.expert())
            if step.ended:
                break
            observation = step.observation
        found.append(Decision(observation=observation))
    return found


def learner(folder: Path, adapters: Sequence[Path], agents: int) -> CausalModel:
    """The model in this process, with an adapter for each agent."""
    model = CausalModel.from_pretrained(folder, prompt_format="compact")
    for k in range(agents):
        name = f"agent_{k}"
        if adapters:
            model.load_adapter(adapters[k % len(adapters)], name)
            continue
        model.add_adapter(name, rank=16, alpha=32)
        draw = torch.Generator().manual_seed(k)
        with model.activate(name), torch.no_grad():
            for weight in model.adapter_parameters(name):
                weight.copy_(NOISE * torch.randn(weight.shape, generator=draw))
    return model


def gap(model: CausalModel, request: Request, here: Completion, there: Completion) -> float:
    """Distance in nats, in this process, between the first two different tokens of two replies."""
    prompt, version = model.prompt(request).ids, here.adapter
    one, other = (_ids(model, reply) for reply in (here, there))
    same = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if same is None:  # texts that differ have tokens that differ
        same = min(len(one), len(other)) - 1
    with model.routed([version]) as network, torch.inference_mode():
        logits = network(torch.tensor([prompt + one[:same]])).logits[0, -1].float()
    return abs(float(logits[one[same]] - logits[other[same]]))


def _ids(model: CausalModel, reply: Completion) -> list[int]:
    ids = list(model.tokenizer(reply.text, add_special_tokens=False)["input_ids"])
    return [*ids, model.tokenizer.eos_token_id]


async def timed(ask: Callable[[], Awaitable[list[Completion]]], cpu: Callable[[], float]) -> Timed:
    """Send the requests, and measure the time."""
    wall, began = time.perf_counter(), cpu()
    replies = await ask()
    return Timed(replies, time.perf_counter() - wall, cpu() - began)


async def measure(
    model: CausalModel,
    server: Server,
    asked: Sequence[Request],
    rounds: int,
    folder: Path,
    concurrency: int,
) -> dict[str, list[Timed]]:
    """Rounds of each variant, interleaved."""
    engine = OpenAIModel(
        "actor",
        server.url,
        limits=RateLimits(concurrency=concurrency),
        retry=RetryPolicy(retries=1, timeout=1800.0),
    )
    actor = ActorModel(engine, model, folder, constrained=False)
    await actor.check()
    plain = [msgspec.structs.replace(request, adapter=None) for request in asked]
    found: dict[str, list[Timed]] = {
        name: [] for name in ("in_process", "served", "in_process_base", "served_base")
    }

    def both() -> float:
        return time.process_time() + group_cpu_seconds(server.group)

    try:
        await actor.generate([*asked[:2], *plain[:1]])  # loads the adapters, and warms up
        for _ in range(rounds):
            for name, requests in (("", asked), ("_base", plain)):
                for kind, answers, cpu in (
                    ("in_process", model, time.process_time),
                    ("served", actor, both),
                ):

                    def ask(answers: Any = answers, requests: Any = requests) -> Any:
                        return answers.generate(requests)

                    found[kind + name].append(await timed(ask, cpu))
    finally:
        await actor.close()
    return found


def compared(
    model: CausalModel, asked: Sequence[Request], found: dict[str, list[Timed]]
) -> dict[str, Any]:
    """Share of equal replies, and the distances of the others."""
    result: dict[str, Any] = {"equal": {}, "ties": {}, "largest_gap": {}}
    for label, suffix in (("adapters", ""), ("base", "_base")):
        here, there = (found[kind + suffix][0].replies for kind in ("in_process", "served"))
        gaps = [
            gap(model, request, a, b)
            for request, a, b in zip(asked, here, there, strict=True)
            if a.text != b.text
        ]
        result["equal"][label] = round(1.0 - len(gaps) / len(asked), 3)
        result["ties"][label] = round(sum(each <= TIE for each in gaps) / len(asked), 3)
        result["largest_gap"][label] = round(max(gaps, default=0.0), 3)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="folder of a language model")
    parser.add_argument("--python", type=Path, help="interpreter with vLLM (default: as built)")
    parser.add_argument("--adapters", type=Path, nargs="*", default=[], help="in peft's format")
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--prompts", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=16, help="requests to the server")
    parser.add_argument(
        "--running", nargs=2, metavar=("URL", "GROUP"),
        help="a server that runs already, and its process group",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="16 prompts, one round")
    args = parser.parse_args()
    if args.quick:
        args.prompts, args.rounds = 16, 1
    torch.set_num_threads(1)
    model = learner(args.model, args.adapters, args.agents)
    asked = [
        Request(decision=decision, adapter=f"agent_{k % args.agents}", max_tokens=MAX_TOKENS)
        for k, decision in enumerate(screens(args.prompts))
    ]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        if args.running:
            server = Server(args.running[0], int(args.running[1]))
        else:
            python = args.python or interpreter(default_folder())
            log, slots = folder / "vllm.log", args.agents + 1
            own = stack.enter_context(VLLMServer(python, args.model, log=log, max_loras=slots))
            server = Server(own.url, own.group)
        found = asyncio.run(
            measure(model, server, asked, args.rounds, folder / "served", args.concurrency)
        )
    summary: dict[str, Any] = {"prompts": len(asked), "agents": args.agents}
    for name, pick in (("decisions_per_s", "wall"), ("decisions_per_cpu_s", "cpu")):
        summary[name] = {
            kind: round(len(asked) / statistics.median(getattr(r, pick) for r in runs), 3)
            for kind, runs in found.items()
        }
    summary |= compared(model, asked, found)
    table = Table(title=f"{len(asked)} screens, {args.agents} adapters, medians of {args.rounds}")
    for column in ("actor", "decisions / s", "decisions / CPU s"):
        table.add_column(column, justify="left" if column == "actor" else "right")
    for kind in found:
        rates = (summary[name][kind] for name in ("decisions_per_s", "decisions_per_cpu_s"))
        table.add_row(kind.replace("_", " "), *(f"{rate:.2f}" for rate in rates))
    Console().print(table)
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
