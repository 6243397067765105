"""Web pages: what a page shows, what an agent reads, and which failures are the agent's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from web_hand import Hand, begin
from web_site import Site, site

from swarm_ui import Action
from swarm_ui.environments import PAYMENT, ActionFilter
from swarm_ui.environments.miniwob import find_browser
from swarm_ui.environments.web import Visit, WebBrowser, WebView

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


async def shown(
    browser: WebBrowser, pages: Site, body: str, reward: object = None, **more: object
) -> Hand:
    """An episode on a page with this body."""
    pages.pages["/page"] = HTML, f"<title>Page</title>{body}"
    return await begin(browser, f"{pages.url}/page", reward, **more)


# -- half an emoji ----------------------------------------------------------------------------

CUT = """<button id=b>x</button><p id=p></p><input id=f>
<script>document.title = "T \\ud83d";
b.textContent = "Hi \\ud83d there"; p.textContent = "\\ude00 low";
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


# -- whose failure it is ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "http://%zz\\@127.0.0.1:{port}/",
        "http://%zz.refused.example/",  # allowed, but the browser takes it for no URL
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


async def test_a_visit_opens_addresses_without_a_scheme_as_start_pages_do(
    browser: WebBrowser, pages: Site
) -> None:
    address = f"127.0.0.1:{pages.port}/plain"

    async def judge(visit: Visit) -> bool:
        await visit.open(address)
        return "Plain page" in await visit.text()

    hand = await begin(browser, address, judge)
    assert (await hand.act(DONE)).reward == 1.0


# -- what a page shows ------------------------------------------------------------------------

INVISIBLE = {
    "opacity": "<p style='opacity: 0'>Ghost</p>",
    "opacity of a box around it": "<div style='opacity: 0.02'><p>Ghost</p></div>",
    "filter": "<p style='filter: opacity(0)'>Ghost</p>",
    "transparent": "<p style='color: transparent'>Ghost</p>",
    "almost transparent": "<p style='color: rgba(0, 0, 0, 0.02)'>Ghost</p>",
    "fill": "<p style='-webkit-text-fill-color: transparent'>Ghost</p>",
    "white on white": "<p style='color: white'>Ghost</p>",
    "almost white on white": "<p style='color: #fcfcfc'>Ghost</p>",
    "black on black": "<div style='background: black'><p style='color: #030303'>Ghost</p></div>",
    "font size 0": "<p style='font-size: 0'>Ghost</p>",
    "font size 1": "<p style='font-size: 1px'>Ghost</p>",
    "scaled to 0": "<p style='transform: scale(0)'>Ghost</p>",
    "scaled to almost 0": "<p style='transform: scale(0.01)'>Ghost</p>",
    "indented": "<p style='text-indent: -9999px'>Ghost</p>",
    "left of the page": "<p style='position: absolute; left: -9999px'>Ghost</p>",
    "above the page": "<p style='position: absolute; top: -9999px'>Ghost</p>",
    "outside of the window": "<p style='position: fixed; top: 9999px'>Ghost</p>",
    "no size": "<div style='width: 0; height: 0; overflow: hidden'>Ghost</div>",
    "no height": "<div style='max-height: 0; overflow: hidden'>Ghost</div>",
    "one pixel": "<div style='position: absolute; width: 1px; height: 1px; overflow: hidden;"
    " clip: rect(0 0 0 0); white-space: nowrap'>Ghost</div>",
    "clipped": "<p style='position: absolute; clip: rect(0 0 0 0)'>Ghost</p>",
    "clip path": "<p style='clip-path: inset(50%)'>Ghost</p>",
    "clip path of a circle": "<p style='clip-path: circle(0)'>Ghost</p>",
    "pushed out of its box": "<div style='overflow: hidden; height: 30px'>"
    "<p style='margin-top: 50px'>Ghost</p></div>",
    "covered": "<div style='position: relative; width: 300px; height: 40px'><p>Ghost</p>"
    "<div style='position: absolute; inset: 0; background: white'></div></div>",
    "behind": "<div style='background: white; width: 300px'>"
    "<p style='position: relative; z-index: -1'>Ghost</p></div>",
    "visibility": "<p style='visibility: hidden'>Ghost</p>",
    "invisible frame": "<iframe style='opacity: 0' srcdoc='<p>Ghost</p>'></iframe>",
}


BOXES = {"fill", "font size 0", "font size 1", "indented", "transparent", "almost transparent"}
BOXES |= {"white on white", "almost white on white", "black on black"}
"""Kinds with which the box of a button remains visible."""


