"""A task by hand on a page: in a real Chromium, and what the little server refuses."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from cli_world import Shell
from play_page import opened
from shared_browser import SharedBrowser
from small_world import FIELD, SAVE, Faulty, Notebook

from swarm_ui import read_jsonl
from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.play import play_in_browser
from swarm_ui.observation import Element
from swarm_ui.trace.records import Episode

Game = asyncio.Task[Episode | None]
TYPED = {"action_type": "input_text", "index": FIELD, "text": "milk"}


@asynccontextmanager
async def game(
    env: Environment, task: str = "write", **options: Any
) -> AsyncIterator[tuple[str, Game]]:
    """A running game and its address."""
    addresses: asyncio.Queue[str] = asyncio.Queue()
    playing = asyncio.create_task(
        play_in_browser(env, task, 3, show=addresses.put_nowait, **options)
    )
    try:
        async with asyncio.timeout(10):
            yield await addresses.get(), playing
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)


async def ask(
    url: str, body: object = None, *, method: str = "", **headers: str
) -> tuple[int, Any, dict[str, str]]:
    """Status, body and headers of an answer; a body is sent as JSON."""

    def talk() -> tuple[int, Any, dict[str, str]]:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=10)
        told = {"Content-Type": "application/json"} if body is not None else {}
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        connection.request(method or ("GET" if body is None else "POST"), parts.path, sent, told)
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        plain = text.decode()
        return (
            reply.status,
            json.loads(plain) if "json" in (reply.getheader("Content-Type") or "") else plain,
            dict(reply.getheaders()),
        )

    return await asyncio.to_thread(talk)


# -- in a browser -----------------------------------------------------------------------------


async def solve(
    url: str, phone: PhoneEnvironment, chromium: SharedBrowser, clicks: str
) -> list[str]:
    """Do what the expert says with the mouse and the keyboard; returns what the browser logged."""
    async with opened(chromium, url) as tab:
        turn = 0
        while not await tab.js("document.querySelector('#outcome:not([hidden])') !== null"):
            action, turn = phone.expert(), turn + 1
            if action.index is not None:
                await tab.click(f'{clicks}[data-index="{action.index}"]')
            if action.action_type == "input_text":
                await tab.until("document.activeElement.id === 'composer-text'")
                await tab.type(action.text or "")
                await tab.click("#composer-send")
            elif action.action_type == "answer":
                await tab.click("#answer-text")
                await tab.type(action.text or "")
                await tab.click("#answer button")
            elif action.action_type != "click":
                names = {"status": "Task is done", "scroll": "Scroll down"}
                await tab.click("button", names.get(action.action_type, "Back"))
            await tab.until(f"document.body.dataset.turn === '{turn}'")
        told = await tab.js("document.getElementById('outcome').innerText")
        assert told.startswith(f"Solved in {turn} steps"), told
        return tab.log


@pytest.mark.browser
@pytest.mark.parametrize(
    "clicks", [".box", pytest.param("#elements button", marks=pytest.mark.slow)]
)
async def test_a_phone_task_with_the_mouse(
    clicks: str, chromium: SharedBrowser, tmp_path: Path
) -> None:
    pytest.importorskip("playwright")
    phone = PhoneEnvironment(screenshots=True)
    path = tmp_path / "mine.jsonl"
    addresses: asyncio.Queue[str] = asyncio.Queue()
    playing = asyncio.create_task(
        play_in_browser(phone, "notes-create", 3, path=path, show=addresses.put_nowait)
    )
    log = await solve(await addresses.get(), phone, chromium, clicks)
    episode = await asyncio.wait_for(playing, 10)
    assert log == []
    assert episode is not None and episode.success is True
    assert read_jsonl(path) == [episode]
    assert all(step.trace.observation.png for step in episode.steps)


ATTACK = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


class Hostile(Notebook):
    elements_extra = (
        Element(index=4, role="text", text=ATTACK, description=ATTACK, value=ATTACK),
        Element(index=5, role="button", text=ATTACK, bounds=(0, 240, 90, 300)),
    )


@pytest.mark.browser
async def test_texts_of_the_world_stay_texts(chromium: SharedBrowser) -> None:
    pytest.importorskip("playwright")
    world = Hostile()
    addresses: asyncio.Queue[str] = asyncio.Queue()
    playing = asyncio.create_task(play_in_browser(world, "write", 3, show=addresses.put_nowait))
    async with opened(chromium, await addresses.get()) as tab:
        await tab.click(".box", "onerror")
        await tab.until("document.body.dataset.turn === '1'")
        assert "nothing happened" in await tab.js("document.getElementById('note').innerText")
        assert await tab.js("document.querySelectorAll('img').length") == 0
        assert await tab.js("document.title") == "swarm-ui: play"
        assert ATTACK in await tab.js("document.getElementById('elements').innerText")
        await tab.click("button", "Give up")
        await tab.until("document.querySelector('#outcome:not([hidden])') !== null")
        assert tab.log == []
    episode = await asyncio.wait_for(playing, 10)
    assert episode is not None and len(episode.steps) == 1 and episode.success is None


# -- without a browser ------------------------------------------------------------------------


async def test_a_game_by_hand_made_requests(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    async with game(Notebook(), path=path) as (url, playing):
        status, told, _ = await ask(f"{url}state")
        assert status == 200 and told["goal"] == "Write “milk” and save it" and told["turn"] == 0
        assert [told["width"], told["height"], told["picture"]] == [120, 240, None]
        typed = {"action_type": "input_text", "index": FIELD, "text": "milk"}
        status, told, _ = await ask(f"{url}act", {"turn": 0, "action": typed})
        assert status == 200 and told["elements"][FIELD]["value"] == "milk"
        assert told["history"] == ["input_text “Note” [3] 'milk'"]
        press = {"action_type": "click", "index": SAVE}
        status, told, _ = await ask(f"{url}act", {"turn": 0, "action": press})
        assert status == 409 and not told["ended"]  # an old page does nothing to a new screen
        status, told, _ = await ask(f"{url}act", {"turn": 1, "action": press})
        assert told["ended"] and told["solved"] and told["saved"] == str(path)
        episode = await playing
    assert episode is not None and read_jsonl(path) == [episode]
    with pytest.raises(ConnectionRefusedError):
        await ask(f"{url}state")


async def test_what_is_not_an_action_is_refused_and_costs_nothing() -> None:
    world = Notebook()
    async with game(world) as (url, _):
        for body in (
            b"{",
            b"[]",
            b'{"turn": "x"}',
            b'{"turn": 0, "action": {"action_type": "fly"}}',
        ):
            status, told, _ = await ask(f"{url}act", body)
            assert status == 400 and told["error"], body
        wrong = {"turn": 0, "action": {"action_type": "click"}}
        status, told, _ = await ask(f"{url}act", wrong)
        assert status == 400 and "needs 'index'" in told["error"]
        assert (await ask(f"{url}act", b" " * 70_000))[0] == 400
        assert (await ask(f"{url}act", {"turn": 0}, Content_Type="text/plain"))[0] == 400
        assert (await ask(f"{url}act", {"turn": 0}))[1]["steps"] == 0
        assert (await ask(f"{url}dance", {"turn": 0}))[0] == 404
        assert (await ask(f"{url}page.js"))[0] == 404
        assert world.seen == []


async def test_an_error_of_the_world_is_told_to_the_page_and_to_the_caller(tmp_path: Path) -> None:
    class Broken(Notebook):
        async def step(self, action: Action) -> Step:
            if action.index == SAVE:
                raise RuntimeError("the wire is \ud800 cut")
            return await super().step(action)

    path = tmp_path / "mine.jsonl"
    async with game(Broken(), path=path) as (url, playing):
        assert (await ask(f"{url}act", {"turn": 0, "action": TYPED}))[0] == 200
        save = {"action_type": "click", "index": SAVE}
        status, told, _ = await ask(f"{url}act", {"turn": 1, "action": save})
        assert status == 500
        assert told == {
            "error": "The task has ended with an error: RuntimeError: the wire is ? cut"
        }
        with pytest.raises(RuntimeError, match="the wire is"):
            await playing
    (episode,) = read_jsonl(path)
    assert [step.executed for step in episode.steps] == [msgspec.convert(TYPED, Action)]


async def test_a_fault_ends_the_game_and_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    async with game(Faulty(Notebook(), step=1), path=path) as (url, playing):
        for turn in (0, 1):
            status, told, _ = await ask(f"{url}act", {"turn": turn, "action": TYPED})
        assert status == 200 and told["ended"] and "injected fault" in told["outcome"]
        assert await playing is not None
    (episode,) = read_jsonl(path)
    assert episode.success is None and len(episode.steps) == 2


def test_the_command_lists_and_refuses(shell: Shell) -> None:
    assert shell("play small_world:Notebook").out.split() == ["write", "write-again"]
    for arguments, why in (
        (("nowhere", "t"), "no environment 'nowhere': expected phone, invented, phone-split"),
        (("small_world:Nothing", "t"), "'small_world:Nothing' cannot be used"),
        (("small_world:Notebook", "sing"), "no task 'sing'"),
    ):
        refused = shell("play", *arguments)
        assert refused.code == 2 and why in " ".join(refused.err.split()), refused.err


async def test_only_the_page_itself_may_ask_and_it_loads_nothing_from_elsewhere() -> None:
    world = Notebook()
    press = {"turn": 0, "action": {"action_type": "click", "index": SAVE}}
    async with game(world) as (url, _):
        root = url[: url.index("/", len("http://"))]
        assert url.startswith("http://127.0.0.1:") and len(url) > len(root) + 30
        for wrong in (f"{root}/", f"{root}/x/state", f"{root}//state", f"{url[:-2]}/state"):
            assert (await ask(wrong))[0] == 404, wrong
            assert (await ask(wrong, press))[0] == 404, wrong
        assert (await ask(f"{url}state", Host="evil.com"))[0] == 404
        assert (await ask(f"{url}act", press, Host="evil.com"))[0] == 404
        assert (await ask(f"{url}act", press, Origin="http://evil.com"))[0] == 403
        assert (await ask(f"{url}act", press, Origin="null"))[0] == 403
        assert (await ask(f"{url}act", method="PUT"))[0] == 501
        assert world.seen == []
        _, page, headers = await ask(url)
        assert "http://" not in page and "https://" not in page and "src=" not in page
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store" and "Python" not in headers["Server"]
        status, _, _ = await ask(f"{url}act", press, Origin=root)
        assert status == 200 and world.seen == [Action(action_type="click", index=SAVE)]


async def test_ctrl_c_keeps_what_was_done_and_frees_the_port(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    async with game(Notebook(), path=path) as (url, playing):
        await ask(f"{url}act", {"turn": 0, "action": {"action_type": "wait"}})
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        (episode,) = read_jsonl(path)
        assert episode.success is None and str(episode.fault) == "left before its end: given up"
        with pytest.raises(ConnectionRefusedError):
            await ask(f"{url}state")
