"""The report as one HTML file, which loads nothing and sends nothing."""

from __future__ import annotations

import base64
import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from itertools import islice
from pathlib import Path

from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic
from swarm_ui.report import measured
from swarm_ui.report.charts import chart
from swarm_ui.report.episodes import Illustrate, Packed, packed
from swarm_ui.report.html_tables import Cell, HeatMap, Table, credit_map, heat_map, note, table
from swarm_ui.report.measured import Tested
from swarm_ui.report.overview import headline, last_rollouts, team_decision
from swarm_ui.report.read import Contents, EpisodeSet, Training, read
from swarm_ui.topology import Edge
from swarm_ui.trace.failures import FAILURES, FailureClass
from swarm_ui.viz import edges_svg
from swarm_ui.viz.svg import Markup, counted, join, tag

SCRIPTS = (
    "dom.js", "pieces.js", "edges.js", "screen.js", "agent_view.js", "film.js", "replay.js",
    "talk.js", "list.js", "viewer.js",
)  # fmt: skip
"""The scripts of the page. They are joined in this order and run in one scope."""
_STYLES = ("style.css", "viewer.css")
_GENERATOR = '<meta name="generator" content="swarm-ui">'
"""A marker in every report, which distinguishes reports from other pages."""
_MOST_FRAMES = 24


def write_report(
    *runs: Path,
    to: Path | None = None,
    refresh: int | None = None,
    summary: str = "",
    illustrate: Illustrate | None = None,
) -> Path:
    """Write the report of a run, or of several runs that are compared, and return its path.

    Args:
        runs: folders of runs, or trace files. The first one is the one that others are compared
            with, on the episodes that both played.
        to: the file to write. Default: ``report.html`` in the folder of the run, or a page beside
            the trace file; for several runs, ``report.html`` in the present folder.
        refresh: seconds after which a browser loads the page again, for a run that plays.
        summary: a sentence in the place of the counts of episodes.
        illustrate: adds screenshots to an episode; used for 15 solved and 15 other episodes.

    Raises:
        ConfigError: there is no such run; the file exists and is not a report, or cannot be
            written.
    """
    if not runs:
        raise ConfigError("a report needs a run: give a run's folder, or a trace file")
    first = runs[0]
    beside = first / "report.html" if first.is_dir() else first.with_suffix(".html")
    target = to or (beside if len(runs) == 1 else Path("report.html"))
    if target.exists() and not _is_report(target):
        raise ConfigError(
            f"'{target}' exists and is not a report of swarm-ui, which would replace it: choose "
            "another name, or rename it"
        )
    found = _distinct([read(run) for run in runs], runs)
    text = _page(found, target.parent, summary, refresh, illustrate)
    try:
        write_atomic(target, text)
    except OSError as error:
        raise ConfigError(f"the report '{target}' cannot be written: {error}") from error
    return target


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _GENERATOR.encode() in file.read(4096)


def _distinct(found: list[Contents], runs: Sequence[Path]) -> list[Contents]:
    """The contents with names that differ: of runs with one name, their paths."""
    names = Counter(run.name for run in found)
    return [
        run if names[run.name] == 1 else replace(run, name=str(path))
        for run, path in zip(found, runs, strict=True)
    ]


def _page(
    runs: Sequence[Contents],
    place: Path,
    summary: str,
    refresh: int | None,
    illustrate: Illustrate | None,
) -> str:
    """The report as HTML text. ``place``: the folder of the page."""
    sets = [part for run in runs for part in _named(run, len(runs) > 1)]
    episodes = packed([(part, _seen_from(place, part.path)) for part in sets], illustrate)
    body = _body(runs, sets, episodes, summary, following=refresh is not None)
    script = '"use strict";\n{\n' + "".join(map(_asset, SCRIPTS)) + "}\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    again = f'<meta http-equiv="refresh" content="{refresh}">\n' if refresh else ""
    title = tag("title", ", ".join(run.name for run in runs))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{_GENERATOR}\n{again}{title}\n"
        f"<style>\n{''.join(map(_asset, _STYLES))}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _named(run: Contents, several: bool) -> list[EpisodeSet]:
    if not several:
        return list(run.sets)
    return [EpisodeSet(f"{run.name}/{part.name}", part.path, len(part)) for part in run.sets]