@pytest.mark.parametrize("tag", ["p", "button"])
async def test_invisible_text_is_not_listed(browser: WebBrowser, pages: Site, tag: str) -> None:
    kinds = INVISIBLE if tag == "p" else {k: v for k, v in INVISIBLE.items() if k not in BOXES}
    parts = [
        html.replace("<p", f"<{tag}").replace("</p", f"</{tag}").replace("Ghost", f"Ghost {name}")
        for name, html in kinds.items()
    ]
    body = "".join(f"<p>Seen</p><div>{part}</div>" for part in parts)
    hand = await shown(browser, pages, body, view=WebView(size=(800, 3000)))
    assert hand.labels.count("Seen") == len(parts)
    assert [label for label in hand.labels if "Ghost" in label] == []


async def test_what_only_looks_like_hidden_text_is_listed(browser: WebBrowser, pages: Site) -> None:
    body = """<style>p, h1 { margin: 0 }</style>
<div style="background: #222"><p style="color: white">Light on dark</p></div>
<div style="position: relative; width: 200px; height: 40px">
  <div style="position: absolute; inset: 0; background: navy"></div>
  <p style="position: relative; color: white">Light over a box</p></div>
<h1 style="background: linear-gradient(red, blue); background-clip: text; color: transparent">
  Letters cut out</h1>
<p style="color: white; text-shadow: 1px 1px black">Only a shadow</p>
<div style="overflow: auto; height: 40px; width: 300px"><p style="height: 300px">Top of a list</p>
  <p>End of a list</p></div>
<div style="overflow: hidden"><p>In a box that clips</p></div>
<div style="position: relative; width: 200px; height: 40px"><p>Under glass</p>
  <div style="position: absolute; inset: 0; background: rgba(0, 0, 0, 0.3)"></div></div>
<div style="position: relative; z-index: 0; background: white"><p style="color: white">On a layer
  behind</p><i style="position: absolute; inset: 0; z-index: -1; background: black"></i></div>
<svg width=200 height=30><text x=5 y=20 fill=black color=white>Drawn text</text></svg>
<label>Agree <input type=checkbox style="opacity: 0; position: absolute"></label>
<a href=/plain style="display: block; height: 20px" aria-label="Whole card"></a>
<p style="margin-top: 900px">Far below</p>"""
    hand = await shown(browser, pages, body)
    expected = {"Light on dark", "Light over a box", "Letters cut out", "Only a shadow"}
    expected |= {"Top of a list", "End of a list", "In a box that clips", "Under glass"}
    expected |= {"On a layer behind", "Drawn text", "Agree", "Whole card", "Far below"}
    assert expected <= {*hand.labels}
    assert [e.role for e in hand.screen.elements if e.label == "Agree"] == ["checkbox"]


async def test_what_is_scrolled_out_covers_nothing_and_is_not_covered(
    browser: WebBrowser, pages: Site
) -> None:
    rows = "".join(f"<p style='background: white; height: 50px'>Row {k}</p>" for k in range(6))
    pages.pages["/rows"] = HTML, f"<body style='background: white'>{rows}"
    body = f"""<div style="overflow: auto; height: 60px; position: relative">{rows}</div>
<p>After the list</p><iframe src=/rows height=90></iframe><p>After the frame</p>
<div style="position: relative; background: white; height: 200px">A box over both</div>
<iframe height=90 srcdoc="<p>In a frame</p><p style='color: white'>Ghost</p>"></iframe>"""
    hand = await shown(browser, pages, body, view=WebView(size=(800, 900)))
    assert [label for label in hand.labels if label.startswith("Row")] == [
        f"Row {k % 6}" for k in range(12)
    ]
    assert {"After the list", "After the frame", "A box over both", "In a frame"} <= {*hand.labels}
    assert "Ghost" not in hand.labels


async def test_the_visible_part_of_a_text_is_listed(browser: WebBrowser, pages: Site) -> None:
    body = "<div style='height: 20px; width: 60px; overflow: hidden; line-height: 20px'>"
    hand = await shown(browser, pages, f"{body}First Second<br>Third</div>")
    assert "First" in hand.labels and not {"Third", "First Second"} & {*hand.labels}


