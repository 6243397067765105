"""The report as one HTML file, which loads nothing and sends nothing."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from msgspec.structs import replace

from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic
from swarm_ui.graph.topology import predecessors
from swarm_ui.report.charts import curve
from swarm_ui.report.compressed_episodes import Packed, elements, joined, packed
from swarm_ui.report.contents import (
    EpisodeSet,
    GraphDrawing,
    HeatMap,
    Picture,
    ReportData,
    ReportTable,
)
from swarm_ui.report.failures import failures
from swarm_ui.report.first_screen import first_curve, overview, team_decision
from swarm_ui.report.heat_maps import heat_map, scale
from swarm_ui.report.html import Markup, escape, join, note, tag
from swarm_ui.report.html_tables import table
from swarm_ui.report.run_reader import filled, gathered
from swarm_ui.report.viewer import embedded
from swarm_ui.viz.edge_picture import arcs_svg
from swarm_ui.viz.layered_layout import ordered

SCRIPTS = (
    "dom.js", "pieces.js", "edges.js", "screen.js", "agent_view.js", "difference.js", "film.js",
    "replay.js", "talk.js", "list.js", "viewer.js",
)  # fmt: skip
"""The scripts of the page. They are joined in this order and run in one scope."""
STYLES = ("style.css", "viewer.css")

GENERATOR = '<meta name="generator" content="swarm-ui">'
"""A marker in every report, which distinguishes reports from other pages."""

NO_EPISODES = "There are no episodes to show: the run has recorded none, or has not kept them."


def write_report(run: Path, data: ReportData | None = None, *, to: Path | None = None) -> Path:
    """Write the report of a run and return its path.

    Args:
        run: the run's folder. Its measurements, episodes and edges are shown.
        data: additional contents, such as tables of tests and episodes with screenshots.
        to: the file to write; default: ``<run>/report.html``.

    Raises:
        ConfigError: there is no such folder, a picture named in ``data`` cannot be read, or the
            file cannot be written.
    """
    found = gathered(run) if data is None else filled(data, run)
    return write_page(to or run / "report.html", found, run)


def write_page(path: Path, data: ReportData, folder: Path) -> Path:
    """Write :func:`page` to a file. Raises ``ConfigError`` if it cannot be written.

    ``folder``: where the paths of the trace files in ``data`` begin.
    """
    text = page(replace(data, sets=_seen_from(path.parent, data.sets, folder)))
    try:
        write_atomic(path, text)
    except OSError as error:
        raise ConfigError(f"the report '{path}' cannot be written: {error}") from error
    return path


def _seen_from(place: Path, sets: Sequence[EpisodeSet], folder: Path) -> tuple[EpisodeSet, ...]:
    """The sets with the paths of their files from a page in ``place``."""
    try:
        way = os.path.relpath(folder.resolve(), place.resolve()).replace(os.sep, "/")
    except ValueError:  # on another drive
        return tuple(replace(part, file="") for part in sets)
    if way == ".":
        return tuple(sets)
    return tuple(replace(part, file=part.file and f"{way}/{part.file}") for part in sets)


def page(data: ReportData) -> str:
    """The report as HTML text. Every string of ``data`` is escaped."""
    script, style = _script(), "".join(map(_asset, STYLES))
    sets = joined(data.episodes, data.sets)
    episodes = packed(sets)
    sections = [(name, found) for name, found in _sections(data, episodes) if found]
    body = join(
        _contents([name for name, _ in sections]),
        _header(data),
        overview(data, team_decision(sets)),
        *(_section(name, found) for name, found in sections),
    )
    alive = episodes.episodes or data.edge_histories
    code = Markup(f"<script>{script}</script>") if alive else Markup("")
    again = data.refresh and f'<meta http-equiv="refresh" content="{data.refresh}">\n'
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_policy(script))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{GENERATOR}\n{again or ''}"
        f"<title>{escape(data.title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{code}\n</body>\n</html>\n"
    )


def _script() -> str:
    return '"use strict";\n{\n' + "".join(map(_asset, SCRIPTS)) + "}\n"


def _policy(script: str) -> str:
    """The content security policy: only this script and embedded pictures are allowed."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _sections(data: ReportData, episodes: Packed) -> list[tuple[str, Markup]]:
    """The titles of the sections with their contents, which may be empty."""
    first = first_curve(data)
    cost = [t for t in data.tables if t.title.startswith("Cost")]
    results = [t for t in data.tables if t not in cost]
    by_task = [drawn for drawn in data.heat_maps if drawn.percent]
    credit = [drawn for drawn in data.heat_maps if not drawn.percent]
    return [
        ("Results", _tables(results)),
        ("Success by task", _by_task(by_task)),
        ("Learning", _figures([curve(c) for c in data.curves if c is not first])),
        ("Who talks to whom", join(_histories(data), _graphs(data))),
        ("Credit", join(scale(credit), _figures([heat_map(h) for h in credit]))),
        ("Why episodes failed", failures(episodes.failed, data.failures)),
        ("Episodes", _viewer(episodes, data.missing)),
        ("Cost", _tables(cost)),
        ("Plots", _figures([_picture(p) for p in data.pictures])),
        ("Not in this run", _missing(data)),
        ("Settings", _facts(data)),
    ]


