"""The live page: it follows a run's files, and answers nobody who does not know its address."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import msgspec
import pytest
from play_page import Tab
from report_samples import episode
from shared_browser import SharedBrowser

from swarm_ui.environments.miniwob.browser import Browser
from swarm_ui.errors import ConfigError, Failure
from swarm_ui.experiment.live.following import RunFollower
from swarm_ui.experiment.live.pages import RunPages
from swarm_ui.experiment.live.panel import panel
from swarm_ui.experiment.live.progress_file import ProgressFile, read_progress
from swarm_ui.experiment.live.server import LiveServer
from swarm_ui.experiment.progress import TaskProgress
from swarm_ui.files import only_writer
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import append_jsonl, write_jsonl
from swarm_ui.trace.records import Episode

ATTACK = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
SECRET = "the secret of the run"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    settings = {"command": "eval", "environment": {"name": "phone"}}
    return RunDirectory.create(tmp_path / "run", config=settings)


def played(task: str, *, success: bool | None = True, seed: int = 7) -> Episode:
    made = episode(task, success=success)
    return msgspec.structs.replace(made, seed=seed, task=task)


def told(label: str, done: float, total: float = 10, **more: float) -> TaskProgress:
    return TaskProgress(label=label, done=done, total=total, **more)


# Following the files


def test_only_what_is_new_is_read(run: RunDirectory) -> None:
    follower, path = RunFollower(run.path), run.traces / "apps.jsonl"
    assert follower.look().newest == ()
    append_jsonl(path, [played("one")])
    append_jsonl(path, [played("two", success=False)])
    look = follower.look()
    assert [seen.task for seen in look.newest] == ["two", "one"]
    with path.open("ab") as file:  # a line that is just being written
        file.write(b'{"version":1,"episode":{"environment":"e","task":"three"')
    assert follower.look() == look
    with path.open("ab") as file:
        file.write(
            b',"seed":1,"success":null,"fault":{"kind":"environment",'
            b'"message":"the page is gone"}}}\n'
        )
    look = follower.look()
    assert look.outcomes == {"apps": (True, False, None)}
    assert look.faults == (("the page is gone", 1),)
    assert look.problems == () and look.newest[0].number == 2


def test_a_file_that_is_replaced_is_read_again(run: RunDirectory) -> None:
    follower, path = RunFollower(run.path), run.traces / "train-000.jsonl"
    write_jsonl(path, [played("one"), played("two")])
    assert follower.look().outcomes == {"train": (True, True)}
    write_jsonl(path, [played("three", success=False), played("four"), played("five")])
    assert follower.look().outcomes == {"train": (False, True, True)}
    path.unlink()
    assert follower.look().outcomes == {}


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower, path = RunFollower(run.path), run.traces / "apps.jsonl"
    write_jsonl(path, [played("one")])
    opened = Path.open

    def replaced_when_open(self: Path, *how: str) -> object:
        file = opened(self, *how)
        monkeypatch.undo()
        write_jsonl(path, [played("a longer name", success=False), played("three")])
        return file

    monkeypatch.setattr(Path, "open", replaced_when_open)
    assert follower.look().outcomes == {"apps": (True,)}
    look = follower.look()
    assert look.problems == () and look.outcomes == {"apps": (False, True)}


def test_damage_is_told_and_the_rest_is_shown(run: RunDirectory) -> None:
    write_jsonl(run.traces / "apps.jsonl", [played("one")])
    with (run.traces / "apps.jsonl").open("ab") as file:
        file.write(b'{"version":1,"episode":[[[\n')
    write_jsonl(run.traces / "templates.jsonl", [played("two")])
    look = RunFollower(run.path).look()
    assert {seen.task for seen in look.newest} == {"one", "two"}
    assert len(look.problems) == 1 and "apps.jsonl, line 2" in look.problems[0]
    (run.path / "config.json").write_text("{", encoding="utf-8")
    (run.path / "progress.json").write_text('{"tasks":7}', encoding="utf-8")
    assert RunFollower(run.path).look().state == "damaged"


def test_running_finished_and_killed_runs(run: RunDirectory) -> None:
    follower = RunFollower(run.path)
    with only_writer(run.path, "run"):
        assert follower.look().state == "running"
    run.log({"kind": "iteration", "iteration": 0, "success": 0.5, "episodes": 4})
    look = follower.look()
    assert look.state == "killed" and look.curves[0].series[0].points[0].y == 0.5
    run.set_status({"stage": "played"})
    assert follower.look().state == "finished"


def test_nothing_is_written(run: RunDirectory) -> None:
    write_jsonl(run.traces / "apps.jsonl", [played("one")])
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    pages = RunPages(run.path)
    for route in ("", "state", "report", "episode/apps/0"):
        assert pages.answer(route).code == 200
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before


# Progress


def test_progress_is_written_when_something_is_done_and_not_too_often(run: RunDirectory) -> None:
    now, warned = [100.0], list[str]()
    progress = ProgressFile(run.path, warned.append, clock=lambda: now[0])
    progress("apps", told("apps", 0))
    assert read_progress(run.path) is None, "a start that fails leaves no file"
    progress("apps", told("apps", 1))
    now[0] += 1
    progress("apps", told("apps", 2))
    found = read_progress(run.path)
    assert found is not None and found.tasks[0].done == 1
    now[0] += 1.5
    progress("apps", told("apps", 3))
    found = read_progress(run.path)
    assert found is not None and found.tasks[0].done == 3
    progress("apps", None)
    found = read_progress(run.path)
    assert found is not None and found.tasks == () and warned == []


def test_progress_that_cannot_be_written_is_told_once_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    warned: list[str] = []
    progress = ProgressFile(tmp_path / "file", warned.append)
    for done in (1, 2, 3):
        progress("apps", told("apps", done))
    assert len(warned) == 1 and "progress is not recorded" in warned[0]


# Markup


def test_no_text_of_a_run_is_markup(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", config={"command": ATTACK, "environment": ATTACK})
    hostile = (
        played(ATTACK),
        msgspec.structs.replace(
            played(ATTACK, success=None), fault=Failure(kind="environment", message=ATTACK)
        ),
    )
    write_jsonl(run.traces / "a'&<b>.jsonl", hostile)  # type: ignore[arg-type]
    run.set_status({"stage": "failed", "error": ATTACK})
    ProgressFile(run.path, print)(ATTACK, told(ATTACK, 3))
    look = RunFollower(run.path).look()
    shown = "".join(panel(look, 0.0).values())
    shown += "".join(panel(msgspec.structs.replace(look, state="running"), 1e12).values())
    assert "<img" not in shown and "<script" not in shown and "onerror=&quot;" in shown
    assert 'href="episode/a%27%26%3Cb%3E/0"' in shown
    assert RunPages(run.path).answer("episode/a%27%26%3Cb%3E/0").code == 200


def test_the_kept_episodes_of_training_have_no_rate_of_success(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", config={"command": "train"})
    write_jsonl(run.traces / "train-000.jsonl", [played("a", success=False), played("b")])
    shown = panel(RunFollower(run.path).look(), 0.0)
    assert "50.0" not in shown["success"] and "1/2" in shown["success"]
    assert shown["curves"] == ""
    write_jsonl(run.traces / "apps.jsonl", [played("a", success=False), played("b")])
    shown = panel(RunFollower(run.path).look(), 0.0)
    assert "50.0" in shown["success"] and "<svg" in shown["curves"]


# The server


@pytest.fixture
def server(run: RunDirectory) -> Iterator[LiveServer]:
    write_jsonl(run.traces / "apps.jsonl", [played(SECRET)])
    (run.path.parent / "outside.jsonl").write_text(SECRET, encoding="utf-8")
    with LiveServer(run.path) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


def sent(server: LiveServer, raw: bytes) -> bytes:
    """The whole answer to the bytes of a request."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as sock:
        try:
            sock.sendall(raw)
            with suppress(OSError):  # the server may have hung up already
                sock.shutdown(socket.SHUT_WR)
            found = b""
            while more := sock.recv(65536):
                found += more
        except ConnectionError:
            return b""
    return found


