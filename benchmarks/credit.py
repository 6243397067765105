"""Accuracy of the critics, and the effect of a critic's errors on learning.

python benchmarks/credit.py [--quick] [--episodes 40] [--split new_templates]

Part one rolls out a team of the shipped base agent on the simulated phone (4 agents at temperature
0.8, 2 rounds over a random DAG, majority vote), and all critics score the same episodes; the
reference is the environment's own solver. Part two trains on the vote game of
``benchmarks/support/vote_game.py`` with critics of different error rates, with the critic alone and
with its learned weight, over 20 seeds. Prints tables; the last line is JSON with ``auc``,
``inside`` (AUC among the messages of one decision) and ``calls`` by critic, and ``votegame``: by
critic, the difference to learning without a critic (percentage points, 95 %).
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the package benchmarks

from rich.console import Console

from benchmarks.support.critics import NoisyCritic, OutcomeJudge
from benchmarks.support.vote_game import VoteGame, play
from swarm_ui.credit import Critic
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, draw_jobs, tasks
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import random_dag
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.optim.credit.compare import Comparison, compare_recorded
from swarm_ui.optim.credit.counterfactual import LeaveOneOut, Shapley
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.rollout import GraphPolicy, rollout_many
from swarm_ui.stats import Interval, over_seeds
from swarm_ui.trace.jsonl import write_jsonl

NAMES = [f"agent_{k}" for k in range(4)]
SPLITS = ("train", "new_templates", "new_apps")
CRITICS: dict[str, dict[str, float | bool]] = {
    "perfect": {},
    "10 % errors": {"flip": 0.1},
    "30 % errors": {"flip": 0.3},
    "30 % errors, fresh": {"flip": 0.3, "fresh": True},
    "anti-correlated": {"anti": True},
}


def team(model: LocalModel) -> CollabGraph:
    """The team whose decisions are judged."""
    return CollabGraph.collaborative(
        len(NAMES),
        2,
        model=model,
        edges=random_dag(NAMES, 0.5, random.Random(1)),
        temperature=0.8,
        views="shuffle",
    )


def critics() -> list[Critic]:
    """Critics to compare in addition to the default ones."""
    model = LocalModel.load(BASE_AGENT)
    graph = team(model)
    solver = ScriptedCritic(PhoneEnvironment)
    going_on = OutcomeJudge(PhoneEnvironment, GraphPolicy(CollabGraph.solo(model), name="greedy"))
    return [
        NoisyCritic(solver, flip=0.1),
        NoisyCritic(solver, flip=0.3),
        LeaveOneOut(graph, solver),
        LeaveOneOut(graph, solver, samples=4),
        Shapley(graph, solver),
        LeaveOneOut(graph, going_on),
    ]


async def on_the_phone(episodes: int, console: Console, options: argparse.Namespace) -> Comparison:
    """Part one: compare the critics on episodes of the phone."""
    jobs = draw_jobs(tasks(options.split), episodes, 5, seeds=TRAIN_SEEDS)
    policy = GraphPolicy(team(LocalModel.load(BASE_AGENT)), name="base team")
    played = await rollout_many(PhoneEnvironment, policy, jobs, concurrency=32)
    solved = sum(episode.success is True for episode in played)
    console.print(f"{len(played)} episodes, {solved} solved")
    if options.out is not None:
        write_jsonl(options.out, played)
    comparison = await compare_recorded(
        played, make_environment=PhoneEnvironment, critics=critics()
    )
    console.print(comparison.table())
    return comparison


def on_the_vote_game(seeds: int, console: Console) -> dict[str, dict[str, list[float]]]:
    """Part two: difference to learning without a critic, in percentage points."""
    game = VoteGame()
    without = [play(game, "outcome", seed).utility for seed in range(seeds)]
    console.print(f"vote game without a critic: {over_seeds(without)}")
    found: dict[str, dict[str, list[float]]] = {}
    for label, errors in CRITICS.items():
        noisy = dataclasses.replace(game, **errors)  # type: ignore[arg-type]
        found[label] = {}
        for credit in ("critic", "learned"):
            utilities = [play(noisy, credit, seed).utility for seed in range(seeds)]
            gap = over_seeds([u - v for u, v in zip(utilities, without, strict=True)])
            assert gap is not None
            console.print(f"  {label}, {credit}: {gap.percent(signed=True)}")
            found[label][credit] = [round(100 * v, 2) for v in (gap.mean, gap.low, gap.high)]
    return found


def rounded(value: Interval | None) -> list[float] | None:
    """Mean and 95 % interval."""
    return None if value is None else [round(v, 3) for v in (value.mean, value.low, value.high)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare critics.")
    parser.add_argument("--quick", action="store_true", help="few episodes and seeds")
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--split", default="train", choices=SPLITS, help="templates to play")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    console = Console(width=180)
    episodes = 8 if options.quick else options.episodes
    comparison = asyncio.run(on_the_phone(episodes, console, options))
    game = on_the_vote_game(3 if options.quick else 20, console)
    print(
        json.dumps(
            {
                "auc": {s.name: rounded(s.auc) for s in comparison.sides},
                "inside": {s.name: rounded(s.inside) for s in comparison.sides},
                "calls": {s.name: s.calls for s in comparison.sides},
                "votegame": game,
            }
        )
    )


if __name__ == "__main__":
    main()
