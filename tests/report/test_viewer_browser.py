"""The viewer in a real browser: views and prompts of agents, the strip of steps, differences of
screens, the replay command, and filters in the address."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import msgspec
import pytest
from cli_world import LAMP, Shell, shell  # noqa: F401
from report_samples import episode
from report_tab import ReportTab, opened_report
from shared_browser import SharedBrowser
from viewer_samples import SIZE, shuffled, windowed

from swarm_ui.report import EpisodeSet, ReportData, page
from swarm_ui.trace.records import Episode

pytestmark = pytest.mark.browser
pytest.importorskip("playwright")

ATTACK = "<img src=x onerror=\"document.title='owned'\"></script><b>"
COUNT = "document.querySelector('.counts .note').innerText"


def written(folder: Path, *sets: EpisodeSet) -> Path:
    path = folder / "report.html"
    path.write_text(page(ReportData(title="t", summary="s", sets=sets)), encoding="utf-8")
    return path


def alone(folder: Path, one: Episode) -> Path:
    return written(folder, EpisodeSet(name="test", episodes=(one,), file="traces/test.jsonl"))


def tasks() -> tuple[EpisodeSet, EpisodeSet]:
    """Two sets of 6 and 3 episodes: "add" and "drop" by turns, of which each third is solved."""

    def made(name: str, k: int) -> Episode:
        one = episode(f"{name} {k}", success=k % 3 == 0)
        return msgspec.structs.replace(one, task=("add", "drop")[k % 2])

    return (
        EpisodeSet(name="test", episodes=tuple(made("test", k) for k in range(6))),
        EpisodeSet(name="train", episodes=tuple(made("train", k) for k in range(3))),
    )


async def look(tab: ReportTab, which: str) -> str:
    await tab.click(f"[data-look={which}]")
    await tab.until(f"document.querySelector('[data-look={which}]').ariaPressed === 'true'")
    return await tab.words(".seen")


async def test_each_call_shows_its_prompt_and_the_screen_as_that_agent_saw_it(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, alone(tmp_path, shuffled())) as tab:
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
    async with opened_report(chromium, alone(tmp_path, windowed())) as tab:
        view = await look(tab, "view")
        assert "bob saw 2 of 3 elements" in view
        assert "1 elements were hidden from it" in view
        assert "Name" in await tab.words(".own .cut")
        assert "not in its prompt" in await tab.words(".own .cut")
        assert "its 2 is [2]" not in view
        await tab.press("v")
        assert "not recorded" in await tab.words(".seen"), "there is one step"


async def test_numbers_of_an_agent_stand_on_the_screenshot(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, alone(tmp_path, shuffled(pictures=True))) as tab:
        await look(tab, "view")
        await tab.until("document.querySelectorAll('.numbered').length === 3")
        numbers = "[...document.querySelectorAll('.numbered b')].map((b) => b.innerText)"
        assert await tab.js(numbers) == ["1", "2", "0"], "in the order of the screen"
        acted = await tab.js("document.querySelector('.numbered.acted').style.top")
        assert acted == f"{100 * 180 / SIZE[1]:g}%"


async def test_what_an_action_changed_is_listed_and_outlined(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, alone(tmp_path, shuffled(pictures=True))) as tab:
        said = await look(tab, "change")
        assert "2 changed, 0 gone, 0 new" in said
        altered = await tab.words(".changes")
        assert "“x 0” → “x 1”" in altered and "was “Page 0 x”" in altered
        await tab.until("document.querySelectorAll('.area').length === 2")
        place = "(a => [a.style.left, a.style.top])(document.querySelectorAll('.area')[0])"
        # The square leaves (20, 40): cells of 8 pixels begin at 16 and 40.
        assert await tab.js(place) == ["16%", "20%"]
        shown = "[...document.querySelectorAll('.seen .phone img')].map((i) => !i.hidden)"
        assert await tab.js(shown) == [False, True]
        await tab.click(".looks button", "Before")
        assert await tab.js(shown) == [True, False]
        await tab.press("End")
        assert "The screen after the last step is not recorded" in await tab.words(".seen")


async def test_elements_that_come_and_go_between_screens(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    one = shuffled()
    bare = [
        msgspec.structs.replace(
            step.trace.observation,
            elements=tuple(
                msgspec.structs.replace(e, bounds=None) for e in step.trace.observation.elements
            ),
        )
        for step in one.steps
    ]
    seen = (bare[0], bare[1], bare[1])
    steps = tuple(
        msgspec.structs.replace(step, trace=msgspec.structs.replace(step.trace, observation=screen))
        for step, screen in zip(one.steps, seen, strict=True)
    )
    path = alone(tmp_path, msgspec.structs.replace(one, steps=steps))
    async with opened_report(chromium, path) as tab:
        assert "1 changed, 1 gone, 1 new" in await look(tab, "change")
        assert "Page 0 x" in await tab.words(".changes .gone")
        assert "Page 1 x" in await tab.words(".changes .come")
        await tab.press("ArrowRight")
        assert "The elements are the same as before the action" in await tab.words(".seen")


async def test_the_strip_shows_every_step_and_where_credit_falls(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, alone(tmp_path, shuffled(pictures=True))) as tab:
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
        places = await tab.js(
            f"{frames}.map((f) => (r => [r.x + r.width / 2, r.y + 30])(f.getBoundingClientRect()))"
        )
        for kind, (x, y), held in (
            ("mouseMoved", places[0], 0), ("mousePressed", places[0], 1),
            ("mouseMoved", places[1], 1), ("mouseMoved", places[2], 1),
            ("mouseReleased", places[2], 0),
        ):  # fmt: skip
            await tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, buttons=held,
                           button="left", clickCount=1)  # fmt: skip
        await tab.until("location.hash === '#1/3'")


async def test_steps_without_screenshots_are_sketched(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, alone(tmp_path, shuffled())) as tab:
        assert await tab.js("document.querySelectorAll('.film .sketch').length") == 3
        assert await tab.js("document.querySelectorAll('.film .sketch')[0].children.length") == 3
        assert await tab.js("document.querySelectorAll('.film .taken').length") == 3


async def test_filters_are_in_the_address_and_counts_follow(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, *tasks())) as tab:
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


async def test_a_link_with_filters_shows_them_and_an_empty_list_says_why(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    path = written(tmp_path, *tasks())
    async with opened_report(chromium, path, address="#?set=train&outcome=failed") as tab:
        assert "2 of 9" in await tab.js(COUNT)
        await tab.until("document.querySelector('article .note').innerText.includes('episode 8 ')")
        assert await tab.js("location.hash") == "#?set=train&outcome=failed"
        await tab.press("/")
        await tab.type("no such & words")
        await tab.until(f"{COUNT}.startsWith('0 of 9')")
        assert "set “train” and text “no such & words”" in await tab.words(".entries .empty")
        assert await tab.js("location.hash.includes('q=no+such+%26+words')")
        await tab.click(".counts button", "Clear filters")
        await tab.until(f"{COUNT}.startsWith('9 of 9')")
        assert await tab.js("location.hash") == "#8/1"
        assert await tab.js("document.querySelector('.counts button').hidden")
        await tab.js("history.back()")
        await tab.until(f"{COUNT}.startsWith('0 of 9')")
        assert await tab.js("document.querySelector('.filters input').value") == "no such & words"


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
    path = written(tmp_path, *tasks())
    ready = "!!document.querySelector('article .empty')"
    async with opened_report(chromium, path, address=address, ready=ready) as tab:
        assert said in await tab.words("article .empty")
        assert not await tab.js("document.querySelector('article .bar').checkVisibility()")
        await tab.click(way_out)
        await tab.until("!!document.querySelector('.scene')")
        assert await tab.js("document.querySelector('article .bar').checkVisibility()")


async def test_a_link_from_elsewhere_on_the_page_leads_to_the_viewer(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened_report(chromium, written(tmp_path, *tasks())) as tab:
        await tab.js("document.body.style.padding = '3000px 0'")
        await tab.js("scrollTo(0, 0)")
        await tab.js("location.hash = '#learning'")
        await tab.js("location.hash = '#3/2?outcome=failed'")
        place = "document.getElementById('episodes').getBoundingClientRect().top"
        await tab.until(f"{place} < 90")
        await tab.js("scrollBy(0, 200)")
        await tab.js("location.hash = '#2/2'")
        await tab.until("document.querySelector('article .note').innerText.includes('episode 2 ')")
        assert await tab.js(place) < -100, "what is in sight stays where it is"
        await tab.js("location.hash = '#learning'")
        assert "episode 2 " in await tab.words("article .note"), "no address of the viewer"


async def test_an_episode_without_steps_says_so(chromium: SharedBrowser, tmp_path: Path) -> None:
    path = alone(tmp_path, msgspec.structs.replace(shuffled(), steps=()))
    ready = "!!document.querySelector('article .empty')"
    async with opened_report(chromium, path, ready=ready) as tab:
        assert "before its first decision" in await tab.words("article .empty")
        last = "document.querySelector('.bar button:last-child')"
        assert await tab.js(f"{last}.disabled"), "there is nothing to replay"
        assert "no decision" in await tab.js(f"{last}.title")


def test_the_copied_command_replays_the_step(shell: Shell, chromium: SharedBrowser) -> None:  # noqa: F811
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


@pytest.mark.parametrize("source", ["a run", "a run/traces/episodes.jsonl"])
def test_the_command_of_a_page_elsewhere_replays_the_step(
    shell: Shell,  # noqa: F811
    chromium: SharedBrowser,
    source: str,
) -> None:
    shell(f"eval {LAMP} light --model script:right.txt -n 2 --out", "a run")
    done = shell("view --no-open --out pages/page.html", source)
    assert done.code == 0, done.err

    async def told() -> str:
        page = shell.folder / "pages/page.html"
        async with opened_report(chromium, page, address="#2/1") as tab:
            return str(await tab.js("document.querySelector('.bar button:last-child').title"))

    words = shlex.split(asyncio.run(told()))
    place = shell.folder / "a run/traces/episodes.jsonl"
    assert Path(words[2]).resolve() == place
    again = shell("", *words[1:], "--json")
    assert again.code == 0 and again.json["same"] is True


async def test_long_texts_and_turned_ones_leave_room_for_the_rest(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    path = alone(tmp_path, shuffled("\u202eturned " + "word " * 900 + "W" * 3000))
    async with opened_report(chromium, path) as tab:
        for name, most in ((".goal", 260), (".decision", 260), (".entries button", 200)):
            tall = await tab.js(f"document.querySelector('{name}').getBoundingClientRect().height")
            assert 0 < tall < most, name
        outcome = "document.querySelector('.goal .outcome')"
        assert await tab.js(f"{outcome}.getBoundingClientRect().bottom <= "
                            f"{outcome}.parentNode.getBoundingClientRect().bottom")  # fmt: skip
        isolated = "getComputedStyle(document.querySelector('.goal > span')).unicodeBidi"
        assert await tab.js(isolated) == "isolate", "else the outcome is written from right to left"


async def test_a_key_before_an_episode_is_open_does_nothing(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    ready = "!!document.querySelector('article .empty')"
    path = written(tmp_path, *tasks())
    async with opened_report(chromium, path, address="#99/1", ready=ready) as tab:
        for key in ("v", "[", "]", "ArrowRight", "End"):
            await tab.press(key)
        assert "There is no episode 99" in await tab.words("article .empty")
        await tab.press("j")
        await tab.until("!!document.querySelector('#viewer .scene')")


async def test_hostile_names_of_files_stay_one_word_of_the_command(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    name = "traces/$(touch owned) `x` ';rm -r '.jsonl"
    odd = "traces/a\nrm b.jsonl"
    sets = [EpisodeSet(name=str(k), episodes=(shuffled(),), file=file)
            for k, file in enumerate((name, odd, ""))]  # fmt: skip
    async with opened_report(chromium, written(tmp_path, *sets)) as tab:
        title = "document.querySelector('.bar button:last-child').title"
        words = shlex.split(await tab.js(title))
        assert words == ["swarm-ui", "replay", str(tmp_path / name), "--episode", "1",
                         "--step", "1"]  # fmt: skip
        for _ in range(2):
            await tab.press("j")
            await tab.until(f"{title}.includes('not in a trace file')")
            assert await tab.js("document.querySelector('.bar button:last-child').disabled")


async def test_attack_stays_text_in_views_prompts_and_differences(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    path = alone(tmp_path, shuffled(ATTACK))
    address = "#?q=" + "%3Cimg%20src=x%20onerror=%22document.title='owned'%22%3E"
    async with opened_report(chromium, path, address=address) as tab:
        assert ATTACK in await tab.words(".call .prompt")
        for which in ("view", "change", "screen"):
            assert ATTACK in await look(tab, which)
        await tab.press("/")
        await tab.type(ATTACK * 2)
        await tab.until(f"{COUNT}.startsWith('0 of 1')")
        assert ATTACK in await tab.words(".entries .empty")
        assert await tab.js("document.title") == "t"
        assert await tab.js("document.querySelectorAll('main img, main article b b').length") == 0


@pytest.mark.parametrize("width", [420, 1440])
async def test_no_view_is_wider_than_the_screen(
    chromium: SharedBrowser, tmp_path: Path, width: int
) -> None:
    path = alone(tmp_path, shuffled("word" * 30, pictures=True))
    async with opened_report(chromium, path, width=width, dark=True) as tab:
        for which in ("view", "change", "screen"):
            await look(tab, which)
            assert await tab.js("document.documentElement.scrollWidth") == width
