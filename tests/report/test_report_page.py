"""The report: one file, nothing in it comes alive, and it shows what it was given."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from report_samples import AGENTS, episode, png, report
from viewer_samples import shuffled

from swarm_ui.errors import ConfigError
from swarm_ui.model import Dropped, Generation
from swarm_ui.report import (
    Arm,
    Arms,
    Curve,
    CurvePoint,
    Estimate,
    GraphDrawing,
    Headline,
    Picture,
    ReportData,
    ReportTable,
    Series,
    credit_map,
    gathered,
    page,
    write_report,
)
from swarm_ui.report.compressed_episodes import packed
from swarm_ui.report.contents import EpisodeSet, limits
from swarm_ui.report.html_tables import table
from swarm_ui.report.page import NO_EPISODES, graph
from swarm_ui.report.viewer import PROMPT_LIMIT, outcome, viewer_episode
from swarm_ui.stats import over_seeds
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Episode
from swarm_ui.viz.svg import ticks

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


def shown(one: Episode, picture: int | None = None) -> dict[str, Any]:
    """What the viewer's script gets of an episode."""
    data: dict[str, Any] = json.loads(json.dumps(viewer_episode(one, lambda png: picture)))
    return data


def unpacked(text: str) -> str:
    """What the page reads from a data element, which is gzip as base64."""
    return gzip.decompress(base64.b64decode(text)).decode("ascii")


def embedded_texts(parsed: Parsed) -> dict[str, str]:
    """Contents of the data elements, unpacked, by id."""
    ids = [a.get("id") for t, a in parsed.elements if t == "script"]
    found = dict(zip(ids, parsed.scripts, strict=True))
    return {
        name: unpacked(text) if name == "index" or name.startswith("chunk") else text
        for name, text in found.items()
        if name
    }


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_from_models_and_screens_is_inert(attack: str) -> None:
    harmless = Parsed(page(report("Ada")))
    attacked = Parsed(page(report(attack)))
    # A text that is cut has a tooltip; any other element and its attributes stay the same.
    found, expected = ([e for e in p.elements if e[0] != "title"] for p in (attacked, harmless))
    assert [(tag, sorted(attrs)) for tag, attrs in found] == [
        (tag, sorted(attrs)) for tag, attrs in expected
    ]
    assert not [attrs for tag, attrs in attacked.elements if tag == "title" and attrs]
    assert attacked.scripts[-1] == harmless.scripts[-1], "the only script that runs"
    assert all(re.fullmatch(r"[A-Za-z0-9+/=]*", text) for text in attacked.scripts[1:-1])
    assert not set("<>&") & set(attacked.scripts[0])
    assert not [name for _, attrs in attacked.elements for name in attrs if name.startswith("on")]


def test_attack_survives_as_text() -> None:
    attack = "</script><script>alert(1)</script>"
    parsed = Parsed(page(report(attack)))
    assert any(attack in text for text in parsed.data)
    texts = embedded_texts(parsed)
    assert json.loads(texts["index"])[0][5] == f"Add a contact named {attack}"
    messages = json.loads(texts["chunk-0"])[0]["steps"][0]["messages"]
    assert attack in messages[0]["text"]


def test_half_a_character_does_not_break_the_file(tmp_path: Path) -> None:
    half = "\ud83d"
    data = ReportData(
        title=half, summary=half, episodes=(msgspec.structs.replace(episode("x"), task=half),)
    )
    parsed = Parsed(write_report(tmp_path, data).read_text(encoding="utf-8"))
    assert json.loads(embedded_texts(parsed)["index"])[0][0] == half


def test_nothing_is_loaded_from_elsewhere() -> None:
    parsed = Parsed(page(report()))
    links = [a.get(k) or "" for _, a in parsed.elements for k in ("src", "href", "data", "action")]
    inside = ("#", "data:image/png;base64,")
    assert all(link == "" or link.startswith(inside) for link in links)
    assert not {tag for tag, _ in parsed.elements} & {"link", "iframe", "object", "embed", "base"}
    loading = (
        r"url\((?!#)|@import|fetch\(|XMLHttp|innerHTML|eval\(|https?://(?!www\.w3\.org/2000/svg)"
    )
    assert not re.search(loading, page(report()))
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


def values(*estimates: Estimate | None, note: str = "") -> ReportTable:
    rows = tuple((f"row {k}", e) for k, e in enumerate(estimates))
    return ReportTable(title="t", columns=("", "a"), rows=rows, note=note)


def share(value: float, reach: float = 0.1, *, difference: bool = False) -> Estimate:
    return Estimate(value=value, low=value - reach, high=value + reach, difference=difference)


