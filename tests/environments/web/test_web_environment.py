"""Tasks on a web site: login, tabs, navigation, a frame, a download, shadow roots, judgement."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from web_hand import Hand, begin
from web_site import Site, site

from swarm_ui.action import Action
from swarm_ui.environments import contract_report
from swarm_ui.environments.web import Visit, WebBrowser, WebEnvironment, WebTask, find_browser
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import render

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed"),
    pytest.mark.asyncio(loop_scope="module"),
]
DONE = Action(action_type="status", goal_status="complete")
BACK = Action(action_type="navigate_back")


async def test_login_and_an_episode_knows_nothing_of_the_last(
    shop: Site, browser: WebBrowser
) -> None:
    async def greeted(visit: Visit) -> bool:
        return visit.url.endswith("/account") and "Hello ada" in await visit.text()

    hand = await begin(browser, f"{shop.url}/", greeted)
    await hand.do("User", "input_text", "ada")
    await hand.do("Password", "input_text", "wrong")
    await hand.do("Sign in", "click")  # the heading: nothing happens
    buttons = [e.index for e in hand.screen.elements if e.role == "button" and e.label == "Sign in"]
    await hand.act(Action(action_type="click", index=buttons[0]))
    assert "Wrong password" in hand.labels
    await hand.do("User", "input_text", "ada")
    await hand.do("Password", "input_text", "swordfish")
    assert hand.value("Password") == "•" * 9, "a password is not shown"
    await hand.act(Action(action_type="keyboard_enter"))
    assert "The shop" in hand.labels
    await hand.do("Address", "input_text", f"{shop.url}/account")
    assert "Hello ada" in hand.labels
    assert (await hand.act(DONE)).reward == 1.0
    again = await hand.env.reset(task="do it", seed=0)
    hand = Hand(hand.env, again)
    await hand.act(Action(action_type="open_app", app_name=f"{shop.url}/account"))
    assert "Please sign in" in hand.labels
    assert (await hand.act(DONE)).reward == 0.0


async def test_a_file_of_cookies_logs_a_user_in(
    shop: Site, browser: WebBrowser, tmp_path: Path
) -> None:
    cookie = {"name": "sid", "value": "known", "domain": "127.0.0.1", "path": "/", "expires": -1,
              "httpOnly": True, "secure": False, "sameSite": "Lax"}  # fmt: skip
    path, url = tmp_path / "ada.json", f"{shop.url}/account"
    task = WebTask(url=url, goal="Look", reward=lambda visit: True, storage_state=path)
    with pytest.raises(ConfigError, match=r"ada\.json"):
        WebEnvironment(tasks={"look": task}, browser=browser)
    path.write_text(json.dumps({"cookies": [cookie], "origins": []}))
    shop.sessions["known"] = "ada"
    env = WebEnvironment(tasks={"look": task}, browser=browser)
    assert "Hello ada" in render(await env.reset(task="look", seed=0))
    await env.close()


@pytest.mark.slow
async def test_tabs_urls_back_and_forward(shop: Site, browser: WebBrowser) -> None:
    hand = await begin(browser, f"{shop.url}/shop")
    tabs = lambda: [(e.label, bool(e.selected)) for e in hand.screen.elements if e.role == "tab"]  # noqa: E731
    await hand.do("Terms")  # target=_blank
    assert tabs() == [("shop", False), ("terms", True)]
    assert hand.value("Address") == f"{shop.url}/terms"
    await hand.do("shop")
    assert "The shop" in hand.labels
    await hand.do("New tab")
    await hand.do("Address", "input_text", f"127.0.0.1:{shop.port}/long")
    assert [label for label, _ in tabs()] == ["shop", "terms", "long"]
    await hand.do("Close tab")
    assert tabs() == [("shop", False), ("terms", True)]
    await hand.do("shop")
    await hand.act(Action(action_type="open_app", app_name=f"{shop.url}/terms"))
    assert "Returns within 14 days." in hand.labels
    await hand.act(BACK)
    assert "The shop" in hand.labels
    await hand.act(Action(action_type="open_app", app_name=f"{shop.url}/terms"))
    await hand.act(Action(action_type="navigate_home"))
    assert "The shop" in hand.labels
    assert (await hand.act(Action(action_type="scroll", direction="up"))).note
    step = await hand.act(Action(action_type="open_app", app_name="http://sh\ud800p.example/"))
    assert "refused" in step.note and not step.ended


async def test_an_action_does_not_reach_a_tab_that_the_agent_has_not_seen(
    shop: Site, browser: WebBrowser
) -> None:
    button = "<button style='position: fixed; inset: 0' onclick='this.textContent += 1'>{}</button>"
    shop.pages["/under"] = "text/html", button.format("Under")
    shop.pages["/over"] = "text/html", button.format("Over")
    hand = await begin(browser, f"{shop.url}/under")
    session = hand.env.session
    assert session is not None
    await session.new_tab()  # as a timer of the page does while the agent thinks
    await session.navigate(f"{shop.url}/over")
    await session.settled()
    step = await hand.act(Action(action_type="click", x=300, y=300))
    assert "tabs have changed" in step.note
    assert "Over" in hand.labels and "Over1" not in hand.labels
    await hand.act(Action(action_type="click", x=300, y=300))
    assert "Over1" in hand.labels


async def test_a_page_that_closes_the_last_tab_while_the_agent_thinks_is_no_fault(
    shop: Site, browser: WebBrowser
) -> None:
    shop.pages["/opens"] = "text/html", "<button onclick='window.open(\"/popup\")'>Open</button>"
    shop.pages["/popup"] = "text/html", "<p>A window of the page</p>"

    async def left_with_popup() -> Hand:
        hand = await begin(browser, f"{shop.url}/opens", lambda visit: "/popup" in visit.url)
        await hand.do("Open")
        await hand.do("/opens")
        await hand.do("Close tab")
        session = hand.env.session
        assert session is not None
        (tab,) = session.tabs
        await tab.evaluate("setTimeout(() => window.close(), 50)")
        while session.tabs:
            await asyncio.sleep(0.02)
        return hand

    hand = await left_with_popup()
    assert "tabs have changed" in (await hand.do("A window of the page")).note
    await hand.do("Address", "input_text", f"{shop.url}/terms")
    assert "Returns within 14 days." in hand.labels
    hand = await left_with_popup()
    assert (await hand.act(DONE)).reward == 0.0, "an agent must not mask the episode"


async def test_dialogs_are_lines_of_the_note_and_do_not_fill_it(
    shop: Site, browser: WebBrowser
) -> None:
    asks = "<button onclick='for (let k = 0; k < 40; k++) alert(`No\\n${k}`)'>Ask</button>"
    shop.pages["/asks"] = "text/html", asks
    hand = await begin(browser, f"{shop.url}/asks")
    note = (await hand.do("Ask")).note
    assert "the page said: No 4;" in note and note.endswith("and 35 more")


@pytest.mark.parametrize("target", ["_self", "_blank"])
async def test_a_download_is_there_for_the_judge(
    shop: Site, browser: WebBrowser, target: str
) -> None:
    def kept(visit: Visit) -> bool:
        return b"17,3.50" in visit.downloads["orders.csv"].read_bytes()

    shop.pages["/out"] = "text/html", f"<a href=/orders.csv target={target}>Orders</a>"
    hand = await begin(browser, f"{shop.url}/out", kept)
    assert (await hand.do("Orders")).note.startswith("downloaded orders.csv")
    assert "Downloaded orders.csv" in hand.labels
    assert (await hand.act(DONE)).reward == 1.0
    (path,) = hand.env.session.downloads.values()  # type: ignore[union-attr]
    await hand.env.close()
    assert not path.exists()


async def test_a_page_cannot_fill_the_disk_with_downloads(
    shop: Site, browser: WebBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_ui.environments.web.session.MOST_DOWNLOADS", 3)
    loads = "".join(f"<a download={k}.csv href=data:text/csv,{k}>{k}</a>" for k in range(5))
    script = "for (const one of document.querySelectorAll(`a`)) one.click()"
    shop.pages["/loads"] = "text/html", f"{loads}<button onclick='{script}'>All</button>"
    hand = await begin(browser, f"{shop.url}/loads")
    notes = (await hand.do("All")).note
    assert notes.count("was stopped") == 2 and notes.count("downloaded") == 3
    assert hand.env.session is not None and len(hand.env.session.downloads) == 3
    monkeypatch.setattr("swarm_ui.environments.web.session.MOST_DOWNLOAD", 1000)
    big = "location = URL.createObjectURL(new Blob([`x`.repeat(5e7)], { type: `application/x` }))"
    shop.pages["/big"] = "text/html", f"<button onclick='{big}'>Big</button>"
    hand = await begin(browser, f"{shop.url}/big")
    await hand.do("Big")
    assert hand.env.session is not None and not hand.env.session.downloads


async def test_answers_and_infeasible_tasks_are_judged(shop: Site, browser: WebBrowser) -> None:
    def right(visit: Visit) -> bool:
        return visit.answer == "14"

    tasks = {
        "days": WebTask(url=f"{shop.url}/terms", goal="How many days?", reward=right),
        "none": WebTask(url=shop.url, goal="Fly", reward=lambda _: True, infeasible=True),
    }
    env = WebEnvironment(tasks=tasks, browser=browser)
    assert env.tasks == ("days", "none")

    async def ends(task: str, *actions: Action) -> float:
        await env.reset(task=task, seed=0)
        for action in actions[:-1]:
            assert not (await env.step(action)).ended
        return (await env.step(actions[-1])).reward

    never = Action(action_type="status", goal_status="infeasible")
    wrong, good = (Action(action_type="answer", text=text) for text in ("7", "14"))
    assert await ends("days", wrong, good, DONE) == 1.0
    assert await ends("days", good, wrong, DONE) == 0.0, "the last answer counts"
    assert await ends("days", DONE) == 0.0
    assert await ends("days", good, never) == 0.0
    assert await ends("none", never) == 1.0
    assert await ends("none", DONE) == 0.0


async def test_faults_are_no_reward_of_zero(shop: Site, browser: WebBrowser) -> None:
    def fails(visit: Visit) -> bool:
        raise KeyError("no data base")

    hand = await begin(browser, f"{shop.url}/shop", fails)
    with pytest.raises(EnvironmentFault, match="no data base"):
        await hand.act(DONE)
    hand = await begin(browser, f"{shop.url}/shop", lambda visit: 0.5)
    with pytest.raises(EnvironmentFault, match=r"got 0\.5"):
        await hand.act(DONE)
    with pytest.raises(EnvironmentFault, match="answers 500"):
        await begin(browser, f"{shop.url}/broken")
    hand = await begin(browser, f"{shop.url}/shop", lambda visit: visit.open(f"{shop.url}/broken"))
    with pytest.raises(EnvironmentFault, match="answers 500"):
        await hand.act(DONE)
    hand = await begin(browser, f"{shop.url}/shop")
    assert hand.env.session is not None
    with pytest.raises(EnvironmentFault, match=r"crash|gone|closed|lost"):
        await hand.env.session.front.call("Page.crash")
        await hand.act(Action(action_type="wait"))
    assert "The shop" in render(await hand.env.reset(task="do it", seed=0)), "it goes on"


@pytest.mark.slow
async def test_a_site_that_is_down_is_a_fault() -> None:
    with site() as shop:
        env = WebEnvironment(f"{shop.url}/shop", "do it", reward=lambda visit: True)
        hand = Hand(env, await env.reset(task="do it", seed=0))
    with pytest.raises(EnvironmentFault, match="cannot be opened"):
        await hand.act(Action(action_type="navigate_home"))
    with pytest.raises(EnvironmentFault, match="cannot be opened"):
        await env.reset(task="do it", seed=0)
    await env.close()


@pytest.mark.parametrize(
    "start", ["other spelling", pytest.param("redirect", marks=pytest.mark.slow)]
)
async def test_the_site_of_the_task_is_known_by_any_of_its_addresses(start: str) -> None:
    with site() as entrance, site() as shop:
        url = f"http://LOCALHOST:{shop.port}/shop"
        if start == "redirect":
            url = f"{entrance.url}/leave?{shop.url}/shop"
        async with WebBrowser([entrance.url, shop.url, f"localhost:{shop.port}"]) as browser:
            hand = await begin(browser, url)
            assert "The shop" in hand.labels
            shop.shutdown()
            shop.server_close()
            with pytest.raises(EnvironmentFault, match="cannot be opened"):
                await hand.act(Action(action_type="navigate_home"))


@pytest.mark.slow
async def test_an_agent_cannot_end_an_episode_without_a_verdict(shop: Site) -> None:
    """Addresses that do not answer are lost steps where the agent chose them."""
    with site() as other:
        dead = other.url
    async with WebBrowser([shop.url, dead]) as browser:
        hand = await begin(browser, f"{shop.url}/shop", lambda visit: False)
        for address in (dead, shop.url.replace("http", "https"), f"{shop.url}/leave?{dead}"):
            step = await hand.act(Action(action_type="open_app", app_name=address))
            assert "cannot be opened" in step.note and not step.ended
            await hand.act(BACK)
        assert "The shop" in hand.labels
        assert (await hand.act(DONE)).terminated


@pytest.mark.slow
async def test_the_environment_contract(shop: Site) -> None:
    def make() -> WebEnvironment:
        return WebEnvironment(f"{shop.url}/shop", "do it", reward=lambda visit: False, budget=9)

    report = await contract_report(make, seeds=(0,), budget=9)
    assert report.ok, report


async def test_what_cannot_be_opened_is_said_before_a_browser_starts() -> None:
    look = {"look": WebTask(url="http://a.example", goal="Look", reward=lambda visit: True)}
    for given in ({"url": "http://a.example", "task": "Look"}, {"url": "http://a", "tasks": look}):
        with pytest.raises(ConfigError, match="give 'url', 'task' and 'reward'"):
            WebEnvironment(**given)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not the address"):
        WebEnvironment("file:///etc/passwd", "do it", reward=lambda visit: True)
