"""The tables of graph_engine.py, and the limits for its figures."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

MAX_US = 10.0
MAX_VS_GATHER = 2.5
MAX_GROWTH = 1.6
MIN_VS = {
    "langgraph": {100: 15.0, 10_000: 40.0},
    "gptswarm": {100: 3.5, 10_000: 20.0},
}
"""At n = 100 for every shape, at n = 10,000 for the random DAG."""
MAX_CRITICAL = {"random_1000": 1.05, "wide_1000": 1.12, "lognormal": 1.05}
MIN_VS_DEEPCOPY = 3.0
MAX_IMPORT_S = 0.2
NEVER_IMPORTED = ("torch", "transformers", "pandas")

NOTES = """\
CPU time per node; building a graph is not in it (us per node in the last column).
No-op nodes never suspend, so an engine can make many of their calls in one task, which gather does
not: a ratio near 1 says nothing about nodes that wait for a model. The suspending columns do: one
trip through the event loop in every node, ours and gather's. Gather delivers and records nothing.
"""


def missed(found: dict[str, Any]) -> list[str]:
    """One line for each limit that the figures exceed; missing figures are ignored."""
    lines = []

    def check(what: str, value: float | None, limit: float, *, most: bool) -> None:
        if value is not None and (value > limit if most else value < limit):
            lines.append(f"{what}: {value:.3g}, wanted {'<=' if most else '>='} {limit:g}")

    cost = found["us_per_node"]
    for key, us in cost.items():
        check(f"us per node, {key}", us, MAX_US, most=True)
        check(f"÷ gather, {key}", found["vs_gather"][key], MAX_VS_GATHER, most=True)
    for name in sorted({key.rpartition("_")[0] for key in cost}):
        growth = cost[f"{name}_10000"] / cost[f"{name}_100"]
        check(f"growth from 100 to 10000, {name}", growth, MAX_GROWTH, most=True)
    for peer, limits in MIN_VS.items():
        for key, ratio in found[f"vs_{peer}"].items():
            if key.endswith("_100") or key == "random_10000":
                least = limits[int(key.rpartition("_")[2])]
                check(f"times {peer}, {key}", ratio, least, most=False)
    for key, limit in MAX_CRITICAL.items():
        check(f"wall ÷ critical path, {key}", found["critical_path"][key], limit, most=True)
    runs = found["concurrent"]
    check("concurrent runs right", runs["right"], 100, most=False)
    ratio = runs["vs_gptswarm_deepcopy"]
    check("runs/s ÷ GPTSwarm with deepcopy", ratio, MIN_VS_DEEPCOPY, most=False)
    check("import, CPU s", found["import_cpu_s"], MAX_IMPORT_S, most=True)
    lines += [f"import pulls in {name}" for name in NEVER_IMPORTED if name in found["imports"]]
    return lines


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def show(found: dict[str, Any]) -> None:
    """Print the tables, the notes and the exceeded limits."""
    console = Console()
    if console.width < 132:
        console = Console(width=132)  # in the 80 columns of a pipe the table would be unreadable
    console.print(_costs(found))
    console.print(_runs(found))
    for system, reasons in found["missing"].items():
        for key, reason in reasons.items():
            console.print(f"– {system}, {key}: {reason}", highlight=False, markup=False)
    pulled = ", ".join(name for name in found["imports"] if name != "swarm_ui")
    console.print(f"import swarm_ui: {found['import_cpu_s']:.3f} s CPU; pulls in {pulled}")
    console.print(NOTES, highlight=False)
    over = [key for key, times in found["suspending_vs_gather"].items() if times > MAX_VS_GATHER]
    if over:
        console.print(
            f"suspending nodes above {MAX_VS_GATHER:g} × gather (the limit is for no-op nodes):"
        )
        console.print("  " + ", ".join(over), highlight=False)
    lines = found["missed"]
    console.print("every limit is met" if not lines else f"{len(lines)} limits are missed:")
    for line in lines:
        console.print("  " + line, highlight=False, markup=False)


def _costs(found: dict[str, Any]) -> Table:
    versions = found["versions"]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0), title="us of CPU per node")
    table.add_column("graph", no_wrap=True)
    for column in (
        "swarm_ui", "÷ gather", "suspending", "÷ gather", "gather",
        f"LangGraph {versions.get('langgraph') or ''}", "÷ ours",
        f"GPTSwarm {versions.get('gptswarm') or ''}", "÷ ours", "bytes", "building",
    ):  # fmt: skip
        table.add_column(column.strip(), justify="right")
    for key, us in found["us_per_node"].items():
        name, _, n = key.rpartition("_")
        table.add_row(
            f"{name} {int(n):,}",
            _figure(us),
            _figure(found["vs_gather"][key]),
            _figure(found["us_per_suspending_node"][key]),
            _figure(found["suspending_vs_gather"][key]),
            _figure(found["gather_us_per_node"][key]),
            _figure(found["langgraph_us_per_node"][key]),
            _figure(found["vs_langgraph"][key]),
            _figure(found["gptswarm_us_per_node"][key]),
            _figure(found["vs_gptswarm"][key]),
            _figure(found["bytes_per_node"][key]),
            _figure(found["build_s"][key] / int(n) * 1e6),
            end_section=name == "random",
        )
    return table


def _runs(found: dict[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="wall ÷ critical path; 100 runs of one graph at once")
    table.add_column("system")
    for column in (
        "random 1,000", "wide 1,000", "lognormal 100", "right of 100",
        "runs/CPU s, no-op", "runs/s, 10 ms",
    ):  # fmt: skip
        table.add_column(column, justify="right")
    rows = found["concurrent"]["systems"]
    for system, row in {**rows, "gather": {}}.items():
        suffix = "" if system == "swarm_ui" else f"_{system}"
        waits = found.get("critical_path" + suffix, {})
        ratios = [waits.get(key) for key in MAX_CRITICAL]
        table.add_row(
            "gather by level" if system == "gather" else system,
            *["–" if ratio is None else f"{ratio:.3f}" for ratio in ratios],
            str(row.get("right", "–")),
            _figure(row.get("runs_per_s_noop")),
            _figure(row.get("runs_per_s_10ms")),
        )
    return table
