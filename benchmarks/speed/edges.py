"""Speed of sampling graphs, and number of evaluations needed to learn the useful edges.

    python -m benchmarks.speed.edges [--quick] [--peers] [--only samples evaluations]

- *samples*: median CPU microseconds per graph, on one thread; any ordered pair of n nodes may be
  joined, with probability 0.5. *order_first*: ``EdgeDistribution``, batches of 64: draw,
  log-probability and its gradient. *records*: the same as ``EdgeSample`` with names, one graph at a
  time. GPTSwarm (``--peers``): ``EdgeWiseDistribution.realize`` in a separate environment; it
  returns a graph object and a log-probability, without the backward pass. Interleaved.
- *evaluations*, on the problems of edge_learning.py: how many until sampled graphs have 95 % of the
  optimum. This is checked every 16 evaluations and must hold for six checks. A run that does not
  reach the threshold counts as the budget. GPTSwarm's rules (Adam at 0.1, batches of 4, each
  evaluation on another task): *none* (its code for MMLU), *half* (its code elsewhere), *average*
  (the moving average that was probably intended). *score*: ``edge_loss``, Adam from 0.15 to 0.3
  over 400 evaluations, groups of 8 on one task, leave-one-out. Our settings were chosen on
  instances and seeds from 1000 on.

JSON: ``us_per_graph``, ``times_gptswarm``, ``order_first_vs_gptswarm_n50``; ``evaluations`` by
problem and method, ``needle_success``, ``worse`` (where *score* needs more evaluations than the
best of their rules, by over two standard errors).
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, median, stdev

import torch

from benchmarks.speed.edge_learning import (
    PROBLEMS,
    Baseline,
    GPTSwarm,
    Problem,
)
from benchmarks.speed.environments import interpreter
from benchmarks.speed.processes import NoResult, Runner
from benchmarks.speed.report import Figures, Rows, Section, command, number
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution, edge_loss

# ---- samples -----------------------------------------------------------------------------------

SIZES = (5, 10, 50, 100, 200)


def time_ours(nodes: int, seconds: float) -> dict[str, float]:
    """Median CPU seconds per graph."""
    edges = EdgeDistribution([f"n{k:03}" for k in range(nodes)])
    draw = torch.Generator().manual_seed(0)

    def forward_backward() -> None:
        edges.zero_grad()
        edges.log_prob_draws(edges.draw(64, draw)).sum().backward()  # type: ignore[no-untyped-call]

    return {
        "order_first": _median(forward_backward, seconds) / 64,
        "records": _median(lambda: edges.sample(1, draw), seconds),
    }


def _median(work: Callable[[], object], seconds: float) -> float:
    work()
    took: list[float] = []
    end = time.process_time() + seconds
    while len(took) < 3 or time.process_time() < end:
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return median(took)


def measure_samples(given: argparse.Namespace) -> Figures:
    """CPU time of a graph by size, and the ratio of GPTSwarm's time to ours."""
    torch.set_num_threads(1)
    turns, seconds, patience = (2, 0.2, 20.0) if given.quick else (5, 0.5, 60.0)
    script, peer = Path(__file__).parent / "peers" / "run_gptswarm_edges.py", None
    if given.peers:
        peer = Runner(str(interpreter("gptswarm")), script, patience)
    found: Figures = {"us_per_graph": {}, "times_gptswarm": {}}
    for nodes in SIZES[:3] if given.quick else SIZES:
        runs: list[dict[str, float]] = []
        for _ in range(turns):
            runs.append(time_ours(nodes, seconds))
            if peer is None:
                continue
            try:
                answer = peer.ask(patience, do="realize", nodes=nodes, density=0.5, seconds=seconds)
                runs[-1]["gptswarm"] = median(answer["cpu"])
            except NoResult as reason:
                print(f"gptswarm, {nodes} nodes: {reason}", file=sys.stderr)
        own = {
            name: median(values)
            for name in ("order_first", "records", "gptswarm")
            if (values := [run[name] for run in runs if name in run])
        }
        found["us_per_graph"][str(nodes)] = {k: round(v * 1e6, 1) for k, v in own.items()}
        if "gptswarm" in own:
            found["times_gptswarm"][str(nodes)] = {
                name: round(own["gptswarm"] / own[name], 1) for name in ("order_first", "records")
            }
    if peer is not None:
        found["gptswarm"] = peer.facts.get("version")
        peer.stop()
    fifty = found["times_gptswarm"].get("50", {})
    return found | {"order_first_vs_gptswarm_n50": fifty.get("order_first")}


