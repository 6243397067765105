"""The server of a live page: on this machine only, for those who know its address.

The address contains a random token; every other path is not found. Requests must name this server
in their ``Host`` header, so that a page of another site whose name resolves to this machine (DNS
rebinding) gets nothing. Only ``GET`` is answered. Nothing is written, and a request names no file:
episodes are found by the names of existing trace files.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from swarm_ui.errors import ConfigError, SwarmError
from swarm_ui.experiment.live.pages import Answer, RunPages, plain
from swarm_ui.storage.run_directory import RunDirectory

ADDRESS = "127.0.0.1"
_SLOWEST = 10.0
"""Seconds after which a request that has not arrived is dropped."""
_HEADERS = (
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)


class LiveServer(ThreadingHTTPServer):
    """Serves the pages of one run. Use it in a ``with`` statement."""

    daemon_threads = True

    def __init__(self, run: Path, port: int = 0, warn: Callable[[str], None] = print) -> None:
        """
        Args:
            run: the folder of a run.
            port: the port; ``0``: any free port.
            warn: called with a message if a page could not be made.

        Raises:
            ConfigError: the folder is not a run, or the port cannot be used.
        """
        RunDirectory(run).document()
        self.token = secrets.token_urlsafe(24)
        self.pages = RunPages(run)
        self.warn = warn
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"port {port} of {ADDRESS} cannot be used: {error}") from error

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def server_bind(self) -> None:
        """Bind without looking up the machine's name, which may take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that closed the connection; report all other errors."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.warn(f"the live page could not answer: {error!r}")

    def allowed(self, host: str) -> bool:
        """Whether a ``Host`` header names this server."""
        return host in (f"{ADDRESS}:{self.server_port}", f"localhost:{self.server_port}")


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: LiveServer
    timeout = _SLOWEST

    def do_GET(self) -> None:
        self._send(self._answer())

    def _answer(self) -> Answer:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not self.server.allowed(hosts[0].strip()):
            return plain(403, f"this server is http://{ADDRESS}:{self.server.server_port}")
        _, _, rest = self.path.partition("?")[0].partition("/")
        token, slash, route = rest.partition("/")
        known = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        if not known or not slash or not self.path.startswith("/"):
            return plain(404, "there is no such page")
        try:
            return self.server.pages.answer(route)
        except (SwarmError, OSError) as error:
            return plain(500, f"the run cannot be read: {error}")

    def _send(self, answer: Answer) -> None:
        body = answer.body.encode("utf-8", "replace")
        self.send_response(answer.code)
        self.send_header("Content-Type", f"{answer.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", answer.policy)
        for name, value in _HEADERS:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that is not a well-formed ``GET``."""
        self.close_connection = True
        self._send(plain(405, "only GET is answered") if code == 501 else plain(code, "refused"))

    def version_string(self) -> str:
        """The name in the ``Server`` header, without the versions of this program and of Python."""
        return "swarm-ui"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, because the paths of requests contain the token."""
