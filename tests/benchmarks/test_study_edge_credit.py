"""The study of credit for edges: its sources of credit, its figures, its record and its page."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import demo_runs  # noqa: F401  (puts demos/ on the path)

from benchmarks.studies.edge_credit.__main__ import NAME, main
from benchmarks.studies.edge_credit.cells import Cell, Cells, Choice, Played
from benchmarks.studies.edge_credit.picture import picture
from benchmarks.studies.edge_credit.plan import (
    ARMS,
    CANDIDATES,
    CONTRASTS,
    CRITIC,
    ERRORS,
    HELD,
    OUTCOME,
    POINTS,
    WITHOUT,
    Budget,
    Setting,
)
from benchmarks.studies.edge_credit.report import (
    AS_SPLIT,
    Study,
    choices_table,
    contrasts_table,
    curve_table,
    speed_table,
    study_of,
)
from benchmarks.studies.edge_credit.sources import source
from benchmarks.studies.split.learning import AGENTS, Graphs, Learned, Plan, learn
from benchmarks.support.records import read_record
from swarm_ui.environments.phone import TEST_SEEDS, TRAIN_SEEDS, draw_jobs
from swarm_ui.environments.phone.split import SplitPhone, split_tasks
from swarm_ui.experiment.split_facts import SplitTeams
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.rollout import rollout_many
from swarm_ui.stats import Outcome
from swarm_ui.trace.records import EdgeName, Episode

TINY = Budget(steps=1, graphs=1, tuning_steps=1, tuning_seeds=(100,), candidates=2, each=1)
PAGE = Path(__file__).parents[2] / "docs" / "edges.md"
TASK = "split-page-budget"
"""It needs browser and messages, and ends in expenses."""


def credit_of(arm: str, *edges: EdgeName) -> tuple[dict[EdgeName, float], int]:
    """Credit of the edges of one episode without a share of later messages, and its calls."""

    async def played() -> Episode:
        policy = SplitTeams(SplitPhone(agents=AGENTS)).policy("x", lambda task, seed: edges)
        make = partial(SplitPhone, agents=AGENTS)
        return (await rollout_many(make, policy, [(TASK, 5)]))[0]

    given = source(arm, 0.0, 0)
    assert given is not None
    sample = EdgeSample(order=(), edges=edges, log_prob=0.0)
    return dict(asyncio.run(given(asyncio.run(played()), sample))), given.calls


NEEDED = (("browser", "expenses"), ("messages", "expenses"))


def test_the_critic_rewards_the_messages_with_needed_values_only() -> None:
    found, calls = credit_of(CRITIC, *NEEDED, ("notes", "expenses"), ("browser", "notes"))
    assert found == {
        ("browser", "expenses"): 0.5, ("messages", "expenses"): 0.5, ("notes", "expenses"): -0.5,
        ("browser", "notes"): 0.5,  # the critic does not know who needs to hear a message
    }  # fmt: skip
    assert calls == 0


def test_a_left_out_message_gets_the_difference_that_it_made() -> None:
    found, calls = credit_of(WITHOUT, *NEEDED, ("notes", "expenses"))
    assert found == {
        ("browser", "expenses"): 0.5, ("messages", "expenses"): 0.5, ("notes", "expenses"): 0.0,
    }  # fmt: skip
    assert calls >= 3  # the acting agent decided again without each of the three


def test_in_a_failed_episode_no_single_message_makes_a_difference() -> None:
    found, calls = credit_of(WITHOUT, NEEDED[0], ("notes", "expenses"))
    assert set(found.values()) == {0.0} and calls >= 2
    assert credit_of(CRITIC, NEEDED[0])[0] == {NEEDED[0]: 0.5}


def test_errors_of_the_critic_change_credit() -> None:
    edges = [(app, "expenses") for app in ("browser", "calendar", "notes", "files", "contacts",
                                           "messages", "clock", "tasks", "settings")]  # fmt: skip
    right, wrong = credit_of(CRITIC, *edges)[0], credit_of(ERRORS, *edges)[0]
    assert 1 <= sum(right[edge] != wrong[edge] for edge in edges) < len(edges)


def test_credit_changes_what_is_learned_and_graphs_are_told_after_each_step() -> None:
    told: list[tuple[int, Graphs]] = []
    plan = Plan(steps=2, graphs=2, credit_weight=3.0)
    plain = learn(plan, 1, after=lambda step, graphs: told.append((step, graphs)))
    assert [step for step, _ in told] == [1, 2] and told[-1][1] == plain.edges
    credited = learn(plan, 1, credit=source(CRITIC, 0.0, 1))
    assert plain.success[0] == credited.success[0] and plain.calls > 0
    assert plain.edges != credited.edges


def test_arms_are_tried_with_equal_effort_and_equal_episodes() -> None:
    assert {len(tried) for tried in CANDIDATES.values()} == {Budget().candidates}
    assert set(ARMS) == {*CANDIDATES, ERRORS}
    assert all(setting.weight == 0.0 for setting in CANDIDATES[OUTCOME])
    plans = {Budget().plan(setting).episodes for tried in CANDIDATES.values() for setting in tried}
    assert plans == {Plan().episodes} == {4160}
    assert Budget().points() == POINTS and Budget(steps=6).points() == {
        "1/20": 2,
        "1/8": 5,
        "all": 6,
    }


def test_an_arm_is_chosen_run_and_read_again(tmp_path: Path) -> None:
    cells = Cells(tmp_path, TINY)
    choice = cells.choose(OUTCOME)
    assert len(choice.tried) == 2 and choice.setting in CANDIDATES[OUTCOME][:2]
    cells.choice_path(OUTCOME).parent.mkdir()
    cells.choice_path(OUTCOME).write_bytes(msgspec.json.encode(choice))
    cell = cells.run(OUTCOME, 0)
    assert cell.setting == choice.setting and cell.credit_calls == 0
    assert list(cell.tests) == ["all"] and len(cell.curve["train"]) == 1
    jobs = {(o.template, o.seed) for o in cell.tests["all"]["train"].outcomes}
    assert jobs == set(draw_jobs(split_tasks("train"), 13, 1, seeds=TEST_SEEDS))
    assert not any(seed in TRAIN_SEEDS for _, seed in jobs)


def cell(arm: str, seed: int, curve: list[tuple[float, float]]) -> Cell:
    """A cell whose tests at the end have the success and tokens of the last step."""
    success, spent = curve[-1]
    solved = [float(k < round(success * 12)) for k in range(12)]
    tested = Played(
        outcomes=[Outcome(f"task-{k}", 0, value, seed) for k, value in enumerate(solved)],
        tokens=spent,
    )
    learned = Learned(
        seed=seed, edges={"clock": (("calendar", "clock"), ("files", "clock"))},
        success=(0.5,) * len(curve), tokens=(spent,) * len(curve), price=0.0, calls=10, seconds=1.0,
    )  # fmt: skip
    points = Budget(steps=len(curve)).points()
    return Cell(
        arm=arm, seed=seed, commit="c" * 40, setting=Setting(), learned=learned, credit_calls=3,
        curve={"train": curve, "new_templates": curve},
        tests={point: {"train": tested, "new_templates": tested} for point in points},
    )  # fmt: skip


def test_near_the_oracle_must_hold() -> None:
    curve = [(1.0, 9.0), (0.9, 9.0), *[(1.0, 9.0)] * HELD]
    assert cell(CRITIC, 0, curve).reached() == 3
    assert cell(CRITIC, 0, curve[:-1]).reached() is None
    assert cell(CRITIC, 0, curve).reached(8.0) is None


def test_figures_of_cells(tmp_path: Path) -> None:
    budget = Budget(steps=6)
    (tmp_path / "settings.json").write_bytes(msgspec.json.encode(budget))
    folder = Cells(tmp_path, budget)
    folder.path(CRITIC, 0).parent.mkdir()
    folder.choice_path(CRITIC).parent.mkdir()
    first = cell(OUTCOME, 0, [(1.0, 100.0)] * 6).tests["all"]
    (tmp_path / "oracle.json").write_bytes(msgspec.json.encode(first))
    for arm, success, spent in ((OUTCOME, 0.5, 300.0), (CRITIC, 1.0, 150.0)):
        made = Choice(arm=arm, commit="c", setting=Setting(), tried=[(Setting(), success, spent)])
        folder.choice_path(arm).write_bytes(msgspec.json.encode(made))
        for seed in (0, 1, 2):
            one = cell(arm, seed, [(success, spent + seed)] * 6)
            folder.path(arm, seed).write_bytes(msgspec.json.encode(one))
    study = study_of(tmp_path)
    named = [c for c in study.contrasts if c.named]
    assert [(c.ours, c.theirs, c.point, c.measure) for c in named] == [
        (CRITIC, OUTCOME, "1/8", "success"), (CRITIC, OUTCOME, "all", "tokens"),
    ]  # fmt: skip
    assert named[0].difference == 0.5 and named[0].low > 0.0
    assert named[1].difference == -150.0 and named[1].high < 0.0
    speeds = {speed.name: speed for speed in study.speeds}
    assert speeds[CRITIC].cheap == [104, 104, 104] and speeds[OUTCOME].reached == [None] * 3
    assert speeds[CRITIC].needed_found == [1, 1, 1] and speeds[CRITIC].other_edges == [1, 1, 1]
    lines = [line for line in study.lines if line.name == CRITIC]
    assert [line.episodes for line in lines] == [[104 * k for k in range(1, 7)]] * 2
    picture(study, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 10_000


@pytest.mark.slow
def test_the_quick_run_makes_all_arms(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["edge_credit", "--quick"])
    assert main() == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {row["name"] for row in found["rows"]} == {"oracle router", AS_SPLIT, *ARMS}


def test_the_page_shows_the_record(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = read_record(NAME, Study)
    assert len(study.origin.commit) == 40 and not study.origin.dirty
    assert study.budget == Budget() and {len(c) for c in study.commits} == {40}
    named = [c for c in study.contrasts if c.named]
    assert len(named) == 2 * len(CONTRASTS)
    assert all(len(c.by_seed) >= 5 for c in named if c.ours == CRITIC)
    monkeypatch.setattr("sys.argv", ["edge_credit", "--recorded"])
    assert main() == 0
    printed, page = capsys.readouterr().out, PAGE.read_text(encoding="utf-8")
    for table in (curve_table(study), speed_table(study)):
        assert table in printed and table in page
    assert contrasts_table(study) in printed and choices_table(study) in printed
    for row in json.loads(printed.splitlines()[-1])["rows"]:
        assert {"name", "success", "low", "high", "seeds", "tokens"} <= set(row)
