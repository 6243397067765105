"""Coordination on networks of 4 to 100 agents, with scripted agents: bounds, controls and cost.

    python benchmarks/coordination.py [--quick] [--graphs N] [--record | --recorded]

All agents are scripted; no language model is involved. *distributed*: distributed algorithms that
use only messages between neighbours, the upper bound. *muted*: the same agents, which receive no
messages but their own. *shuffled*: the same agents; each message is replaced with that of another
agent drawn at random, under the sender's name. *silent*: their first answers, without messages.
*guessing*: random answers. *constant*: nodes that reply with a constant and see no screen, only at
100 agents: the cost of the engine alone.

Each row is one policy on one kind of task and one number of agents, on ``--graphs`` networks of
each of the three families (test seeds); a row with the task ``all`` joins the five kinds, which are
played on the same networks. ``success`` is the share of solved episodes with a 95 % interval,
clustered by network (``low``, ``high``); ``score`` is the mean score. ``messages`` and ``cpu_s``
are means for a decision of the whole team; CPU-seconds of this process include drawing the network,
building the graph and scoring the answers. Prints a table; the last line is JSON with ``rows``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the package benchmarks

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.support.coordination_agents import ScriptedAgents, distributed, guessing, silent
from benchmarks.support.origin import origin
from benchmarks.support.records import read_record, write_record
from benchmarks.support.tables import markdown_table
from swarm_ui.agent_view import AgentView
from swarm_ui.environments.coordination import (
    FAMILIES,
    KINDS,
    LARGE,
    SMALL,
    TEST_SEEDS,
    CoordinationEnvironment,
    CoordinationPolicy,
    Delivery,
)
from swarm_ui.experiment.script_runner import script
from swarm_ui.message import Message
from swarm_ui.node import Node, NodeContext, NodeReply
from swarm_ui.nodes import AgentNode
from swarm_ui.rollout import rollout
from swarm_ui.stats import Outcome, clustered_mean

ALL = "all"
NAME = "coordination"


class Constant(NamedTuple):
    """A node that says nothing."""

    id: str

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        return NodeReply()


def maker(model: ScriptedAgents | None) -> Callable[[str, AgentView], Node]:
    """Makes the agent of each name. If it is ``None``, all agents give one constant answer."""

    def make(name: str, view: AgentView) -> Node:
        return Constant(name) if model is None else AgentNode(name, model, view=view)

    return make


POLICIES: dict[str, tuple[ScriptedAgents | None, Delivery]] = {
    "distributed": (distributed(), "sent"),
    "muted": (distributed(), "muted"),
    "shuffled": (distributed(), "shuffled"),
    "silent": (silent(), "sent"),
    "guessing": (guessing(), "sent"),
    "constant": (None, "sent"),
}


class Played(NamedTuple):
    """One episode."""

    network: str
    seed: int
    success: bool | None
    score: float
    messages: int
    cpu: float


def play(name: str, kind: str, size: int, seeds: Sequence[int]) -> list[Played]:
    """The episodes of one policy on one kind of task, one after the other."""
    model, delivery = POLICIES[name]
    policy = CoordinationPolicy(maker(model), name=name, delivery=delivery)
    found = []
    for family in FAMILIES:
        for seed in seeds:
            began = time.process_time()
            task = f"{kind}-{family}-{size}"
            episode = asyncio.run(rollout(CoordinationEnvironment(), policy, task=task, seed=seed))
            cpu = time.process_time() - began
            if episode.fault is not None:
                raise SystemExit(f"{name}, {task}, seed {seed}: {episode.fault}")
            (step,) = episode.steps
            count = len(step.trace.messages) - 1  # without the team's own answer
            network = f"{family}-{size}-{seed}"
            found.append(Played(network, seed, episode.success, step.reward, count, cpu))
    return found


def row(name: str, task: str, size: int, played: Sequence[Played]) -> dict[str, Any]:
    """One row of the table."""
    outcomes = [Outcome(p.network, k, float(bool(p.success))) for k, p in enumerate(played)]
    interval = clustered_mean(outcomes)
    assert interval is not None
    count = len(played)
    return {
        "name": name,
        "task": task,
        "size": size,
        "success": round(interval.mean, 4),
        "score": round(sum(p.score for p in played) / count, 4),
        "low": round(interval.low, 4),
        "high": round(interval.high, 4),
        "messages": round(sum(p.messages for p in played) / count, 1),
        "cpu_s": round(sum(p.cpu for p in played) / count, 4),
        "episodes": count,
        "networks": len({p.network for p in played}),
    }


def rows_of(name: str, size: int, graphs: int) -> list[dict[str, Any]]:
    """The rows of a policy and a size: each kind, and all together."""
    seeds = TEST_SEEDS[:graphs]
    kinds = {kind: play(name, kind, size, seeds) for kind in KINDS}
    found = [row(name, kind, size, played) for kind, played in kinds.items()]
    return [*found, row(name, ALL, size, [p for played in kinds.values() for p in played])]


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """Rows as a table."""
    found = Table(title="coordination on networks, scripted agents")
    for title in ("agents", "policy", "task", "success % [95 %]", "score %"):
        found.add_column(title, no_wrap=True)
    found.add_column("messages", justify="right")
    found.add_column("CPU-s", justify="right")
    last = None
    for r in rows:
        if r["size"] != last and last is not None:
            found.add_section()
        last = r["size"]
        score, messages, cpu = (
            f"{100 * r['score']:.0f}",
            f"{r['messages']:.0f}",
            f"{r['cpu_s']:.3f}",
        )
        found.add_row(str(r["size"]), r["name"], r["task"], _interval(r), score, messages, cpu)
    return found


def page_tables(rows: Sequence[dict[str, Any]]) -> str:
    """The tables of docs/coordination.md: by number of agents, and by kind at 16 and 100 agents."""
    found = {(r["name"], r["task"], r["size"]): r for r in rows}
    names = [name for name in POLICIES if name != "constant"]
    by_size = []
    for size in sorted({r["size"] for r in rows}):
        cells = [_interval(found[name, ALL, size]) for name in names]
        ours, bare = found["distributed", ALL, size], found.get(("constant", ALL, size))
        cost = "–" if bare is None else f"{bare['cpu_s']:.3f}"
        cells += [f"{ours['messages']:.0f}", f"{ours['cpu_s']:.3f}", cost]
        by_size.append([size, *cells])
    by_kind = [
        [f"{size}, {kind}", *(_both(found[name, kind, size]) for name in names)]
        for size in (16, 100)
        for kind in KINDS
    ]
    heads = ["agents", *names, "messages", "CPU-s", "CPU-s, constant"]
    sizes = markdown_table(heads, by_size)
    return f"{sizes}\n\n{markdown_table(['agents, kind', *names], by_kind)}"


def _interval(r: dict[str, Any]) -> str:
    return f"{100 * r['success']:.0f} [{100 * r['low']:.0f}, {100 * r['high']:.0f}]"


def _both(r: dict[str, Any]) -> str:
    return f"{100 * r['success']:.0f} / {100 * r['score']:.0f}"


@script
def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer sizes and networks")
    parser.add_argument("--graphs", type=int, default=5, help="networks of each family (5)")
    parser.add_argument("--record", action="store_true", help="also keep the rows in the source")
    parser.add_argument("--recorded", action="store_true", help="print the rows that were kept")
    given = parser.parse_args()
    graphs = 1 if given.quick else given.graphs
    if graphs < 1:
        parser.error(f"--graphs: expected at least 1, got {graphs}")
    if given.recorded:
        result = read_record(NAME, dict[str, Any])
    else:
        rows = measured(graphs, given.quick)
        found = origin("python benchmarks/coordination.py")
        result = {"origin": msgspec.to_builtins(found), "rows": rows}
    if given.record:
        write_record(NAME, result)
    console, rows = Console(), result["rows"]
    console.print(table([r for r in rows if r["task"] == ALL]))
    console.print(table([r for r in rows if r["task"] != ALL and r["name"] != "constant"]))
    print(json.dumps(result))
    return 0


def measured(graphs: int, quick: bool) -> list[dict[str, Any]]:
    """The rows of all policies and sizes; ``quick``: of some of them."""
    rows: list[dict[str, Any]] = []
    for size in (4, 16, LARGE[-1]) if quick else (*SMALL, *LARGE):
        for name in POLICIES:
            largest = size == LARGE[-1]
            if name == "constant" and not largest:
                continue
            if quick and largest and name not in ("distributed", "muted", "constant"):
                continue
            rows += rows_of(name, size, graphs)
    return rows


if __name__ == "__main__":
    sys.exit(main())
