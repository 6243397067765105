"""The first screen and the sections of the report in a real browser, wide and narrow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from report_samples import report
from report_tab import ReportTab, opened_report
from shared_browser import SharedBrowser

from swarm_ui.report import (
    Arm,
    Arms,
    Curve,
    CurvePoint,
    Estimate,
    Headline,
    HeatMap,
    ReportData,
    Series,
    page,
)

pytestmark = pytest.mark.browser
pytest.importorskip("playwright")

BOTTOM = "document.querySelector({!r}).getBoundingClientRect().bottom"


def full() -> ReportData:
    """A report with every part of the first screen, and success by task on two splits."""
    rate = Estimate(value=0.667, low=0.511, high=0.812, count=48)
    gain = Estimate(value=0.104, low=-0.022, high=0.24, difference=True)
    names = ("base, greedy", "base ×4, views + probability vote", "trained, greedy (agent_0)",
             "trained team, no edges", "trained team, unseen DAG, 3 rounds")  # fmt: skip
    arms = tuple(Arm(name=n, value=rate, chosen=n == names[-1]) for n in names)
    points = tuple(CurvePoint(k, 0.5 + k / 10, 0.4 + k / 10, 0.6 + k / 10) for k in range(4))
    curve = Curve(title="Success by iteration", x_label="iteration", y_label="success, %",
                  series=(Series(name="team", points=points),), percent=True)  # fmt: skip
    by_task = tuple(
        HeatMap(title=split, rows=("add", "edit"), columns=names[:2], percent=True,
                values=((0.5, 1.0), (None, 0.0)))
        for split in ("known apps", "new apps")
    )  # fmt: skip
    sample = report()
    return msgspec.structs.replace(
        sample,
        headline=Headline(label=f"Success: {names[-1]}", value=rate, where="new parameters",
                          gain=gain, against=names[0]),
        arms=Arms(title="new parameters", arms=arms),
        curves=(curve, *sample.curves),
        heat_maps=(*by_task, *sample.heat_maps),
    )  # fmt: skip


@asynccontextmanager
async def opened(
    browser: SharedBrowser, folder: Path, *, width: int = 1440, dark: bool = False
) -> AsyncIterator[ReportTab]:
    path = folder / "report.html"
    path.write_text(page(full()), encoding="utf-8")
    async with opened_report(browser, path, width=width, dark=dark) as tab:
        yield tab


async def test_headline_curve_and_decision_are_on_the_first_screen(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened(chromium, tmp_path) as tab:
        assert "66.7 %" in (await tab.words(".headline")).replace("\n", " ")
        # The screen is 900 high. With wide fonts, lines break more often and the decision is lower.
        decided = await tab.js("document.querySelector('.decided').getBoundingClientRect().top")
        assert await tab.js(BOTTOM.format(".headline")) < decided
        assert await tab.js(BOTTOM.format(".with-arms")) < decided < 650
        assert len(await tab.js("[...document.querySelectorAll('.arms li')].map(e => 1)")) == 5
        assert await tab.js("document.querySelector('details dl').checkVisibility()") is False


async def test_contents_stay_at_the_top_and_lead_to_their_sections(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened(chromium, tmp_path) as tab:
        await tab.click("nav a", "Credit")
        await tab.until("Math.abs(document.getElementById('credit').getBoundingClientRect().top"
                        " - 56) < 3")  # fmt: skip
        assert await tab.js("document.querySelector('nav').getBoundingClientRect().top") == 0
        below = await tab.js(BOTTOM.format("nav"))
        assert below < 56, "the contents do not cover the title that they lead to"


async def test_the_decision_leads_to_its_step_in_the_viewer(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    async with opened(chromium, tmp_path) as tab:
        await tab.js("document.querySelector('#overview a').click()")
        await tab.until("document.querySelector('article .bar').innerText.includes('step 3')")
        await tab.until("document.getElementById('episodes').getBoundingClientRect().top < 90")


async def test_success_by_task_shows_one_split_at_a_time(
    chromium: SharedBrowser, tmp_path: Path
) -> None:
    opened_splits = (
        "[...document.querySelectorAll('details[name=split]')]"
        ".filter(d => d.open).map(d => d.querySelector('summary').innerText)"
    )
    async with opened(chromium, tmp_path) as tab:
        assert await tab.js(opened_splits) == ["known apps"]
        await tab.click("summary", "new apps")
        await tab.until(f"{opened_splits}.join() === 'new apps'")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_a_narrow_window_scrolls_down_only(
    chromium: SharedBrowser, tmp_path: Path, dark: bool
) -> None:
    async with opened(chromium, tmp_path, width=420, dark=dark) as tab:
        assert await tab.js("document.documentElement.scrollWidth") == 420
        sizes = await tab.js(
            "[...document.querySelectorAll('#overview .chart text')].map("
            "t => t.getBoundingClientRect().height)"
        )
        assert min(sizes) >= 9, "the chart's text can be read"
