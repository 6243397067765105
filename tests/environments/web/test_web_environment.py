"""Tasks on a web site: login, tabs, navigation, a frame, a download, shadow roots, judgement."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace
from PIL import Image
from web_site import Site, site

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.contract_check.check import check_environment
from swarm_ui.environments.miniwob import find_browser
from swarm_ui.environments.miniwob.browser import Browser
from swarm_ui.environments.miniwob.cdp import Reply
from swarm_ui.environments.web import Visit, WebBrowser, WebEnvironment, WebTask, WebView
from swarm_ui.environments.wrappers import ActionFilter
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation, render

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed"),
    pytest.mark.asyncio(loop_scope="module"),
]
DONE = Action(action_type="status", goal_status="complete")
BACK = Action(action_type="navigate_back")


DRAG = """<style>body { margin: 0; height: 1900px }
button, p { position: absolute; width: 200px; height: 60px }</style>
<button style="top: 100px">Card</button><button style="top: 820px">Pile</button>
<button style="top: 1110px">Cellar</button><p style="top: 500px" id=said></p>
<script>
let start = "";
addEventListener("mousedown", (event) => { start = event.target.innerText; });
addEventListener("mouseup", (event) => {
  said.textContent = `from ${start.slice(0, 9)} to ${event.target.innerText.slice(0, 9)}`;
});
</script>"""


class Hand:
    """Does actions by label, and keeps the last observation."""

    def __init__(self, env: WebEnvironment, screen: Observation) -> None:
        self.env, self.screen = env, screen

    @property
    def labels(self) -> list[str]:
        return [element.label for element in self.screen.elements]

    def value(self, label: str) -> str | None:
        return next(e.value for e in self.screen.elements if e.label == label)

    async def do(self, label: str, kind: str = "click", text: str | None = None) -> Step:
        index = self.labels.index(label)
        return await self.act(Action(action_type=kind, index=index, text=text))  # type: ignore[arg-type]

    async def act(self, action: Action) -> Step:
        step = await self.env.step(action)
        self.screen = step.observation
        return step


@pytest.fixture(scope="module")
def shop() -> Iterator[Site]:
    with site() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(shop: Site) -> AsyncIterator[WebBrowser]:
    async with WebBrowser([shop.url]) as running:
        yield running


async def begin(browser: WebBrowser, url: str, reward: object = None, **more: object) -> Hand:
    judge = reward or (lambda visit: True)
    env = WebEnvironment(url, "do it", reward=judge, browser=browser, **more)  # type: ignore[arg-type]
    return Hand(env, await env.reset(task="do it", seed=0))


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
    await hand.do("Forward")
    assert "Returns within 14 days." in hand.labels
    await hand.act(Action(action_type="navigate_home"))
    assert "The shop" in hand.labels
    assert (await hand.act(Action(action_type="scroll", direction="up"))).note


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
    await session.front.navigate(f"{shop.url}/over")
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


async def test_a_tab_with_the_title_of_the_address_field_is_not_the_address_field(
    shop: Site, browser: WebBrowser
) -> None:
    shop.pages["/title"] = "text/html; charset=utf-8", "<title>Address</title><p>Here</p>"
    hand = await begin(browser, f"{shop.url}/title")
    tab = hand.screen.elements[0]
    assert (tab.role, tab.label) == ("tab", "Address")
    step = await hand.act(Action(action_type="input_text", index=0, text=f"{shop.url}/terms"))
    assert "part of the browser" in step.note and "Here" in hand.labels


async def test_a_filter_of_sites_knows_the_address_of_the_page(shop: Site) -> None:
    other = f"http://localhost:{shop.port}"
    shop.pages["/lures"] = "text/html", f"<a href={other}/terms>Terms</a>"
    async with WebBrowser([shop.url, other]) as browser:
        web = WebEnvironment(f"{shop.url}/lures", "do it", reward=lambda v: True, browser=browser)
        env = ActionFilter(web, deny=(), sites=["127.0.0.1"])
        screen = await env.reset(task="do it", seed=0)
        link = next(e.index for e in screen.elements if e.role == "link")
        assert (await env.step(Action(action_type="click", index=link))).note == ""
        step = await env.step(Action(action_type="click", x=5, y=5))
        assert f"“{other}/terms” is in front, and is not an allowed site" in step.note
        assert "Terms" in [e.label for e in (await env.step(BACK)).observation.elements]
        assert (await env.step(Action(action_type="click", x=5, y=5))).note == ""


async def test_a_page_with_many_dialogs_does_not_fill_the_note(
    shop: Site, browser: WebBrowser
) -> None:
    asks = "<button onclick='for (let k = 0; k < 40; k++) alert(`No ${k}`)'>Ask</button>"
    shop.pages["/asks"] = "text/html", asks
    hand = await begin(browser, f"{shop.url}/asks")
    note = (await hand.do("Ask")).note
    assert "the page said: No 4;" in note and note.endswith("and 35 more dialogs")


async def test_lists_of_choices(shop: Site, browser: WebBrowser) -> None:
    """A list that a page makes itself is one button until it is open."""
    shop.pages["/choices"] = (
        "text/html",
        """<button role=combobox aria-label=Fruit onclick="list.hidden = false">Any</button>