def test_a_table_has_one_axis_with_a_line_at_zero() -> None:
    drawn = str(table(values(share(0.1, 0.2, difference=True), share(0.3, difference=True), None)))
    axis = re.findall(r"<text x=\"([\d.]+)\"[^>]*>([−+\d]+)</text>", drawn)
    assert [label for _, label in axis] == ["−20", "0", "+20", "+40"]
    lines = set(re.findall(r"--zero:([\d.]+)px", drawn))
    assert {float(line) for line in lines} == {round(float(dict(map(reversed, axis))["0"]), 1)}
    assert drawn.count("<circle") == 2
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn)]
    zero, twenty = (float(x) for x, label in axis if label in ("0", "+20"))
    assert [(x - zero) / (twenty - zero) for x in places] == pytest.approx([0.5, 1.5], abs=0.01)


def test_differences_are_drawn_rather_than_levels() -> None:
    rows = tuple((f"r{k}", share(0.5 + k / 10), share(k / 10, difference=True)) for k in range(2))
    drawn = str(table(ReportTable(title="t", columns=("", "level", "gain"), rows=rows)))
    assert drawn.count('<td class="plot">') == 1, "one axis"
    assert "+20</text>" in drawn


@pytest.mark.parametrize(
    "cells",
    [(share(0.5), None), (share(0.5), share(0.5)), (Estimate(value=0.1), Estimate(value=0.2))],
    ids=["one interval", "equal intervals", "no intervals"],
)
def test_dots_that_say_nothing_are_not_drawn(cells: tuple[Estimate | None, ...]) -> None:
    assert "<svg" not in table(values(*cells))


def test_a_footnote_that_tables_share_is_told_once() -> None:
    tables = (values(None, note="same"), values(None, note="same"), values(None, note="other"))
    text = page(ReportData(title="t", summary="s", tables=tables))
    assert (text.count(">same</p>"), text.count(">other</p>")) == (1, 1)


def test_the_first_screen_has_the_headline_the_arms_and_a_decision() -> None:
    gain = share(0.05, difference=True)
    headline = Headline(label="Success: <team>", value=share(0.6), gain=gain, against="base")
    tested = Arm(name="base", value=share(0.5)), Arm(name="team", value=share(0.6), chosen=True)
    arms = Arms(title="new apps", arms=tested)
    points = tuple(CurvePoint(float(k), 0.1 * k) for k in range(3))
    line = Curve(title="c", x_label="x", y_label="%", percent=True,
                 series=(Series(name="s", points=points),))  # fmt: skip
    data = msgspec.structs.replace(report(), headline=headline, arms=arms)
    data = msgspec.structs.replace(data, curves=(*data.curves, line))
    text = page(data)
    first = text[text.index('id="overview"') : text.index('id="results"')]
    assert "Success: &lt;team&gt;" in first
    assert "95 % interval [50.0, 70.0]" in first
    assert "+5.0 points" in first and "against base; 0 is inside the interval" in first
    assert first.count('class="arm"') == 1 and first.count('class="arm chosen"') == 1
    assert "<figcaption>c</figcaption>" in first, "a curve of percentages, on the axis of the arms"
    assert 'href="#1/3"' in first, "a link to the decision in the viewer"
    assert "<figcaption>c</figcaption>" not in text[text.index('id="results"') :]


def test_the_table_of_contents_names_every_section_and_settings_fold_away() -> None:
    text = page(report())
    nav = text[text.index("<nav") : text.index("</nav>")]
    links = re.findall(r'href="#([^"]+)">([^<]+)<', nav)
    assert links == re.findall(r'<h2 id="([^"]+)">([^<]+)</h2>', text)
    assert {"results", "credit", "episodes", "settings"} <= {anchor for anchor, _ in links}
    folded = re.search(r"<details><summary>Settings.*?</details>", text)
    assert folded is not None and "<dd>7</dd>" in folded[0]


def test_without_episodes_there_is_no_script() -> None:
    parsed = Parsed(page(ReportData(title="t", summary="s")))
    assert "script" not in {tag for tag, _ in parsed.elements}


def test_write_report_names_the_file(tmp_path: Path) -> None:
    path = write_report(tmp_path, report())
    assert path == tmp_path / "report.html"
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_viewer_tells_masked_solved_and_failed_apart() -> None:
    kinds = [outcome(episode("x", success=s)) for s in (True, False, None)]
    assert kinds == ["solved", "failed", "masked"]


def test_viewer_matches_credit_to_its_message() -> None:
    one = episode("x")
    step = shown(one)["steps"][0]
    credit = one.steps[0].credit
    assert credit is not None
    for message in step["messages"]:
        column = AGENTS.index(message["sender"])
        assert message["credit"] == credit[message["round"]][column]
    unscored = next(m["credit"] for m in step["messages"] if m["sender"] == "agent_4")
    assert unscored is None, "unscored is not 0"