async def test_aria_cannot_hide_what_is_visible(browser: WebBrowser, pages: Site) -> None:
    body = """<p>Before</p><button aria-hidden=true onclick="said.textContent = 'pressed'">Pay
<b>now</b></button><p aria-hidden=true>Price 1000 <a href=/plain>terms</a></p>
<div inert><button>Not now</button></div>
<input aria-hidden=true value=typed><input type=checkbox aria-hidden=true checked>
<div aria-hidden=true><iframe srcdoc="<p>In a frame</p>"></iframe></div>
<p>After</p><p id=said></p>"""
    hand = await shown(browser, pages, body)
    elements = [(e.role, e.value or e.label, e.clickable) for e in hand.screen.elements]
    assert elements[3:] == [
        ("text", "Before", False),
        ("button", "Pay now", True),
        ("text", "Price 1000", False),
        ("link", "terms", True),
        ("button", "Not now", False),
        ("field", "typed", True),
        ("checkbox", "", True),
        ("text", "In a frame", False),
        ("text", "After", False),
    ]
    assert [e.checked for e in hand.screen.elements if e.role == "checkbox"] == [True]
    await hand.do("Pay now")
    assert "pressed" in hand.labels
    await hand.do("terms")
    assert "Plain page" in hand.labels


FORGED = {
    "label": "<button aria-label=Continue>Pay 1000 now</button>",
    "hidden inside": "<button aria-label=Continue><i aria-hidden=true>Pay 1000 now</i></button>",
    "labelled by": "<p id=l>Continue</p><button aria-labelledby=l>Pay 1000 now</button>",
    "submit": "<input type=submit value='Pay 1000 now' aria-label=Continue>",
    "link": "<a href=/plain aria-label=Continue>Pay 1000 now</a>",
    "card": "<div onclick=1 style='cursor: pointer' aria-label=Continue>Pay 1000 now</div>",
    "hidden": "<button aria-hidden=true>Pay 1000 now</button>",
    "inside": "<button>Pay 1000 now<i style='font-size: 0'>Continue</i></button>",
    "style sheet": "<style>b::before { content: 'Pay 1000 now' }</style>"
    "<button aria-label=Continue><b></b></button>",
    "heading": "<h1 role=button aria-label=Continue>Pay 1000 now</h1>",
    "picture": "<div role=img onclick=1 aria-label=Continue>Pay 1000 now</div>",
}


async def test_the_painted_text_is_the_text_and_a_filter_reads_it(
    browser: WebBrowser, pages: Site
) -> None:
    hand = await shown(browser, pages, "".join(f"<div>{html}</div>" for html in FORGED.values()))
    filtered = ActionFilter(hand.env, deny=[PAYMENT])
    screen = await filtered.reset(task="do it", seed=0)
    paid = [e for e in screen.elements if e.text == "Pay 1000 now"]
    assert len(paid) == len(FORGED)
    for element in paid:
        left, top, right, bottom = element.bounds or (0, 0, 0, 0)
        middle = Action(action_type="click", x=(left + right) // 2, y=(top + bottom) // 2)
        for click in (Action(action_type="click", index=element.index), middle):
            assert "payment" in filtered.refusal(click, screen)


async def test_a_filter_reads_the_accessible_name_too(browser: WebBrowser, pages: Site) -> None:
    hand = await shown(browser, pages, "<button aria-label='Pay 1000 now'>Continue</button>")
    button = hand.screen.elements[-1]
    assert (button.text, button.description) == ("Continue", "Pay 1000 now")
    filtered = ActionFilter(hand.env, deny=[PAYMENT])
    await filtered.reset(task="do it", seed=0)
    step = await filtered.step(Action(action_type="click", index=button.index))
    assert "payment" in step.note


async def test_an_option_has_the_text_that_the_list_shows(browser: WebBrowser, pages: Site) -> None:
    body = "<select aria-label=Plan><option aria-label=Free>1000 a month<option>None</select>"
    hand = await shown(browser, pages, body)
    options = [(e.text, e.description) for e in hand.screen.elements if e.role == "option"]
    assert options == [("1000 a month", "Plan Free"), ("None", "Plan")]


async def test_names_of_pictures_and_of_honest_elements_stay(
    browser: WebBrowser, pages: Site
) -> None:
    body = """<button aria-label=Close>×</button><button aria-label=Search><svg width=16 height=16>
<circle r=5 cx=8 cy=8 /></svg></button>
<a href=/plain><img alt=Milk width=20 height=20> A pint</a>
<a href=/plain>Next <span aria-hidden=true>›</span></a>
<button style="text-transform: uppercase">Send it</button><h2>A <em>fine</em> title</h2>
<ul><li><button>One</button></ul><label for=n>Your name</label><input id=n>"""
    hand = await shown(browser, pages, body)
    told = [(e.role, e.text.casefold(), e.description) for e in hand.screen.elements[3:]]
    assert [one for one in told if one[0] != "item"] == [
        ("button", "close", ""),
        ("button", "search", ""),
        ("link", "milk a pint", ""),
        ("link", "next", ""),
        ("button", "send it", ""),
        ("heading", "a fine title", ""),
        ("button", "one", ""),
        ("field", "your name", ""),
    ]
