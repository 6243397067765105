"""The tables of ``benchmarks/scale.py``, for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.support.tables import markdown_table

TARGETS = {"overhead_200ms": 0.10, "memory_ratio_local": 1.2, "memory_ratio_ray": 1.2}
"""The largest value that is wanted."""
_WORLDS = {"phone": "phone (simulated)", "miniwob": "MiniWoB++ (real pages)"}


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: its title, its columns, and its cells."""

    title: str
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]


def tables(data: dict[str, Any]) -> Iterator[Rows]:
    """The tables of the sections that were measured."""
    if "overhead" in data:
        yield _overhead(data)
    if "bookkeeping" in data:
        yield _bookkeeping(data["bookkeeping"])
    if "weak_scaling" in data:
        yield _measured(data)
        yield _simulated(data)
        yield _limits(data)
    if "written_per_s" in data:
        yield _writing(data["written_per_s"])


def show(data: dict[str, Any], console: Console) -> None:
    """Print the tables, and the targets that are missed."""
    for rows in tables(data):
        table = Table(*rows.columns, title=rows.title, title_justify="left")
        for row in rows.cells:
            table.add_row(*row)
        console.print(table)
    for name, target in TARGETS.items():
        if name in data and data[name] > target:
            console.print(f"missed: {name} {data[name]:.3f}, target {target:g}")


def markdown(data: dict[str, Any]) -> str:
    """The tables as Markdown."""
    return "\n\n".join(
        f"**{rows.title}**\n\n{markdown_table(rows.columns, rows.cells, 'lr')}"
        for rows in tables(data)
    )


def _overhead(data: dict[str, Any]) -> Rows:
    cells = []
    for world, label in _WORLDS.items():
        for name in ("1ms", "20ms", "200ms"):
            found = data["overhead"][world][name]
            cells.append(
                [
                    label,
                    f"{name.removesuffix('ms')} ms",
                    str(found["episodes"]),
                    f"{found['local_s']:.2f}",
                    f"{found['ray_s']:.2f}",
                    f"{found['overhead']:+.1%}",
                    f"{found['local_cpu_ms_per_decision']:.1f}",
                    f"{found['ray_cpu_ms_per_decision']:.1f}",
                ]
            )
    columns = ("environment", "a decision", "episodes", "local s", "Ray s", "overhead",
               "local CPU ms/decision", "Ray CPU ms/decision")  # fmt: skip
    return Rows("Overhead of Ray against the local pool", columns, cells)


def _bookkeeping(found: dict[str, Any]) -> Rows:
    short, long = found["queued"]
    cells = []
    for system, label in (("local", "local pool"), ("ray", "Ray, driver")):
        parts = found[system]
        cells.append(
            [
                label,
                f"{parts['short']['peak_mb']:.0f}",
                f"{parts['long']['peak_mb']:.0f}",
                f"{parts['memory_ratio']:.2f}",
                f"{parts['long']['cpu_ms_per_episode']:.1f}",
                f"{parts['long']['episodes_per_s']:.0f}",
            ]
        )
    columns = ("", f"MB, {short:,} queued", f"MB, {long:,} queued", "ratio", "CPU ms/episode",
               "episodes/s")  # fmt: skip
    return Rows(f"Queued episodes, {found['in_flight']} in flight", columns, cells)


def _measured(data: dict[str, Any]) -> Rows:
    cells = [
        [
            f"{run['workers']} ({run['processes']} × {run['each']})",
            f"{run['start_s']:.0f}",
            f"{run['episodes_per_s']:.1f}",
            f"{run['simulated_episodes_per_s']:.1f}",
            f"{run['error']:+.1%}",
            f"{run['efficiency']:.0%}",
            run["bottleneck"],
        ]
        for run in data["weak_scaling_measured"]
    ]
    columns = ("workers on this machine (processes × each)", "start s", "episodes/s", "simulated",
               "error", "efficiency", "bottleneck")  # fmt: skip
    return Rows("Weak scaling, measured on this machine, and simulated for it", columns, cells)


def _simulated(data: dict[str, Any]) -> Rows:
    cells = [
        [
            f"{int(size):,}",
            f"{told['episodes_per_s']:.0f}",
            f"{told['efficiency']:.0%}",
            told["bottleneck"],
            f"{max(told['busy'].values()):.0%}",
        ]
        for size, told in data["weak_scaling_simulated"].items()
    ]
    columns = ("workers on machines of their own", "episodes/s", "efficiency", "bottleneck", "busy")
    return Rows("Weak scaling, simulated with the measured costs", columns, cells)


def _limits(data: dict[str, Any]) -> Rows:
    scaled, recorded = data["binds_at"]["scaled"], data["binds_at"]["recorded"]
    cells = [
        [part, f"{scaled[part]:,.0f}", f"{recorded[part]:,.0f}"]
        for part in sorted(scaled, key=lambda part: float(scaled[part]))
    ]
    cells += [
        [f"*1,000 workers, {name}*", f"{value:.0%}", ""] for name, value in data["lifted"].items()
    ]
    columns = ("always busy from … workers; *efficiency*", "200 ms a decision", "as recorded")
    return Rows("What limits the number of workers, and what lifts it", columns, cells)


def _writing(rates: dict[str, float]) -> Rows:
    cells = [[size, f"{rate:,.0f}"] for size, rate in rates.items()]
    return Rows("Writing traces", ("episodes finished at once", "episodes/s on disk"), cells)
