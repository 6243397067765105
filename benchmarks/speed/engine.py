"""Cost of the graph engine, compared with asyncio.gather, LangGraph and GPTSwarm.

    python -m benchmarks.speed.engine [--quick] [--peers]

- **us per node**: process CPU time of a run divided by its nodes; the median of several samples
  after a warm-up, with a garbage collection before each and the collector on. Samples of all
  systems are interleaved. A run has ``Limits(timeout=60)``, delivers every message, keeps the trace
  and would turn an exception into a tombstone; building the graph is measured separately. A system
  that does not call every node is refused. No-op nodes never suspend, so an engine can make many
  calls in one task; *suspending* nodes return to the event loop once, as every node does that waits
  for a model.
- **gather**: ``asyncio.gather`` of as many coroutines with the same work, without messages.
- **shapes**: *chain*; *wide*, n nodes and one sink; *layered*, fully connected layers of ten, and a
  sink; *random*, node k receives from min(k, 3) of the nodes before it.
- **peers** (``--peers``): in environments that benchmarks.speed.environments builds. LangGraph: a
  compiled StateGraph without checkpointer, whose reducer adds in place. GPTSwarm: ``Graph.run``
  with Python's recursion limit raised to 10**6; ours runs with the default. A peer has 60 s for
  each graph (9 s with ``--quick``, and n = 100 only); without a sample its figure is null, and
  ``missing`` gives the reason.
- **critical path**: wall time divided by the longest path of waits; random DAG of 1000 and 1000
  wide with 50 ms a node, random DAG of 100 with lognormal waits (median 20 ms, sigma 0.8). The same
  waits under ``asyncio.gather``, level by level, show how much other load affects them.

JSON: ``us_per_node, vs_gather, vs_langgraph, vs_gptswarm, us_per_suspending_node,
suspending_vs_gather, build_s`` keyed ``chain_100 … random_10000``; ``critical_path``.
``vs_gather`` is ours divided by gather's; ``vs_langgraph`` and ``vs_gptswarm`` are theirs divided
by ours.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.speed.environments import interpreter
from benchmarks.speed.peers.serve import Shape
from benchmarks.speed.processes import NoResult, Race, Runner, race
from benchmarks.speed.report import Figures, Rows, Section, command, number

SCRIPTS = Path(__file__).parent / "peers"
SIZES = (100, 1000, 10_000)
PEERS = ("langgraph", "gptswarm")
WAITS = ("random_1000", "wide_1000", "lognormal")


def chain(n: int) -> Shape:
    """Each node receives from the one before."""
    return Shape(n, [(k, k + 1) for k in range(n - 1)])


def wide(n: int) -> Shape:
    """``n`` nodes without predecessors, and a sink that receives from all of them."""
    return Shape(n + 1, [(k, n) for k in range(n)])


def layered(n: int, width: int = 10) -> Shape:
    """Layers of ten. Each node receives from the whole layer before, a sink from the last layer."""
    edges = [
        (sender, start + place)
        for start in range(width, n, width)
        for place in range(min(width, n - start))
        for sender in range(start - width, start)
    ]
    last = range(n - (n % width or width), n)
    return Shape(n + 1, edges + [(k, n) for k in last])


def random_dag(n: int, predecessors: int = 3, seed: int = 0) -> Shape:
    """Node ``k`` receives from ``min(k, 3)`` nodes, drawn uniformly from those before it."""
    rng = random.Random(seed)
    return Shape(
        n, [(j, k) for k in range(1, n) for j in sorted(rng.sample(range(k), min(k, predecessors)))]
    )


SHAPES = {"chain": chain, "wide": wide, "layered": layered, "random": random_dag}


def critical_path(graph: Shape, seconds: list[float]) -> float:
    """The minimal time of a run in which node ``k`` takes ``seconds[k]``."""
    ready = [0.0] * graph.size
    for sender, hearer in sorted(graph.edges):  # the senders of a node come before it
        ready[hearer] = max(ready[hearer], ready[sender] + seconds[sender])
    return max(begin + took for begin, took in zip(ready, seconds, strict=True))


class Effort(NamedTuple):
    """Number of the measurements."""

    rounds: dict[int, int]
    runs: dict[int, int]
    """Runs of ours in a sample, by size."""
    walls: int
    patience: float
    """Seconds that a peer has for a graph."""
    peer_sizes: tuple[int, ...]


FULL = Effort({100: 21, 1000: 15, 10_000: 9}, {100: 20, 1000: 3, 10_000: 1}, 5, 60, SIZES)
QUICK = Effort({100: 5, 1000: 3, 10_000: 2}, {100: 10, 1000: 2, 10_000: 1}, 1, 9, (100,))


class Bench:
    """The systems, and the figures measured so far."""

    def __init__(self, effort: Effort, peers: dict[str, str]) -> None:
        """``peers``: the Python of each environment."""
        self.effort = effort
        own = Runner(sys.executable, SCRIPTS / "run_swarm_ui.py", 300)
        self.own, self.ours = own, {"swarm_ui": own, "gather": own}
        self.peers = {
            name: Runner(python, SCRIPTS / f"run_{name}.py", effort.patience)
            for name, python in peers.items()
        }
        self.found: Figures = {"missing": {}}

    def race(
        self, label: str, runners: dict[str, Runner], graph: Shape, work: str,
        seconds: list[float], runs: dict[str, int], rounds: int,
    ) -> Race:  # fmt: skip
        """Measure one graph in several systems."""
        sent = {**graph._asdict(), "work": work, "seconds": seconds}
        out = race(runners, sent, runs, rounds=rounds)
        for system, reason in out.missing.items():
            if system in self.ours:
                raise SystemExit(f"{label}: {system}: {reason}")
            self.found["missing"].setdefault(system, {})[label] = reason
        return out

    def put(self, figure: str, key: str, value: float | None) -> None:
        """Record a figure."""
        rounded = None if value is None else float(f"{value:.4g}")
        self.found.setdefault(figure, {})[key] = rounded

    def cost(self, name: str, n: int) -> None:
        """CPU per node of a shape, in all systems."""
        effort, graph, key = self.effort, SHAPES[name](n), f"{name}_{n}"
        runs = dict.fromkeys(self.ours, effort.runs[n])
        runs |= dict.fromkeys(PEERS, max(1, effort.runs[n] // 5))
        near = self.peers if n in effort.peer_sizes else {}
        out = self.race(key, self.ours | near, graph, "noop", [], runs, effort.rounds[n])
        each = {
            system: took / graph.size * 1e6
            for system in ("swarm_ui", "gather", *PEERS)
            if (took := out.median(system, "cpu")) is not None
        }
        self.put("us_per_node", key, each["swarm_ui"])
        self.put("gather_us_per_node", key, each["gather"])
        self.put("vs_gather", key, each["swarm_ui"] / each["gather"])
        for peer in PEERS:
            self.put(f"{peer}_us_per_node", key, each.get(peer))
            self.put(f"vs_{peer}", key, each[peer] / each["swarm_ui"] if peer in each else None)
        self.put("build_s", key, out.build_s["swarm_ui"])
        out = self.race(key, self.ours, graph, "suspend", [], runs, effort.rounds[n])
        own, least = out.median("swarm_ui", "cpu"), out.median("gather", "cpu")
        assert own is not None and least is not None
        self.put("us_per_suspending_node", key, own / graph.size * 1e6)
        self.put("suspending_vs_gather", key, own / least)

    def waits(self) -> None:
        """Wall time over the critical path; of peers only if all waits sum to a few seconds."""
        graphs = {"random_1000": random_dag(1000), "wide_1000": wide(1000)}
        slow = {name: [0.05] * graph.size for name, graph in graphs.items()}
        rng = random.Random(0)
        graphs["lognormal"] = random_dag(100)
        slow["lognormal"] = [0.02 * rng.lognormvariate(0.0, 0.8) for _ in range(100)]
        for name, graph in graphs.items():
            runners = {"swarm_ui": self.own}
            runners |= self.peers if name == "lognormal" else {"gather": self.own}
            least = critical_path(graph, slow[name])
            rounds = self.effort.walls * (1 if least > 1 else 3)  # short ones are easily disturbed
            out = self.race(
                name, runners, graph, "sleep", slow[name], dict.fromkeys(runners, 1), rounds
            )
            for system in runners:
                wall = out.median(system, "wall")
                figure = "critical_path" if system == "swarm_ui" else f"critical_path_{system}"
                self.put(figure, name, None if wall is None else wall / least)


def measure(given: argparse.Namespace) -> Figures:
    """Measure all figures."""
    effort = QUICK if given.quick else FULL
    bench = Bench(effort, {name: str(interpreter(name)) for name in PEERS if given.peers})
    runners = {"swarm_ui": bench.own, **bench.peers}
    try:
        for name, runner in runners.items():
            try:
                runner.start()
            except NoResult as reason:  # a broken environment is an error at the start
                raise SystemExit(f"{name}: {reason}") from None
        for n in SIZES:
            for name in SHAPES:
                bench.cost(name, n)
        bench.waits()
    finally:
        for runner in runners.values():
            runner.stop()
    found = bench.found
    found["versions"] = {name: peer.facts.get("version") for name, peer in bench.peers.items()}
    found["python"] = f"{platform.python_implementation()} {platform.python_version()}"
    return found


def tables(found: Figures) -> Iterator[Rows]:
    """CPU per node; waits; limits."""
    figures = {
        "swarm_ui": "us_per_node", "÷ gather": "vs_gather", "suspending": "us_per_suspending_node",
        "suspending ÷ gather": "suspending_vs_gather", "gather": "gather_us_per_node",
        "LangGraph ÷ ours": "vs_langgraph", "GPTSwarm ÷ ours": "vs_gptswarm",
        "building, s": "build_s",
    }  # fmt: skip
    cells = [
        [key, *(number(found[figure][key]) for figure in figures.values())]
        for key in found["us_per_node"]
    ]
    yield Rows("us of CPU per node", ["graph", *figures], cells)
    ways = {"swarm_ui": "", "gather by level": "_gather", **{peer: f"_{peer}" for peer in PEERS}}
    cells = [
        [system, *(number(found.get("critical_path" + end, {}).get(key)) for key in WAITS)]
        for system, end in ways.items()
    ]
    yield Rows("wall ÷ critical path", ["system", *WAITS], cells)
    if missing := found["missing"]:
        cells = [[s, f"{graph}: {why}"] for s, r in missing.items() for graph, why in r.items()]
        yield Rows("peers without a result", ["peer", "why"], cells)


if __name__ == "__main__":
    sys.exit(command("engine", __doc__, {"engine": Section(measure, tables)}))