def asked(server: LiveServer, path: str, *, method: str = "GET", host: str | None = None) -> bytes:
    host = f"127.0.0.1:{server.server_port}" if host is None else host
    return sent(server, f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())


def test_whoever_knows_the_address_sees_the_run(server: LiveServer) -> None:
    with urlopen(server.url) as answer:
        headers = answer.headers
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
    assert headers["X-Frame-Options"] == "DENY" and headers["Server"] == "swarm-ui"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    with urlopen(server.url + "state") as answer:
        assert SECRET in json.loads(answer.read())["episodes"]
    with urlopen(f"http://localhost:{server.server_port}/{server.token}/state") as answer:
        assert answer.status == 200
    assert server.server_address[0] == "127.0.0.1" and len(server.token) >= 32


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/", 404), ("/state", 404), ("//state", 404), ("/{token}", 404), ("/wrong/state", 404),
        ("/{token}x/state", 404), ("/%00{token}/state", 404), ("/\u00e9/state", 404),
        ("/{token}/../{token}/state", 404), ("/{token}/config.json", 404),
        ("/{token}/episode/../outside/0", 404), ("/{token}/episode/..%2foutside/0", 404),
        ("/{token}/episode/%2e%2e%2f%2e%2e%2foutside/0", 404),
        ("/{token}/episode//etc/passwd", 404),
        ("/{token}/episode/apps/1", 404), ("/{token}/episode/apps/-1", 404),
        ("/{token}/episode/apps/99999999999999999999", 404), ("/{token}/episode/apps/0x0", 404),
        ("/{token}/episode/apps/\u0661", 404), ("http://evil.example/{token}/state", 404),
        ("{token}/state", 404),
    ],
)  # fmt: skip
def test_other_paths_are_not_found(server: LiveServer, path: str, code: int) -> None:
    answer = asked(server, path.format(token=server.token))
    assert f" {code} ".encode() in answer.split(b"\r\n")[0]
    assert SECRET.encode() not in answer and server.token.encode() not in answer


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "[::1]:{port}",
             "127.0.0.1:{port}\r\nHost: evil.example", "127.0.0.1:{port}, evil.example"],
)  # fmt: skip
def test_requests_for_another_host_get_nothing(server: LiveServer, host: str) -> None:
    answer = asked(server, f"/{server.token}/state", host=host.format(port=server.server_port))
    assert b" 403 " in answer.split(b"\r\n")[0] and SECRET.encode() not in answer


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "x"])
def test_only_get_is_answered(server: LiveServer, method: str) -> None:
    answer = asked(server, f"/{server.token}/state", method=method)
    assert b" 405 " in answer.split(b"\r\n")[0] and SECRET.encode() not in answer