<div role=combobox tabindex=0>No name</div>
<ul role=listbox id=list hidden><li role=option onclick="said.textContent = 'chose fig'">Fig</ul>
<select aria-label=Nut onchange="said.textContent = `chose ${this.value}`">
<option>Walnut<optgroup disabled><option>Almond</select><p id=said></p>""",
    )
    hand = await begin(browser, f"{shop.url}/choices")
    buttons = [(e.label, e.value) for e in hand.screen.elements if e.role == "button"]
    assert buttons[1:] == [("Fruit", "Any"), ("No name", None)]
    assert (await hand.do("Fruit", "input_text", "Fig")).note == "no text can be typed there"
    await hand.do("Fruit")
    await hand.do("Fig")
    assert "chose fig" in hand.labels
    assert (await hand.do("Walnut", "select", "Almond")).note == "no such option"
    assert "chose Almond" not in hand.labels


async def test_an_option_that_a_page_makes_itself_gets_the_events_of_the_mouse(
    shop: Site, browser: WebBrowser
) -> None:
    shop.pages["/options"] = (
        "text/html",
        """<ul role=listbox><li role=option>Fig<li role=option>Pear</ul><p id=said></p>
<select aria-label=Nut size=2 onchange="said.textContent = this.value">
<option>Walnut<option>Almond</select>
<script>for (const one of document.querySelectorAll("li")) {
  for (const type of ["mouseover", "mousedown"])
    one.addEventListener(type, () => { said.textContent = `${type} ${one.textContent}`; });
}</script>""",
    )
    hand = await begin(browser, f"{shop.url}/options")
    await hand.do("Fig")
    assert "mousedown Fig" in hand.labels
    assert (await hand.do("Pear", "long_press")).note == ""
    assert "mouseover Pear" in hand.labels
    await hand.do("Almond", "long_press")
    assert "Almond" not in [e.label for e in hand.screen.elements if e.role == "text"]
    await hand.do("Almond", "double_tap")
    assert "Almond" in [e.label for e in hand.screen.elements if e.role == "text"]
    assert (await hand.do("Pear", "select", "Pear")).note == "not an option"


async def test_bounds_in_frames_with_borders_are_where_the_elements_are(
    shop: Site, browser: WebBrowser
) -> None:
    frame = "<iframe src={} style='border: 17px solid; padding: 23px'></iframe>"
    shop.pages["/outer"] = "text/html", frame.format("/middle") + "<p id=said></p>"
    shop.pages["/middle"] = "text/html", frame.format("/inner")
    shop.pages["/inner"] = (
        "text/html",
        "<button onclick='top.said.textContent = `pressed`'>Press</button>",
    )
    hand = await begin(browser, f"{shop.url}/outer")
    left, top, right, bottom = hand.screen.elements[hand.labels.index("Press")].bounds or (0,) * 4
    await hand.act(Action(action_type="click", x=(left + right) // 2, y=(top + bottom) // 2))
    assert "pressed" in hand.labels


async def test_a_part_of_a_picture_is_a_link(shop: Site, browser: WebBrowser) -> None:
    shop.pages["/map"] = (
        "text/html",
        "<map name=m><area shape=rect coords=0,0,20,20 href=/terms alt='Our terms'></map>"
        "<img usemap=#m width=50 height=50 alt=Map src='data:image/gif;base64,"
        "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'>",
    )
    hand = await begin(browser, f"{shop.url}/map")
    assert (await hand.do("Our terms")).note == ""
    assert "Returns within 14 days." in hand.labels


async def test_the_first_page_has_nothing_behind_it(shop: Site, browser: WebBrowser) -> None:
    hand = await begin(browser, f"{shop.url}/shop")
    before = hand.labels
    assert "no page to go back" in (await hand.act(BACK)).note
    assert hand.labels == before
    assert "Close tab" not in before and "Forward" not in before


@pytest.mark.slow
async def test_frames_shadow_roots_cards_and_form_controls(shop: Site, browser: WebBrowser) -> None:
    hand = await begin(browser, f"{shop.url}/shop")
    assert "Delete is what nobody should click." in hand.labels
    await hand.do("Email", "input_text", "ada@example.org")
    await hand.do("Subscribe")
    assert "Subscribed ada@example.org" in hand.labels
    for label, said in (
        ("Button in a open root", "open root clicked"),
        ("Button in a closed root", "closed root clicked"),
        ("Blue card", "Blue card clicked"),
        ("Large", "size Large"),
    ):
        await hand.do(label)
        assert said in hand.labels
    await hand.do("Small", "select", "Small")
    assert "size Small" in hand.labels
    await hand.do("Amount", "input_text", "8")
    assert "amount 8" in hand.labels and hand.value("Amount") == "8"
    await hand.do("Gift wrap")
    assert next(e.checked for e in hand.screen.elements if e.label == "Gift wrap")


async def test_a_download_is_there_for_the_judge(shop: Site, browser: WebBrowser) -> None:
    def kept(visit: Visit) -> bool:
        return b"17,3.50" in visit.downloads["orders.csv"].read_bytes()

    hand = await begin(browser, f"{shop.url}/shop", kept)
    step = await hand.do("Orders as CSV")
    assert step.note.startswith("downloaded orders.csv")
    assert "Downloaded orders.csv" in hand.labels
    assert (await hand.act(DONE)).reward == 1.0
    (path,) = hand.env.session.downloads.values()  # type: ignore[union-attr]
    await hand.env.close()
    assert not path.exists()


async def test_a_download_that_a_new_tab_starts_is_there_for_the_judge(
    shop: Site, browser: WebBrowser
) -> None:
    def kept(visit: Visit) -> bool:
        return b"17,3.50" in visit.downloads["orders.csv"].read_bytes()

    shop.pages["/out"] = "text/html", "<a href=/orders.csv target=_blank>Orders</a>"
    hand = await begin(browser, f"{shop.url}/out", kept)
    assert (await hand.do("Orders")).note.startswith("downloaded orders.csv")
    assert (await hand.act(DONE)).reward == 1.0


@pytest.mark.slow
async def test_a_window_that_the_page_opens_and_closes_at_once_is_no_fault(
    shop: Site, browser: WebBrowser
) -> None:
    script = "window.open('about:blank').close(); said.textContent = 'done'"
    shop.pages["/blink"] = (
        "text/html",
        f'<button onclick="{script}">Blink</button><p id=said></p>',
    )
    hand = await begin(browser, f"{shop.url}/blink")
    for _ in range(4):
        assert not (await hand.do("Blink")).note
    assert "done" in hand.labels
    assert [e.label for e in hand.screen.elements if e.role == "tab"] == ["/blink"]


async def test_a_drag_to_an_element_below_the_window_starts_at_its_element(
    shop: Site, browser: WebBrowser
) -> None:
    shop.pages["/drag"] = "text/html", DRAG
    hand = await begin(browser, f"{shop.url}/drag")

    async def drag(start: str, end: str) -> Step:
        place = hand.labels.index
        return await hand.act(Action(action_type="swipe", index=place(start), to_index=place(end)))

    assert not (await drag("Card", "Pile")).note
    assert "from Card to Pile" in hand.labels
    assert "do not fit into the window together" in (await drag("Card", "Cellar")).note
    assert "from Card to Pile" in hand.labels


@pytest.mark.slow
async def test_a_long_page_says_that_there_is_more_and_scrolling_brings_all(
    shop: Site, browser: WebBrowser
) -> None:
    hand = await begin(browser, f"{shop.url}/long")
    seen = set(hand.labels)
    assert hand.screen.more is not None and hand.screen.more[1] > 150
    assert "more elements follow: scroll down" in render(hand.screen)
    for _ in range(40):
        step = await hand.act(Action(action_type="scroll", direction="down"))
        if step.note or step.ended:
            break
        seen |= set(hand.labels)
        hand.env._used = 0
    assert step.note == "nothing to scroll that way"
    assert {f"Line {k}" for k in range(200)} | {"End"} <= seen


async def test_marks_and_bounds_on_request(shop: Site, browser: WebBrowser) -> None:
    view = WebView(size=(800, 600), marks=True, geometry="box")
    hand = await begin(browser, f"{shop.url}/shop", view=view)
    assert hand.screen.png is not None
    with Image.open(io.BytesIO(hand.screen.png)) as picture:
        assert picture.size == (800, 600)
    card = next(e.bounds for e in hand.screen.elements if e.label == "Blue card")
    assert card is not None and f"at {','.join(map(str, card))}" in render(hand.screen)
    middle = Action(action_type="click", x=card[0] + 20, y=(card[1] + card[3]) // 2)
    await hand.act(middle)
    assert "Blue card clicked" in hand.labels
    assert "outside of the window" in (await hand.act(replace(middle, x=10**30))).note


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
    hand = await begin(browser, f"{shop.url}/shop")
    assert hand.env.session is not None
    with pytest.raises(EnvironmentFault, match=r"crash|gone|closed|lost"):
        hand.env.session.front._connection.post("Page.crash", hand.env.session.front._session)
        await hand.act(Action(action_type="wait"))
    assert "The shop" in render(await hand.env.reset(task="do it", seed=0)), "it goes on"


@pytest.mark.slow
async def test_a_site_that_is_down_or_a_dead_browser_is_a_fault() -> None:
    with site() as shop:
        env = WebEnvironment(f"{shop.url}/shop", "do it", reward=lambda visit: True)
        hand = Hand(env, await env.reset(task="do it", seed=0))
    with pytest.raises(EnvironmentFault, match="cannot be opened"):
        await hand.act(Action(action_type="navigate_home"))
    with pytest.raises(EnvironmentFault, match="cannot be opened"):
        await env.reset(task="do it", seed=0)
    browser = env._browser._browser
    assert browser is not None
    browser.kill()
    with pytest.raises(EnvironmentFault):
        await env.reset(task="do it", seed=0)
    await env.close()


async def test_a_site_that_fails_while_it_is_judged_is_a_fault(
    shop: Site, browser: WebBrowser
) -> None:
    async def bought(visit: Visit) -> bool:
        await visit.open(f"{shop.url}/broken")
        return "Thank you" in await visit.text()

    hand = await begin(browser, f"{shop.url}/shop", bought)
    with pytest.raises(EnvironmentFault, match="answers 500"):
        await hand.act(DONE)


@pytest.mark.parametrize("start", ["other spelling", "redirect"])
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


async def test_a_browser_that_starts_but_does_not_answer_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Browser] = []

    async def launch(*_: object, **options: Any) -> Browser:
        started.append(await real(**options))

        async def fails(method: str, session: str = "", **params: object) -> Reply:
            raise EnvironmentFault(method)

        started[0].connection.call = fails  # type: ignore[method-assign]
        return started[0]

    real = Browser.launch
    monkeypatch.setattr(Browser, "launch", launch)
    with pytest.raises(EnvironmentFault, match="setDiscoverTargets"):
        await WebBrowser(["shop.example"]).session((800, 600))
    assert started[0]._process.poll() is not None


@pytest.mark.slow
async def test_a_page_that_hangs_is_a_fault(
    shop: Site, browser: WebBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.pages["/hangs"] = "text/html", "<button onclick='for (;;);'>Hang</button>"
    hand = await begin(browser, f"{shop.url}/hangs")
    monkeypatch.setattr("swarm_ui.environments.miniwob.cdp.CALL_TIMEOUT", 1.0)
    with pytest.raises(EnvironmentFault, match="no answer"):
        await hand.do("Hang")
    monkeypatch.undo()
    assert "Hang" in render(await hand.env.reset(task="do it", seed=0))


async def test_what_cannot_be_opened_is_said_before_a_browser_starts() -> None:
    with pytest.raises(ConfigError, match="give 'url', 'task' and 'reward'"):
        WebEnvironment("http://a.example", "do it")
    with pytest.raises(ConfigError, match="not the address"):
        WebEnvironment("file:///etc/passwd", "do it", reward=lambda visit: True)
    with pytest.raises(ConfigError, match="does not allow"):
        WebEnvironment(
            "http://b.example", "x", reward=lambda v: True, browser=WebBrowser(["a.example"])
        )


@pytest.mark.slow
async def test_the_environment_contract(shop: Site) -> None:
    def make() -> WebEnvironment:
        return WebEnvironment(f"{shop.url}/shop", "do it", reward=lambda visit: False, budget=9)

    report = await check_environment(make, seeds=(0,), budget=9)
    assert report.ok
