"""The continuation study: its splits, its made-up traces, its worlds and its figures."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from demo_runs import environment, needs_agent
from miniwob_browser import needs_browser

from benchmarks.studies.continuation import tasks as tasks
from benchmarks.studies.continuation.cells import Cell, Played
from benchmarks.studies.continuation.report import (
    NAME,
    figures,
    gaps_table,
    markdown,
    study_of,
    summary,
)
from benchmarks.studies.continuation.traces import KNOWN, NEW, make_traces
from benchmarks.studies.continuation.worlds import Pages
from benchmarks.support.records import read_record
from swarm_ui.action import Action
from swarm_ui.environments.mind2web import Mind2Web
from swarm_ui.environments.miniwob import all_html_tasks
from swarm_ui.environments.miniwob.splits import TEST_SEEDS, TRAIN_SEEDS, VALIDATION_SEEDS
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation
from swarm_ui.stats import Outcome, clustered_mean

# -- what is trained on and what is not ------------------------------------------------------------


def test_no_page_is_in_two_groups() -> None:
    groups = [*tasks.CANDIDATES, *tasks.HELD_OUT, *tasks.EASY]
    assert len(groups) == len(set(groups))
    pytest.importorskip("miniwob")
    assert set(groups) <= set(all_html_tasks())


def test_training_the_look_and_the_test_share_no_seed() -> None:
    seeds = [TRAIN_SEEDS, VALIDATION_SEEDS, TEST_SEEDS]
    assert sum(map(len, seeds)) == len(set().union(*seeds))
    jobs = tasks.drawn("test", ["a", "b"], 5, TEST_SEEDS)
    assert jobs == tasks.drawn("test", ["a", "b"], 5, TEST_SEEDS)
    assert [task for task, _ in jobs] == ["a"] * 5 + ["b"] * 5
    assert jobs != tasks.drawn("look", ["a", "b"], 5, TEST_SEEDS)


def test_a_look_drops_what_is_always_or_never_solved() -> None:
    look: dict[str, list[float | None]] = {
        "solved": [1.0] * 12, "never": [0.0] * 12, "once": [1.0] + [0.0] * 11,
        "masked": [None] * 12, "half": [1.0, 0.0, None],
    }  # fmt: skip
    assert tasks.kept(look) == ("once", "half")


def test_held_out_pages_are_near_where_their_family_is_trained() -> None:
    found = tasks.splits(("click-menu", "email-inbox-delete"))
    assert found["web"] == ("click-menu", "email-inbox-delete")
    assert found["web_near"] == ("email-inbox", "email-inbox-nl-turk")
    assert set(found["web_near"]) | set(found["web_far"]) == set(tasks.HELD_OUT)
    assert not set(found["web_near"]) & set(found["web_far"])


# -- made-up recorded tasks ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_traces(tmp_path_factory.mktemp("traces"), train=24, test=12)


def test_no_recorded_task_of_a_test_is_trained_on(traces: Path) -> None:
    goals: list[str] = []
    for split, count in (("train", 24), ("test_task", 12), ("test_website", 12)):
        written = json.loads((traces / f"{split}_0.json").read_text(encoding="utf-8"))
        assert len(written) == count
        goals += [task["confirmed_task"] for task in written]
    assert len(goals) == len(set(goals))
    assert not set(KNOWN) & set(NEW)


def test_the_recorded_actions_are_right_and_others_are_not(traces: Path) -> None:
    for split in ("train", "test_task", "test_website"):
        data = Mind2Web(traces, split, top_k=None)  # type: ignore[arg-type]
        for task in data.tasks:
            for step in data.load(task):
                expert = step.expert()
                assert step.right(expert)
                assert expert.index is not None
                wrong = (expert.index + 1) % len(step.observation.elements)
                assert not step.right(elsewhere(expert, wrong))


def elsewhere(action: Action, index: int) -> Action:
    return Action(action_type=action.action_type, text=action.text, index=index)


def test_traces_are_always_the_same_and_more_than_there_are_is_an_error(
    traces: Path, tmp_path: Path
) -> None:
    again = make_traces(tmp_path, train=24, test=12)
    assert (again / "train_0.json").read_bytes() == (traces / "train_0.json").read_bytes()
    with pytest.raises(ConfigError, match="request fewer"):
        make_traces(tmp_path / "many", train=20_000, test=1)


# -- worlds ----------------------------------------------------------------------------------------


class FakePage:
    """As much of a real page as dealing pages out needs."""

    def __init__(self) -> None:
        self.task: str | None = None
        self.loads = 0

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.loads += self.task != task
        self.task = task
        return Observation(goal=f"{task} {seed}", elements=())

    async def step(self, action: Action) -> Any:
        from swarm_ui.environment import Step

        return Step(
            observation=Observation(goal="", elements=()), terminated=action.action_type == "status"
        )


async def test_an_episode_gets_the_page_that_shows_its_task() -> None:
    fakes = [FakePage(), FakePage()]
    pages = Pages(fakes)  # type: ignore[arg-type]
    one, other = pages.environment(), pages.environment()
    end = Action(action_type="status", goal_status="complete")
    for _ in range(3):
        assert (await one.reset(task="a", seed=1)).goal == "a 1"
        await other.reset(task="b", seed=2)
        assert not (await one.step(Action(action_type="wait"))).ended
        for page in (other, one):
            assert (await page.step(end)).ended
    assert [fake.loads for fake in fakes] == [1, 1]
    with pytest.raises(EnvironmentFault, match="no episode"):
        await one.step(end)
    await one.reset(task="a", seed=1)
    await other.reset(task="b", seed=1)
    with pytest.raises(EnvironmentFault, match="in use"):
        await pages.environment().reset(task="a", seed=1)
    await one.close()
    await pages.environment().reset(task="c", seed=1)


# -- figures ---------------------------------------------------------------------------------------

JOBS = (("a", 1), ("a", 2), ("b", 1), ("b", 2))


def keep(
    folder: Path, outcomes: Sequence[float | None], cpu: float | None = None,
    browser: float = 0.0, jobs: tuple[tuple[str, int], ...] = JOBS,
) -> None:  # fmt: skip
    """Write a cell that played the split ``web``."""
    cell = Cell.load(folder)
    keep_in(cell, outcomes, jobs)
    if cpu is not None:
        cell.finish(cpu, browser)


def keep_in(
    cell: Cell, outcomes: Sequence[float | None],
    jobs: tuple[tuple[str, int], ...] = JOBS,
) -> None:  # fmt: skip
    cell.keep(Played(split="web", jobs=jobs, success=tuple(outcomes)))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    keep(tmp_path / "base", [0, 0, 1, 0])
    keep(tmp_path / "phone-1", [0, 0, 1, 0], 60)
    keep(tmp_path / "phone-2", [0, 0, 0, None], 80)
    keep(tmp_path / "web-1", [1, 1, 1, 0], 50, 10)
    keep(tmp_path / "web-2", [1, 1, 0, 1], 40, 20)
    keep(tmp_path / "control-1", [0, 0, 1, 1], 60)
    return tmp_path


def test_rows_say_what_was_measured(study: Path) -> None:
    found = {row["name"]: row for row in figures(study)["rows"]}
    before, after = found["web_before"], found["web_after"]
    assert before["success"] == pytest.approx(1 / 7)  # one of eight is masked
    assert (before["training_seeds"], before["by_seed"]) == ([1, 2], [0.25, 0.0])
    assert (after["success"], after["seeds"], after["episodes"]) == (0.75, 2, 4)
    assert after["cpu_s"] == (60 + 50 + 10 + 80 + 40 + 20) / 2
    assert found["web_control"]["cpu_s"] == 60 + 60
    assert found["base_x1"]["cpu_s"] == 0
    for row in found.values():
        assert {"name", "split", "success", "low", "high", "seeds", "episodes", "cpu_s"} <= {*row}
        assert row["split"] == "web"


def test_intervals_are_clustered_by_task_and_seed(study: Path) -> None:
    after = next(row for row in figures(study)["rows"] if row["name"] == "web_after")
    cells = [Cell.load(study / "web-1"), Cell.load(study / "web-2")]
    expected = clustered_mean(
        [
            Outcome(*job, value, cell.seed)
            for cell in cells
            for job, value in zip(JOBS, cell.record.played[0].success, strict=True)
        ]
    )
    assert expected is not None
    assert (after["success"], after["low"], after["high"]) == (
        expected.mean, expected.low, expected.high,
    )  # fmt: skip
    assert after["tasks"] == 2


def test_differences_are_paired_by_episode_and_seed(study: Path) -> None:
    found = {d["name"]: d for d in figures(study)["differences"]}
    gain = found["web_after - web_before"]
    assert gain["by_seed"] == [0.5, pytest.approx(2 / 3)]  # of seed 2 one episode was masked
    assert gain["low"] <= gain["mean"] <= gain["high"]
    assert found["web_after - web_control"]["by_seed"] == [0.25]
    assert found["web_after - web_control"]["over_seeds"] is None
    assert found["web_before - base_x1"]["by_seed"] == [0.0, pytest.approx(-1 / 3)]


def test_seeds_may_share_one_team_of_the_phone(study: Path) -> None:
    cell = Cell.load(study / "web-3")
    cell.record.phone_seed = 1
    keep_in(cell, [1, 1, 1, 1])
    cell.finish(30, 0)
    data = figures(study)
    gain = next(d for d in data["differences"] if d["name"] == "web_after - web_before")
    assert gain["by_seed"] == [0.5, pytest.approx(2 / 3), 0.75]
    after = next(row for row in data["rows"] if row["name"] == "web_after")
    assert after["cpu_s"] == pytest.approx((120 + 140 + 60 + 30) / 3)


def test_other_episodes_are_refused(study: Path) -> None:
    keep(study / "web-3", [1, 1, 1, 0], 50, jobs=JOBS[::-1])
    with pytest.raises(ConfigError, match="same episodes"):
        figures(study)


def test_recorded_tasks_count_by_their_steps(tmp_path: Path) -> None:
    cell = Cell.load(tmp_path / "traces-1")
    cell.keep(
        Played(
            split="traces_tasks", jobs=JOBS[:2], success=(0.0, 0.0),
            step_success=(0.5, 0.75), element=(1.0, None),
        )
    )  # fmt: skip
    (row,) = figures(tmp_path)["rows"]
    assert (row["name"], row["success"], row["element_accuracy"]) == ("traces_after", 0.625, 1.0)


def test_the_tables_and_the_record(study: Path) -> None:
    data = figures(study)
    text = markdown(data)
    after = next(row for row in data["rows"] if row["name"] == "web_after")
    low, high = 100 * after["low"], 100 * after["high"]
    assert f"| phone → web | 2 | 75.0 [{low:.1f}, {high:.1f}] |" in text
    assert "| phone → web minus phone | pages trained on, new seeds | +" in text
    kept = study_of(study)
    assert kept["training_seeds"] == [1, 2] and kept["origin"]["commit"]
    assert kept["rows"] == data["rows"]


def test_the_page_has_the_tables_of_the_record() -> None:
    page = (Path(__file__).parents[2] / "docs" / "continuation.md").read_text(encoding="utf-8")
    record = read_record(NAME, dict[str, Any])
    assert summary(record) in page
    assert gaps_table(record, stages_only=True) in summary(record)


def test_a_cell_goes_on_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    cell = Cell.load(tmp_path / "web_rehearsed-7")
    assert (cell.record.stage, cell.seed, cell.done) == ("web_rehearsed", 7, False)
    cell.keep(Played(split="web", jobs=JOBS, success=(None,) * 4))
    cell.finish(12.0, 3.0)
    again = Cell.load(cell.folder)
    assert again.done and again.has("web") and not again.has("web_near")
    assert again.cpu == 15.0
    (cell.folder / "measured.json").write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        Cell.load(cell.folder)
    with pytest.raises(ConfigError, match="holds no study"):
        figures(tmp_path / "nothing")


# -- the whole -------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_agent
def test_lessons_are_dealt_out_and_last_as_long_as_they_may() -> None:
    pytest.importorskip("torch")
    from benchmarks.studies.continuation.lessons import Lessons
    from swarm_ui.experiment.settings import Settings
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

    settings = dataclasses.replace(Settings(), agents=2, seed=3)
    lessons = Lessons(settings, 2)
    pairs = lessons.pairs(8)
    assert [pair.node for pair in pairs] == ["agent_0", "agent_1"] * 4
    assert [p.chosen for p in pairs] == [p.chosen for p in Lessons(settings, 2).pairs(8)]

    def team() -> LocalModel:
        model = LocalModel.load()
        for name in ("agent_0", "agent_1"):
            model.add_adapter(name, 4, 8)
        return model

    assert lessons.config_for(0.0, team).iterations == 1
    assert lessons.config_for(1000.0, team).iterations > 100
    config = dataclasses.replace(lessons.config_for(0.0, team), iterations=2, shared_iterations=2)
    model = team()
    told: list[float] = []
    assert lessons.teach(model, config, lambda done, note: told.append(done)) > 0
    assert told == [1, 2]
    weights = [model.adapter_parameters(name) for name in ("agent_0", "agent_1")]
    assert all(float(p.detach().abs().sum()) > 0 for several in weights for p in several)
    assert all(a.equal(b) for a, b in zip(*weights, strict=True))


@pytest.mark.soak
@needs_agent
@needs_browser()
@pytest.mark.timeout(600)
def test_quick_goes_through_all_stages_and_is_not_done_twice(tmp_path: Path) -> None:
    pytest.importorskip("peft")

    def go() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "benchmarks.studies.continuation", "--quick",
             "--out", str(tmp_path / "run")],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=500,
        )  # fmt: skip

    done = go()
    assert done.returncode == 0, done.stderr
    stages = {"base", "phone-1", "web-1", "control-1", "traces-1", "web_rehearsed-1",
              "traces_rehearsed-1"}  # fmt: skip
    files = {path.parent.name: path for path in (tmp_path / "run").glob("*/measured.json")}
    assert files.keys() == stages
    data = json.loads(done.stdout.splitlines()[-1])
    rows = {(row["name"], row["split"]) for row in data["rows"]}
    assert {("web_before", "web"), ("web_after", "web"), ("web_control", "web_far"),
            ("traces_rehearsed", "new_apps"), ("base_x1", "traces_sites")} <= rows  # fmt: skip
    assert "| phone → web |" in done.stdout
    before = {name: path.read_bytes() for name, path in files.items()}
    again = go()
    assert again.returncode == 0, again.stderr
    assert {name: path.read_bytes() for name, path in files.items()} == before
