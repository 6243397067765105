"""Speed of sampling graphs, and number of evaluations needed to learn the useful edges.

    python -m benchmarks.speed.edges [--quick] [--peers] [--only samples evaluations power]
    python -m benchmarks.speed.edges --only power --record

- *samples*: median CPU microseconds per graph, on one thread; any ordered pair of n nodes may be
  joined, with probability 0.5. *order_first*: ``EdgeDistribution``, batches of 64: draw,
  log-probability and its gradient. *records*: the same as ``EdgeSample`` with names, one graph at a
  time. GPTSwarm (``--peers``): ``EdgeWiseDistribution.realize`` in a separate environment; it
  returns a graph object and a log-probability, without the backward pass. Interleaved.
- *evaluations*, on the problems of edge_problems.py: how many until 95 % of the optimum is reached.
  This is checked every 16 evaluations and must hold for six checks. *graph*: the graph that
  thresholding gives; *policy*: the mean over sampled graphs. Mean and standard error over seeds; a
  run that does not reach the threshold counts as the budget and lowers ``reached``. GPTSwarm's
  rules (gptswarm_edges.py; Adam at 0.1, batches of 4, each evaluation on another task): *none* (its
  code for MMLU), *half* (its code elsewhere), *average* (the moving average that was probably
  intended). *score*: ``edge_loss``, Adam from 0.15 to 0.3 over 400 evaluations, groups of 8 on one
  task, leave-one-out. *score_credit*: groups of 4, Adam at 0.3, credit weight 2; the learner also
  gets whether the message of each sampled edge was right (a critic without errors), which is more
  information than a utility. Our settings were chosen on instances and seeds from 1000 on.
- *power*: the budget that learned edges need, in a simulation without a model. Each of the 543 DAGs
  of four agents has a success rate: 75 % in the middle, plus effects of its edges, scaled so that
  the best and the worst DAG are 3, 10 or 30 points apart. In an iteration, 4 graphs play the same
  28 episodes, with a correlation of 0.72, and the optimiser makes one step. ``power``: share of
  runs in which the learned graph (the mode) is within 1 point of the best; ``gap``: mean distance.

JSON: ``us_per_graph``, ``times_gptswarm``, ``order_first_vs_gptswarm_n50``; ``evaluations`` by
problem and method, ``needle_success``, ``fewer_evaluations_with_credit`` (best GPTSwarm rule
divided by *score_credit*, for the least favourable case), ``worse`` (where *score* needs more
evaluations than the best of their rules, by over two standard errors); ``rows``, ``chance``.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import torch

from benchmarks.speed.edge_problems import PROBLEMS, Outcome, Problem
from benchmarks.speed.environments import interpreter
from benchmarks.speed.gptswarm_edges import Baseline, GPTSwarmEdges, GPTSwarmRule
from benchmarks.speed.processes import NoResult, Runner
from benchmarks.speed.report import Figures, Rows, Section, command, number
from swarm_ui.graph.topology import Edge
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.edges.optim import ProbabilitySGD, edge_loss
from swarm_ui.stats import wilson

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
                answer = peer.ask(patience, nodes=nodes, density=0.5, seconds=seconds)
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
METHODS = (*THEIRS, "score", "score_credit")
MEASURES = ("graph", "policy")


class Ours:
    """``edge_loss`` with Adam."""

    def __init__(self, problem: Problem, credit: bool) -> None:
        graph = problem.graph
        self.edges = EdgeDistribution(graph.names, candidates=graph.edges, decision=graph.decision)
        self.credit, self._seen = credit, 0
        self._adam = torch.optim.Adam(self.edges.parameters(), lr=0.3)

    def step(self, samples: Sequence[EdgeSample], outcomes: Sequence[Outcome]) -> None:
        """One update; all samples are of one task."""
        options: dict[str, Any] = {"normalise": False, "groups": [0] * len(samples)}
        if self.credit:  # advantage of the message that each edge carried
            options["credit_weight"] = 2.0
            options["credit"] = [
                {edge: float(o.right[edge[0]]) - 0.5 for edge in sample.edges}
                for sample, o in zip(samples, outcomes, strict=True)
            ]
        else:
            self._adam.param_groups[0]["lr"] = 0.15 + 0.15 * min(1.0, self._seen / 400)
        self._adam.zero_grad()
        loss = edge_loss(self.edges, samples, [o.utility for o in outcomes], **options)
        loss.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        self._seen += len(samples)


class Watch:
    """Detects when a value first stayed good."""

    def __init__(self) -> None:
        self._since: int | None = None
        self._looks = 0

    def look(self, good: bool, at: int) -> None:
        """``good``: after ``at`` evaluations."""
        if self.found is None:
            self._since = (at if self._since is None else self._since) if good else None
            self._looks = self._looks + 1 if good else 0

    @property
    def found(self) -> int | None:
        """Evaluations until the value was good, if it stayed good."""
        return self._since if self._looks >= HOLD else None


def learn(name: str, method: str, seed: int, budget: int) -> dict[str, int | None]:
    """One run of a learner on one instance: evaluations until 95 % of the optimum, by measure."""
    problem = PROBLEMS[name](seed)
    ours = None if method in THEIRS else Ours(problem, method == "score_credit")
    edges = GPTSwarmEdges(problem.graph) if ours is None else ours.edges
    rule = GPTSwarmRule(edges, THEIRS[method]) if isinstance(edges, GPTSwarmEdges) else None
    batch = 8 if method == "score" else 4
    draw = torch.Generator().manual_seed(seed)
    looks = torch.Generator().manual_seed(seed + 1)
    watches = {measure: Watch() for measure in MEASURES}
    draws, least = 32 if name == "influence" else 128, GOOD * problem.optimum - 1e-6
    for done in range(batch, budget + 1, batch):
        samples = edges.sample(batch, draw)
        outcomes = []
        for k, sample in enumerate(samples):
            task = seed * 1_000_003 + done + (0 if rule is None else 7919 * k)
            outcomes.append(problem.evaluate(sample, torch.Generator().manual_seed(task)))
        if rule is not None:
            rule.step(samples, [outcome.utility for outcome in outcomes])
        else:
            assert ours is not None
            ours.step(samples, outcomes)
        if done % EVERY == 0:
            watches["graph"].look(problem.mean([edges.mode()]) >= least, done)
            if watches["policy"].found is None:
                watches["policy"].look(problem.mean(edges.sample(draws, looks)) >= least, done)
            if all(watch.found is not None for watch in watches.values()):
                break
    return {measure: watch.found for measure, watch in watches.items()}


def summary(runs: Sequence[dict[str, int | None]], budget: int) -> Figures:
    """Means with standard errors, by measure. Below a ``reached`` of 1, the mean is a lower
    bound."""
    out: Figures = {}
    for what in MEASURES:
        values = [float(run[what] or budget) for run in runs]
        error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
        reached = fmean(run[what] is not None for run in runs)
        out[what] = {
            "mean": round(fmean(values), 1), "se": round(error, 1), "reached": round(reached, 3),
        }  # fmt: skip
    return out


def measure_evaluations(given: argparse.Namespace) -> Figures:
    """Evaluations of all methods on all problems."""
    torch.set_num_threads(1)
    seeds, budget = (1, 400) if given.quick else (20, 3200)
    table: Figures = {}
    for name in PROBLEMS:
        scored = PROBLEMS[name](0).scored  # credit needs messages that can be scored
        for method in METHODS if scored else METHODS[:-1]:
            runs = [learn(name, method, seed, budget) for seed in range(seeds)]
            table.setdefault(name, {})[method] = summary(runs, budget)
    ratios, worse = {}, []
    for name, cells in table.items():
        for measure in MEASURES:
            theirs = min((cells[m][measure] for m in THEIRS), key=lambda cell: float(cell["mean"]))
            own = cells["score"][measure]
            if own["mean"] - theirs["mean"] > 2 * math.hypot(theirs["se"], own["se"]):
                worse.append(f"{name} {measure}: {own['mean']:.0f} against {theirs['mean']:.0f}")
            if "score_credit" in cells:
                with_credit = cells["score_credit"][measure]["mean"]
                ratios[f"{name} {measure}"] = round(theirs["mean"] / with_credit, 2)
    return {
        "evaluations": table,
        "needle_success": table["needle"]["score"]["policy"]["reached"],
        "fewer_evaluations_with_credit": min(ratios.values()),
        "times_fewer_with_credit": ratios,
        "worse": worse,
        "seeds": [0, seeds],
        "budget": budget,
    }


def evaluation_tables(found: Figures) -> Iterator[Rows]:
    """Evaluations by problem and method."""
    cells = [
        [f"{name}, {method}",
         *(f"{c['mean']:.0f} ±{c['se']:.0f}, {c['reached']:.0%}" for c in cell.values())]
        for name, methods in found["evaluations"].items()
        for method, cell in methods.items()
    ]  # fmt: skip
    yield Rows("Evaluations to 95 % (mean, standard error, reached)", ("", *MEASURES), cells)
    worse = [[line, ""] for line in found["worse"]] or [["nowhere", ""]]
    yield Rows("Worse than the best GPTSwarm rule by over two standard errors", ("", ""), worse)


# ---- power -------------------------------------------------------------------------------------

AGENTS = tuple(f"agent_{k}" for k in range(4))
GRAPHS, EPISODES = 4, 28
SPREADS = (0.03, 0.10, 0.30)
BUDGETS = (0, 5, 20, 80, 320)
"""Iterations; 5 is the study of learning."""
MIDDLE, SHARED, CLOSE = 0.75, 0.72, 0.01
World = dict[frozenset[Edge], float]
"""A success rate for each DAG."""


def all_dags() -> list[frozenset[Edge]]:
    """Every DAG of the agents."""
    found: set[frozenset[Edge]] = set()
    for order in permutations(AGENTS):
        forward = [(a, b) for k, a in enumerate(order) for b in order[k + 1 :]]
        for mask in range(2 ** len(forward)):
            found.add(frozenset(e for k, e in enumerate(forward) if mask >> k & 1))
    return sorted(found, key=sorted)


def world(dags: list[frozenset[Edge]], spread: float, rng: random.Random) -> World:
    """Success rates with random effects of the edges, ``spread`` between the best and the worst."""
    effect = {(a, b): rng.gauss(0.0, 1.0) for a in AGENTS for b in AGENTS if a != b}
    sums = {dag: sum(effect[edge] for edge in sorted(dag)) for dag in dags}
    low, high = min(sums.values()), max(sums.values())
    return {dag: MIDDLE + spread * ((s - low) / (high - low) - 0.5) for dag, s in sums.items()}


def success(values: World, samples: list[EdgeSample], rng: random.Random) -> list[float]:
    """Success rates of the graphs on the same episodes."""
    rates = [values[frozenset(sample.edges)] for sample in samples]
    solved = [0] * len(rates)
    for _ in range(EPISODES):
        difficulty = rng.random()
        for k, rate in enumerate(rates):
            drawn = difficulty if rng.random() < math.sqrt(SHARED) else rng.random()
            solved[k] += drawn < rate
    return [count / EPISODES for count in solved]


def gaps_of(values: World, seed: int, budgets: Sequence[int]) -> list[float]:
    """Distance of the learned graph to the best after each budget."""
    edges = EdgeDistribution(AGENTS, density=0.5)
    optimizer = ProbabilitySGD(edges, lr=0.1)
    draw, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    gaps = []
    for done in range(budgets[-1] + 1):
        if done in budgets:
            gaps.append(max(values.values()) - values[frozenset(edges.mode().edges)])
        if done < budgets[-1]:
            samples = edges.sample(GRAPHS, draw)
            optimizer.zero_grad()
            told = success(values, samples, rng)
            loss = edge_loss(edges, samples, told, groups=[done] * GRAPHS, normalise=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return gaps


def measure_power(given: argparse.Namespace) -> Figures:
    """Rows of all spreads and budgets."""
    torch.set_num_threads(1)
    runs, budgets = (2, BUDGETS[:2]) if given.quick else (40, BUDGETS)
    dags, rows, chance = all_dags(), [], []
    for spread in SPREADS:
        worlds = [world(dags, spread, random.Random(seed)) for seed in range(runs)]
        near = [fmean(max(w.values()) - v <= CLOSE for v in w.values()) for w in worlds]
        chance.append({"spread": spread, "power": round(fmean(near), 3)})
        gaps = [gaps_of(each, 1000 + k, budgets) for k, each in enumerate(worlds)]
        for iterations, column in zip(budgets, zip(*gaps, strict=True), strict=True):
            interval = wilson([float(gap <= CLOSE) for gap in column])
            assert interval is not None
            rows.append({
                "learner": "step", "spread": spread, "iterations": iterations,
                "episodes": iterations * GRAPHS * EPISODES, "power": round(interval.mean, 3),
                "low": round(interval.low, 3), "high": round(interval.high, 3),
                "gap": round(fmean(column), 4), "runs": runs,
            })  # fmt: skip
    return {"rows": rows, "chance": chance}


def power_tables(found: Figures) -> Iterator[Rows]:
    """Power by spread and budget."""
    cells = [
        [f"{100 * r['spread']:.0f} points", r["iterations"], r["episodes"],
         f"{100 * r['power']:.0f} [{100 * r['low']:.0f}, {100 * r['high']:.0f}]",
         f"{100 * r['gap']:.1f}"]
        for r in found["rows"] if r["learner"] == "step"
    ]  # fmt: skip
    heads = ("best to worst DAG", "iterations", "episodes", "power, % [95 %]", "gap, points")
    yield Rows("Share of runs that find the best DAG within 1 point", heads, cells)


SECTIONS = {
    "samples": Section(measure_samples, sample_tables),
    "evaluations": Section(measure_evaluations, evaluation_tables),
    "power": Section(measure_power, power_tables, "edge_power"),
}

if __name__ == "__main__":
    sys.exit(command("edges", __doc__, SECTIONS))
