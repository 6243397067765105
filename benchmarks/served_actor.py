"""A served actor compared with the model in this process: decisions per second, and equal replies.

    python -m benchmarks.served_actor [--model NAME] [--adapters NAME …] [--quick | --record]
    python -m benchmarks.served_actor --recorded

Both answer the same screens of the phone's training tasks (compact format, greedy, no constraint on
decoding) with the same LoRA adapters in bfloat16, one adapter for each of the agents, who take
turns. The server is vLLM's CPU build, started here with one thread, from the environment that
``benchmarks/vllm_server/environment.py`` makes or ``SWARM_UI_VLLM_PYTHON`` names; it loads the
adapters while it runs. Rounds of both are interleaved, each with screens of its own, so that no
round finds its prompts in a cache. Prints a table; the last line is JSON:

- ``decisions_per_s``: by wall time, for ``in_process``, ``served``, and both without adapters;
- ``decisions_per_cpu_s``: the same by CPU time, the server's processes included. Other load on the
  machine changes it less;
- ``equal``: share of replies that are equal, with adapters and without;
- ``ties``: share of replies that differ because of rounding to bfloat16: in this process, the
  log-probabilities of the first two different tokens are at most ``TIE`` nats apart;
- ``largest_gap``: the largest such distance, in nats;
- ``other_cores``: cores that other processes used on average meanwhile.

An adapter for several agents is changed a little for each but the first (``CHANGE``), as separate
training does; adapters with equal weights would be answered as one in this process. Without
``--adapters`` they are random: more replies differ than with trained adapters, because random
changes make the probabilities of tokens more equal.

``--record`` keeps the figures in benchmarks/results/served_actor.json and writes the table of
docs/howto/vllm.md; it takes about five minutes on an otherwise idle machine, and refuses another.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the package benchmarks

import msgspec
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.support.origin import origin
from benchmarks.support.records import read_record, write_record
from benchmarks.support.solver_screens import screens
from benchmarks.support.tables import markdown_table
from benchmarks.support.timing_record import OtherLoad, with_recorded
from benchmarks.vllm_server.environment import found_interpreter
from benchmarks.vllm_server.server import VLLMServer, group_cpu_seconds
from swarm_ui.environments.phone import tasks
from swarm_ui.experiment.script_runner import script
from swarm_ui.files import write_atomic
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.nodes import (
    ActorModel,
    CausalModel,
    ChatOptions,
    OpenAIModel,
    RateLimits,
)
from swarm_ui.nodes.models.pretrained import adapter_folder, model_folder

ROOT = Path(__file__).resolve().parents[1]
NAME = "served_actor"
PAGE = ROOT / "docs" / "howto" / "vllm.md"
TIE = 0.25
"""Nats. Logits of about 20 have steps of 0.125 in bfloat16."""
MAX_TOKENS = 20
NOISE = 0.01
CHANGE = 0.02
"""Standard deviation of the relative change of weights between agents with the same adapter."""
SECONDS = 170.0
"""No round begins later, so that a run with the start of the server takes at most six minutes."""


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


def decisions(count: int) -> list[Decision]:
    """Screens at different steps of different training episodes that the solver plays."""
    return [Decision(observation=screen) for screen in screens(tasks("train"), count)]


def learner(folder: Path, adapters: Sequence[Path], agents: int) -> CausalModel:
    """The model in this process, with an adapter for each agent."""
    model = CausalModel.from_pretrained(folder, prompt_format="compact", constrained=False)
    for k in range(agents):
        name, draw = f"agent_{k}", torch.Generator().manual_seed(k)
        if adapters:
            model.load_adapter(adapters[k % len(adapters)], name)
        else:
            model.add_adapter(name, rank=16, alpha=32)
        with model.activate(name), torch.no_grad():
            for weight in model.adapter_parameters(name):
                noise = torch.randn(weight.shape, generator=draw)
                if not adapters:
                    weight.copy_(NOISE * noise)
                elif k >= len(adapters):
                    weight.mul_(1.0 + CHANGE * noise)
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
    rounds: Sequence[Sequence[Request]],
    folder: Path,
    concurrency: int,
) -> dict[str, list[Timed]]:
    """Rounds of each variant, interleaved; the number of rounds is limited by their time too."""
    engine = OpenAIModel(
        "actor",
        server.url,
        limits=RateLimits(concurrency=concurrency),
        max_retries=1,
        timeout=1800.0,
        options=ChatOptions(send_seed=True),
    )
    actor = ActorModel(engine, model, folder, constrained=False)
    await actor.check()
    found: dict[str, list[Timed]] = {
        name: [] for name in ("in_process", "served", "in_process_base", "served_base")
    }

    def both() -> float:
        return time.process_time() + group_cpu_seconds(server.group)

    try:
        first, *measured = rounds
        await actor.generate([*first, *base(first[:1])])  # loads the adapters, and warms up
        await model.generate(first)
        began = time.monotonic()
        for asked in measured:
            if found["served"] and time.monotonic() - began > SECONDS:
                break
            for name, requests in (("", asked), ("_base", base(asked))):
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


def base(requests: Sequence[Request]) -> list[Request]:
    """The same requests to the base model."""
    return [msgspec.structs.replace(request, adapter=None) for request in requests]


def compared(
    model: CausalModel, asked: Sequence[Request], found: Mapping[str, list[Timed]]
) -> dict[str, Any]:
    """Share of equal replies, and the distances of the others.

    ``asked``: the requests of all measured rounds, in order.
    """
    result: dict[str, Any] = {"equal": {}, "ties": {}, "largest_gap": {}}
    for label, suffix in (("adapters", ""), ("base", "_base")):
        here, there = (
            [reply for part in found[kind + suffix] for reply in part.replies]
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


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Start the server, measure, and compare."""
    torch.set_num_threads(1)
    folder = model_folder(args.model)
    model = learner(folder, [adapter_folder(name) for name in args.adapters], args.agents)
    requests = [
        Request(decision=decision, adapter=f"agent_{k % args.agents}", max_tokens=MAX_TOKENS)
        for k, decision in enumerate(decisions(args.prompts * args.rounds + args.agents))
    ]
    warming, rest = requests[: args.agents], requests[args.agents :]
    parts = [rest[k : k + args.prompts] for k in range(0, len(rest), args.prompts)]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        place = Path(name)
        if args.running:
            server = Server(args.running[0], int(args.running[1]))
        else:
            own = VLLMServer(
                args.python or found_interpreter(), folder, log=place / "vllm.log",
                max_loras=args.agents + 1,
            )  # fmt: skip
            stack.enter_context(own)
            server = Server(own.url, own.group)
        others = OtherLoad(lambda: time.process_time() + group_cpu_seconds(server.group))
        found = asyncio.run(
            measure(model, server, [warming, *parts], place / "served", args.concurrency)
        )
        cores = others.check() if args.record else others.cores()
    asked = rest[: args.prompts * len(found["served"])]
    summary: dict[str, Any] = {
        "prompts": len(asked), "rounds": len(found["served"]), "agents": args.agents,
        "other_cores": round(cores, 2),
    }  # fmt: skip
    for name, pick in (("decisions_per_s", "wall"), ("decisions_per_cpu_s", "cpu")):
        summary[name] = {
            kind: round(args.prompts / statistics.median(getattr(r, pick) for r in runs), 3)
            for kind, runs in found.items()
        }
    return summary | compared(model, asked, found)


