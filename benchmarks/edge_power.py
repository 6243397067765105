"""Budget that learned edges need: a simulation of the edge optimiser without a model.

    python benchmarks/edge_power.py [--runs 40] [--record]
    python benchmarks/edge_power.py --recorded
    python benchmarks/edge_power.py --quick

Every one of the 543 DAGs of four agents has a success rate: 75 % in the middle, plus the effects of
its edges, which are drawn from a normal distribution for each run and scaled so that the best and
the worst DAG are 3, 10 or 30 points apart. An iteration is that of the learning benchmark: 4 graphs
are drawn from the distribution, each plays the same episodes (112 / 4 = 28), the success rates are
the utilities, and the optimiser makes one step. The outcomes of one episode under two graphs have
the correlation 0.72, like those of the untrained team with and without edges on the test episodes
(base_x4 and base_team of ``learning.py``, known templates).

*power*: share of runs in which the learned graph (the mode) is within 1 point of the best DAG.
*step*: the trainer's optimiser with its default rate, 0.1; *thompson*: ``ThompsonEdges``, whose
noise is the standard deviation of a utility. *gap*: mean distance of the learned graph to the best,
in points. Budget 0 is the graph before learning. Success is the utility here; the share of right
decisions, which is the trainer's default, has less noise and less distance between graphs.

Prints a table; the last line is JSON: ``rows`` of ``{learner, spread, iterations, episodes, power,
low, high, gap, runs}``, with 95 % Wilson intervals, and ``chance`` (``{spread, power}``: of a graph
drawn at random).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the package benchmarks

import msgspec
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.support.edge_learners.score_function import ScoreFunction
from benchmarks.support.edge_learners.thompson_edges import ThompsonEdges
from benchmarks.support.origin import origin
from benchmarks.support.records import read_record, write_record
from swarm_ui.experiment.script_runner import script
from swarm_ui.graph.topology import Edge
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.edges.optim import ProbabilitySGD
from swarm_ui.stats import wilson

NAME = "edge_power"
AGENTS = tuple(f"agent_{k}" for k in range(4))
GRAPHS, EPISODES = 4, 28
"""Graphs of an iteration, and the episodes that each of them plays."""
SPREADS = (0.03, 0.10, 0.30)
BUDGETS = (0, 5, 20, 80, 320)
"""Iterations; 5 is the learning benchmark."""
LEARNERS = ("step", "thompson")
MIDDLE, SHARED, CLOSE = 0.75, 0.72, 0.01
"""Mean success of the best and the worst DAG, correlation between graphs, and what counts as
found."""


class Instance(NamedTuple):
    """A success rate for each DAG."""

    values: dict[frozenset[Edge], float]

    @property
    def best(self) -> float:
        return max(self.values.values())


def all_dags() -> list[frozenset[Edge]]:
    """Every DAG of the agents."""
    found: set[frozenset[Edge]] = set()
    for order in permutations(AGENTS):
        forward = [(a, b) for k, a in enumerate(order) for b in order[k + 1 :]]
        for mask in range(2 ** len(forward)):
            found.add(frozenset(e for k, e in enumerate(forward) if mask >> k & 1))
    return sorted(found, key=sorted)


def instance(dags: list[frozenset[Edge]], spread: float, rng: random.Random) -> Instance:
    """Success rates with random effects of the edges, ``spread`` between the best and the worst."""
    effect = {(a, b): rng.gauss(0.0, 1.0) for a in AGENTS for b in AGENTS if a != b}
    sums = {dag: sum(effect[edge] for edge in sorted(dag)) for dag in dags}
    low, high = min(sums.values()), max(sums.values())
    return Instance(
        {dag: MIDDLE + spread * ((s - low) / (high - low) - 0.5) for dag, s in sums.items()}
    )


def utilities(world: Instance, samples: list[EdgeSample], rng: random.Random) -> list[float]:
    """Success rates of the graphs on the same episodes."""
    rates = [world.values[frozenset(sample.edges)] for sample in samples]
    solved = [0] * len(rates)
    for _ in range(EPISODES):
        difficulty = rng.random()
        for k, rate in enumerate(rates):
            drawn = difficulty if rng.random() < math.sqrt(SHARED) else rng.random()
            solved[k] += drawn < rate
    return [count / EPISODES for count in solved]


def learn(name: str, world: Instance, seed: int, budgets: tuple[int, ...]) -> list[float]:
    """Distance of the learned graph to the best after each budget."""
    noise = math.sqrt(MIDDLE * (1 - MIDDLE) / EPISODES)
    source: EdgeDistribution | ThompsonEdges
    learner: ScoreFunction | ThompsonEdges
    if name == "thompson":
        source = learner = ThompsonEdges(AGENTS, noise=noise)
    else:
        source = EdgeDistribution(AGENTS, density=0.5)
        learner = ScoreFunction(source, ProbabilitySGD(source, lr=0.1), normalise=True)
    draw, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    gaps = []
    for done in range(budgets[-1] + 1):
        if done in budgets:
            gaps.append(world.best - world.values[frozenset(source.mode().edges)])
        if done < budgets[-1]:
            samples = source.sample(GRAPHS, draw)
            learner.step(samples, utilities(world, samples, rng), groups=[done] * GRAPHS)
    return gaps


def measured(runs: int, budgets: tuple[int, ...]) -> dict[str, Any]:
    """Rows of all learners, spreads and budgets."""
    dags, rows, chance = all_dags(), [], []
    for spread in SPREADS:
        worlds = [instance(dags, spread, random.Random(seed)) for seed in range(runs)]
        near = [fmean(w.best - v <= CLOSE for v in w.values.values()) for w in worlds]
        chance.append({"spread": spread, "power": round(fmean(near), 3)})
        for name in LEARNERS:
            gaps = [learn(name, world, 1000 + k, budgets) for k, world in enumerate(worlds)]
            for number, iterations in enumerate(budgets):
                column = [gap[number] for gap in gaps]
                interval = wilson([float(gap <= CLOSE) for gap in column])
                assert interval is not None
                rows.append({
                    "learner": name, "spread": spread, "iterations": iterations,
                    "episodes": iterations * GRAPHS * EPISODES, "power": round(interval.mean, 3),
                    "low": round(interval.low, 3), "high": round(interval.high, 3),
                    "gap": round(fmean(column), 4), "runs": runs,
                })  # fmt: skip
    return {"rows": rows, "chance": chance}


@script
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=40, help="simulated runs (40)")
    parser.add_argument("--record", action="store_true", help="keep it in benchmarks/results")
    parser.add_argument("--recorded", action="store_true", help="print what was kept")
    parser.add_argument("--quick", action="store_true", help="few runs and iterations")
    given = parser.parse_args()
    if given.runs < 1:
        parser.error(f"--runs: expected at least 1, got {given.runs}")
    torch.set_num_threads(1)
    if given.recorded:
        data = read_record(NAME, dict[str, Any])
    else:
        budgets = BUDGETS[:2] if given.quick else BUDGETS
        data = {"origin": msgspec.to_builtins(origin("python benchmarks/edge_power.py"))}
        data |= measured(2 if given.quick else given.runs, budgets)
    if given.record:
        write_record(NAME, data)
    table = Table("points", "learner", "iterations", "episodes", "power [95 %]", "gap, points")
    for r in data["rows"]:
        power = f"{100 * r['power']:.0f} [{100 * r['low']:.0f}, {100 * r['high']:.0f}]"
        cells = (r["iterations"], r["episodes"], power, f"{100 * r['gap']:.1f}")
        table.add_row(f"{100 * r['spread']:.0f}", r["learner"], *map(str, cells))
    Console().print(table)
    print(json.dumps(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