def test_viewer_names_what_an_action_acts_on() -> None:
    step = shown(episode("Ada"))["steps"][0]
    assert step["decision"] == "click “Ada” [1]"
    assert step["executed"] is None, "the decision itself was executed"
    assert step["ballot"][0]["action"] == "click “Ada” [1]"


def test_viewer_tells_who_was_heard_and_what_was_chosen() -> None:
    messages = [m for step in shown(episode("Ada"))["steps"] for m in step["messages"]]
    assert {tuple(m["heard"]) for m in messages} == {(0,)}, "all heard agent_1 in round 1"
    assert {m["action"] for m in messages if m["chosen"]} == {"click “Ada” [1]"}
    assert any(not m["chosen"] for m in messages)


def test_viewer_tells_what_a_prompt_left_out() -> None:
    whole = episode("Ada")
    step = whole.steps[0]
    made = Generation(prompt="p", dropped=Dropped(history=2, elements=(1,)))
    call = msgspec.structs.replace(step.trace.calls[0], completion=made)
    trace = msgspec.structs.replace(step.trace, calls=(call, *step.trace.calls[1:]))
    cut = msgspec.structs.replace(step, trace=trace)
    messages = shown(msgspec.structs.replace(whole, steps=(cut,)))["steps"][0]["messages"]
    assert messages[0]["left_out"] == "2 oldest past actions; 1 element: “Ada” [1]"
    assert all(message["left_out"] is None for message in messages[1:])


def test_viewer_shows_the_prompt_and_the_order_of_each_call() -> None:
    ada, bob = shown(shuffled())["steps"][1]["messages"]
    assert (ada["prompt"], bob["prompt"]) == tuple(
        f"Prompt of {name} in step 1: x" for name in ("ada", "bob")
    )
    assert bob["order"] == [2, 0, 1] and "order" not in ada, "its own order, the screen's order"
    assert (ada["on"], bob["on"]) == ([2], [2]), "numbers of the screen"


def test_viewer_leaves_out_the_middle_of_a_long_prompt() -> None:
    one = shuffled()
    step = one.steps[0]
    long = "goal " + "x" * PROMPT_LIMIT + " question"
    made = Generation(prompt=long)
    calls = tuple(msgspec.structs.replace(call, completion=made) for call in step.trace.calls)
    trace = msgspec.structs.replace(step.trace, calls=calls)
    cut = msgspec.structs.replace(one, steps=(msgspec.structs.replace(step, trace=trace),))
    prompt = shown(cut)["steps"][0]["messages"][0]["prompt"]
    assert prompt.startswith("goal x") and prompt.endswith("x question")
    assert "14 characters are not in this page" in prompt
    assert len(prompt) < PROMPT_LIMIT + 60


