"""Speed of the model in this process, and the overhead of the team.

    python benchmarks/local_model.py [--quick] [--model NAME [--adapter NAME] [--serve]]
    python benchmarks/local_model.py --model smollm2 --adapter smollm2-phone --serve --record
    python benchmarks/local_model.py --recorded

Measures the shipped base agent with four adapters (new ones plus noise) on one thread.
Prints a table; the last line is JSON:

- ``mixed_vs_one_by_one``: CPU time of 64 requests over the four adapters, sent one after the
  other, divided by that of the same requests sent concurrently (more is better);
- ``mixed_vs_base``: CPU time of the same 64 requests to the base model without adapters, sent
  concurrently, divided by that of the mixed batch (1: adapters cost nothing);
- ``orchestration_share``: the share of the wall time of a rollout (16 concurrent episodes on the
  phone; four agents on a DAG, three rounds, a vote) that is spent neither in the model nor in the
  environment, but in agents, graph, parsing, trace and event loop;
- ``forward_ms``: CPU time of one forward of 64 rows with 48 tokens or 1 token each, over the four
  adapters: of the base model alone, with this library's routing, and with peft's ``adapter_names``;
- ``tokens_per_s``: prompt and reply tokens of that rollout divided by its wall time.

With ``--model``, a language model of transformers is measured too, in compact prompts (with
``--cpu-time`` in CPU seconds, for a machine with other load); see
:mod:`benchmarks.support.text_model_speed` for its figures. ``--serve`` compares it with vLLM's CPU
build, started here with one thread, from the environment that
``benchmarks/vllm_server/environment.py`` makes or ``SWARM_UI_VLLM_PYTHON`` names; ``--vllm URL``
with a server that runs. Times are medians of interleaved runs.

``--record`` keeps the figures in benchmarks/results/local_model.json and writes the table of
docs/models.md; it takes about five minutes on an otherwise idle machine, and refuses another.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the package benchmarks

import msgspec
import torch
import transformers

from benchmarks.support.base_agent_speed import PEFT, measure_agent
from benchmarks.support.origin import origin
from benchmarks.support.records import read_record, write_record
from benchmarks.support.tables import markdown_table
from benchmarks.support.text_model_speed import QUICK, Sizes, TextFigures, measure_text_model
from benchmarks.support.timing_record import OtherLoad, with_recorded
from benchmarks.vllm_server.environment import found_interpreter
from benchmarks.vllm_server.server import VLLMServer, group_cpu_seconds
from swarm_ui.experiment.script_runner import script
from swarm_ui.files import write_atomic
from swarm_ui.nodes.models.pretrained import model_folder

ROOT = Path(__file__).resolve().parents[1]
NAME = "local_model"
PAGE = ROOT / "docs" / "models.md"


def measure_text(given: argparse.Namespace) -> TextFigures:
    """The language model's figures, compared with a server that is started if this is asked for."""
    clock = time.process_time if given.cpu_time else time.perf_counter
    sizes = QUICK if given.quick else Sizes()
    with tempfile.TemporaryDirectory() as beside, ExitStack() as stack:
        url, group = given.vllm, None
        if given.serve:
            folder, log = model_folder(given.model), Path(beside) / "vllm.log"
            server = stack.enter_context(
                VLLMServer(found_interpreter(), folder, log=log, max_loras=2)
            )
            url, group = server.url, server.group

        def own() -> float:
            return time.process_time() + (0.0 if group is None else group_cpu_seconds(group))

        others = OtherLoad(own)
        text = measure_text_model(given.model, given.adapter, url, sizes=sizes, clock=clock)
        cores = others.check() if given.record else others.cores()
    text.figures["other_cores"] = round(cores, 2)
    return text


def page_text(record: Mapping[str, Any]) -> str:
    """What the page says about a record, in Markdown."""
    at, many = record["origin"], str(record["at_once"])
    ours, others, cost = (record[k] for k in ("decisions_per_s", "others_per_s", "team_cost"))
    about = (
        f"The table was measured with `{at['command']}` ({at['machine']}; commit "
        f"{at['commit'][:10]}), with one thread, compact prompts and screens of the simulated "
        f"phone. It shows decisions per second, as medians of {record['repeats']} repeats; the "
        "team with messages was measured once. A decision is one action of the environment. "
        f"The columns are for one episode and for {many} concurrent episodes:"
    )
    if "forward_ms" in record:
        mixed = {
            tokens: f"{ways['ours'] / ways['base']:.2f} and {ways[PEFT] / ways['base']:.2f}"
            for tokens, ways in record["forward_ms"].items()
        }
        about = (
            "A forward of the base agent with 64 rows over four adapters takes, in this library "
            f"and with peft's `adapter_names`, {mixed['48']} times as long as one without "
            f"adapters if each row has 48 tokens, and {mixed['1']} times if each has one.\n\n"
            + about
        )
    lines = []
    for table, name, label in (
        (ours, "solo", "one agent"),
        (ours, "team", "four agents, no messages"),
        (ours, "team_shuffled", "the same, each with its own order of elements"),
        (ours, "team_adapters", "the same, each with its own adapter"),
        (ours, "talk", "four agents, three rounds with messages"),
        (others, "generate", "`generate` of transformers, one agent, adapter merged"),
        (others, "vllm", "vLLM's CPU build, one agent, the same adapter"),
    ):
        if name not in table:  # a record from before this was measured
            continue
        rates = [f"{table[name][n]:.2f}" if n in table[name] else "–" for n in ("1", many)]
        times = f"{cost[name]['1']:.2f}, {cost[name][many]:.2f}" if name in cost else "–"
        lines.append([label, *rates, times])
    heads = ("decisions / s", "one episode", f"{many} episodes", "time relative to one agent")
    return f"{about}\n\n{markdown_table(heads, lines)}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="within a minute, rougher figures")
    parser.add_argument("--model", metavar="NAME", help="a language model: smollm2, or a folder")
    parser.add_argument("--adapter", metavar="NAME", help="its adapter, or a folder; else noise")
    parser.add_argument("--vllm", metavar="URL", help="a server of the same model")
    parser.add_argument("--serve", action="store_true", help="start vLLM's CPU build")
    parser.add_argument("--cpu-time", action="store_true", help="of the language model's figures")
    parser.add_argument("--record", action="store_true", help="keep the figures, also on the page")
    parser.add_argument("--recorded", action="store_true", help="print the figures that were kept")
    given = parser.parse_args()
    if given.record and (given.quick or given.cpu_time or not (given.model and given.serve)):
        parser.error("--record needs --model and --serve, and neither --quick nor --cpu-time")
    if (given.serve or given.vllm) and (given.cpu_time or not given.model):
        parser.error("--serve and --vllm need --model, and wall time: leave out --cpu-time")
    return given


@script
def main() -> int:
    given = arguments()
    if given.recorded:
        kept = read_record(NAME, dict[str, Any])
        print(msgspec.json.format(msgspec.json.encode(kept), indent=1).decode())
        return 0
    found = origin("python benchmarks/local_model.py")  # of the source that is loaded
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    text = None if given.model is None else measure_text(given)
    rows, figures = measure_agent(given.quick)
    if text is not None:
        rows |= text.rows
        figures |= text.figures
    if given.record:
        figures = {"origin": msgspec.to_builtins(found), **figures}
        write_record(NAME, figures)
        write_atomic(PAGE, with_recorded(PAGE.read_text(encoding="utf-8"), page_text(figures)))
    for name, value in rows.items():
        print(f"{name:56}{value:>16}")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
