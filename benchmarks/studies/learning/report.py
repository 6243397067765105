"""The results of ``learning.py`` as tables for a terminal or a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.studies.learning.cells import SPLITS
from benchmarks.studies.learning.labels import ALONE, LABELS, Line, finder, main_row
from benchmarks.studies.rates import FEW, percent, percent_range
from benchmarks.support.tables import markdown_table

_ARMS = {"": "team on DAGs", "_vote": "vote without edges", "_greedy": "one agent"}
_NOTE = "The phone is simulated and its critic scripted: not AndroidWorld scores."
_SHOWN = ("base_x1", "base_x4", "more_stage1_rft", "rft", "full", "independent_voters")
"""Policies of the short table and of the picture."""


class Table(NamedTuple):
    """A table of text cells; the first column is aligned to the left."""

    title: str
    columns: list[str]
    lines: list[list[str]]

    def markdown(self) -> str:
        """As Markdown, under its title in bold."""
        title = f"**{self.title[0].upper()}{self.title[1:]}**"
        return f"{title}\n\n{markdown_table(self.columns, self.lines, 'lr')}"


def show(data: dict[str, Any], console: Console) -> None:
    """All tables; real web pages last."""
    for table in [*tables(data), *_web(data)]:
        found = RichTable(title=f"simulated phone: {table.title}")
        for number, column in enumerate(table.columns):
            found.add_column(column, justify="right" if number else "left")
        for line in table.lines:
            found.add_row(*line)
        console.print(found)
    console.print(_NOTE)


def short_table(data: dict[str, Any]) -> str:
    """Success of the main policies on all splits as Markdown, for docs/results.md."""
    splits = list(SPLITS.values())
    lines = []
    for name in _SHOWN:
        for suffix in ("_vote", "_greedy", ""):
            if (ALONE.get(name) == suffix) or (name not in ALONE and suffix != "_greedy"):
                key = name if name in ALONE or suffix == "" else name + suffix
                found = [finder(data["rows"], split)(key) for split in splits]
                cells = [_success(line) for line in found]
                seeds = max((line["seeds"] for line in found if line), default=0)
                if seeds:
                    count = str(seeds) if _trained(name) else "–"
                    lines.append([label(key), *cells, count])
    heads = ["policy", *(split.replace("_", " ") for split in splits), "seeds"]
    return markdown_table(heads, lines, "lr") + "\n"


def coverage(data: dict[str, Any]) -> str:
    """Which variants have few training seeds or none, as a sentence in Markdown."""
    of = finder(data["rows"], next(iter(SPLITS.values())))
    names = [name for name in LABELS if _trained(name) and not name.endswith("_own")]
    found = {n: 0 if (line := main_row(of, n)) is None else int(line["seeds"]) for n in names}
    few = [f"{LABELS[name]} ({count})" for name, count in found.items() if 0 < count < FEW]
    left = [LABELS[name] for name, count in found.items() if not count]
    parts = [
        f"{text}: {'; '.join(names)}."
        for text, names in (("Rows with fewer than three training seeds", few),
                            ("Not measured yet", left))
        if names
    ]  # fmt: skip
    return "".join(f"{part}\n" for part in parts)


def tables(data: dict[str, Any]) -> list[Table]:
    """The contrasts, then for each split success and exploratory differences, then the work."""
    found = [_contrasts(data["contrasts"])]
    for split in SPLITS.values():
        found += _of_split(data, split)
    return [*found, _work(data)]


def _contrasts(contrasts: Sequence[Line]) -> Table:
    lines = []
    for line in contrasts:
        sides = f"{label(line['ours'])} − {label(line['theirs'])}"
        gap, over = "not measured", "–"
        if line["seeds"]:
            gap, over = (
                percent(line["gap"], line["low"], line["high"], signed=True),
                _over_seeds(line),
            )
        split = line["split"].replace("_", " ")
        lines.append([line["name"], split, sides, gap, over, str(line["seeds"]), line["equal"]])
    columns = ["contrast", "split", "difference of", "points [95 %, clustered]"]
    columns += ["95 %, t over seeds", "seeds", "equal in"]
    return Table("contrasts named in advance", columns, lines)


def _of_split(data: dict[str, Any], split: str) -> list[Table]:
    rows = {line["name"]: line for line in data["rows"] if line["split"] == split}
    others = [line for line in data["comparisons"] if line["split"] == split]
    name = split.replace("_", " ")
    success = Table(
        f"{name}: success, % [95 %, clustered by template]",
        ["policy", *_ARMS.values(), "vote minus one agent", "team minus vote", "over base ×4",
         "t over seeds", "each seed", "DAGs"],
        [_row(rows, name) for name in LABELS if main_row(rows.get, name)],
    )  # fmt: skip
    exploratory = Table(
        f"{name}, exploratory: the paper's method (team on DAGs) minus the other, points "
        "[95 %, clustered]",
        ["other", "difference", "t over seeds", "each seed"],
        [
            [label(line["other"]), percent(line["gap"], line["low"], line["high"], signed=True),
             _over_seeds(line), _each(line["each_seed"], "+")]
            for line in others
        ],
    )  # fmt: skip
    return [success, exploratory] if others else [success]


def _row(rows: dict[str, Line], name: str) -> list[str]:
    main = main_row(rows.get, name)
    assert main is not None
    arms = {suffix: rows.get(name + suffix) for suffix in _ARMS}
    if name in ALONE:
        arms = {suffix: main if suffix == ALONE[name] else arms[suffix] for suffix in _ARMS}
        arms[""] = None
    gap = own = talk = over = each = "–"
    if "over_base_x4" in main:
        gap = percent(
            main["over_base_x4"], main["beats_base_x4_low"], main["over_high"], signed=True
        )
    vote = main if ALONE.get(name) == "_vote" else rows.get(name + "_vote", {})
    if "over_own_agent" in vote:
        own = percent(
            vote["over_own_agent"], vote["over_own_low"], vote["over_own_high"], signed=True
        )
    if "over_own_vote" in main:
        ends = (main["over_own_vote_low"], main["over_own_vote_high"])
        talk = percent(main["over_own_vote"], *ends, signed=True)
    if _trained(name):
        over, each = _over_seeds(main), _each(main["by_seed"])
    graphs = str(main["graphs"]) if arms[""] is not None else "–"
    return [LABELS[name], *map(_success, arms.values()), own, talk, gap, over, each, graphs]


def _work(data: dict[str, Any]) -> Table:
    """The work of training; it is the same for all splits."""
    first = next(iter(SPLITS.values()))
    rows = {line["name"]: line for line in data["rows"] if line["split"] == first}
    keys = ("steps", "samples", "calls", "cpu_s", "iteration_s", "peak_mb")
    lines = []
    for name in LABELS:
        row = main_row(rows.get, name)
        if row is not None and _trained(name):
            tokens = row["work"]["tokens"]
            figures = [f"{row[key]:,.0f}" if row[key] else "–" for key in keys]
            figures.insert(3, f"{tokens / 1e6:.2f}" if tokens else "–")
            lines.append([LABELS[name], *figures, str(row["seeds"])])
    columns = ["policy", "steps", "samples", "calls", "M tokens", "CPU s", "s/iteration"]
    return Table("work of training, mean over seeds", [*columns, "peak MB", "seeds"], lines)


def _web(data: dict[str, Any]) -> list[Table]:
    """Results after further training on real pages; one agent, greedy."""
    rows = [line for line in data["rows"] if line["split"].startswith("web")]
    lines = [
        [line["name"], line["split"],
         percent(line["success"], line["low"], line["high"]),
         _each(line["by_seed"]), str(line["tasks"])]
        for line in rows
    ]  # fmt: skip
    columns = ["policy", "pages", "success", "each seed", "tasks"]
    title = "not on the phone but on real MiniWoB++ pages: success, % [95 %, over tasks]"
    return [Table(title, columns, lines)] if lines else []


def label(name: str) -> str:
    """The readable name of a row."""
    if name in LABELS and name in ALONE:
        return LABELS[name]
    for suffix, arm in reversed(_ARMS.items()):
        known = name.removesuffix(suffix)
        if known in LABELS and name.endswith(suffix):
            return f"{LABELS[known]}; test: {arm}"
    return name


def _trained(name: str) -> bool:
    return not name.startswith(("base_", "untrained"))


def _success(line: Line | None) -> str:
    if line is None:
        return "–"
    return percent(line["success"], line["cluster_low"], line["cluster_high"])


def _over_seeds(line: Line) -> str:
    return percent_range(line["t_low"], line["t_high"])


def _each(values: Sequence[float], sign: str = "") -> str:
    return " ".join(f"{100 * value:{sign}.1f}" for value in values)