def test_an_episode_knows_its_place_in_its_trace_file(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", config={})
    run.write_episodes("a", [episode("x"), episode("y")])
    run.write_episodes("b", [episode("z")])
    index = json.loads(embedded_texts(Parsed(page(gathered(run.path))))["index"])
    assert [entry[-3:-1] for entry in index] == [
        ["traces/a.jsonl", 1], ["traces/a.jsonl", 2], ["traces/b.jsonl", 1],
    ]  # fmt: skip


def test_screenshots_are_kept_once_within_the_budget_and_must_be_png() -> None:
    picture, other = png(), png("other")
    one = episode("x", picture=picture)
    two = episode("y", picture=other)
    data = packed([EpisodeSet(name="s", episodes=(one, one, two))], png_budget=len(picture))
    assert len(data.pictures) == 1
    assert data.bare == len(two.steps)
    steps = [e["steps"] for e in json.loads(unpacked(data.chunks[0]))]
    assert [s["png"] for s in steps[0]] == [0, 0, 0]
    assert [s["png"] for s in steps[2]] == [None, None, None]
    fake = shown(episode("x", picture=b"<svg onload=alert(1)>"), picture=0)
    assert fake["steps"][0]["png"] is None


def test_many_episodes_are_packed_in_pieces_that_say_where_they_are() -> None:
    episodes = tuple(episode(f"{k}") for k in range(60))
    data = packed([EpisodeSet(name="s", episodes=episodes)])
    assert len(data.chunks) > 1
    index = json.loads(unpacked(data.index))
    places: dict[int, list[str]] = {}
    for entry in index:
        places.setdefault(entry[-1], []).append(entry[0])
    for number, tasks in places.items():
        steps = [e["steps"][0] for e in json.loads(unpacked(data.chunks[number]))]
        assert [f"contacts-add {s['app'].removeprefix('Contacts ')}" for s in steps] == tasks


def test_episodes_without_room_are_counted() -> None:
    episodes = tuple(episode(f"{k}") for k in range(60))
    data = packed([EpisodeSet(name="s", episodes=episodes)], episode_budget=1)
    assert 0 < data.episodes < 60
    assert data.episodes + data.left_out == 60
    text = page(ReportData(title="t", summary="s", sets=(EpisodeSet(name="s", episodes=()),)))
    assert 'id="viewer"' not in text
    assert NO_EPISODES in text, "an empty section says so"


def test_values_that_are_not_finite_do_not_break_the_viewer() -> None:
    one = episode("x")
    step = one.steps[0]
    trace = msgspec.structs.replace(step.trace, ballot={"a": float("-inf"), "b": 1.0})
    broken = msgspec.structs.replace(
        one, seconds=float("nan"), steps=(msgspec.structs.replace(step, trace=trace),)
    )
    parsed = Parsed(page(ReportData(title="t", summary="s", episodes=(broken,))))
    ballot = json.loads(embedded_texts(parsed)["chunk-0"])[0]["steps"][0]["ballot"]
    assert [b["weight"] for b in ballot] == [1.0, None]


def test_credit_map_is_the_mean_and_keeps_unscored_apart() -> None:
    found = credit_map((episode("x"),))
    assert found is not None
    credits = [s.credit for s in episode("x").steps if s.credit is not None]
    assert found.values[1][2] == pytest.approx(sum(c[1][2] or 0 for c in credits) / 3)
    assert found.values[0][3] is None
    assert credit_map(()) is None


def test_credit_of_another_shape_is_left_out_of_the_map() -> None:
    whole = episode("x")
    credit = ((0.5, 1.0),) * 2  # of two agents, where four decided
    steps = [msgspec.structs.replace(step, credit=credit) for step in whole.steps]
    damaged = msgspec.structs.replace(whole, steps=tuple(steps))
    assert credit_map((damaged,)) is None
    assert credit_map((damaged, whole)) == credit_map((whole,))


def test_the_infinite_interval_of_one_training_run_is_told_and_not_drawn() -> None:
    one = over_seeds([0.5])
    assert one is not None
    endless = Estimate(value=one.mean, low=one.low, high=one.high)
    known = [Estimate(value=v, low=v - 0.1, high=v + 0.1) for v in (0.2, 0.4)]
    rows = tuple((f"r{k}", value) for k, value in enumerate((endless, *known)))
    arms = Arms(title="a", arms=tuple(Arm(name=name, value=value) for name, value in rows))
    points = (CurvePoint(1.0, 0.3), CurvePoint(2.0, 0.4))
    line = Curve(title="c", x_label="x", y_label="y", percent=True,
                 series=(Series(name="s", points=points),))  # fmt: skip
    found = ReportTable(title="t", columns=("", "success"), rows=rows)
    text = page(ReportData(title="r", summary="s", tables=(found,), curves=(line,), arms=arms))
    assert "[−inf, inf]" in text and text.count('class="whisker"') == 2
    drawn = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert drawn.count('class="arm"') == 3 and '="inf' not in drawn and "nan" not in drawn


def test_bad_pictures_are_config_errors(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"not a picture")
    for path in (tmp_path / "a.png", tmp_path / "missing.png"):
        data = ReportData(title="t", summary="s", pictures=(Picture(title="p", png=path),))
        with pytest.raises(ConfigError, match="picture 'p'"):
            write_report(tmp_path, data)
    assert not (tmp_path / "report.html").exists()


def test_drawing_puts_speakers_left_of_listeners() -> None:
    drawing = GraphDrawing(title="g", nodes=("a", "b", "c"), edges=(("c", "a"), ("a", "b")))
    shown = re.findall(r'<text x="([\d.]+)"[^>]*>(\w)</text>', graph(drawing))
    places = {name: float(x) for x, name in shown}
    assert places["c"] < places["a"] < places["b"]


def test_drawing_survives_a_cycle_and_an_unknown_node() -> None:
    drawing = GraphDrawing(title="g", nodes=("a",), edges=(("a", "b"), ("b", "a")))
    assert graph(drawing).count('class="swarm-edge"') == 2


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


def test_ticks_of_iterations_are_whole_numbers() -> None:
    assert ticks(1, 2, 6, whole=True) == [1, 2]
    assert all(t == int(t) for t in ticks(0, 7, 6, whole=True))


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([0.96], (0.9, 1.0)),
        ([0.0, 0.02], (0.0, 0.1)),
        ([0.2, 0.9], (0.2, 0.9)),
        ([1.5], (1.45, 1.55)),
    ],
)
def test_the_scale_of_shares_stays_among_shares(
    values: list[float], ends: tuple[float, float]
) -> None:
    assert limits([[values]]) == pytest.approx(ends)
