"""The report: one file, nothing in it comes alive, and it shows what is in the folder."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from report_samples import AGENTS, arm, episode, full_run, iteration, png, shuffled

from swarm_ui.errors import ConfigError
from swarm_ui.model import Dropped, Generation
from swarm_ui.report import Results, episodes, write_report
from swarm_ui.report.episodes import packed
from swarm_ui.report.read import EpisodeSet
from swarm_ui.report.results import ArmResult
from swarm_ui.report.viewer import PROMPT_LIMIT, viewer_episode
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import write_jsonl
from swarm_ui.trace.records import Episode

ATTACKS = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!--<script>",
    "' onmouseover='alert(1)",
    "]]></svg><script>alert(1)</script>",
    "\x00\x1b[31m\u2028 & &lt; \\u003c",
)


class Parsed(HTMLParser):
    """All elements with their attributes, the text of scripts, and the other text."""

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


def unpacked(text: str) -> Any:
    """What the page reads from a data element, which is gzip as base64."""
    return json.loads(gzip.decompress(base64.b64decode(text)).decode("ascii"))


def index_of(text: str) -> list[list[Any]]:
    return unpacked(re.search(r'id="index">([^<]+)<', text)[1])  # type: ignore[index,no-any-return]


def page(*runs: Path) -> str:
    return write_report(*runs, to=runs[0] / "page.html").read_text(encoding="utf-8")


def plain(text: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def section(text: str, name: str) -> str:
    found = re.search(rf'<section><h2 id="{name}">.*?(?=<section><h2 |</main>)', text, re.DOTALL)
    return found[0] if found else ""


def rows(text: str, name: str) -> list[list[str]]:
    """The cells of the first table of a section, without their tags."""
    table = section(text, name).partition("</table>")[0]
    found = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    drawn = r'<td class="plot".*?</td>'
    found = [re.sub(drawn, "", row, flags=re.DOTALL) for row in found]
    cells = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in found)
    return [[plain(cell) for cell in row] for row in cells]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", name="phone", config={"rounds": 3})


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_from_models_screens_and_files_is_inert(tmp_path: Path, attack: str) -> None:
    harmless = Parsed(page(full_run(tmp_path / "a")))
    attacked = Parsed(page(full_run(tmp_path / "b", attack)))
    # A text that is cut has a tooltip; any other element and its attributes stay the same.
    found, expected = ([e for e in p.elements if e[0] != "title"] for p in (attacked, harmless))
    assert [(tag, sorted(attrs)) for tag, attrs in found] == [
        (tag, sorted(attrs)) for tag, attrs in expected
    ]
    assert not [attrs for tag, attrs in attacked.elements if tag == "title" and attrs]
    assert attacked.scripts[-1] == harmless.scripts[-1], "the only script that runs"
    assert all(re.fullmatch(r"[A-Za-z0-9+/=]*", text) for text in attacked.scripts[:-1])


def test_one_file_that_loads_nothing_and_allows_one_script(tmp_path: Path) -> None:
    text = page(full_run(tmp_path / "run"))
    parsed = Parsed(text)
    links = [a.get(k) or "" for _, a in parsed.elements for k in ("src", "href", "data", "action")]
    assert all(link.startswith("#") for link in links if link)
    assert not {tag for tag, _ in parsed.elements} & {"link", "iframe", "object", "embed", "base"}
    assert not re.search(r"@import|fetch\(|XMLHttp|innerHTML|eval\(", text)
    (policy,) = [a["content"] for t, a in parsed.elements if t == "meta" and "http-equiv" in a]
    digest = base64.b64encode(hashlib.sha256(parsed.scripts[-1].encode()).digest()).decode()
    assert policy is not None and policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}';" in policy
    assert text == page(tmp_path / "run"), "equal folders give equal bytes"
    nav = text[text.index("<nav") : text.index("</nav>")]
    assert re.findall(r'href="#([^"]+)"', nav) == re.findall(r'<h2 id="([^"]+)"', text)


def test_a_text_that_is_no_unicode_does_not_break_the_file(run: RunDirectory) -> None:
    run.write_episodes("test", [msgspec.structs.replace(episode("x"), task="half \ud83d"[:5])])
    (run.path / "results.json").write_text('{"version": 2, "labels": ["\\ud83d"]}')
    assert "half" in index_of(page(run.path))[0][0]


# -- one run ----------------------------------------------------------------------------------


def test_tested_policies_have_intervals_and_a_paired_difference(tmp_path: Path) -> None:
    text = page(full_run(tmp_path / "run"))
    first = plain(text[text.index('id="overview"') : text.index('id="results"')])
    jobs = [(("add", "edit")[k % 2], k) for k in range(6)]
    outcomes = (1.0, 1.0, 0.0, 0.0, 1.0, 1.0)
    shown = ArmResult(split="", jobs=tuple(jobs), outcomes=outcomes).success
    assert shown is not None
    assert f"95 % interval [{100 * shown.low:.1f}, {100 * shown.high:.1f}], n = 6" in first
    assert "Success: team Ada" in first
    assert "points" in first and "against one Ada; 0 is inside the interval" in first
    assert 'href="#1/' in text, "a link to the decision in the viewer"
    found = rows(text, "results")
    assert [row[:2] for row in found[1:]] == [
        ["one Ada", "new"], ["team Ada", "new"],
        ["one Ada", "known"], ["team Ada", "known"],
    ]  # fmt: skip
    assert found[2][3].startswith("+20.0"), "of the 5 episodes that both played, 1 more"
    assert "14 of 22 tested episodes were solved. 2 more were masked" in plain(text)
    assert re.findall(r'<details name="split"( open="")?><summary>([\w ]+)<', text) == [
        (' open=""', "new"), ("", "known")
    ]  # fmt: skip
    assert rows(text, "cost")[1][:4] == ["new: one Ada", "6", "5", "7"]


def test_a_training_without_a_test_begins_with_its_last_rollouts(run: RunDirectory) -> None:
    run.write_episodes("train-000", [episode("x")])
    run.write_episodes("train-001", [episode("x", success=False)])
    for k in (0, 1, 1):  # the second was done again
        run.log(iteration(k))
    text = page(run.path)
    first = plain(text[text.index('id="overview"') : text.index('id="results"')])
    assert "75.0 %" in first and "n = 4" in first and "not a test" in first
    assert "selection" in section(text, "results")
    assert [row[0] for row in rows(text, "results")[1:]] == ["train"], "one set of training"
    curve = re.search(r"Success of rollouts by iteration.*?</figure>", text, re.DOTALL)
    assert curve is not None and curve[0].count("<circle") == 2


def test_edges_that_are_learned_come_before_played_ones(run: RunDirectory) -> None:
    run.log(iteration(0, graphs=[[["a", "b"]], [["a", "b"], ["a", "c"]]]))
    drawn = section(page(run.path), "who-talks-to-whom")
    assert "not learned" in drawn and "a → c: 0.500" in drawn and "a → b: 1.000" in drawn
    for k, chance in enumerate((0.25, 0.75)):
        run.log(iteration(k, **{"edge/a>b": chance}))
    drawn = section(page(run.path), "who-talks-to-whom")
    assert re.findall(r'data-label="([^"]+)"( hidden="")?', drawn) == [
        ("iteration 1 of 2", ' hidden=""'), ("iteration 2 of 2", "")
    ]  # fmt: skip
    assert "a → b: 0.750" in drawn and "not learned" not in drawn


def test_credit_is_in_the_order_of_iterations_on_one_scale(run: RunDirectory) -> None:
    for k, values in ((10, [[0.62, 0.9]]), (2, [[0.6, 0.7]]), (1, [[0.5, None]])):
        run.log({"kind": "credit", "iteration": k, "agents": ["a", "b"], "values": values})
    text = section(page(run.path), "credit")
    assert re.findall(r"in iteration (\d+)", text) == ["2", "3", "11"]
    assert re.findall(r"--share:(\d+)%", text) == ["50", "60", "70", "62", "90"]
    assert text.count('class="unscored"') == 1, "unscored is not 0"


def test_failures_are_counted_and_examples_lead_to_episodes(run: RunDirectory) -> None:
    lost = [msgspec.structs.replace(episode("x", success=False), seed=k) for k in range(3)]
    run.write_episodes("apps", [episode("x"), *lost])
    run.write_episodes("templates", [episode("x", success=None)])
    assert rows(page(run.path), "why-episodes-failed") == [
        ["episodes", "fault", "other"],
        ["apps", "–", "3"],
        ["templates", "1", "–"],
        ["examples", "#5", "#2 #3 #4"],
    ]
    tested = arm("apps", "", [0.0, 0.0, 1.0], name="apps", failures=("loop", "other", None))
    Results(arms=[tested]).save(run.path)
    assert rows(page(run.path), "why-episodes-failed")[1] == ["apps", "1", "1"], "of all tested"


# -- several runs -----------------------------------------------------------------------------


def test_several_runs_are_compared_with_the_first(tmp_path: Path) -> None:
    outcomes = {"one": [1.0, 0.0, 0.0, 0.0], "team": [1.0, 1.0, 1.0, 0.0]}
    for name, values in outcomes.items():
        made = RunDirectory.create(tmp_path / name, config={})
        made.write_episodes("apps", [episode(name)])
        Results(arms=[arm("apps", "", values)]).save(made.path)
    trained = RunDirectory.create(tmp_path / "trained", config={})
    trained.log(iteration(0))
    text = page(tmp_path / "one", tmp_path / "team", trained.path)
    found = rows(text, "results")
    assert found[0][:3] == ["policy", "success, %", "minus one, points"]
    assert [row[0] for row in found[1:]] == ["one", "team"]
    assert found[2][2].startswith("+50.0")
    assert [entry[3] for entry in index_of(text)] == ["one/apps", "team/apps"]
    assert [entry[7] for entry in index_of(text)] == [
        "traces/apps.jsonl", "../team/traces/apps.jsonl"
    ]  # fmt: skip
    assert "Success of rollouts by iteration" in text


# -- what is missing or damaged ---------------------------------------------------------------


def test_an_empty_run_says_what_it_lacks(run: RunDirectory) -> None:
    told = section(page(run.path), "not-in-this-run")
    assert "Episodes:" in told and "Learning curves:" in told


def test_damage_is_told_and_the_rest_is_shown(run: RunDirectory) -> None:
    path = run.write_episodes("test", [episode("x"), episode("y")])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"version": 1, "episode"')
    (run.path / "metrics.jsonl").write_bytes(b"nonsense\n")
    (run.path / "results.json").write_text("[1]")
    (run.path / "config.json").write_text("{")
    text = page(run.path)
    assert len(index_of(text)) == 2
    told = section(text, "not-in-this-run")
    for word in ("test.jsonl after the first 2", "Measurements", "results.json", "config.json"):
        assert word in told


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "iteration", "iteration": 1, "success": 2.0, "episodes": 3},
        {"kind": "iteration", "iteration": 1, "episodes": "many", "success": 0.5},
        {"iteration": 1, "graphs": [[["a", "b", "c"]]]},
        {"kind": "iteration", "iteration": 1, "edge/a>b": 3.0},
        {"kind": "credit", "iteration": 0, "agents": ["a", "b"], "values": [[0.1]]},
    ],
)
def test_measurements_of_another_form_are_told_and_the_others_are_shown(
    run: RunDirectory, line: dict[str, object]
) -> None:
    run.log(iteration(0))
    run.log({"kind": "mine", "values": 3})
    run.log(line)
    text = page(run.path)
    assert "left out 1 of 3 lines" in section(text, "not-in-this-run")
    assert "75.0" not in text and "Success of rollouts by iteration" in text


def test_what_is_no_run_or_would_replace_another_page_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="none"):
        write_report(tmp_path / "none")
    other = tmp_path / "mine.html"
    other.write_text("<p>mine</p>")
    with pytest.raises(ConfigError, match="not a report"):
        write_report(full_run(tmp_path / "run"), to=other)
    assert other.read_text() == "<p>mine</p>"


def test_a_trace_file_of_episodes_or_of_decisions_has_a_report(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "episodes.jsonl", [episode("x"), episode("y", success=False)])
    path = write_report(tmp_path / "episodes.jsonl")
    assert path == tmp_path / "episodes.html"
    assert [entry[-3] for entry in index_of(path.read_text())] == ["episodes.jsonl"] * 2
    decision = Episode(environment="", task="t", seed=0, steps=episode("x").steps)
    write_jsonl(tmp_path / "one.jsonl", [decision])
    text = write_report(tmp_path / "one.jsonl").read_text()
    assert "decisions without their episodes" in text and len(index_of(text)) == 1


# -- many episodes ----------------------------------------------------------------------------


def test_episodes_are_packed_in_pieces_and_counted_beyond_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.jsonl"
    write_jsonl(path, (episode(f"{k}") for k in range(300)))
    data = packed([(EpisodeSet("s", path, 300), "s.jsonl")])
    index = unpacked(data.index)
    assert len(data.chunks) > 1 and data.episodes == 300
    places: dict[int, list[str]] = {}
    for entry in index:
        places.setdefault(entry[-1], []).append(entry[0])
    for number, tasks in places.items():
        steps = [e["steps"][0] for e in unpacked(data.chunks[number])]
        assert [f"contacts-add {s['app'].removeprefix('Contacts ')}" for s in steps] == tasks
    monkeypatch.setattr(episodes, "EPISODE_BUDGET", 1)
    few = packed([(EpisodeSet("s", path, 300), "")])
    assert 0 < few.episodes < 300 and few.episodes + few.left_out == 300


def test_screenshots_are_kept_once_within_the_budget_and_must_be_png(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    write_jsonl(path, [episode("x"), episode("x"), episode("y")])
    pictures = {"contacts-add x": png(), "contacts-add y": png("other")}

    def with_pictures(one: Episode) -> Episode:
        return episode(one.task.split()[1], picture=pictures[one.task])

    monkeypatch.setattr(episodes, "PNG_BUDGET", len(pictures["contacts-add x"]))
    data = packed([(EpisodeSet("s", path, 3), "")], with_pictures)
    assert (len(data.pictures), data.bare) == (1, 3)
    steps = [[s["png"] for s in e["steps"]] for e in unpacked(data.chunks[0])]
    assert (steps[0], steps[2]) == ([0, 0, 0], [None, None, None])
    fake = shown(episode("x", picture=b"<svg onload=alert(1)>"), picture=0)
    assert fake["steps"][0]["png"] is None


# -- the data of the viewer -------------------------------------------------------------------


def shown(one: Episode, picture: int | None = None) -> dict[str, Any]:
    """What the viewer's script gets of an episode."""
    data: dict[str, Any] = json.loads(json.dumps(viewer_episode(one, lambda png: picture)))
    return data


