"""Speed of sampling graphs, and number of evaluations needed to learn the useful edges.

    python benchmarks/edges.py [--quick] [--peers] [--gptswarm FOLDER] [--seeds N] [--jobs N]

- **Samples.** Median CPU seconds per graph, on one thread; any ordered pair of n nodes may be
  joined,
  with probability 0.5. *exact*: ``SequentialEdges`` in the listed sequence, the distribution of
  GPTSwarm's ``realize``, batches of 64 (8 above 50 nodes), with log-probability, no backward pass.
  *shuffled*: the same with a separate sequence for each graph, our default. *order_first*:
  ``EdgeDistribution``, another distribution, batches of 64: draw, log-probability and its gradient.
  *records*: the same as ``EdgeSample`` with names, one graph at a time. GPTSwarm (``--peers``):
  ``EdgeWiseDistribution.realize`` in a separate environment, which peers/build.py builds or
  ``--gptswarm`` names. It returns a graph object and a log-probability, without the backward
  pass; ours are tensors. Measurements of both are interleaved.
- **Evaluations** (``edge_families.py`` and ``edge_learning.py`` in support/): number of evaluations
  until 95 % of the optimum is reached. This is checked every 16 evaluations and must hold for six
  checks. *graph*: the graph that thresholding gives; *policy*: the mean over sampled graphs. Mean
  and standard error over seeds; a run that does not reach the threshold counts as the budget and
  lowers ``reached``. GPTSwarm's rules are re-implemented (Adam at 0.1, batches of 4, its sequential
  distribution): *none* (its code for MMLU), *half* (its code elsewhere), *average* (the moving
  average that was probably intended). Each of their evaluations uses another task. *score*:
  ``EdgeDistribution``, Adam from 0.15 to 0.3 over 400 evaluations, groups of 8 on one task,
  leave-one-out. *posterior*: Thompson sampling, groups of 4 on one task. *_credit*: groups of 4;
  the learner also gets whether the message of each sampled edge was right (a critic without
  errors), which is more information than a utility. *score_credit*: Adam at 0.3, credit weight 2.
  Our settings were chosen on instances and seeds from 1000 on, and on a simulation of the first
  five families. The reported instances and seeds start at 0.

Prints tables and, as the last line, JSON: ``exact_vs_gptswarm_n50`` and
``order_first_vs_gptswarm_n50`` (theirs / ours; null without ``--peers``), ``needle_success`` (share
of runs of *score* that reach the threshold, policy), ``fewer_evaluations_with_credit`` (best
GPTSwarm rule / *score_credit*, for the least favourable family and measure), ``evaluations`` by
family and method, ``worse`` (where *score* needs more evaluations than the best of their rules, by
over two standard errors).
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the package benchmarks

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.peers import build as environments
from benchmarks.support.edge_families import FAMILIES
from benchmarks.support.edge_learners.sequential_edges import SequentialEdges
from benchmarks.support.edge_learning import METHODS, THEIRS, Reached, applies, learn, summary
from benchmarks.support.timing import NoResult, Runner, progress
from swarm_ui.optim.edges.distribution import EdgeDistribution

HERE = Path(__file__).parent
SIZES = (5, 10, 50, 100, 200)
MEASURES = ("graph", "policy")


def time_ours(nodes: int, seconds: float) -> dict[str, float]:
    """Median CPU seconds per graph."""
    torch.set_num_threads(1)
    names = [f"n{k:03}" for k in range(nodes)]
    exact, first = SequentialEdges(names, sequence="listed"), EdgeDistribution(names)
    shuffled = SequentialEdges(names)
    draw = torch.Generator().manual_seed(0)

    batch = 64 if nodes <= 50 else 8

    def sequential(edges: SequentialEdges) -> None:
        edges.log_prob_draws(edges.draw(batch, draw))

    def forward_backward() -> None:
        first.zero_grad()
        first.log_prob_draws(first.draw(64, draw)).sum().backward()  # type: ignore[no-untyped-call]

    def record() -> None:
        first.sample(1, draw)

    return {
        "exact": _median(lambda: sequential(exact), seconds) / batch,
        "shuffled": _median(lambda: sequential(shuffled), seconds) / batch,
        "order_first": _median(forward_backward, seconds) / 64,
        "records": _median(record, seconds),
    }


def _median(work: Any, seconds: float) -> float:
    work()
    took: list[float] = []
    end = time.process_time() + seconds
    while len(took) < 3 or time.process_time() < end:
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return median(took)


def samples(python: str | None, quick: bool) -> dict[str, Any]:
    """Seconds for each graph by size, and the ratio of GPTSwarm's time to ours."""
    patience = 20.0 if quick else 60.0
    script = HERE / "peers" / "run_gptswarm_edges.py"
    peer = None if python is None else Runner(python, script, patience, own=False)
    turns, seconds = (2, 0.2) if quick else (5, 0.5)
    found: dict[str, Any] = {"us_per_graph": {}, "times_gptswarm": {}}
    for nodes in SIZES[:3] if quick else SIZES:
        runs: list[dict[str, float]] = []
        for _ in range(turns):
            runs.append(time_ours(nodes, seconds))
            if peer is None:
                continue
            try:
                answer = peer.ask(patience, nodes=nodes, density=0.5, seconds=seconds)
                runs[-1]["gptswarm"] = median(answer["cpu"])
            except NoResult as reason:
                print(f"gptswarm, {nodes} nodes: {reason}", file=sys.stderr)
        own = {
            name: median(values)
            for name in ("exact", "shuffled", "order_first", "records", "gptswarm")
            if (values := [run[name] for run in runs if name in run])
        }
        found["us_per_graph"][nodes] = {k: round(v * 1e6, 1) for k, v in own.items()}
        if "gptswarm" in own:
            found["times_gptswarm"][nodes] = {
                name: round(own["gptswarm"] / own[name], 1)
                for name in ("exact", "shuffled", "order_first")
            }
    if peer is not None:
        found["gptswarm"] = peer.facts.get("version")
        peer.stop()
    return found


