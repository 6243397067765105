"""The report: one file, nothing in it comes alive, and it shows what it was given."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from report_samples import AGENTS, episode, png, report

from swarm_ui.errors import ConfigError
from swarm_ui.report import (
    Estimate,
    GraphDrawing,
    Picture,
    ReportData,
    ReportTable,
    credit_map,
    page,
    write_report,
)
from swarm_ui.report.charts import ticks
from swarm_ui.report.drawing import graph
from swarm_ui.report.viewer import viewer_data

ATTACKS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!--<script>",
    "' onmouseover='alert(1)",
    "]]></svg><script>alert(1)</script>",
    "\x00\x1b[31m\u2028 & &lt; \\u003c",
)


class Parsed(HTMLParser):
    """All elements with their attributes, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.data: list[str] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        (self.scripts if self._in_script else self.data).append(data)


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_from_models_and_screens_is_inert(attack: str) -> None:
    harmless = Parsed(page(report("Ada")))
    attacked = Parsed(page(report(attack)))
    assert [tag for tag, _ in attacked.elements] == [tag for tag, _ in harmless.elements]
    names = [sorted(attrs) for _, attrs in attacked.elements]
    assert names == [sorted(attrs) for _, attrs in harmless.elements]
    assert len(attacked.scripts) == 2
    assert attacked.scripts[1] == harmless.scripts[1]
    assert not [name for _, attrs in attacked.elements for name in attrs if name.startswith("on")]


def test_attack_survives_as_text() -> None:
    attack = "</script><script>alert(1)</script>"
    parsed = Parsed(page(report(attack)))
    assert any(attack in text for text in parsed.data)
    episodes = json.loads(parsed.scripts[0])
    assert episodes[0]["goal"] == f"Add a contact named {attack}"
    assert attack in episodes[0]["steps"][0]["messages"][0]["text"]
    assert "<" not in parsed.scripts[0]


def test_half_a_character_does_not_break_the_file(tmp_path: Path) -> None:
    half = "\ud83d"
    data = ReportData(
        title=half, summary=half, episodes=(msgspec.structs.replace(episode("x"), task=half),)
    )
    parsed = Parsed(write_report(tmp_path, data).read_text(encoding="utf-8"))
    assert json.loads(parsed.scripts[0])[0]["task"] == half


