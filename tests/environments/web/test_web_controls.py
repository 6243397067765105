"""Controls of web pages: what is listed, where it is, and what an action on it does."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image
from web_hand import begin
from web_site import Site

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.web import WebBrowser, WebView, find_browser
from swarm_ui.observation import render

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed"),
    pytest.mark.asyncio(loop_scope="module"),
]

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


async def test_an_editor_without_a_role_can_be_typed_into(shop: Site, browser: WebBrowser) -> None:
    shop.pages["/editor"] = (
        "text/html",
        """<div contenteditable aria-label=Letter>Dear <b>Ada</b></div>
<div contenteditable aria-label=Page>Some <a href=/terms>terms</a> apply</div>""",
    )
    hand = await begin(browser, f"{shop.url}/editor")
    letter = hand.screen.elements[hand.labels.index("Letter")]
    assert (letter.role, letter.value, letter.editable) == ("area", "Dear Ada", True)
    assert {"Page", "terms"} <= {*hand.labels} and "Ada" not in hand.labels
    await hand.do("Letter", "input_text", "Hello\nBob")
    assert (hand.value("Letter") or "").split() == ["Hello", "Bob"]


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
    hand = await begin(browser, f"{shop.url}/long", budget=50)
    seen = set(hand.labels)
    assert hand.screen.more is not None and hand.screen.more[1] > 150
    assert "more elements follow: scroll down" in render(hand.screen)
    for _ in range(40):
        step = await hand.act(Action(action_type="scroll", direction="down"))
        if step.note or step.ended:
            break
        seen |= set(hand.labels)
    assert step.note == "nothing to scroll that way"
    assert {f"Line {k}" for k in range(200)} | {"End"} <= seen


async def test_pictures_and_bounds_on_request(shop: Site, browser: WebBrowser) -> None:
    view = WebView(size=(800, 600), screenshots=True, geometry="box")
    hand = await begin(browser, f"{shop.url}/shop", view=view)
    assert hand.screen.png is not None
    with Image.open(io.BytesIO(hand.screen.png)) as picture:
        assert picture.size == (800, 600)
    card = next(e.bounds for e in hand.screen.elements if e.label == "Blue card")
    assert card is not None and f"at {','.join(map(str, card))}" in render(hand.screen)
    middle = Action(action_type="click", x=card[0] + 20, y=(card[1] + card[3]) // 2)
    await hand.act(middle)
    assert "Blue card clicked" in hand.labels
    assert "outside of the window" in (await hand.act(replace(middle, x=10**9))).note


UPLOAD = """<label>Photo <input type=file onchange="said.textContent = this.files[0].name"></label>
<p id=said></p>"""


async def test_files_of_the_allowed_folder_can_be_uploaded_and_no_others(
    shop: Site, browser: WebBrowser, tmp_path: Path
) -> None:
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "cat.txt").write_text("meow")
    (tmp_path / "secret.txt").write_text("swordfish")
    (tmp_path / "allowed" / "link.txt").symlink_to(tmp_path / "secret.txt")
    shop.pages["/upload"] = "text/html", UPLOAD
    hand = await begin(browser, f"{shop.url}/upload", uploads=tmp_path / "allowed")
    others = ("../secret.txt", str(tmp_path / "secret.txt"), "link.txt", "dog.txt", "", "\0", ".")
    for name in others:
        step = await hand.do("Photo", "input_text", name)
        assert "may be uploaded; there are cat.txt" in step.note and not step.ended
    assert (await hand.do("Photo", "input_text", "cat.txt")).note == ""
    assert "cat.txt" in [e.text for e in hand.screen.elements] and hand.value("Photo") == "cat.txt"
    hand = await begin(browser, f"{shop.url}/upload")
    assert "no file may be uploaded" in (await hand.do("Photo", "input_text", "cat.txt")).note
