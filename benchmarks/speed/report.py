"""Options, tables and records that the commands of this package share.

A command measures its sections, prints a table of each and, as its last line, one JSON object. A
section can have a record, ``benchmarks/results/NAME.json``, and a page that shows the tables of
this record between two marks.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.speed.usage import OtherLoad
from benchmarks.support.origin import origin_here
from benchmarks.table import markdown_table
from swarm_ui.files import write_atomic

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- recorded: begin -->", "<!-- recorded: end -->"
Figures = dict[str, Any]


class Rows(NamedTuple):
    """A table; the first column is text, the others are numbers."""

    title: str
    columns: Sequence[str]
    cells: Sequence[Sequence[object]]


class Section(NamedTuple):
    """A part of a command."""

    measure: Callable[[argparse.Namespace], Figures]
    tables: Callable[[Figures], Iterator[Rows]]
    record: str | None = None
    """Name of its record."""
    page: str | None = None
    """The page below ``docs/`` that shows the record."""


def number(value: float | None) -> str:
    """Three digits; a dash for ``None``."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def command(name: str, doc: str, sections: dict[str, Section], *options: tuple[str, Any]) -> int:
    """Run the command ``python -m benchmarks.speed.NAME``; ``options``: more options, each with the
    keywords of ``add_argument``."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.speed.{name}", description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="within a minute; rough figures")
    parser.add_argument("--peers", action="store_true", help="other systems too, if installed")
    parser.add_argument("--only", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--record", action="store_true", help="keep the figures, also on the page")
    parser.add_argument("--recorded", action="store_true", help="print the figures that were kept")
    for option, keywords in options:
        parser.add_argument(option, **keywords)
    given = parser.parse_args()
    if given.record and given.quick:
        parser.error("--record keeps figures, and those of --quick are rough: leave out --quick")
    found: Figures = {}
    for part in given.only:
        section = sections[part]
        if given.recorded and section.record is None:
            continue
        figures = recorded(section) if given.recorded else _measured(section, name, given)
        show(section.tables(figures))
        found |= figures
    print(json.dumps(found))
    return 0


def recorded(section: Section) -> Figures:
    """The figures of a section that were kept."""
    assert section.record is not None
    found: Figures = json.loads((RESULTS / f"{section.record}.json").read_text("utf-8"))
    return found


def _measured(section: Section, name: str, given: argparse.Namespace) -> Figures:
    where = msgspec.to_builtins(origin_here(f"python -m benchmarks.speed.{name}"))
    load = OtherLoad()
    figures = section.measure(given)
    figures = {"origin": where, **figures, "other_cores": round(load.cores(), 2)}
    if given.record and section.record is not None:
        load.check()
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        write_atomic(RESULTS / f"{section.record}.json", text + "\n")
        if section.page is not None:
            page = ROOT / "docs" / section.page
            write_atomic(page, on_page(page.read_text(encoding="utf-8"), section, figures))
    return figures


def show(tables: Iterator[Rows]) -> None:
    """Print tables."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    for rows in tables:
        table = Table(title=rows.title, title_justify="left")
        for place, column in enumerate(rows.columns):
            table.add_column(column, justify="right" if place else "left")
        for cells in rows.cells:
            table.add_row(*map(str, cells))
        console.print(table)


def on_page(page: str, section: Section, figures: Figures) -> str:
    """The page with the tables of a record between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"expected a page with the marks {BEGIN} and {END}, got neither")
    where = figures["origin"]
    commit, machine = where["commit"][:10], where["machine"]
    parts = [
        f"Measured with `{where['command']}` at commit {commit} ({machine}).",
        *(
            f"**{rows.title}**\n\n{markdown_table(rows.columns, rows.cells, 'lr')}"
            for rows in section.tables(figures)
        ),
    ]
    return f"{before}{begin}\n\n" + "\n\n".join(parts) + f"\n\n{end}{after}"
