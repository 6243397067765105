"""The report in a real browser: drawn, clicked, typed at; smuggled markup stays text."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from report_samples import episode, png, report
from report_tab import opened_report
from shared_browser import SharedBrowser

from swarm_ui.model import Dropped, Generation
from swarm_ui.report import EpisodeSet, ReportData, page, write_report
from swarm_ui.trace.jsonl import write_jsonl

pytestmark = pytest.mark.browser
pytest.importorskip("playwright")

ATTACK = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
SELECTED = "document.querySelector('.box.selected').ariaLabel"


def written(folder: Path, data: ReportData) -> Path:
    path = folder / "report.html"
    path.write_text(page(data), encoding="utf-8")
    return path


async def test_keys_step_through_and_the_address_follows(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, report())) as tab:
        assert "step 1 of 3" in await tab.words("article .bar")
        await tab.press("ArrowRight")
        assert "step 2 of 3" in await tab.words("article .bar")
        assert await tab.js("location.hash") == "#1/2"
        await tab.press("End")
        await tab.press("ArrowRight")
        assert await tab.js("location.hash") == "#1/3", "there is no step after the last"
        await tab.press("Home")
        assert await tab.js("location.hash") == "#1/1"
        await tab.press("j")
        await tab.until("location.hash === '#2/1'")
        assert "failed" in await tab.words("article h3")
        await tab.press("k")
        await tab.until("location.hash === '#1/1'")
        await tab.press("[")
        assert "round 2" in await tab.js(SELECTED)
        await tab.press("]")
        assert "round 3" in await tab.js(SELECTED)


async def test_deep_link_opens_its_step_and_follows_a_new_one(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, report()), address="#2/3") as tab:
        assert "step 3 of 3" in await tab.words("article .bar")
        assert "episode 2 " in await tab.words("article .note")
        assert await tab.js("document.getElementById('episodes').getBoundingClientRect().top < 90")
        await tab.js("location.hash = '#3/2'")
        await tab.until("document.querySelector('article .note').innerText.includes('episode 3 ')")
        assert "step 2 of 3" in await tab.words("article .bar")
        assert await tab.js("document.querySelectorAll('.entries [aria-current=true]').length") == 1


async def test_screenshot_outlines_the_chosen_element(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, report()), address="#2/1") as tab:
        await tab.until("!!document.querySelector('.phone .mark')")
        # The element spans (30, 90) to (240, 150) of a picture of 270 by 480.
        share = await tab.js(
            "(() => { const m = document.querySelector('.mark').getBoundingClientRect();"
            " const i = document.querySelector('.phone img').getBoundingClientRect();"
            " return [(m.left - i.left) / i.width, (m.top - i.top) / i.height,"
            " m.width / i.width, m.height / i.height]; })()"
        )
        assert share == pytest.approx([30 / 270, 90 / 480, 210 / 270, 60 / 480], abs=0.02)


async def test_click_on_a_message_shows_it_and_whom_it_heard(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, report())) as tab:
        await tab.click(".box", "agent_3")
        await tab.until("document.querySelector('.box.selected').ariaLabel.includes('agent_3')")
        assert "round 1" in await tab.js(SELECTED)
        card = await tab.words(".message.selected")
        assert "agent_3" in card
        assert "credit" in card
        assert await tab.js("document.querySelectorAll('.talk.strong').length") > 0
        assert "click “Ada” [1]" in await tab.words(".scene .ballot")


async def test_what_a_prompt_left_out_stands_on_its_card(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    whole = episode("Ada")
    step = whole.steps[0]
    made = Generation(prompt="p", dropped=Dropped(history=2))
    calls = tuple(msgspec.structs.replace(call, completion=made) for call in step.trace.calls)
    cut = msgspec.structs.replace(step, trace=msgspec.structs.replace(step.trace, calls=calls))
    data = ReportData(
        title="t", summary="s", episodes=(msgspec.structs.replace(whole, steps=(cut,)),)
    )
    async with opened_report(chromium, written(tmp_path, data)) as tab:
        words = await tab.words(".message.selected")
        assert "its prompt leaves out 2 oldest past actions" in words


async def test_the_critics_words_stand_beside_the_credit_of_their_round(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, report())) as tab:
        assert await tab.words(".why") == "Credit by LLM critic (Ada): In round 2 Ada was said."
        await tab.press("[")
        await tab.until("document.querySelector('.why').innerText.includes('In round 1 Ada')")
        assert "credit 0." in await tab.words(".said")


async def test_an_episode_without_a_critic_has_no_words_of_one(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    whole = episode("Ada")
    steps = tuple(
        msgspec.structs.replace(step, credit=None, credit_source="", rationale=())
        for step in whole.steps
    )
    data = ReportData(
        title="t", summary="s", episodes=(msgspec.structs.replace(whole, steps=steps),)
    )
    async with opened_report(chromium, written(tmp_path, data)) as tab:
        assert "no credit" in await tab.words(".said")
        assert await tab.js("document.querySelector('.why')") is None


async def test_slider_moves_through_the_edge_probabilities(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, report())) as tab:
        assert "iteration 3 of 3" in await tab.words("#edges output")
        assert "0.75" in await tab.words("#edges .ballot")
        await tab.js("document.querySelector('#edges input').focus()")
        await tab.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft",
                       code="ArrowLeft", windowsVirtualKeyCode=37)  # fmt: skip
        await tab.until("document.querySelector('#edges output').value.startsWith('iteration 2')")
        assert "0.50" in await tab.words("#edges .ballot")
        assert await tab.js("document.querySelectorAll('#edges .edge').length") == 2
        assert await tab.js("location.hash") == "#1/1", "the viewer leaves the slider's keys alone"


async def test_filters_find_by_outcome_set_and_text(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    sets = tuple(
        EpisodeSet(name=name, episodes=tuple(episode(f"{name} {k}", success=k % 3 != 0)
                                             for k in range(150)))
        for name in ("test", "train")
    )  # fmt: skip
    path = written(tmp_path, ReportData(title="t", summary="s", sets=sets))
    async with opened_report(chromium, path) as tab:
        assert "300 of 300" in await tab.words(".list .note")
        shown = "document.querySelectorAll('.entries [data-episode]').length"
        assert await tab.js(shown) == 100, "the rest is not in the document"
        await tab.click(".more button")
        await tab.until(f"{shown} === 200")
        await tab.press("f")
        await tab.until("document.querySelector('.list .note').innerText.startsWith('100 of')")
        await tab.press("/")
        await tab.type("train 14")
        await tab.until("document.querySelector('.list .note').innerText.startsWith('3 of')")
        filters = "?outcome=failed&q=train+14"
        assert await tab.js("location.hash") == f"#1/1{filters}", "what is typed is no command"
        await tab.press("Escape")
        await tab.click(".entries button", "train 147")
        await tab.until(f"location.hash === '#298/1{filters}'")
        assert "train 147" in await tab.words("article h3")


async def test_attack_stays_text(chromium: SharedBrowser, tmp_path: Path) -> None:
    data = report(ATTACK)
    hostile = EpisodeSet(name=ATTACK, episodes=(episode(ATTACK, success=False, picture=png()),))
    path = written(tmp_path, msgspec.structs.replace(data, title=ATTACK, sets=(hostile,)))
    async with opened_report(chromium, path) as tab:
        assert await tab.js("document.title") == ATTACK
        for number in range(await tab.js("document.querySelectorAll('[data-episode]').length")):
            await tab.js(f"location.hash = '#{number + 1}/2'")
            await tab.until(f"document.querySelector('article .note')?.innerText"
                            f".startsWith('episode {number + 1} ')")  # fmt: skip
            assert ATTACK in await tab.words("article h3"), "the goal"
            assert ATTACK in await tab.words(".said"), "a message, with its reasons"
            assert ATTACK in await tab.words(".scene > div:last-child"), "the vote and the note"
            told = await tab.words(".why")
            assert f"Credit by LLM critic ({ATTACK}): " in told, "the critic's name"
            assert f"In round 2 {ATTACK} was said." in told, "the critic's rationale"
        assert ATTACK in await tab.words(".list"), "the name of a set"
        assert await tab.js("document.title") == ATTACK
        assert await tab.js("document.querySelectorAll('img[src=x]').length") == 0
        assert await tab.js("document.querySelectorAll('main script:not([type])').length") == 0


async def test_name_of_a_run_and_of_a_file_stays_text(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    (folder / "traces").mkdir(parents=True)
    write_jsonl(folder / "traces" / "<b onclick=alert(1)>.jsonl", [episode("Ada")])
    async with opened_report(chromium, write_report(folder)) as tab:
        assert await tab.words("h1") == folder.name
        assert "<b onclick=alert(1)>" in await tab.words("article .note")
        assert await tab.js("document.querySelectorAll('main img, main b[onclick]').length") == 0


@pytest.mark.parametrize(("width", "whole"), [(1280, True), (390, False)])
async def test_the_graph_of_messages_shows_the_chosen_one(
    chromium: SharedBrowser, tmp_path: Path, width: int, whole: bool
) -> None:
    async with opened_report(chromium, written(tmp_path, report()), width=width) as tab:
        await tab.click(".box", "agent_4")
        await tab.until("document.querySelector('.box.selected').ariaLabel.includes('agent_4')")
        sides = await tab.js(
            "(() => { const box = document.querySelector('.box.selected');"
            " const wide = box.closest('.wide'); const b = box.getBoundingClientRect();"
            " const w = wide.getBoundingClientRect();"
            " return [b.left - w.left, w.right - b.right, wide.scrollWidth - w.width]; })()"
        )
        assert sides[0] >= 0 and sides[1] >= -1, "in sight"
        assert (sides[2] <= 1) is whole, "on a small screen the rest is a swipe away"
        names = "[...document.querySelectorAll('.box .who')].map((t) => t.textContent)"
        assert set(await tab.js(names)) == {"agent_1", "agent_2", "agent_3", "agent_4"}


@pytest.mark.parametrize("dark", [False, True])
async def test_narrow_screens_do_not_scroll_sideways(
    chromium: SharedBrowser, tmp_path: Path, dark: bool
) -> None:
    path = written(tmp_path, report())
    async with opened_report(chromium, path, width=390, dark=dark) as tab:
        assert await tab.js("document.documentElement.scrollWidth") == 390
        ground = await tab.js("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") is not dark


async def test_policy_stops_any_other_script(chromium: SharedBrowser, tmp_path: Path) -> None:
    html = page(report()).replace("</body>", "<script>document.title='owned'</script></body>")
    path = tmp_path / "report.html"
    path.write_text(html, encoding="utf-8")
    async with opened_report(chromium, path, alone=False) as tab:
        assert await tab.js("document.readyState") == "complete"
        assert await tab.js("document.title") != "owned"
        assert any("Content Security Policy" in line for line in tab.log)