def sample_tables(found: Figures) -> Iterator[Rows]:
    """Times by number of nodes."""
    kinds = ("order_first", "records", "gptswarm")
    cells = []
    for nodes, us in found["us_per_graph"].items():
        times = found["times_gptswarm"].get(nodes, {})
        cells.append([nodes, *(number(us.get(k)) for k in kinds),
                      *(number(times.get(k)) for k in kinds[:2])])  # fmt: skip
    heads = ("nodes", *kinds, "GPTSwarm ÷ order_first", "GPTSwarm ÷ records")
    yield Rows("CPU microseconds a graph", heads, cells)


# ---- evaluations -------------------------------------------------------------------------------

EVERY, HOLD, GOOD = 16, 6, 0.95
THEIRS: dict[str, Baseline] = {
    "gptswarm_none": "none", "gptswarm_half": "half", "gptswarm_average": "average",
}  # fmt: skip
METHODS = (*THEIRS, "score")


class Ours:
    """``edge_loss`` with Adam."""

    def __init__(self, problem: Problem) -> None:
        graph = problem.graph
        self.edges = EdgeDistribution(graph.names, candidates=graph.edges, decision=graph.decision)
        self._adam, self._seen = torch.optim.Adam(self.edges.parameters(), lr=0.3), 0

    def step(self, samples: Sequence[EdgeSample], utilities: Sequence[float]) -> None:
        """One update; all samples are of one task."""
        self._adam.param_groups[0]["lr"] = 0.15 + 0.15 * min(1.0, self._seen / 400)
        self._adam.zero_grad()
        loss = edge_loss(self.edges, samples, utilities, normalise=False)
        loss.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        self._seen += len(samples)


def learn(name: str, method: str, seed: int, budget: int) -> int | None:
    """Evaluations until graphs of the learner have 95 % of the optimum, and keep it."""
    problem = PROBLEMS[name](seed)
    if method in THEIRS:
        learner: Ours | GPTSwarm = GPTSwarm(problem.graph, THEIRS[method])
    else:
        learner = Ours(problem)
    batch, good = 8 if method == "score" else 4, list[bool]()
    draw, looks = (torch.Generator().manual_seed(seed + k) for k in range(2))
    for done in range(batch, budget + 1, batch):
        samples = learner.edges.sample(batch, draw)
        utilities = []
        for k, sample in enumerate(samples):  # theirs: each evaluation on another task
            task = seed * 1_000_003 + done + (7919 * k if method in THEIRS else 0)
            utilities.append(problem.evaluate(sample, torch.Generator().manual_seed(task)))
        learner.step(samples, utilities)
        if done % EVERY == 0:
            mean = problem.mean(learner.edges.sample(128, looks))
            good.append(mean >= GOOD * problem.optimum - 1e-6)
            if len(good) >= HOLD and all(good[-HOLD:]):
                return EVERY * (len(good) - HOLD + 1)
    return None


def measure_evaluations(given: argparse.Namespace) -> Figures:
    """Evaluations of all methods on all problems: mean, standard error, and share that reached the
    threshold; below a ``reached`` of 1, the mean is a lower bound."""
    torch.set_num_threads(1)
    seeds, budget = (1, 400) if given.quick else (20, 3200)
    found: Figures = {}
    for name in PROBLEMS:
        for method in METHODS:
            runs = [learn(name, method, seed, budget) for seed in range(seeds)]
            values = [float(run or budget) for run in runs]
            found.setdefault(name, {})[method] = {
                "mean": round(fmean(values), 1),
                "se": round(stdev(values) / math.sqrt(seeds), 1) if seeds > 1 else 0.0,
                "reached": round(fmean(run is not None for run in runs), 3),
            }
    worse = []
    for name, cells in found.items():
        theirs = min((cells[method] for method in THEIRS), key=lambda cell: float(cell["mean"]))
        own = cells["score"]
        if own["mean"] - theirs["mean"] > 2 * math.hypot(theirs["se"], own["se"]):
            worse.append(f"{name}: {own['mean']:.0f} against {theirs['mean']:.0f}")
    return {
        "evaluations": found,
        "needle_success": found["needle"]["score"]["reached"],
        "worse": worse,
    }


def evaluation_tables(found: Figures) -> Iterator[Rows]:
    """Evaluations by problem and method."""
    cells = [
        [f"{name}, {method}", f"{cell['mean']:.0f} ±{cell['se']:.0f}", f"{cell['reached']:.0%}"]
        for name, methods in found["evaluations"].items()
        for method, cell in methods.items()
    ]
    yield Rows("Evaluations to 95 % of the optimum", ("", "mean, se", "reached"), cells)


SECTIONS = {
    "samples": Section(measure_samples, sample_tables),
    "evaluations": Section(measure_evaluations, evaluation_tables),
}

if __name__ == "__main__":
    sys.exit(command("edges", __doc__, SECTIONS))
