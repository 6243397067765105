"""The report in a real browser: drawn, clicked, typed at; smuggled markup stays text."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import msgspec
import pytest
from cli_world import LAMP, Shell
from play_page import Tab, opened_report
from report_samples import episode, full_run, png, shuffled, windowed, written
from shared_browser import SharedBrowser

from swarm_ui.report import write_report
from swarm_ui.trace.jsonl import write_jsonl
from swarm_ui.trace.records import Episode

pytestmark = pytest.mark.browser
pytest.importorskip("playwright")

ATTACK = "<img src=x onerror=\"document.title='owned'\"></script><b>"
SELECTED = "document.querySelector('.box.selected').ariaLabel"
COUNT = "document.querySelector('.counts .note').innerText"


def three(text: str = "Ada") -> list[Episode]:
    return [episode(text), episode(text, success=False, picture=png()), episode(text, success=None)]


def tasks() -> dict[str, list[Episode]]:
    """Two sets of 6 and 3 episodes: "add" and "drop" by turns, of which each third is solved."""

    def made(name: str, k: int) -> Episode:
        one = episode(f"{name} {k}", success=k % 3 == 0)
        return msgspec.structs.replace(one, task=("add", "drop")[k % 2])

    return {name: [made(name, k) for k in range(n)] for name, n in (("test", 6), ("train", 3))}


async def look(tab: Tab, which: str) -> str:
    await tab.click(f"[data-look={which}]")
    await tab.until(f"document.querySelector('[data-look={which}]').ariaPressed === 'true'")
    return await tab.words(".seen")


async def test_keys_step_through_and_the_address_follows(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, three())) as tab:
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


async def test_screenshot_outlines_the_chosen_element(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, three()), address="#2/1") as tab:
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
    async with opened_report(chromium, written(tmp_path, three())) as tab:
        await tab.click(".box", "agent_3")
        await tab.until("document.querySelector('.box.selected').ariaLabel.includes('agent_3')")
        assert "round 1" in await tab.js(SELECTED)
        card = await tab.words(".message.selected")
        assert "agent_3" in card
        assert "credit" in card
        assert await tab.js("document.querySelectorAll('.talk .strong').length") > 0
        assert "click “Ada” [1]" in await tab.words(".scene .ballot")


async def test_the_critics_words_stand_beside_the_credit_of_their_round(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, three())) as tab:
        assert await tab.words(".why") == "Credit by LLM critic (Ada): In round 2 Ada was said."
        await tab.js("document.querySelector('.box[aria-label*=\"round 2\"]').click()")
        await tab.until("document.querySelector('.why').innerText.includes('In round 1 Ada')")
        assert "credit 0." in await tab.words(".said")


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


async def test_policy_stops_any_other_script(chromium: SharedBrowser, tmp_path: Path) -> None:
    path = written(tmp_path, three())
    html = path.read_text(encoding="utf-8")
    more = "<script>document.title='owned'</script></body>"
    path.write_text(html.replace("</body>", more), encoding="utf-8")
    async with opened_report(chromium, path, alone=False) as tab:
        assert await tab.js("document.readyState") == "complete"
        assert await tab.js("document.title") != "owned"
        assert any("Content Security Policy" in line for line in tab.log)


async def test_each_call_shows_its_prompt_and_the_screen_as_that_agent_saw_it(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, [shuffled()])) as tab:
        assert "Prompt of bob in step 0: x" in await tab.words(".call")
        view = await look(tab, "view")
        assert "bob saw the elements in an order of its own" in view
        rows = "[...document.querySelectorAll('.own li:not(.columns)')].map((r) => r.innerText)"
        words = [" ".join(str(row).split()) for row in await tab.js(rows)]
        assert words == ["0 Save button [2]", "1 Page 0 x button [0]", "2 Name“x 0” field [1]"]
        assert "Save" in await tab.words(".own .chosen")
        assert "its 0 is [2] here" in await tab.words(".message.selected"), "its reply says 0"
        await tab.click(".box", "ada")
        await tab.until("document.querySelector('.call').innerText.includes('Prompt of ada')")
        assert "in the order of the screen" in await tab.words(".seen")
        assert "here" not in await tab.words(".message.selected")


async def test_a_window_tells_what_the_agent_did_not_see(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, [windowed()])) as tab:
        view = await look(tab, "view")
        assert "bob saw 2 of 3 elements" in view
        assert "1 elements were hidden from it" in view
        assert "Name" in await tab.words(".own .cut")
        assert "not in its prompt" in await tab.words(".own .cut")
        assert "its 2 is [2]" not in view
        await tab.press("v")
        assert "bob saw" not in await tab.words(".seen"), "the screen again"


async def test_the_strip_shows_every_step_and_where_credit_falls(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, [shuffled(pictures=True)])) as tab:
        frames = "[...document.querySelectorAll('.film button')]"
        assert await tab.js(f"{frames}.map((f) => f.querySelectorAll('img').length)") == [1, 1, 1]
        fell = await tab.js(f"{frames}.map((f) => f.classList.contains('fell'))")
        assert fell == [False, True, False], "0.75, then 0.13, then 0.25"
        assert "fell from 0.75" in await tab.js(f"{frames}[1].ariaLabel")
        shares = "[...c.children].map((r) => r.style.getPropertyValue('--share'))"
        cells = await tab.js(f"(c => {shares})({frames}[0].querySelector('.credit-cells'))")
        assert cells == ["100%", "50%"], "a column for each agent"
        await tab.click(".film button", "▾")
        assert await tab.js("location.hash") == "#1/2"


async def test_filters_are_in_the_address_and_counts_follow(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, tasks())) as tab:
        assert await tab.js(COUNT) == "9 of 9 episodes: 3 solved, 6 failed"
        await tab.js(
            "(s => { s.value = 'drop'; s.dispatchEvent(new Event('change')); })"
            "(document.querySelector('select[aria-label=Task]'))"
        )
        assert await tab.js("location.hash") == "#1/1?task=drop"
        assert await tab.js(COUNT) == "4 of 9 episodes: 1 solved, 3 failed"
        menu = "[...document.querySelectorAll('select[aria-label={}] option')].map((o) => o.text)"
        assert await tab.js(menu.format("Set")) == ["All sets (4)", "test (3)", "train (1)"]
        assert await tab.js(menu.format("Task")) == ["All tasks (9)", "add (5)", "drop (4)"]
        await tab.press("f")
        assert await tab.js("location.hash") == "#1/1?outcome=failed&task=drop"
        await tab.press("j")
        await tab.until("location.hash === '#2/1?outcome=failed&task=drop'")
        await tab.press("ArrowRight")
        for back in ("#1/1?outcome=failed&task=drop", "#1/1?task=drop", "#1/1"):
            await tab.js("history.back()")
            await tab.until(f"location.hash === '{back}'")
        await tab.until(f"{COUNT}.startsWith('9 of 9')")
        assert await tab.js("document.querySelector('select[aria-label=Task]').value") == ""
        await tab.js("history.forward()")
        await tab.until(f"{COUNT}.startsWith('4 of 9')")


@pytest.mark.parametrize(
    ("address", "said", "way_out"),
    [
        ("#?task=gone", "No episode has task “gone”.", ".counts button"),
        ("#99/1", "There is no episode 99", ".entries button"),
    ],
)
async def test_an_address_of_nothing_says_so(
    chromium: SharedBrowser, tmp_path: Path, address: str, said: str, way_out: str
) -> None:
    path = written(tmp_path, tasks())
    ready = "!!document.querySelector('article .empty')"
    async with opened_report(chromium, path, address=address, ready=ready) as tab:
        assert said in await tab.words("article .empty")
        assert not await tab.js("document.querySelector('article .bar').checkVisibility()")
        await tab.click(way_out)
        await tab.until("!!document.querySelector('.scene')")
        assert await tab.js("document.querySelector('article .bar').checkVisibility()")


def test_the_copied_command_replays_the_step(shell: Shell, chromium: SharedBrowser) -> None:
    run = "it's a run"
    done = shell(f"eval {LAMP} light --model script:right.txt -n 2 --out", run)
    assert done.code == 0, done.err
    report = shell.folder / run / "report.html"

    async def copied() -> str:
        async with opened_report(chromium, report, address="#2/1") as tab:
            names = ["clipboardReadWrite", "clipboardSanitizedWrite"]
            await chromium.call(
                "Browser.grantPermissions", permissions=names, browserContextId=tab.profile
            )
            await tab.click(".bar button", "Copy the replay command")
            await tab.until("document.querySelector('.copied').innerText.startsWith('Copied')")
            shown = await tab.words(".copied code")
            reply = await tab.call("Runtime.evaluate", expression="navigator.clipboard.readText()",
                                   awaitPromise=True, returnByValue=True)  # fmt: skip
            assert reply["result"]["value"] == shown
            return shown

    words = shlex.split(asyncio.run(copied()))
    assert words[:2] == ["swarm-ui", "replay"]
    assert words[2] == str(shell.folder / run / "traces" / "episodes.jsonl")
    assert words[3:] == ["--episode", "2", "--step", "1"]
    again = shell("", *words[1:], "--json")
    assert again.code == 0 and again.json["same"] is True


async def test_hostile_names_of_files_stay_one_word_of_the_command(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    name, odd = "$(touch owned) `x` ';rm -r '", "a\nrm b"
    async with opened_report(
        chromium, written(tmp_path, {name: [shuffled()], odd: three()})
    ) as tab:
        title = "document.querySelector('.bar button:last-child').title"
        words = shlex.split(await tab.js(title))
        file = str(tmp_path / "run" / "traces" / f"{name}.jsonl")
        assert words == ["swarm-ui", "replay", file, "--episode", "1", "--step", "1"]
        await tab.press("j")
        await tab.until(f"{title}.includes('not in a trace file')")
        assert await tab.js("document.querySelector('.bar button:last-child').disabled")


async def test_attack_stays_text_in_views_and_prompts(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    path = written(tmp_path, [shuffled(ATTACK)])
    address = "#?q=" + "%3Cimg%20src=x%20onerror=%22document.title='owned'%22%3E"
    async with opened_report(chromium, path, address=address) as tab:
        assert ATTACK in await tab.words(".call .prompt")
        for which in ("view", "screen"):
            assert ATTACK in await look(tab, which)
        await tab.press("/")
        await tab.type(ATTACK * 2)
        await tab.until(f"{COUNT}.startsWith('0 of 1')")
        assert ATTACK in await tab.words(".entries .empty")
        assert await tab.js("document.title") == "run"
        assert await tab.js("document.querySelectorAll('main img, main article b b').length") == 0


async def test_a_slider_moves_through_the_edges_of_iterations(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    path = write_report(full_run(tmp_path / "run"))
    seen = "document.querySelector('.history .frame:not([hidden])').innerText"
    async with opened_report(chromium, path) as tab:
        assert "iteration 3 of 3" in await tab.words(".history output")
        assert "0.75" in await tab.js(seen)
        await tab.js("document.querySelector('.history input').focus()")
        await tab.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft",
                       code="ArrowLeft", windowsVirtualKeyCode=37)  # fmt: skip
        await tab.until("document.querySelector('.history output').value.startsWith('iteration 2')")
        assert "0.50" in await tab.js(seen)
        assert await tab.js("location.hash") == "#1/1", "the viewer leaves the slider's keys alone"


@pytest.mark.parametrize(("width", "dark"), [(420, True), (420, False), (1440, False)])
async def test_the_first_screen_and_sections_fit_the_window(
    chromium: SharedBrowser, tmp_path: Path, width: int, dark: bool
) -> None:
    path = write_report(full_run(tmp_path / "run"))
    async with opened_report(chromium, path, width=width, dark=dark) as tab:
        assert await tab.js("document.documentElement.scrollWidth") == width
        ground = await tab.js("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") is not dark
        bottom = "document.querySelector('.headline').getBoundingClientRect().bottom"
        assert await tab.js(bottom) < 900, "the figure is on the first screen"
        await tab.click("nav a", "Credit")
        await tab.until("Math.abs(document.getElementById('credit').getBoundingClientRect().top"
                        " - 56) < 3")  # fmt: skip
        await tab.js("document.querySelector('#overview a').click()")
        await tab.until("document.getElementById('episodes').getBoundingClientRect().top < 90")
