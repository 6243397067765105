"""Tasks in WebArena's format: read, judged as upstream judges them, played."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web_site import Site, site

from swarm_ui.action import Action
from swarm_ui.environments.web import ScriptError, WebEnvironment, find_browser, webarena_tasks
from swarm_ui.errors import ConfigError

DONE = Action(action_type="status", goal_status="complete")


@pytest.fixture
def shop() -> Iterator[Site]:
    with site() as server:
        yield server


def entry(number: int, start: str = "__SHOPPING__/terms", **check: Any) -> dict[str, Any]:
    """A task as upstream writes it, with fields that are not read."""
    empty = {"reference_answers": None, "reference_url": "", "program_html": []}
    return {"sites": ["shopping"], "task_id": number, "require_login": False, "geolocation": None,
            "start_url": start, "intent_template": "", "intent": f"Task {number}",
            "storage_state": None, "eval": {**empty, **check}}  # fmt: skip


def written(folder: Path, *entries: dict[str, Any]) -> Path:
    (folder / "tasks.json").write_text(json.dumps(entries))
    return folder / "tasks.json"


def page(url: str, locator: str, **wanted: Any) -> dict[str, Any]:
    return {"url": url, "locator": locator, "required_contents": wanted}


def test_what_cannot_be_judged_is_told(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        entry(0, eval_types=["string_match"], reference_answers={"exact_match": "14"}),
        entry(1, eval_types=["string_match"], reference_answers={"fuzzy_match": ["two weeks"]}),
        entry(2, eval_types=["string_match"], reference_answers={"fuzzy_match": "N/A"}),
        entry(3, eval_types=["program_html"],
              program_html=[page("func:last_order()", "", must_include=["x"])]),
        entry(4, eval_types=["taste"]),
        entry(5, eval_types=["string_match"], reference_answers={"must_exclude": ["14"]}),
        entry(6, eval_types=["program_html"],
              program_html=[page("last", "", required_values=["> 0"])]),
    )  # fmt: skip
    suite = webarena_tasks(path, {"SHOPPING": "http://shop.example/"})
    assert list(suite.tasks) == ["0", "2"]
    assert suite.tasks["0"].url == "http://shop.example/terms"
    assert suite.tasks["2"].infeasible and not suite.tasks["0"].infeasible
    assert "language model" in suite.unsupported["1"]
    assert "programming interface" in suite.unsupported["3"]
    assert "taste" in suite.unsupported["4"]
    assert "must_exclude" in suite.unsupported["5"]
    assert "required_values" in suite.unsupported["6"]


@pytest.mark.parametrize(
    "check",
    [
        {"eval_types": ["string_match"]},
        {"eval_types": ["string_match"], "reference_answers": {}},
        {"eval_types": ["string_match"], "reference_answers": {"must_include": [""]}},
        {"eval_types": ["url_match"]},
        {"eval_types": ["url_match"], "reference_url": None},
        {"eval_types": ["program_html"]},
        {"eval_types": ["program_html"], "program_html": [page("last", "")]},
        {"eval_types": ["string_match", "url_match"], "reference_answers": {"exact_match": "14"}},
    ],
    ids=str,
)
def test_a_check_that_every_episode_would_pass_is_refused(
    tmp_path: Path, check: dict[str, Any]
) -> None:
    suite = webarena_tasks(
        written(tmp_path, entry(0, **check)), {"SHOPPING": "http://shop.example"}
    )
    assert not suite.tasks and "compares nothing" in suite.unsupported["0"]


def test_mistakes_name_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, entry(0, eval_types=["url_match"], reference_url="__SHOPPING__/x"))
    with pytest.raises(ConfigError, match="no URL for the site SHOPPING"):
        webarena_tasks(path, {})
    path.write_text('[{"task_id": 1}]')
    with pytest.raises(ConfigError, match="no tasks in WebArena's format"):
        webarena_tasks(path)
    with pytest.raises(ConfigError, match="no tasks"):
        webarena_tasks(tmp_path / "none.json")
    login = entry(0, "http://a.example", eval_types=["url_match"], reference_url="http://a.example")
    with pytest.raises(ConfigError, match="there is no"):
        webarena_tasks(written(tmp_path, login | {"storage_state": ".auth/a.json"}))


class FakeVisit:
    """A page whose scripts have these values; it keeps what it evaluated."""

    def __init__(self, *, answer: str = "", url: str = "", **values: Any) -> None:
        self.answer, self.url, self.values = answer, url, values
        self.ran: list[str] = []

    async def evaluate(self, expression: str) -> Any:
        self.ran.append(expression)
        found = self.values.get(expression.removeprefix("(() => ").removesuffix(")()"))
        if isinstance(found, Exception):
            raise found
        return found


@pytest.mark.parametrize(
    ("how", "wanted", "said", "right"),
    [("exact_match", "Sprite", ' "sprite" ', True), ("exact_match", "Sprite", "Sprite bag", False),
     ("must_include", ["6"], "there are 6.", True), ("must_include", ["6"], "there are 16", False),
     ("must_include", ["2"], "2.5 km", False), ("must_include", ["2"], "1,200 m or -2", False),
     ("must_include", ["2"], "(2%), at most", True), ("must_include", ["2"], "1,2", False),
     ("must_include", ["6", "a"], "16 a", True), ("must_include", ["x", "y"], "just x", False),
     ("must_include", ["Yoga"], "a YOGA ball", True)],
)  # fmt: skip
async def test_answers(
    tmp_path: Path, how: str, wanted: str | list[str], said: str, right: bool
) -> None:
    check = {"eval_types": ["string_match"], "reference_answers": {how: wanted}}
    task = webarena_tasks(written(tmp_path, entry(0, "http://a", **check)), {}).tasks["0"]
    assert await task.reward(FakeVisit(answer=said)) is right  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("wanted", "url", "right"),
    [("http://a/b", "http://a/b/", True), ("http://a/b", "http://a/b/c?x=1", True),
     ("http://a/c", "http://a/b", False), ("http://a/c |OR| http://a/b", "http://a/b", True),
     ("http://a/b?x=1", "http://a/b?y=2&x=1", True), ("http://a/b?x=1", "http://a/b?x=2", False),
     ("http://a/b?x=1", "http://a/b", False)],
)  # fmt: skip
async def test_addresses(tmp_path: Path, wanted: str, url: str, right: bool) -> None:
    check = {"eval_types": ["url_match"], "reference_url": wanted}
    task = webarena_tasks(written(tmp_path, entry(0, "http://a", **check)), {}).tasks["0"]
    assert await task.reward(FakeVisit(url=url)) is right  # type: ignore[arg-type,misc]


async def judged(tmp_path: Path, visit: FakeVisit, *pages: dict[str, Any]) -> bool:
    path = written(tmp_path, entry(0, eval_types=["program_html"], program_html=list(pages)))
    task = webarena_tasks(path, {"SHOPPING": "http://shop.example"}).tasks["0"]
    return bool(await task.reward(visit))  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("shown", "wanted", "right"), [(0, "0", True), (False, "false", True), (None, "0", False)]
)
async def test_a_number_or_a_truth_value_is_compared_as_text(
    tmp_path: Path, shown: object, wanted: str, right: bool
) -> None:
    check = page("last", "document.items", exact_match=wanted)
    assert await judged(tmp_path, FakeVisit(**{"document.items": shown}), check) is right


async def test_what_a_page_needs_before_it_is_read_is_done_first(tmp_path: Path) -> None:
    check = page("last", "document.price", exact_match="20") | {
        "prep_actions": ["document.open_the_section()", "document.never()"]
    }
    visit = FakeVisit(**{
        "document.open_the_section()": ScriptError("it is open"), "document.price": "20",
    })  # fmt: skip
    assert await judged(tmp_path, visit, check)
    assert visit.ran == ["(() => document.open_the_section())()", "(() => document.price)()"]
    visit = FakeVisit(**{"document.price": "20"})
    assert await judged(tmp_path, visit, check)
    assert len(visit.ran) == 3


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed")
async def test_tasks_are_played_and_judged(tmp_path: Path, shop: Site) -> None:
    cookie = {"name": "sid", "value": "known", "domain": "127.0.0.1", "path": "/", "expires": -1,
              "httpOnly": True, "secure": False, "sameSite": "Lax"}  # fmt: skip
    (tmp_path / "ada.json").write_text(json.dumps({"cookies": [cookie], "origins": []}))
    shop.sessions["known"] = "ada"
    hello = [page("__SHOPPING__/account", "document.querySelector('h1').innerText",
                  exact_match="Hello ada"),
             page("last", "", must_include=["shop |OR| market"])]  # fmt: skip
    path = written(
        tmp_path,
        entry(0, eval_types=["string_match", "url_match"],
              reference_answers={"must_include": ["14"]}, reference_url="__SHOPPING__/terms"),
        entry(1, eval_types=["program_html"], program_html=hello) | {"storage_state": "ada.json"},
        entry(2, eval_types=["program_html"], program_html=hello),
        entry(3, eval_types=["string_match"], reference_answers={"fuzzy_match": "N/A"}),
    )  # fmt: skip
    env = WebEnvironment(tasks=webarena_tasks(path, {"SHOPPING": shop.url}).tasks)

    async def played(task: str, *actions: Action) -> float:
        await env.reset(task=task, seed=0)
        rewards = [(await env.step(action)).reward for action in actions]
        return rewards[-1]

    answer = Action(action_type="answer", text="Within 14 days.")
    away = Action(action_type="open_app", app_name=f"{shop.url}/shop")
    assert await played("0", answer, DONE) == 1.0
    assert await played("0", answer, away, DONE) == 0.0, "another page is in front"
    assert await played("0", DONE) == 0.0
    assert await played("1", DONE) == 1.0
    assert await played("2", DONE) == 0.0, "without the cookie nobody is logged in"
    assert await played("3", Action(action_type="status", goal_status="infeasible")) == 1.0
    await env.close()
