"""Web pages: what a page shows, what an agent reads, and which failures are the agent's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from web_hand import Hand, begin
from web_site import Site, site

from swarm_ui import Action
from swarm_ui.environments.miniwob import MiniWobBrowser, find_browser
from swarm_ui.environments.web import AllowedHosts, Visit, WebBrowser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed"),
    pytest.mark.asyncio(loop_scope="module"),
]
DONE = Action(action_type="status", goal_status="complete")
HTML = "text/html; charset=utf-8"


@pytest.fixture(scope="module")
def pages() -> Iterator[Site]:
    with site() as server:
        server.pages["/plain"] = HTML, "<title>Plain</title><p>Plain page</p>"
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(pages: Site) -> AsyncIterator[WebBrowser]:
    async with WebBrowser([pages.url, "*.refused.example"]) as running:
        yield running


async def shown(browser: WebBrowser, pages: Site, body: str, reward: object = None) -> Hand:
    """An episode on a page with this body."""
    pages.pages["/page"] = HTML, f"<title>Page</title>{body}"
    return await begin(browser, f"{pages.url}/page", reward)


# -- half an emoji ----------------------------------------------------------------------------

CUT = """<button id=b>x</button><p id=p></p><input id=f>
<script>document.title = "T \\ud83d"; b.textContent = "Hi \\ud83d there"; p.textContent = "\\ude00 low";
f.value = "v\\ud83d"; b.onclick = () => alert("said \\ud83d");</script>"""


async def test_half_an_emoji_is_read_as_a_replacement_character(
    browser: WebBrowser, pages: Site
) -> None:
    async def judge(visit: Visit) -> bool:
        return "Hi \ufffd there" in await visit.text()

    hand = await shown(browser, pages, CUT, judge)
    assert {"Hi \ufffd there", "\ufffd low"} <= {*hand.labels}
    assert "v\ufffd" in [e.value for e in hand.screen.elements]
    assert "said \ufffd" in (await hand.do("Hi \ufffd there")).note
    assert hand.screen.app == "T \ufffd"
    assert (await hand.act(DONE)).reward == 1.0


async def test_half_an_emoji_in_one_tab_does_not_disturb_another(
    browser: WebBrowser, pages: Site
) -> None:
    honest = await begin(browser, f"{pages.url}/plain")
    odd = await shown(browser, pages, CUT)
    for _ in range(2):
        await odd.act(Action(action_type="wait"))
        assert "Plain page" in [
            e.label for e in (await honest.act(Action(action_type="wait"))).observation.elements
        ]


# -- whose failure it is ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "http://%zz\\@127.0.0.1:{port}/",
        "http://%zz.refused.example/",  # allowed, but the browser takes it for no URL
        "http://127.0.0.1:{port}/\ud83d",
        "http://\ud83d@127.0.0.1:{port}/",
    ],
)
async def test_an_address_that_the_browser_refuses_costs_the_agent_a_step(
    browser: WebBrowser, pages: Site, address: str
) -> None:
    hand = await shown(browser, pages, "<p>Here</p>", lambda visit: False)
    given = address.format(port=pages.port)
    step = await hand.act(Action(action_type="open_app", app_name=given))
    assert step.note and not step.ended
    assert "Here" in hand.labels
    step = await hand.do("Address", "input_text", given)
    assert step.note and not step.ended
    step = await hand.act(DONE)
    assert step.terminated and step.reward == 0.0


async def test_half_a_character_cannot_be_typed(browser: WebBrowser, pages: Site) -> None:
    hand = await shown(browser, pages, "<input aria-label=Name>")
    assert "surrogate" in (await hand.do("Name", "input_text", "a\ud83d")).note
    assert hand.value("Name") == ""
    async with MiniWobBrowser(pages=1) as miniwob:
        (env,) = miniwob.environments
        screen = await env.reset(task="enter-text", seed=0)
        field = next(e.index for e in screen.elements if e.editable)
        step = await env.step(Action(action_type="input_text", index=field, text="a\ud83d"))
        assert "surrogate" in step.note and not step.ended


async def test_hosts_are_read_as_browsers_read_them() -> None:
    hosts = AllowedHosts(["shop.example"])
    assert not hosts.allows("http://evil.example\\@shop.example/")
    assert hosts.allows("http://shop.example\\milk")


async def test_a_visit_opens_addresses_without_a_scheme_as_start_pages_do(
    browser: WebBrowser, pages: Site
) -> None:
    address = f"127.0.0.1:{pages.port}/plain"

    async def judge(visit: Visit) -> bool:
        await visit.open(address)
        return "Plain page" in await visit.text()

    hand = await begin(browser, address, judge)
    assert (await hand.act(DONE)).reward == 1.0