def _seen_from(place: Path, file: Path) -> str:
    """The path of a trace file from the folder of the page, with ``/``; empty: there is none."""
    try:
        return os.path.relpath(file.resolve(), place.resolve()).replace(os.sep, "/")
    except ValueError:  # on another drive
        return ""


def _body(
    runs: Sequence[Contents],
    sets: Sequence[EpisodeSet],
    episodes: Packed,
    summary: str,
    *,
    following: bool,
) -> Markup:
    rows = measured.tested(runs)
    kept = not any(run.tested for run in runs)
    curves = measured.curves(runs)
    played = [row for row in rows if row.total.jobs]
    tables = [measured.success(played, kept=kept)] if played else []
    credit = [m for run in runs for m in measured.credit_maps(_of(run, runs), run.training)]
    played_credit = (credit_map(part, title=f"Mean credit, {part.name}") for part in sets)
    credit = credit or list(islice(filter(None, played_credit), 1))
    costs = [measured.cost(played)] if played else []
    missing = [f"{run.name}: {line}" if len(runs) > 1 else line
               for run in runs for line in run.missing]  # fmt: skip
    histories = [_history(_of(run, runs), run.training) for run in runs]
    sections = (
        ("Results", join(*map(table, [*tables, *filter(None, [measured.measures(rows)])]))),
        ("Success by task", _by_task(measured.by_task(played))),
        ("Learning", _figures([chart(curve) for curve in curves[1:]])),
        ("Who talks to whom", join(*histories)),
        ("Credit", _figures([heat_map(drawn) for drawn in credit])),
        ("Why episodes failed", _failures(played, episodes.examples, kept=kept)),
        ("Episodes", _viewer(episodes, missing)),
        ("Cost", join(*map(table, costs))),
        ("Not in this run", tag("ul", *(tag("li", line) for line in missing), class_="note")
         if missing else Markup("")),
        ("Settings", _settings(runs)),
    )  # fmt: skip
    shown = [(name, inside) for name, inside in sections if inside]
    links = [tag("a", name, href=f"#{_anchor(name)}") for name, _ in shown]
    cards = [] if following or kept else headline(played)
    cards = cards or ([] if following else last_rollouts(runs))
    cards += [chart(curve) for curve in curves[:1]]
    cards += team_decision(sets)
    return join(
        tag("nav", *links, aria_label="Contents"),
        _header(runs, summary or _counts(runs, rows, kept=kept)),
        tag("section", *cards, id="overview") if cards else Markup(""),
        *(tag("section", tag("h2", name, id=_anchor(name)), inside) for name, inside in shown),
    )


def _of(run: Contents, runs: Sequence[Contents]) -> str:
    return f", {run.name}" if len(runs) > 1 else ""


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _header(runs: Sequence[Contents], summary: str) -> Markup:
    labels = dict.fromkeys(label for run in runs for label in run.results.labels)
    items = [tag("li", label) for label in labels]
    return tag(
        "header",
        tag("h1", ", ".join(run.name for run in runs)),
        tag("ul", *items, class_="labels") if items else Markup(""),
        tag("p", summary),
    )


def _counts(runs: Sequence[Contents], rows: Sequence[Tested], *, kept: bool) -> str:
    arms = [row.total for row in rows]
    labels = {arm.label for run in runs for arm in run.results.arms}
    solved, masked = sum(arm.solved for arm in arms), sum(arm.masked for arm in arms)
    which = "kept" if kept else "tested"
    said = f"{solved} of {sum(arm.counted for arm in arms)} {which} episodes were solved."
    said += f" {masked} more were masked by faults." if masked else ""
    return f"{labels.pop()}: {said}" if len(labels) == 1 and any(labels) else said


# -- sections ---------------------------------------------------------------------------------