def test_nothing_is_loaded_from_elsewhere() -> None:
    parsed = Parsed(page(report()))
    links = [a.get(k) or "" for _, a in parsed.elements for k in ("src", "href", "data", "action")]
    assert all(link == "" or link.startswith("data:image/png;base64,") for link in links)
    assert not {tag for tag, _ in parsed.elements} & {"link", "iframe", "object", "embed", "base"}
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp|innerHTML|https?://", page(report()))
    policy = next(a["content"] for t, a in parsed.elements if t == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_labels_intervals_and_differences_are_shown() -> None:
    text = page(report())
    assert "phone: simulated" in text
    assert "critic: scripted" in text
    assert "[55.0, 66.0]" in text
    assert "<b>+20.0</b>" in text, "an interval that excludes 0 is marked"
    assert "<span>+3.0</span>" in text, "one that holds 0 is not"
    assert "[−2.0, +8.0]" in text


def test_rounding_never_shows_a_negative_zero() -> None:
    table = ReportTable(
        title="t", columns=("a",), rows=((Estimate(value=-0.0001, difference=True),),)
    )
    text = page(ReportData(title="t", summary="s", tables=(table,)))
    assert "<span>0.0</span>" in text


def test_without_episodes_there_is_no_script() -> None:
    parsed = Parsed(page(ReportData(title="t", summary="s")))
    assert "script" not in {tag for tag, _ in parsed.elements}


def test_write_report_names_the_file(tmp_path: Path) -> None:
    path = write_report(tmp_path, report())
    assert path == tmp_path / "report.html"
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_viewer_tells_masked_solved_and_failed_apart() -> None:
    kinds = [viewer_data([episode("x", success=s)])[0]["outcome"] for s in (True, False, None)]
    assert kinds == ["solved", "failed", "masked"]


def test_viewer_matches_credit_to_its_message() -> None:
    one = episode("x")
    steps = viewer_data([one])[0]["steps"]
    assert isinstance(steps, list)
    credit = one.steps[0].credit
    assert credit is not None
    for message in steps[0]["messages"]:
        column = AGENTS.index(message["sender"])
        assert message["credit"] == credit[message["round"]][column]
    unscored = next(m["credit"] for m in steps[0]["messages"] if m["sender"] == "agent_4")
    assert unscored is None, "unscored is not 0"


def test_viewer_names_what_an_action_acts_on() -> None:
    steps = viewer_data([episode("Ada")])[0]["steps"]
    assert isinstance(steps, list)
    assert steps[0]["decision"] == "click “Ada” [1]"
    assert steps[0]["executed"] is None, "the decision itself was executed"
    assert steps[0]["ballot"][0]["action"] == "click “Ada” [1]"


def test_screenshots_stop_at_the_budget_and_must_be_png() -> None:
    picture = png()
    data = viewer_data([episode("x", picture=picture)], png_budget=2 * len(picture))
    steps = data[0]["steps"]
    assert isinstance(steps, list)
    assert [s["png"] is not None for s in steps] == [True, True, False]
    fake = viewer_data([episode("x", picture=b"<svg onload=alert(1)>")])[0]["steps"]
    assert isinstance(fake, list)
    assert fake[0]["png"] is None


def test_values_that_are_not_finite_do_not_break_the_viewer() -> None:
    one = episode("x")
    step = one.steps[0]
    trace = msgspec.structs.replace(step.trace, ballot={"a": float("-inf"), "b": 1.0})
    broken = msgspec.structs.replace(one, steps=(msgspec.structs.replace(step, trace=trace),))
    parsed = Parsed(page(ReportData(title="t", summary="s", episodes=(broken,))))
    ballot = json.loads(parsed.scripts[0])[0]["steps"][0]["ballot"]
    assert [b["weight"] for b in ballot] == [1.0, None]


def test_credit_map_is_the_mean_and_keeps_unscored_apart() -> None:
    found = credit_map((episode("x"),))
    assert found is not None
    credits = [s.credit for s in episode("x").steps if s.credit is not None]
    assert found.values[1][2] == pytest.approx(sum(c[1][2] or 0 for c in credits) / 3)
    assert found.values[0][3] is None
    assert credit_map(()) is None


def test_bad_pictures_are_config_errors(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"not a picture")
    for path in (tmp_path / "a.png", tmp_path / "missing.png"):
        data = ReportData(title="t", summary="s", pictures=(Picture(title="p", png=path),))
        with pytest.raises(ConfigError, match="picture 'p'"):
            write_report(tmp_path, data)
    assert not (tmp_path / "report.html").exists()


def test_drawing_puts_speakers_left_of_listeners() -> None:
    drawing = GraphDrawing(title="g", nodes=("a", "b", "c"), edges=(("c", "a"), ("a", "b")))
    places = {
        name: float(x)
        for x, name in re.findall(
            r'<text x="([\d.]+)" y="[\d.]+" class="name">(\w)<', graph(drawing)
        )
    }
    assert places["c"] < places["a"] < places["b"]


def test_drawing_survives_a_cycle_and_an_unknown_node() -> None:
    assert 'class="arc"' in graph(
        GraphDrawing(title="g", nodes=("a",), edges=(("a", "b"), ("b", "a")))
    )


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (0.41, 0.89), (3.0, 3.0), (-5.0, 1e6), (0.0, 0.0), (1e-9, 2e-9)]
)
def test_ticks_cover_the_data_and_are_few(low: float, high: float) -> None:
    found = ticks(low, high, 5)
    assert 2 <= len(found) <= 11
    assert found == sorted(found)
    slack = 1e-6 * (found[-1] - found[0])
    assert found[0] <= low + slack
    assert found[-1] >= high - slack