def page_text(record: Mapping[str, Any]) -> str:
    """What the page says about a record, in Markdown."""
    at, equal, ties = record["origin"], record["equal"], record["ties"]
    about = (
        f"The table was measured with `{at['command']}` ({at['machine']}; commit "
        f"{at['commit'][:10]}), with one thread for each system. {record['agents']} agents, each "
        f"with its own adapter, replied to {record['prompts']} screens of training tasks of the "
        f"simulated phone, in {record['rounds']} rounds of measurement; the systems took turns. "
        f"Two replies differ at a *tie* if the first two different tokens are at most {TIE:g} nats "
        "apart. The rounding of bfloat16 can cause such a distance."
    )
    lines = [
        [name, *(f"{record[f'decisions_per_{unit}'][kind]:.2f}" for unit in ("s", "cpu_s"))]
        for kind, name in (
            ("in_process", "the model in this process"),
            ("served", "vLLM's CPU build"),
            ("in_process_base", "the model in this process, no adapters"),
            ("served_base", "vLLM's CPU build, no adapters"),
        )
    ]
    table = markdown_table(("who answers", "decisions / s", "decisions / CPU-s"), lines)
    same = []
    for kind, name in (("adapters", "With adapters"), ("base", "Without adapters")):
        if equal[kind] == 1:
            same.append(f"{name}, all greedy replies are equal.")
            continue
        same.append(
            f"{name}, {100 * equal[kind]:.1f} % of the greedy replies are equal and another "
            f"{100 * ties[kind]:.1f} % differ at a tie; the largest distance between the first two "
            f"different tokens is {record['largest_gap'][kind]:.2f} nats."
        )
    return f"{about}\n\n{table}\n\n{' '.join(same)}"


@script
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", default="smollm2", help="name or folder of a language model")
    parser.add_argument("--python", type=Path, help="interpreter with vLLM (default: as built)")
    parser.add_argument("--adapters", nargs="*", default=[], help="names, or folders of peft")
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--prompts", type=int, default=32, help="in each round")
    parser.add_argument("--rounds", type=int, default=4, help="at most")
    parser.add_argument("--concurrency", type=int, default=16, help="requests to the server")
    parser.add_argument(
        "--running", nargs=2, metavar=("URL", "GROUP"),
        help="a server that runs already, and its process group",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="16 prompts, one round")
    parser.add_argument("--record", action="store_true", help="keep the figures, also on the page")
    parser.add_argument("--recorded", action="store_true", help="print the figures that were kept")
    args = parser.parse_args()
    if args.recorded:
        summary = read_record(NAME, dict[str, Any])
    else:
        if args.quick and args.record:
            parser.error("--record needs all rounds: leave out --quick")
        if args.quick:
            args.prompts, args.rounds = 16, 1
        found = origin("python -m benchmarks.served_actor")  # of the source that is loaded
        summary = {"origin": msgspec.to_builtins(found), **run(args)}
    if args.record:
        write_record(NAME, summary)
        write_atomic(PAGE, with_recorded(PAGE.read_text(encoding="utf-8"), page_text(summary)))
    show(summary)
    print(json.dumps(summary))
    return 0


def show(summary: Mapping[str, Any]) -> None:
    """Print the table."""
    table = Table(title=f"{summary['prompts']} screens, medians of {summary['rounds']} rounds")
    for column in ("actor", "decisions / s", "decisions / CPU s"):
        table.add_column(column, justify="left" if column == "actor" else "right")
    for kind in summary["decisions_per_s"]:
        rates = (summary[name][kind] for name in ("decisions_per_s", "decisions_per_cpu_s"))
        table.add_row(kind.replace("_", " "), *(f"{rate:.2f}" for rate in rates))
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