def _by_task(maps: Sequence[HeatMap]) -> Markup:
    """The heat maps of all splits, of which one is open at a time: opening a split closes the one
    that was open."""
    if len(maps) < 2:
        return _figures([heat_map(drawn) for drawn in maps])
    return join(*(
        tag("details", tag("summary", drawn.title), heat_map(drawn, caption=False), name="split",
            open=None if k else "")
        for k, drawn in enumerate(maps)
    ))  # fmt: skip


def _figures(figures: Sequence[Markup]) -> Markup:
    return tag("div", *figures, class_="figures large") if figures else Markup("")


def _history(name: str, training: Training) -> Markup:
    """The edges after each iteration, of which one is shown: the last one, or the one that a person
    chooses. Edges that are not learned are drawn by their share of the iteration's graphs."""
    learned = {k: done.learned for k, done in training.iterations.items() if done.learned}
    drawn = {k: _shares(done.graphs) for k, done in training.iterations.items() if done.graphs}
    shown = learned or drawn
    names = {name for found in training.credit.values() for name in found.agents}
    names |= {name for chances in shown.values() for edge in chances for name in edge}
    if not shown or len(names) < 2:
        return Markup("")
    order, agents = list(shown), sorted(names)
    step = -(-len(order) // _MOST_FRAMES)
    frames = [
        tag("div", Markup(edges_svg(shown[k], agents)), class_="frame wide",
            data_label=f"iteration {k + 1} of {len(order)}", hidden=None if k == order[-1] else "")
        for k in sorted({*order[::step], order[-1]})
    ]  # fmt: skip
    title = "Learned edge probabilities" if learned else "Edges of the graphs that were played"
    said = "After each iteration." if learned else (
        "Edges were not learned: share of the iteration's graphs that had each edge.")  # fmt: skip
    return tag("figure", tag("figcaption", title + name), *frames, note(said), class_="history")


def _shares(graphs: Sequence[Sequence[Edge]]) -> dict[Edge, float]:
    counts = Counter(edge for graph in graphs for edge in set(graph))
    return {edge: n / len(graphs) for edge, n in sorted(counts.items())}


def _failures(
    rows: Sequence[Tested], examples: Mapping[FailureClass, Sequence[Markup]], *, kept: bool
) -> Markup:
    """The counts of each class by policy and split, links to examples, and the rules."""
    counts = {row.name: row.failures for row in rows if row.failures}
    found = [why for why in FAILURES if any(row.get(why) for row in counts.values())]
    if not found:
        return Markup("")
    cells: list[tuple[Cell, ...]] = [
        (name, *(row.get(why) for why in found)) for name, row in counts.items()
    ]
    links = (" ".join(examples.get(why, ["none kept"])) for why in found)
    cells.append(("examples", *map(Markup, links)))
    which = "A run may keep a selection of its episodes. " if kept else ""
    said = (
        f"{which}Numbers of episodes; each has one class. “Fault” is masked, all others "
        "count as failed. Examples lead to the last step in the viewer."
    )
    names = [FAILURES[why][0] for why in found]
    rules = [
        join(tag("dt", name), tag("dd", rule)) for name, rule in map(FAILURES.__getitem__, found)
    ]
    return join(
        table(Table("", ("episodes", *names), cells, said)),
        tag("details", tag("summary", "How failed episodes are classified"), tag("dl", *rules)),
    )


def _viewer(episodes: Packed, missing: Sequence[str]) -> Markup:
    if not episodes.episodes:
        return note("" if missing else "There are no episodes to show.")
    said = [f"{counted(episodes.episodes, 'episode')}."]
    if episodes.left_out:
        said.append(f"{episodes.left_out:,} more did not fit into this file.")
    if episodes.bare:
        said.append(f"{episodes.bare:,} screenshots did not fit: their elements are drawn.")
    return join(
        note(" ".join(said)),
        tag("div", id="viewer"),
        tag("noscript", tag("p", "The viewer needs JavaScript.")),
        *episodes.elements(),
    )


def _settings(runs: Sequence[Contents]) -> Markup:
    return join(*(
        tag("details", tag("summary", f"Settings, packages and machine{_of(run, runs)}"),
            tag("pre", run.settings, class_="prompt"))
        for run in runs if run.settings
    ))  # fmt: skip