def _one(job: tuple[str, str, int, int]) -> Reached:
    torch.set_num_threads(1)
    return learn(*job)


def evaluations(seeds: range, budget: int, jobs: int, methods: list[str]) -> dict[str, Any]:
    """Summaries by family and method."""
    cells = [(f, m) for f in FAMILIES for m in methods if applies(f, m)]
    todo = [(family, method, seed, budget) for family, method in cells for seed in seeds]
    with progress() as bar, ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        task = bar.add_task("learning", total=len(todo))
        runs: dict[tuple[str, str], list[Reached]] = {}
        for job, reached in zip(todo, pool.map(_one, todo), strict=True):
            cell = runs.setdefault(job[:2], [])
            cell.append(reached)
            bar.advance(task)
            if len(cell) == len(seeds):
                bar.console.print(*job[:2], *_said(summary(cell, budget)), highlight=False)
    found: dict[str, Any] = {}
    for (family, method), reached_ in runs.items():
        found.setdefault(family, {})[method] = summary(reached_, budget)
    return found


def _said(cell: dict[str, Any]) -> list[str]:
    """A summary as text, by measure."""
    each = [cell[measure] for measure in MEASURES]
    return [f"{c['mean']:.0f} ±{c['se']:.0f} {c['reached']:.0%}" for c in each]


def best_of_theirs(methods: dict[str, Any], measure: str) -> dict[str, float]:
    """The GPTSwarm rule that needs the fewest evaluations."""
    return min((methods[m][measure] for m in THEIRS), key=lambda cell: float(cell["mean"]))


def worse(found: dict[str, Any], method: str = "score") -> list[str]:
    """Cases in which a method needs more evaluations than the best GPTSwarm rule, by over two
    standard errors."""
    out = []
    for family, methods in found.items():
        for measure in MEASURES:
            theirs, ours = best_of_theirs(methods, measure), methods[method][measure]
            error = math.hypot(theirs["se"], ours["se"])
            if ours["mean"] - theirs["mean"] > 2 * error:
                out.append(f"{family} {measure}: {ours['mean']:.0f} against {theirs['mean']:.0f}")
    return out


def with_credit(found: dict[str, Any]) -> dict[str, float]:
    """Evaluations of the best GPTSwarm rule divided by those of *score_credit*."""
    return {
        f"{family} {measure}": round(
            best_of_theirs(methods, measure)["mean"] / methods["score_credit"][measure]["mean"], 2
        )
        for family, methods in found.items()
        if "score_credit" in methods
        for measure in MEASURES
    }


def show(found: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console(width=110)
    kinds = ("exact", "shuffled", "order_first", "records", "gptswarm")
    table = Table("nodes", *kinds, "x exact", "x shuffled", "x order_first")
    for nodes, us in found["us_per_graph"].items():
        times = found["times_gptswarm"].get(nodes, {})
        cells = [us.get(kind) for kind in kinds]
        cells += [times.get(kind) for kind in ("exact", "shuffled", "order_first")]
        table.add_row(str(nodes), *["-" if c is None else f"{c:,.1f}" for c in cells])
    table.title = "CPU microseconds a graph"
    console.print(table)
    table = Table("family", "method", *MEASURES, title="evaluations to 95 % (mean, se, reached)")
    for family, methods in found["evaluations"].items():
        for method, cell in methods.items():
            table.add_row(family, method, *_said(cell))
    console.print(table)
    console.print("worse than the best GPTSwarm rule by over 2 se:", found["worse"] or "nowhere")
    console.print("times fewer with credit:", found["times_fewer_with_credit"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="within a minute, rougher figures")
    parser.add_argument("--peers", action="store_true", help="GPTSwarm's realize too")
    parser.add_argument("--gptswarm", type=Path, metavar="FOLDER", help="its environment")
    parser.add_argument("--seeds", type=int, help="runs of each cell; default 20, quick 2")
    parser.add_argument("--first-seed", type=int, default=0, help="1000: the ones for choosing")
    parser.add_argument("--budget", type=int, help="evaluations; default 3200, quick 800")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parser.parse_args()
    missing = {*THEIRS, "score", "score_credit"} - set(args.methods)
    if missing:
        parser.error(f"--methods: the summary needs {', '.join(sorted(missing))} too")
    python = None
    if args.peers:
        folder = args.gptswarm
        place = environments.interpreter(folder) if folder else environments.build("gptswarm")
        if not place.exists():
            parser.error(f"--gptswarm: there is no {place}")
        python = str(place.absolute())
    found = samples(python, args.quick)
    count = args.seeds or (2 if args.quick else 20)
    budget = args.budget or (800 if args.quick else 3200)
    seeds = range(args.first_seed, args.first_seed + count)
    table = evaluations(seeds, budget, args.jobs, args.methods)
    ratios = with_credit(table)
    fifty = found["times_gptswarm"].get(50, {})
    found |= {
        "order_first_vs_gptswarm_n50": fifty.get("order_first"),
        "exact_vs_gptswarm_n50": fifty.get("exact"),
        "needle_success": table["needle"]["score"]["policy"]["reached"],
        "fewer_evaluations_with_credit": min(ratios.values()),
        "times_fewer_with_credit": ratios,
        "worse": worse(table),
        "evaluations": table,
        "seeds": [seeds.start, seeds.stop],
        "budget": budget,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    show(found)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