def _section(name: str, inside: Markup) -> Markup:
    return tag("section", tag("h2", name, id=_anchor(name)), inside)


def _contents(names: list[str]) -> Markup:
    """The table of contents, which stays at the top of the window; for two sections or more."""
    if len(names) < 2:
        return Markup("")
    links = [tag("a", name, href=f"#{_anchor(name)}") for name in names]
    return tag("nav", *links, aria_label="Contents")


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _header(data: ReportData) -> Markup:
    labels = [tag("li", label) for label in data.labels]
    # The card of the headline has the summary, where there is one.
    summary = Markup("") if data.headline is not None else tag("p", data.summary)
    return tag(
        "header",
        tag("h1", data.title),
        tag("ul", *labels, class_="labels") if labels else Markup(""),
        summary,
    )


def _tables(tables: list[ReportTable]) -> Markup:
    """The tables as HTML. A note that several tables share stands below the last of them."""
    later = [{t.note for t in tables[k + 1 :]} for k in range(len(tables))]
    return join(
        *(table(t, footnote=t.note not in after) for t, after in zip(tables, later, strict=True))
    )


def _by_task(maps: list[HeatMap]) -> Markup:
    """The heat maps of all splits, of which one is open at a time: opening a split closes the one
    that was open."""
    if len(maps) < 2:
        return _figures([heat_map(drawn) for drawn in maps])
    parts = []
    for k, drawn in enumerate(maps):
        inside, first = heat_map(drawn, caption=False), "" if k == 0 else None
        title = tag("summary", drawn.title)
        parts.append(tag("details", title, inside, name="split", open=first))
    return join(*parts)


def _facts(data: ReportData) -> Markup:
    facts = [join(tag("dt", name), tag("dd", value)) for name, value in data.facts]
    if not facts:
        return Markup("")
    summary = tag("summary", "Settings, packages and machine")
    return tag("details", summary, tag("dl", *facts))


def _figures(figures: list[Markup], size: str = "large") -> Markup:
    return tag("div", *figures, class_=f"figures {size}") if figures else Markup("")


def _picture(picture: Picture) -> Markup:
    try:
        raw = picture.png.read_bytes() if isinstance(picture.png, Path) else picture.png
    except OSError as error:
        raise ConfigError(f"picture '{picture.title}' of the report: {error}") from error
    if not raw.startswith(b"\x89PNG\r\n\x1a\n"):
        raise ConfigError(f"picture '{picture.title}' of the report is not a PNG")
    source = f"data:image/png;base64,{base64.b64encode(raw).decode()}"
    image = Markup(f'<img src="{source}" alt="{escape(picture.title)}">')
    return tag("figure", tag("figcaption", picture.title), image, note(picture.note))


def _histories(data: ReportData) -> Markup:
    if not data.edge_histories:
        return Markup("")
    drawn = [
        {"title": h.title, "note": h.note, "nodes": h.nodes,
         "frames": [{"label": f.label, "edges": f.edges} for f in h.frames]}
        for h in data.edge_histories
    ]  # fmt: skip
    return join(
        tag("div", id="edges"),
        Markup("<noscript><p>The drawing needs JavaScript.</p></noscript>"),
        Markup(f'<script type="application/json" id="edge-data">{embedded(drawn)}</script>'),
    )


def graph(data: GraphDrawing) -> Markup:
    """Draw one graph. A probable edge is thick. Arcs run from left to right, unless there is a
    cycle."""
    names = dict.fromkeys([*data.nodes, *(name for edge in data.edges for name in edge)])
    weights = data.weights or (1.0,) * len(data.edges)
    chances = {e: min(1.0, max(0.0, w)) for e, w in zip(data.edges, weights, strict=True)}
    picture = Markup(arcs_svg(chances, ordered(predecessors(names, data.edges)), data.title))
    below = note("" if data.edges else "no edges")
    return tag("figure", tag("figcaption", data.title), picture, below, class_="drawn-graph")


def _graphs(data: ReportData) -> Markup:
    drawn = [graph(g) for g in data.graphs]
    if not data.edge_histories or not drawn:
        return _figures(drawn, "small")
    return tag("details", tag("summary", "The graphs one by one"), _figures(drawn, "small"))


def _missing(data: ReportData) -> Markup:
    if not data.missing:
        return Markup("")
    lines = [tag("li", line) for line in data.missing]
    return tag("ul", *lines, class_="note")


def _viewer(episodes: Packed, missing: Sequence[str]) -> Markup:
    if not episodes.episodes:  # what is missing has a section of its own
        return note("" if missing else NO_EPISODES)
    said = [f"{episodes.episodes:,} episode{'s' * (episodes.episodes != 1)}."]
    if episodes.left_out:
        said.append(f"{episodes.left_out:,} more did not fit into this file.")
    if episodes.bare:
        said.append(f"{episodes.bare:,} screenshots did not fit: their elements are drawn.")
    return join(
        note(" ".join(said)),
        tag("div", id="viewer"),
        Markup("<noscript><p>The viewer needs JavaScript.</p></noscript>"),
        *elements(episodes),
    )
