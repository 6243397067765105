"""The pages of the live server."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from importlib import resources
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from swarm_ui.errors import TraceError
from swarm_ui.experiment.live.following import RunFollower
from swarm_ui.experiment.live.panel import SECTIONS, panel
from swarm_ui.experiment.reporting import pictured
from swarm_ui.report import ReportData, gathered, page
from swarm_ui.report.html import Markup, escape, tag
from swarm_ui.report.page import STYLES
from swarm_ui.trace.jsonl import open_jsonl

_FRESH = 1.0
"""Seconds for which a snapshot of the run is reused."""


class Answer(NamedTuple):
    """The response to a request."""

    code: int
    kind: str
    """The media type of the response."""
    body: str
    policy: str = "default-src 'none'"
    """The content security policy of the page."""


def plain(code: int, text: str) -> Answer:
    """A response of plain text."""
    return Answer(code, "text/plain", text + "\n")


class RunPages:
    """The pages about one run, from its files alone. Safe for use by several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._follower = RunFollower(path)
        self._lock = threading.Lock()
        self._parts: tuple[float, str] | None = None

    def answer(self, route: str) -> Answer:
        """The answer to a path below the token: ``""``, ``state``, ``report`` or
        ``episode/TRACE/NUMBER``."""
        if route == "":
            return _shell()
        if route == "state":
            return Answer(200, "application/json", self._state())
        if route == "report":
            return _whole(page(gathered(self._path)))
        kind, _, rest = route.partition("/")
        name, _, number = rest.partition("/")
        if kind == "episode" and number.isascii() and number.isdigit() and len(number) < 10:
            return self._episode(unquote(name), int(number))
        return plain(404, "there is no such page")

    def _state(self) -> str:
        """The parts of the page, as JSON by name."""
        with self._lock:
            now = time.monotonic()
            if self._parts is None or now - self._parts[0] > _FRESH:
                parts = panel(self._follower.look(), time.time())
                self._parts = (now, json.dumps(parts))
            return self._parts[1]

    def _episode(self, name: str, number: int) -> Answer:
        # Only the names of existing files lead to a file, so no name leads out of the folder.
        file = self._follower.traces.get(name)
        if file is None:
            return plain(404, "there is no such episode")
        try:
            with open_jsonl(file) as episodes:
                episode = episodes[number]
        except (IndexError, TraceError):
            return plain(404, "there is no such episode")
        said = f"Episode {number + 1} of {file.name}."
        data = ReportData(
            title=self._path.resolve().name, summary=said, episodes=pictured([episode])
        )
        return _whole(page(data))


def _whole(text: str) -> Answer:
    """An answer with a page of the report. The page contains its own content security policy."""
    return Answer(200, "text/html", text, "frame-ancestors 'none'")


def _shell() -> Answer:
    """The page without its parts, which its script asks for."""
    script, style = _asset(__package__, "live.js"), _asset(__package__, "live.css")
    shared = [_asset("swarm_ui.report", name) for name in STYLES]
    style = "".join([*shared, style])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    parts = [tag("section", id=name) for name in SECTIONS]
    connection = tag("p", id="connection", role="status")
    body = tag("main", connection, *parts, Markup("<noscript>It needs JavaScript.</noscript>"))
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape('swarm-ui: a run, live')}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n<script>{script}</script>\n</body>\n</html>\n"
    )
    return Answer(200, "text/html", text, policy)


def _asset(package: str | None, name: str) -> str:
    return resources.files(package or "").joinpath(name).read_text(encoding="utf-8")