def test_the_viewer_matches_credit_action_and_hearing_to_each_message() -> None:
    one = episode("Ada")
    step = shown(one)["steps"][0]
    credit = one.steps[0].credit
    assert credit is not None
    for message in step["messages"]:
        column = AGENTS.index(message["sender"])
        assert message["credit"] == credit[message["round"]][column]
        assert message["heard"] == [0] and message["left_out"] is None
    assert next(m["credit"] for m in step["messages"] if m["sender"] == "agent_4") is None
    assert step["decision"] == step["ballot"][0]["action"] == "click “Ada” [1]"
    assert {m["action"] for m in step["messages"] if m["chosen"]} == {"click “Ada” [1]"}
    assert step["executed"] is None, "the decision itself was executed"
    places = [tuple(m["box"]) for m in step["messages"]]
    assert len({*places}) == len(places) and len({x for x, *_ in places}) == 3, "a column a round"
    assert all(x + w <= step["size"][0] and y + h <= step["size"][1] for x, y, w, h in places)
    assert all(m["lines"][0].startswith("M") for m in step["messages"][1:]), "a curve each"


def changed(one: Episode, made: Generation) -> Episode:
    calls = tuple(msgspec.structs.replace(c, completion=made) for c in one.steps[0].trace.calls)
    trace = msgspec.structs.replace(one.steps[0].trace, calls=calls)
    step = msgspec.structs.replace(one.steps[0], trace=trace)
    return msgspec.structs.replace(one, steps=(step,))


def test_the_viewer_shows_prompts_their_order_and_what_they_left_out() -> None:
    ada, bob = shown(shuffled())["steps"][1]["messages"]
    assert ada["prompt"] == "Prompt of ada in step 1: x"
    assert bob["order"] == [2, 0, 1] and "order" not in ada, "its own order, the screen's order"
    assert (ada["on"], bob["on"]) == ([2], [2]), "numbers of the screen"
    cut = changed(episode("Ada"), Generation(prompt="p", dropped=Dropped(history=2, elements=(1,))))
    left_out = shown(cut)["steps"][0]["messages"][0]["left_out"]
    assert left_out == "2 past actions, 1 element"
    long = changed(shuffled(), Generation(prompt="goal " + "x" * PROMPT_LIMIT + " question"))
    prompt = shown(long)["steps"][0]["messages"][0]["prompt"]
    assert prompt.startswith("goal x") and prompt.endswith("x question")
    assert "14 characters are not in this page" in prompt
