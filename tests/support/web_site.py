"""A small shop on this machine: login, tabs, a frame, a download and shadow roots."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

_HEAD = "<!doctype html><meta charset=utf-8><title>{title}</title><body>"
LOGIN = """<h1>Sign in</h1><p>{error}</p><form method=post action=/login>
<label>User <input name=user></label><label>Password <input name=password type=password></label>
<button>Sign in</button></form><a href=/account>My account</a>"""
SHOP = """<h1>The shop</h1><p>Delete is what nobody should click.</p>
<a href=/terms target=_blank>Terms</a> <a href=/orders.csv>Orders as CSV</a> 
<iframe src=/frame width=400 height=120 title=Newsletter></iframe>
<div id=open></div><div id=closed></div><div id=cards></div>
<label>Size <select id=size><option>Small<option>Large</select></label>
<label><input type=checkbox id=gift> Gift wrap</label>
<label>Amount <input type=range id=amount min=0 max=10 value=3></label>
<p id=said></p>
<script>
const say = (what) => { said.textContent = what; };
for (const mode of ["open", "closed"]) {
  const root = document.getElementById(mode).attachShadow({ mode });
  root.innerHTML = `<button>Button in a ${mode} root</button>`;
  root.firstChild.onclick = () => say(`${mode} root clicked`);
}
for (const name of ["Red", "Blue"]) {
  const card = document.createElement("div");
  card.innerHTML = `<b>${name}</b> <i>card</i>`;
  card.onclick = () => say(`${name} card clicked`);
  cards.append(card);
}
size.onchange = () => say(`size ${size.value}`);
amount.onchange = () => say(`amount ${amount.value}`);
document.cookie = "page=can forge this";
</script>"""
FRAME = """<form action=/frame><label>Email <input name=email></label><button>Subscribe</button>
</form><p>{said}</p>"""
LONG = "".join(f"<p style=height:60px>Line {k}</p>" for k in range(200)) + "<button>End</button>"


class Site(ThreadingHTTPServer):
    """The shop; ``hits`` are the requests that reached it. ``/leave?URL`` leads elsewhere."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hits: list[str] = []
        self.connections = 0
        self.pages: dict[str, tuple[str, str]] = {}
        """Further pages: path to content type and body."""
        self.sessions: dict[str, str] = {}

    def get_request(self) -> Any:
        self.connections += 1
        return super().get_request()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Handler(BaseHTTPRequestHandler):
    server: Site

    def log_message(self, *_: Any) -> None: ...

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        fields = parse_qs(self.rfile.read(length).decode())
        self.server.hits.append(self.path)
        user, password = (fields.get(name, [""])[0] for name in ("user", "password"))
        if self.path == "/login" and password == "swordfish":
            token = secrets.token_hex(8)
            self.server.sessions[token] = user
            self._send("", status=303, location="/shop", cookie=token)
        else:
            self._send(LOGIN.format(error="Wrong password"), "Sign in")

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.server.hits.append(self.path)
        if path in self.server.pages:
            kind, body = self.server.pages[path]
            self._send(body, path, kind=kind)
        elif path == "/leave":
            self._send("", status=302, location=query)
        elif path == "/orders.csv":
            self._send("order,total\n17,3.50\n", kind="text/csv", attachment="orders.csv")
        elif path == "/broken":
            self._send("<h1>Out of order</h1>", "Error", status=500)
        elif path == "/account":
            user = self.server.sessions.get(self._cookie(), "")
            said = f"<h1>Hello {user}</h1><a href=/shop>Shop</a>" if user else ""
            self._send(said or LOGIN.format(error="Please sign in"), "Account")
        elif path == "/frame":
            email = parse_qs(query).get("email", [""])[0]
            self._send(FRAME.format(said=f"Subscribed {email}" if email else ""), "Newsletter")
        else:
            pages = {"/shop": SHOP, "/long": LONG, "/": LOGIN.format(error=""),
                     "/terms": "<h1>Terms</h1><p>Returns within 14 days.</p>"}  # fmt: skip
            known = path in pages
            self._send(pages.get(path, "Not found"), path[1:] or "Sign in", 200 if known else 404)

    def _cookie(self) -> str:
        written = self.headers.get("Cookie", "")
        found = [part.partition("=")[2] for part in written.split("; ") if part[:4] == "sid="]
        return found[0] if found else ""

    def _send(
        self,
        body: str,
        title: str = "",
        status: int = 200,
        *,
        kind: str = "text/html",
        location: str = "",
        cookie: str = "",
        attachment: str = "",
    ) -> None:
        page = _HEAD.format(title=title) + body if kind == "text/html" else body
        data = page.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Access-Control-Allow-Origin", "*")
        if location:
            self.send_header("Location", location)
        if cookie:
            self.send_header("Set-Cookie", f"sid={cookie}; HttpOnly")
        if attachment:
            self.send_header("Content-Disposition", f'attachment; filename="{attachment}"')
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def site() -> Iterator[Site]:
    """A running shop."""
    server = Site()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
