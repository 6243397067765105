"""The study of credit: its arms, its reference, its record, and the page that shows it."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import demo_runs  # noqa: F401  (puts demos/ on the path)

from benchmarks.studies.credit import cells as study_cells
from benchmarks.studies.credit.__main__ import (
    WITHOUT_MODEL,
    collected,
    complete,
    files_of,
    main,
    run,
)
from benchmarks.studies.credit.cells import Cell
from benchmarks.studies.credit.plan import (
    ARMS,
    CONTRASTS,
    CRITIC_FREE,
    FACTORS,
    GUIDED,
    QUICK,
    SIDE_BY_SIDE,
    SOURCES,
    Plan,
)
from benchmarks.studies.credit.recorded import MARGIN, Recorded, inside, verdict
from benchmarks.studies.credit.report import (
    Study,
    arms_table,
    chosen,
    contrasts,
    difference,
    effects_table,
    markdown,
    rows,
    sources_table,
)
from benchmarks.studies.credit.starts import RepeatedPhone, repeated, training_starts
from benchmarks.studies.restore import restore
from benchmarks.support.records import read_record
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.compare import Scored

ROOT = Path(__file__).parents[2]

TINY = msgspec.structs.replace(
    QUICK, starts=1, steps=1, parameters=2, validation=1, recorded=1, continuations=1
)


def study(plan: Plan, *cells: Cell, base: float = 0.0) -> Study:
    from benchmarks.support.origin import Origin

    return Study(
        origin=Origin(commit="c" * 40, dirty=False, command="python -m x", machine="none"),
        plan=plan,
        recorded=Recorded(episodes=1, solved=0, messages=4, right=1, wrong=1, continuations=2),
        judged=[],
        base=(base,) * plan.parameters,
        cells=list(cells),
    )


def cell(arm: str, seed: int, test: list[float], validation: float = 0.0) -> Cell:
    return Cell(
        arm=arm, seed=seed, commit="c" * 40, dirty=False, test=tuple(test),
        validation=(validation,), rollouts=(0.5,), samples=10, steps=2, calls=8, credit_calls=0,
        digest="d", training_seconds=1.0, test_seconds=1.0,
    )  # fmt: skip


def test_arms_differ_in_what_they_name() -> None:
    assert [arm.credit for arm in SIDE_BY_SIDE] == list(SOURCES)
    assert {(arm.method, arm.guide, arm.graded, arm.judged) for arm in SIDE_BY_SIDE} == {
        ("rft", 0.0, None, False)
    }
    crossed = {(arm.credit, arm.guide, arm.graded) for arm in FACTORS}
    assert crossed == set(product(("outcome", "critic"), (0.0, 0.7), (False, True)))
    assert all(arm.method == "dpo" and arm.judged for arm in FACTORS)
    assert set(ARMS.values()) == {*SIDE_BY_SIDE, *GUIDED, *FACTORS}
    assert set(CRITIC_FREE) == set(SOURCES) - {"outcome", "critic", "learned"}
    assert len(CONTRASTS) == 3


async def test_attempts_at_one_start_see_the_same_first_screen() -> None:
    starts = training_starts(2, random.Random(0))
    jobs = repeated(starts, 3)
    looks = [await RepeatedPhone(3).reset(task=task, seed=seed) for task, seed in jobs]
    assert looks[0] == looks[1] == looks[2] != looks[3] == looks[5]
    assert len({seed for _, seed in jobs}) == 6


def test_the_three_kinds_of_episodes_have_other_seeds() -> None:
    plan = Plan()
    test, validation = study_cells.test_jobs(plan), study_cells.validation_jobs(plan)
    assert len(test) == plan.parameters and len(validation) == plan.validation
    assert min(seed for _, seed in test) >= 20_000_000
    assert all(10_000_000 <= seed < 20_000_000 for _, seed in validation)
    assert all(seed < 10_000_000 for _, seed in training_starts(16, random.Random(1)))


def test_the_reference_judges_only_clear_differences() -> None:
    assert verdict(0.5, 0.5) == verdict(0.5, 0.75) == verdict(0.0, 0.125) == 1.0
    assert verdict(0.75, 0.75 - MARGIN) == verdict(1.0, 0.0) == 0.0
    assert verdict(0.5, 0.375) is verdict(0.0, 0.0) is verdict(None, 1.0) is None


def test_pairs_of_one_decision_are_compared() -> None:
    told = [(0, 0.9, True), (0, 0.1, False), (1, 0.5, True), (1, 0.5, False), (2, 0.0, True)]
    found = [Scored(0, k, 0, f"agent_{i}", s, 1.0, r) for i, (k, s, r) in enumerate(told)]
    whole = inside(found, [0] * len(found))
    assert whole is not None and whole.mean == 0.75  # one pair won, one tied
    assert inside(found[-1:], [0]) is None


def test_differences_are_paired_by_seed_and_the_best_source_is_chosen_on_validation() -> None:
    plan = msgspec.structs.replace(TINY, parameters=2)
    cells = [cell("outcome", seed, [0.0, 1.0]) for seed in (1, 2, 3)]
    cells += [cell("critic", seed, [1.0, 1.0]) for seed in (1, 2, 3)]
    cells += [cell("states", seed, [1.0, 0.0], validation=1.0) for seed in (1, 2, 3)]
    cells += [cell("tree", seed, [1.0, 1.0], validation=0.0) for seed in (1, 2, 3)]
    cells += [cell("agents", 1, [1.0, 1.0], validation=1.0)]  # not all seeds: not chosen
    found = study(plan, *cells)
    assert chosen(found) == "states"
    assert {c.arm for c in complete(found, [1, 2, 3]).cells} == {
        "outcome", "critic", "states", "tree",
    }  # fmt: skip
    first, second = contrasts(found)
    assert (first.name, first.difference, first.seeds) == (CONTRASTS[0], 0.5, 3)
    assert (first.t_low, first.t_high) == (0.5, 0.5)
    assert second.name.endswith(SOURCES["states"]) and second.difference == 0.0
    part = difference(found, "x", ["agents"], ["outcome"])
    assert part is not None and (part.seeds, part.t_low) == (1, None)
    assert difference(found, "x", ["shapley"], ["outcome"]) is None
    both = difference(found, "x", ["critic", "states"], ["outcome"])
    assert both is not None and both.difference == 0.25
    made = rows(found)
    by_name = {row.name: row for row in made}
    assert next(iter(by_name)) == "untrained" and by_name["critic"].success == 1.0
    assert "| Shapley | – | – | – | – | – | not run" in sources_table(found, made)
    assert "exploratory" in effects_table(found) and "not run" in arms_table(made)


@pytest.mark.filterwarnings("ignore:iteration .* no adapter was trained")  # so few episodes
@pytest.mark.parametrize(
    ("arms", "more"),
    [
        (["outcome"], "states"),
        pytest.param(
            ["outcome", "states", "dpo-critic-guided-graded"], "critic", marks=pytest.mark.slow
        ),
    ],
)
def test_cells_train_are_kept_and_are_collected(tmp_path: Path, arms: list[str], more: str) -> None:
    run(TINY, tmp_path, arms, [1], WITHOUT_MODEL)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    found = collected(TINY, tmp_path)
    assert [c.arm for c in found.cells] == arms
    assert {one.source for one in found.judged} == set(WITHOUT_MODEL) == set(SOURCES) - {"learned"}
    assert all(one.calls > 0 for one in found.judged if one.source in ("removed", "shapley"))
    assert found.recorded.episodes == TINY.attempts and found.recorded.continuations > 0
    for one in found.cells:
        assert len(one.test) == TINY.parameters and one.calls > 0 and one.training_seconds > 0
    assert markdown(found, rows(found))
    run(TINY, tmp_path, arms, [1], WITHOUT_MODEL)
    assert files == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    with pytest.raises(ConfigError, match="started with other options"):
        collected(QUICK, tmp_path)
    other = tmp_path / "restored"
    restore("credit", other, {"settings.json": TINY}, files_of(found))
    assert collected(TINY, other) == found
    trained = {path: path.stat().st_mtime_ns for path in other.rglob("*.json")}
    run(TINY, other, ["outcome", more], [1], WITHOUT_MODEL)
    assert {c.arm for c in collected(TINY, other).cells} == {*arms, more}
    assert all(path.stat().st_mtime_ns == time for path, time in trained.items())
    (other / "judged" / "critic.json").unlink()
    with pytest.raises(ConfigError, match="lacks the recorded episodes, which a record does not"):
        run(TINY, other, [], [], WITHOUT_MODEL)
    with pytest.raises(ConfigError, match="holds no study"):
        collected(TINY, tmp_path / "other")


def test_the_page_shows_the_record(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_record("credit", Study)
    assert len(found.origin.commit) == 40 and not found.origin.dirty
    assert all(len(c.commit) == 40 and not c.dirty for c in found.cells)
    assert found.plan == Plan() and {one.source for one in found.judged} >= set(WITHOUT_MODEL)
    monkeypatch.setattr("sys.argv", ["credit", "--recorded"])
    assert main() == 0
    printed = capsys.readouterr().out
    for row in json.loads(printed.splitlines()[-1]):
        assert {"name", "success", "cluster_low", "t_low", "steps", "calls", "cpu_s"} <= set(row)
    page = (ROOT / "docs" / "credit.md").read_text(encoding="utf-8")
    tables = [part for part in printed.split("\n\n") if part.startswith("| ")]
    assert len(tables) == 3
    for table in [*tables[:2], tables[2].partition("\n[")[0]]:  # the JSON follows the last one
        assert table in page


def test_without_a_folder_it_says_what_to_give(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["credit"])
    assert main() == 2
    assert "give --out FOLDER" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["credit", "--out", "x", "--only", "luck"])
    assert main() == 2
    assert "got 'luck'" in capsys.readouterr().err
