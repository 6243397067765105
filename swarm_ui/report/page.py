"""The report: one HTML file with everything in it. It loads nothing and sends nothing."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from pathlib import Path

from swarm_ui.errors import ConfigError
from swarm_ui.report.charts import curve, heat_map
from swarm_ui.report.data import Picture, ReportData
from swarm_ui.report.drawing import graph
from swarm_ui.report.markup import Markup, escape, join, tag
from swarm_ui.report.tables import table
from swarm_ui.report.viewer import embedded, viewer_data
from swarm_ui.rundir import write_atomic


def write_report(run: Path, data: ReportData) -> Path:
    """Write ``<run>/report.html`` and return its path.

    Raises:
        ConfigError: a picture named in ``data`` cannot be read.
    """
    path = run / "report.html"
    write_atomic(path, page(data))
    return path


def page(data: ReportData) -> str:
    """The report as HTML text. Every string of ``data`` is escaped."""
    script = _asset("viewer.js")
    body = join(
        _header(data),
        *(table(t) for t in data.tables),
        _group("Learning", [curve(c) for c in data.curves]),
        _group("Credit", [heat_map(h) for h in data.heat_maps]),
        _group("Who talks to whom", [graph(g) for g in data.graphs], "small"),
        _group("Plots", [_picture(p) for p in data.pictures]),
        _viewer(data),
    )
    code = Markup(f"<script>{script}</script>") if data.episodes else Markup("")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_policy(script))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(data.title)}</title>\n<style>\n{_asset('style.css')}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{code}\n</body>\n</html>\n"
    )


def _policy(script: str) -> str:
    """What a browser may do for this page: run this one script, show embedded pictures."""
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
    if not figures:
        return Markup("")
    return tag(
        "section", tag("h2", title), tag("div", *figures, attrs={"class": f"figures {size}"})
    )


def _picture(picture: Picture) -> Markup:
    try:
        raw = picture.png.read_bytes() if isinstance(picture.png, Path) else picture.png
    except OSError as error:
        raise ConfigError(f"picture '{picture.title}' of the report: {error}") from error
    if not raw.startswith(b"\x89PNG\r\n\x1a\n"):
        raise ConfigError(f"picture '{picture.title}' of the report is not a PNG")
    source = f"data:image/png;base64,{base64.b64encode(raw).decode()}"
    image = Markup(f'<img src="{source}" alt="{escape(picture.title)}">')
    note = tag("p", picture.note, attrs={"class": "note"}) if picture.note else Markup("")
    return tag("figure", tag("figcaption", picture.title), image, note)


def _viewer(data: ReportData) -> Markup:
    if not data.episodes:
        return Markup("")
    episodes = embedded(viewer_data(data.episodes))
    return tag(
        "section",
        tag("h2", "Episodes"),
        tag("p", "A sample. The keys ← and → step through the screens.", attrs={"class": "note"}),
        tag("div", attrs={"id": "viewer", "tabindex": 0}),
        Markup("<noscript><p>The viewer needs JavaScript.</p></noscript>"),
        Markup(f'<script type="application/json" id="episodes">{episodes}</script>'),
    )
