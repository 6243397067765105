"""The report as one HTML file, which loads nothing and sends nothing."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from pathlib import Path

from swarm_ui.errors import ConfigError
from swarm_ui.graph.topology import predecessors
from swarm_ui.report.charts import curve, heat_map
from swarm_ui.report.compressed_episodes import Packed, elements, joined, packed
from swarm_ui.report.contents import GraphDrawing, Picture, ReportData
from swarm_ui.report.failures import failures
from swarm_ui.report.html import Markup, escape, join, note, tag
from swarm_ui.report.html_tables import table
from swarm_ui.report.run_reader import filled, gathered
from swarm_ui.report.viewer import embedded
from swarm_ui.storage.run_directory import write_atomic
from swarm_ui.viz.edge_picture import arcs_svg
from swarm_ui.viz.layered_layout import ordered

SCRIPTS = (
    "dom.js", "pieces.js", "edges.js", "screen.js", "agent_view.js", "difference.js", "film.js",
    "replay.js", "talk.js", "list.js", "viewer.js",
)  # fmt: skip
"""The scripts of the page. They are joined in this order and run in one scope."""
STYLES = ("style.css", "viewer.css")

GENERATOR = '<meta name="generator" content="swarm-ui">'
"""In every report, by which other pages are told apart."""

NO_EPISODES = "There are no episodes to show: the run has recorded none, or has not kept them."


def write_report(run: Path, data: ReportData | None = None) -> Path:
    """Write ``<run>/report.html`` and return its path.

    Args:
        run: the run's folder. Its measurements, episodes and edges are shown.
        data: additional contents, such as tables of tests and episodes with screenshots.

    Raises:
        ConfigError: there is no such folder, or a picture named in ``data`` cannot be read.
    """
    path = run / "report.html"
    write_atomic(path, page(gathered(run) if data is None else filled(data, run)))
    return path


def page(data: ReportData) -> str:
    """The report as HTML text. Every string of ``data`` is escaped."""
    script, style = _script(), "".join(map(_asset, STYLES))
    episodes = packed(joined(data.episodes, data.sets))
    body = join(
        _header(data),
        *(table(t) for t in data.tables),
        _group("Learning", [curve(c) for c in data.curves]),
        _histories(data),
        _group("Success by task", [heat_map(h) for h in data.heat_maps if h.percent]),
        _group("Credit", [heat_map(h) for h in data.heat_maps if not h.percent]),
        _graphs(data),
        _group("Plots", [_picture(p) for p in data.pictures]),
        _missing(data),
        failures(episodes.failed, data.failures),
        _viewer(episodes),
    )
    alive = episodes.episodes or data.edge_histories
    code = Markup(f"<script>{script}</script>") if alive else Markup("")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_policy(script))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{GENERATOR}\n"
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


def _header(data: ReportData) -> Markup:
    labels = [tag("li", label) for label in data.labels]
    facts = [join(tag("dt", name), tag("dd", value)) for name, value in data.facts]
    return tag(
        "header",
        tag("h1", data.title),
        tag("ul", *labels, attrs={"class": "labels"}) if labels else Markup(""),
        tag("p", data.summary),
        tag("dl", *facts) if facts else Markup(""),
    )


def _group(title: str, figures: list[Markup], size: str = "large") -> Markup:
    inside = tag("div", *figures, attrs={"class": f"figures {size}"})
    return tag("section", tag("h2", title), inside) if figures else Markup("")


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
    return tag(
        "section",
        tag("h2", "Who talks to whom"),
        tag("div", attrs={"id": "edges"}),
        Markup("<noscript><p>The drawing needs JavaScript.</p></noscript>"),
        Markup(f'<script type="application/json" id="edge-data">{embedded(drawn)}</script>'),
    )


def graph(data: GraphDrawing) -> Markup:
    """One graph. A probable edge is thick. Arcs run from left to right, unless there is a cycle."""
    names = dict.fromkeys([*data.nodes, *(name for edge in data.edges for name in edge)])
    weights = data.weights or (1.0,) * len(data.edges)
    chances = {e: min(1.0, max(0.0, w)) for e, w in zip(data.edges, weights, strict=True)}
    picture = Markup(arcs_svg(chances, ordered(predecessors(names, data.edges)), data.title))
    below = note("" if data.edges else "no edges")
    attributes = {"class": "drawn-graph"}
    return tag("figure", tag("figcaption", data.title), picture, below, attrs=attributes)


def _graphs(data: ReportData) -> Markup:
    drawn = [graph(g) for g in data.graphs]
    if not data.edge_histories or not drawn:
        return _group("Who talks to whom", drawn, "small")
    figures = tag("div", *drawn, attrs={"class": "figures small"})
    return tag("details", tag("summary", f"All {len(drawn)} graphs"), figures)


def _missing(data: ReportData) -> Markup:
    if not data.missing:
        return Markup("")
    lines = [tag("li", line) for line in data.missing]
    return tag("section", tag("h2", "Not in this run"), tag("ul", *lines, attrs={"class": "note"}))


def _viewer(episodes: Packed) -> Markup:
    heading = tag("h2", "Episodes", attrs={"id": "episodes"})
    if not episodes.episodes:
        return tag("section", heading, note(NO_EPISODES))
    said = [f"{episodes.episodes:,} episodes."]
    if episodes.left_out:
        said.append(f"{episodes.left_out:,} more did not fit into this file.")
    if episodes.bare:
        said.append(f"{episodes.bare:,} screenshots did not fit: their elements are drawn.")
    return tag(
        "section",
        heading,
        note(" ".join(said)),
        tag("div", attrs={"id": "viewer"}),
        Markup("<noscript><p>The viewer needs JavaScript.</p></noscript>"),
        *elements(episodes),
    )
