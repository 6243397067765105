"""Cost of the graph engine, compared with asyncio.gather, LangGraph and GPTSwarm.

    python benchmarks/graph_engine.py [--quick] [--peers] [--langgraph FOLDER] [--gptswarm FOLDER]

Measurements:

- **us per node**: process CPU time (user and system) of a run ÷ its nodes; the median of several
  samples after a warm-up run, with a garbage collection before each sample and the collector on.
  Samples of all systems are interleaved, so that other load on the machine affects all equally. A
  run has ``Limits(timeout=60)``, delivers every message, keeps the trace and would turn an
  exception into a tombstone. Building the graph is measured separately. A system that does not
  call every node is refused. No-op nodes never suspend, so an engine can make many calls in one
  task; *suspending* nodes return to the event loop once (``asyncio.sleep(0)``), as every node that
  waits for a model does.
- **gather**: ``asyncio.gather`` of the same number of coroutines with the same work, in the same
  process.
- **shapes** (support/shapes.py): *chain*; *wide*, n nodes and one sink; *layered*, fully connected
  layers of ten, and a sink; *random*, node k receives from min(k, 3) of the nodes before it.
- **peers** (``--peers``): separate processes, in environments that peers/build.py builds or that
  the two options name. LangGraph: a compiled StateGraph without checkpointer, whose reducer adds
  to the state in place. GPTSwarm: ``Graph.run`` with Python's recursion limit raised to 10**6,
  because chains of 1000 nodes and more exceed the default; ours runs with the default. A peer has
  60 s for each graph (build, warm-up, samples; 9 s with ``--quick``, and n = 100 only); without a
  sample its figure is null and ``missing`` gives the reason.
- **critical path**: wall time ÷ the longest path of waits; random DAG of 1000 and 1000 wide with
  50 ms a node, random DAG of 100 with lognormal waits (median 20 ms, sigma 0.8), fixed seeds.
  Medians. Other load on the machine affects wall time; the same waits under ``asyncio.gather``,
  level by level, show how much (for equal waits only, because gather has a barrier).
- **concurrent**: 100 concurrent runs of one random DAG of 10 nodes, each with its own task; every
  answer is checked, and *right* is that of the worst batch. Runs per second: of CPU time for
  no-op nodes, of wall time for nodes of 10 ms.
- **bytes per node**: peak of the traced memory over one run (tracemalloc, in a separate process).
- **import**: CPU seconds of ``import swarm_ui`` in fresh processes, interpreter start not counted.

Prints tables, the limits that are exceeded, and JSON as the last line: ``us_per_node, vs_gather,
vs_langgraph, vs_gptswarm, us_per_suspending_node, suspending_vs_gather, bytes_per_node, build_s``
keyed ``chain_100 … random_10000``; ``critical_path``, ``concurrent``, ``import_cpu_s``, and more.
``vs_gather`` is ours ÷ gather's; ``vs_langgraph`` and ``vs_gptswarm`` are theirs ÷ ours.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the package benchmarks

from rich.progress import Progress

from benchmarks.peers import build as environments
from benchmarks.support.engine_report import missed, show
from benchmarks.support.shapes import (
    SHAPES,
    Shape,
    lognormal,
    random_dag,
    right_answer,
    shape,
    wide,
)
from benchmarks.support.timing import Field, NoResult, Race, Runner, import_cost, progress, race

HERE = Path(__file__).parent
SIZES = (100, 1000, 10_000)
PEERS = ("langgraph", "gptswarm")


class Effort(NamedTuple):
    """Duration and number of the measurements."""

    rounds: dict[int, int]
    runs: dict[int, int]
    """Runs of ours in a sample, by size."""
    walls: int
    batches: int
    imports: int
    patience: float
    """Seconds a peer has for a graph."""
    peer_sizes: tuple[int, ...]


FULL = Effort({100: 21, 1000: 15, 10_000: 9}, {100: 20, 1000: 3, 10_000: 1}, 5, 15, 9, 60, SIZES)
QUICK = Effort({100: 7, 1000: 5, 10_000: 3}, {100: 10, 1000: 2, 10_000: 1}, 1, 5, 3, 9, (100,))


class Bench:
    """The systems, and the figures measured so far."""

    def __init__(self, effort: Effort, peers: dict[str, str], bar: Progress) -> None:
        """``peers``: the Python of each environment."""
        self.effort, self.bar = effort, bar
        ours = Runner(sys.executable, HERE / "peers" / "run_swarm_ui.py", 300, own=True)
        self.ours = Field({"swarm_ui": ours, "gather": ours})
        self.peers = {
            name: Runner(python, HERE / "peers" / f"run_{name}.py", effort.patience, own=False)
            for name, python in peers.items()
        }
        self.found: dict[str, Any] = {"missing": {}}

    def start(self) -> None:
        """Start all processes, so that a broken environment is an error at the start."""
        for name, runner in {"swarm_ui": self.ours.runners["swarm_ui"], **self.peers}.items():
            try:
                runner.start()
            except NoResult as reason:
                raise SystemExit(f"{name}: {reason}") from None

    def stop(self) -> None:
        """End all processes."""
        for runner in [self.ours.runners["swarm_ui"], *self.peers.values()]:
            runner.stop()

    def race(
        self,
        label: str,
        field: Field,
        graph: Shape,
        work: str,
        seconds: list[float],
        requests: dict[str, dict[str, Any]],
        rounds: int,
    ) -> Race:
        """Measure one graph in all systems of a field."""
        self.bar.update(self.bar.task_ids[0], description=label)
        sent = {**graph._asdict(), "work": work, "seconds": seconds}
        out = race(field, sent, requests, rounds=rounds)
        for system, reason in out.missing.items():
            if system not in self.peers and not system.startswith("gptswarm"):
                raise SystemExit(f"{label}: {system}: {reason}")
            self.found["missing"].setdefault(system, {})[label] = reason
        return out

    def cost(self, name: str, n: int) -> None:
        """CPU per node of a shape, all systems."""
        effort, graph, key = self.effort, shape(name, n), f"{name}_{n}"
        runs = effort.runs[n]
        requests = {s: {"do": "time", "runs": runs} for s in self.ours.runners}
        requests |= {s: {"do": "time", "runs": max(1, runs // 5)} for s in PEERS}
        near = self.peers if n in effort.peer_sizes else {}
        field = Field({**self.ours.runners, **near})
        out = self.race(key, field, graph, "noop", [], requests, effort.rounds[n])
        micro = {s: out.median(s, "cpu") for s in ("swarm_ui", "gather", *PEERS)}
        each = {s: t / graph.size * 1e6 for s, t in micro.items() if t is not None}
        own = each["swarm_ui"]
        self.put("us_per_node", key, own)
        self.put("gather_us_per_node", key, each["gather"])
        self.put("vs_gather", key, own / each["gather"])
        for peer in PEERS:
            self.put(f"{peer}_us_per_node", key, each.get(peer))
            self.put(f"vs_{peer}", key, each[peer] / own if peer in each else None)
        self.put("build_s", key, out.build_s["swarm_ui"])
        out = self.race(key, self.ours, graph, "suspend", [], requests, effort.rounds[n])
        suspending, least = out.median("swarm_ui", "cpu"), out.median("gather", "cpu")
        assert suspending is not None
        assert least is not None
        self.put("us_per_suspending_node", key, suspending / graph.size * 1e6)
        self.put("suspending_vs_gather", key, suspending / least)

    def put(self, figure: str, key: str, value: float | None) -> None:
        """Record a figure."""
        rounded = None if value is None else float(f"{value:.4g}")
        self.found.setdefault(figure, {})[key] = rounded

    def waits(self) -> None:
        """Wall time ÷ critical path. Peers are measured only if all waits sum to a few seconds."""
        graphs = {"random_1000": random_dag(1000), "wide_1000": wide(1000)}
        slow = {name: [0.05] * graph.size for name, graph in graphs.items()}
        graphs["lognormal"], slow["lognormal"] = random_dag(100), lognormal(100, 0.02)
        request = {"do": "time", "runs": 1}
        for name, graph in graphs.items():
            own = self.ours.runners["swarm_ui"]
            near = self.peers if name == "lognormal" else {"gather": own}
            field = Field({"swarm_ui": own, **near})
            requests = dict.fromkeys(field.runners, request)
            least = graph.critical_path(slow[name])
            rounds = self.effort.walls * (1 if least > 1 else 3)  # short ones are easily disturbed
            out = self.race(name, field, graph, "sleep", slow[name], requests, rounds)
            for system in field.runners:
                wall = out.median(system, "wall")
                figure = "critical_path" if system == "swarm_ui" else f"critical_path_{system}"
                self.put(figure, name, None if wall is None else wall / least)
            best = min(sample["wall"] for sample in out.samples["swarm_ui"])
            self.put("critical_path_best", name, best / least)

    def concurrent(self) -> None:
        """100 runs of one graph at once."""
        graph, runs = random_dag(10), 100
        wanted = [right_answer(graph, task) for task in range(runs)]
        runners = {"swarm_ui": self.ours.runners["swarm_ui"], **self.peers}
        if "gptswarm" in self.peers:
            runners["gptswarm_deepcopy"] = self.peers["gptswarm"]
        requests = {system: {"do": "concurrent", "runs": runs} for system in runners}
        table: dict[str, Any] = {}
        for label, wait, clock in (("noop", 0.0, "cpu"), ("10ms", 0.01, "wall")):
            out = self.race(
                f"concurrent {label}", Field(runners), graph, "sum", [wait] * graph.size, requests,
                self.effort.batches,
            )  # fmt: skip
            for system, samples in out.samples.items():
                right = [sum(map(int.__eq__, s["answers"], wanted)) for s in samples]
                row = table.setdefault(system, {"right": runs})
                row["right"] = min(row["right"], *right)
                row[f"runs_per_s_{label}"] = round(runs / median(s[clock] for s in samples))
        own, copying = table["swarm_ui"], table.get("gptswarm_deepcopy", {})
        ratio = None
        if "runs_per_s_noop" in copying:
            ratio = round(own["runs_per_s_noop"] / copying["runs_per_s_noop"], 2)
        self.found["concurrent"] = {**own, "vs_gptswarm_deepcopy": ratio, "systems": table}

    def memory(self, name: str, n: int) -> None:
        """Peak of the traced bytes over a run; the process is stopped afterwards."""
        graph, key = shape(name, n), f"{name}_{n}"
        runner = self.ours.runners["swarm_ui"]
        requests = {"swarm_ui": {"do": "memory"}}
        out = self.race(key, Field({"swarm_ui": runner}), graph, "noop", [], requests, 1)
        self.put("bytes_per_node", key, out.samples["swarm_ui"][0]["bytes"] / graph.size)
        runner.stop()


def measure(effort: Effort, peers: dict[str, str]) -> dict[str, Any]:
    """Measure all figures."""
    with progress() as bar:
        task = bar.add_task("starting", total=None)
        bench = Bench(effort, peers, bar)
        cells = [(name, n) for n in SIZES for name in SHAPES]
        # Approximate seconds of each step on two cores, for the estimate of the remaining time.
        scale = effort.rounds[100] / FULL.rounds[100]
        weights = {(name, n): (1 + n / 1500) * scale for name, n in cells}
        for name, n in cells if peers else ():
            weights[name, n] += {100: 3, 1000: 20, 10_000: 60}[n] if n in effort.peer_sizes else 0
        rest = 12 * scale + (30 * scale if peers else 0)
        bar.update(task, total=sum(weights.values()) + rest + len(cells))
        try:
            bench.start()
            for cell in cells:
                bench.cost(*cell)
                bar.advance(task, weights[cell])
            bench.waits()
            bench.concurrent()
            bar.advance(task, rest)
            for cell in cells:
                bench.memory(*cell)
                bar.advance(task)
        finally:
            bench.stop()
        found = bench.found
        found["versions"] = {name: peer.facts.get("version") for name, peer in bench.peers.items()}
    found["import_cpu_s"], found["imports"] = import_cost("swarm_ui", effort.imports)
    found["python"] = f"{platform.python_implementation()} {platform.python_version()}"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="within a minute, rougher figures")
    parser.add_argument("--peers", action="store_true", help="LangGraph and GPTSwarm too")
    for name in PEERS:
        parser.add_argument(
            f"--{name}", type=Path, metavar="FOLDER", help="its environment, if there is one"
        )
    args = parser.parse_args()
    pythons = {}
    for name in PEERS if args.peers else ():
        folder = getattr(args, name)
        python = environments.interpreter(folder) if folder else environments.build(name)
        if not python.exists():
            parser.error(f"--{name}: there is no {python}")
        pythons[name] = str(python.absolute())
    found = measure(QUICK if args.quick else FULL, pythons)
    found["missed"] = missed(found)
    show(found)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