def test_hostile_bytes_do_not_stop_the_server(server: LiveServer) -> None:
    warned: list[str] = []
    server.warn = warned.append
    good = f"127.0.0.1:{server.server_port}"
    for raw in (
        b"", b"\r\n\r\n", b"\x00\xff\xfe" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        f"GET /{server.token}/state\r\n\r\n".encode(),
        f"GET /{server.token}/state HTTP/1.1\r\nHost: {good}\r\n".encode() + b"x: y\r\n" * 5_000,
        f"GET /{server.token}/state HTTP/1.1\r\nno colon\r\n\r\n".encode(),
    ):  # fmt: skip
        assert SECRET.encode() not in sent(server, raw)
    assert SECRET.encode() in asked(server, f"/{server.token}/state")
    assert warned == []


def test_a_run_that_disappears_is_told(server: LiveServer, run: RunDirectory) -> None:
    os.rename(run.path, run.path.with_name("moved"))
    assert b"damaged" in asked(server, f"/{server.token}/state")


def test_no_run_and_a_port_in_use_are_config_errors(
    server: LiveServer, run: RunDirectory, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="not a run"):
        LiveServer(tmp_path)
    with pytest.raises(ConfigError, match="cannot be used"):
        LiveServer(run.path, server.server_port)


# In a browser


async def opened(browser: Browser, url: str, width: int = 1280, *, dark: bool = False) -> Tab:
    call = browser.connection.call
    target = await call("Target.createTarget", url="about:blank")
    session = await call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
    tab = Tab(browser, session["sessionId"])
    for name in ("Page", "Log", "Runtime"):
        await tab.call(f"{name}.enable")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    await tab.call("Emulation.setDeviceMetricsOverride", **size)
    mode = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    await tab.call("Emulation.setEmulatedMedia", features=[mode])
    await tab.call("Page.navigate", url=url)
    await tab.until("'ready' in (document.body?.dataset ?? {})")
    return tab


@pytest.mark.slow
@pytest.mark.browser
async def test_the_page_follows_the_run_and_leads_into_the_viewer(
    chromium: SharedBrowser, server: LiveServer, run: RunDirectory
) -> None:
    browser = await Browser.launch(chromium.binary, on_request=False)
    text = "(document.body?.innerText ?? '')"
    try:
        with only_writer(run.path, "run"):
            ProgressFile(run.path, print)("apps", told("apps", 5, left=200.0))
            tab = await opened(browser, server.url)
            assert "running" in await tab.js(text) and "about 3 min left" in await tab.js(text)
            append_jsonl(run.traces / "apps.jsonl", [played(ATTACK, success=False)])
            await tab.until(f"{text}.includes('onerror')")
            assert "1/2" in await tab.js(text)
        await tab.until(f"{text}.includes('killed')")
        run.set_status({"stage": "played"})
        await tab.until(f"{text}.includes('finished')")
        assert await tab.js("document.title") == "swarm-ui: a run, live"
        assert await tab.js("document.documentElement.scrollWidth <= innerWidth")
        assert tab.log == []
        await tab.leave("document.querySelector('#episodes a').click()")
        await tab.until("!!document.querySelector('#viewer .scene')")
        assert "Episode 2 of apps.jsonl" in await tab.js(text)
        assert await tab.js("document.title") != "owned"
        await tab.leave("history.back()")
        await tab.until("!!document.querySelector('#episodes a')")
        server.shutdown()
        server.server_close()
        await tab.until(f"{text}.includes('has ended')")
        assert "Newest episodes" in await tab.js(text), "the last state stays"
    finally:
        await browser.close()
