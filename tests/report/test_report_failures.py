"""The section on why episodes failed: counts by set, links to examples, rules."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from report_samples import episode
from report_tab import opened_report
from shared_browser import SharedBrowser

from swarm_ui.report import ReportData, gathered, page
from swarm_ui.report.contents import EpisodeSet
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.failures import FAILURE_RULES
from swarm_ui.trace.records import Episode

ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)


def section(text: str) -> str:
    found = re.search(r"<section><h2 id=\"why-episodes-failed\">Why.*?</section>", text, re.DOTALL)
    return found[0] if found else ""


def rows(text: str) -> list[list[str]]:
    """The cells of the section's table, without their tags."""
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in ROW.findall(section(text))]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in cells]


def failed(seed: int) -> Episode:
    return msgspec.structs.replace(episode("x", success=False), seed=seed)


def test_each_set_is_counted_and_examples_lead_to_its_episodes() -> None:
    sets = (
        EpisodeSet(name="apps", episodes=(episode("x"), failed(1), failed(2), failed(3))),
        EpisodeSet(name="templates", episodes=(failed(4), episode("x", success=None))),
    )
    text = page(ReportData(title="r", summary="s", sets=sets))
    assert rows(text) == [
        ["episodes", "world fault", "not known"],
        ["apps", "–", "3"],
        ["templates", "1", "1"],
        ["examples", "#6", "#2 #5 #3"],
    ]
    assert 'href="#5/3"' in section(text), "its last step"
    assert FAILURE_RULES["world_fault"] in section(text)


def test_counts_of_all_tested_episodes_come_before_those_of_the_kept(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", name="phone", config={})
    run.write_episodes("apps", [failed(1)])
    arm = {"name": "apps", "split": "apps", "jobs": [["x", k] for k in range(3)],
           "outcomes": [0.0, 0.0, 1.0], "failures": ["loop", "not_known", None]}  # fmt: skip
    (run.path / "results.json").write_text(json.dumps({"arms": [arm]}), encoding="utf-8")
    text = page(gathered(run.path))
    assert rows(text) == [
        ["episodes", "loop", "not known"],
        ["apps", "1", "1"],
        ["examples", "none kept", "#1"],
    ]


def test_the_seeds_of_a_policy_are_counted_together(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", name="phone", config={})
    played = {"split": "apps", "jobs": [["x", 0], ["x", 1]], "outcomes": [0.0, 0.0]}
    arms = [
        {**played, "name": "apps-one-0", "label": "one", "failures": ["loop", "loop"]},
        {**played, "name": "apps-one-1", "label": "one", "failures": ["loop", "not_known"]},
        {**played, "name": "apps-two-0", "label": "two", "failures": ["not_known"] * 2},
    ]
    (run.path / "results.json").write_text(json.dumps({"arms": arms}), encoding="utf-8")
    assert rows(page(gathered(run.path)))[1:3] == [
        ["apps: one", "3", "1"],
        ["apps: two", "–", "2"],
    ]


def test_a_run_without_failures_has_no_such_section() -> None:
    assert section(page(ReportData(title="r", summary="s", episodes=(episode("x"),)))) == ""


@pytest.mark.browser
async def test_an_example_opens_in_the_viewer(chromium: SharedBrowser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    kept = (episode("x"), msgspec.structs.replace(failed(9), task="the-lost-one"))
    path.write_text(page(ReportData(title="r", summary="s", episodes=kept)), encoding="utf-8")
    async with opened_report(chromium, path) as tab:
        await tab.js("document.querySelector('a[href=\"#2/3\"]').click()")
        await tab.until("location.hash === '#2/3'")
        await tab.until(
            "document.querySelector('#viewer article').innerText.includes('the-lost-one')"
        )
        top = await tab.js("document.getElementById('viewer').getBoundingClientRect().top")
        assert -5 <= top <= 450, "the viewer is in sight"
