"""The study of invented devices in stage 2: its episodes, its figures, and its page."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import demo_runs  # noqa: F401  (puts demos/ on the path)

from benchmarks.studies.invented_training import __main__ as study
from benchmarks.studies.invented_training.cells import Cell, Cells
from benchmarks.studies.invented_training.picture import picture
from benchmarks.studies.invented_training.plan import (
    BASE,
    DEVICES,
    DEVICES_APART,
    GENERAL,
    STUDIES,
    TAUGHT,
    Plan,
    blind_jobs,
    design_of,
    held_out_jobs,
    make_environment,
    quick,
    training_jobs,
)
from benchmarks.studies.invented_training.report import (
    Record,
    contrasts_table,
    main_contrasts,
    record_of,
    rows_table,
)
from benchmarks.support import records
from benchmarks.support.records import read_record
from swarm_ui.environments.phone import TEST_SEEDS, TRAIN_SEEDS, tasks
from swarm_ui.environments.phone.invented import BLIND, SIMPLE_KINDS, UNSEEN, blind_tasks
from swarm_ui.rollout import Job
from swarm_ui.stats import Outcome

DESIGN = design_of(Plan())
PAGE = Path(__file__).parents[2] / "docs" / "generalisation.md"


def numbers(jobs: list[Job]) -> set[int]:
    """Numbers of the devices."""
    return {int(task.split("-")[1]) for task, _ in jobs if task.startswith("invented-")}


@pytest.mark.parametrize("arm", [*DEVICES, *TAUGHT], ids=lambda arm: arm.label)
def test_half_of_the_training_episodes_are_on_the_devices_of_arm_and_seed(arm) -> None:  # type: ignore[no-untyped-def]
    for seed in (1, 3):
        jobs = training_jobs(arm, seed, 400, random.Random(7))
        assert len(jobs) == 400 and all(number in TRAIN_SEEDS for _, number in jobs)
        own = [job for job in jobs if job[0].startswith("invented-")]
        assert len(own) == (200 if arm.devices else 0)
        assert {task.split("-")[2] for task, _ in own} <= set(SIMPLE_KINDS)
        first = DEVICES_APART * seed
        assert numbers(jobs) <= set(range(first, first + arm.devices))
        assert (
            len(numbers(jobs)) >= min(0.8 * arm.devices, 90)
            and max(numbers(jobs), default=0) < UNSEEN
        )
        assert {task for task, _ in jobs} - {task for task, _ in own} == set(tasks("train"))


def test_test_episodes_have_test_seeds_and_the_blind_set_is_apart() -> None:
    plan = Plan()
    jobs = {split: list(chosen) for split, chosen in held_out_jobs(plan).items()}
    assert {s: len(found) for s, found in jobs.items()} == {
        "parameters": plan.parameters, "templates": plan.templates, "apps": plan.apps,
        "devices": plan.devices,
    }  # fmt: skip
    assert min(numbers(jobs["devices"])) >= UNSEEN and max(numbers(jobs["devices"])) < BLIND
    blind = list(blind_jobs(plan)["blind"])
    assert len({task for task, _ in blind}) == plan.blind >= 60
    assert {task for task, _ in blind} <= set(blind_tasks())
    sets = [list(blind_jobs(study)["blind"]) for study in STUDIES.values()]
    assert all(len({task for task, _ in found}) == plan.blind for found in sets)
    each = [numbers(found) for found in sets]
    assert len(frozenset().union(*each)) == sum(map(len, each))  # no device is played twice
    for task, seed in [job for found in (*jobs.values(), *sets) for job in found]:
        assert seed in TEST_SEEDS
        make_environment().begin(task, seed)


def cell(arm: str, seed: int, apps: float) -> Cell:
    """A cell with a share of solved episodes on new apps; on the blind set it is the same."""
    rng = random.Random(f"{arm} {seed}")

    def drawn(jobs: list[Job]) -> list[Outcome]:
        return [Outcome(t, s, float(rng.random() < apps), seed) for t, s in jobs]

    return Cell(
        arm=arm, seed=seed, commit="c" * 40, steps=10, samples=20, calls=30, training_seconds=4.0,
        outcomes={"apps": drawn(list(held_out_jobs(Plan())["apps"])),
                  "blind": drawn(list(blind_jobs(Plan())["blind"]))},
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study of three seeds in which more devices are better."""
    cells = Cells(tmp_path, Plan())
    cells.path(BASE, 0).parent.mkdir()
    (tmp_path / "settings.json").write_bytes(msgspec.json.encode(Plan()))
    shares = {BASE: 0.3, GENERAL: 0.6, "0": 0.3, "32": 0.8, "stage1": 0.5}
    for arm, share in shares.items():
        for seed in (0,) if arm in (BASE, GENERAL) else (1, 2, 3):
            cells.path(arm, seed).write_bytes(msgspec.json.encode(cell(arm, seed, share)) + b"\n")
    return tmp_path


def test_figures_of_cells(folder: Path, tmp_path: Path) -> None:
    record = record_of(folder)
    row = next(r for r in record.rows if (r.name, r.split) == ("32", "apps"))
    assert row.low < row.success < row.high and abs(row.success - 0.8) < 0.06
    assert row.seeds == 3 and row.episodes == Plan().apps and row.t_low is not None
    named = [c for c in record.contrasts if c.named]
    assert [(c.ours, c.theirs) for c in named] == list(DESIGN.contrasts)
    assert all(c.split == "apps" and c.low > 0.1 and len(c.by_seed) == 3 for c in named)
    shipped = {c.theirs: c for c in record.contrasts if c.ours == GENERAL and c.split == "apps"}
    assert set(shipped) == {BASE, "stage1"} and shipped[BASE].low > 0.05
    assert len(shipped[BASE].by_seed) == 1 and len(shipped["stage1"].by_seed) == 3
    blind = [c for c in record.contrasts if c.split == "blind"]
    assert blind and all(c.app_low is not None and not c.named for c in blind)
    assert rows_table(record).count("\n") == 1 + 5
    assert contrasts_table(record, record.contrasts).count("**") == 2 * len(DESIGN.contrasts)
    picture(record, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 10_000


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["invented_training", *words])
    return study.main()


def test_the_blind_set_is_played_once_and_after_everything_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def play(self: Cells, name: str, seed: int) -> dict[str, list[Outcome]]:
        asked.append(name)
        return {"blind": [Outcome(t, s, 1.0, seed) for t, s in blind_jobs(Plan())["blind"]]}

    monkeypatch.setattr(Cells, "blind", play)
    last = Cells(folder, Plan()).path("32", 3)
    kept = last.read_bytes()
    last.unlink()
    assert run(monkeypatch, "--out", str(folder), "--blind") == 2
    assert "not finished: 32-3" in capsys.readouterr().err and not asked
    last.write_bytes(kept)
    assert run(monkeypatch, "--out", str(folder), "--blind") == 2
    assert "needs the trained agents" in capsys.readouterr().err and not asked
    for name in DESIGN.blind_arms:
        for seed in (1, 2, 3):
            Cells(folder, Plan()).agent(name, seed).mkdir(parents=True)
    assert run(monkeypatch, "--out", str(folder), "--blind") == 0
    assert sorted(asked) == sorted([BASE, GENERAL, *DESIGN.blind_arms * 3])
    capsys.readouterr()
    assert run(monkeypatch, "--out", str(folder), "--blind") == 2
    assert "has played its blind set" in capsys.readouterr().err
    assert run(monkeypatch, "--out", str(folder)) == 2
    played = [r for r in record_of(folder).rows if r.split == "blind" and r.name in (BASE, "32")]
    assert [r.success for r in played] == [1.0, 1.0]


@pytest.mark.slow
def test_a_record_is_restored_and_continued(
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = tmp_path_factory.mktemp("other")
    monkeypatch.setattr(records, "RESULTS", other / "results")
    assert run(monkeypatch, "--out", str(folder), "--summarise", "--record") == 0
    kept = read_record(study.NAMES["base"], Record)
    assert records.record_path(study.NAMES["base"]).stat().st_size < 60_000
    run_there = ("--out", str(other / "runs"))
    assert run(monkeypatch, *run_there, "--restore", "--summarise", "--record") == 0
    again = read_record(study.NAMES["base"], Record)
    assert msgspec.structs.replace(again, origin=kept.origin) == kept

    made: list[tuple[str, int]] = []

    def train(self: Cells, name: str, seed: int, tell: object) -> Cell:
        made.append((name, seed))
        return cell(name, seed, 0.5)

    monkeypatch.setattr(Cells, "trained", train)
    words = ("--seeds", "1", "2", "3", "4", "--only", "0", "32", "--record")
    assert run(monkeypatch, *run_there, "--restore", *words) == 0
    assert made == [("0", 4), ("32", 4)]
    seeds = {row.name: row.seeds for row in read_record(study.NAMES["base"], Record).rows}
    assert seeds == {BASE: 0, GENERAL: 0, "0": 4, "32": 4, "stage1": 3}

    capsys.readouterr()
    monkeypatch.setitem(STUDIES, "base", Plan(apps=9))
    assert run(monkeypatch, "--out", str(other / "third"), "--restore") == 2
    assert "made with other settings (apps=135, now 9)" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "names"), [("base", ("32", "outcome", "stage1")), ("teacher", ("32",))]
)
def test_every_kind_of_arm_runs(kind: str, names: tuple[str, ...], tmp_path: Path) -> None:
    plan = quick(STUDIES[kind])
    cells = Cells(tmp_path, plan)
    for name in names:
        made = cells.trained(name, 1, lambda done, phase: None)
        assert made.steps > 0 and made.samples > 0 and made.training_seconds > 0
        assert (made.calls == 0) == bool(design_of(plan).by_name[name].stage1_of)
        assert {len(found) for found in made.outcomes.values()} == {4}
        cells.path(name, 1).parent.mkdir(exist_ok=True)
        cells.path(name, 1).write_bytes(msgspec.json.encode(made))
        assert len(cells.blind(name, 1)["blind"]) == 4


def test_a_study_of_the_general_agent_starts_from_it(tmp_path: Path) -> None:
    plan = Plan(start="general", parameters=8, templates=2, apps=2, devices=2)
    cell = Cells(tmp_path, plan).base()
    assert cell.arm == BASE
    solved = [outcome.value for outcome in cell.outcomes["parameters"]]
    assert sum(value or 0.0 for value in solved) >= 7  # the base agent solves two thirds


@pytest.mark.parametrize("name", study.NAMES)
def test_the_page_shows_the_record(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = read_record(study.NAMES[name], Record)
    assert record.settings == STUDIES[name]
    assert len(record.origin.commit) == 40 and not record.origin.dirty
    assert all(len(commit) == 40 for commit in record.commits)
    assert run(monkeypatch, "--recorded", "--study", name) == 0
    printed, page = capsys.readouterr().out, PAGE.read_text(encoding="utf-8")
    assert rows_table(record) in page and rows_table(record) in printed
    assert contrasts_table(record, main_contrasts(record)) in page
    assert len(main_contrasts(record)) == 2 * len(DESIGN.contrasts)
    table = contrasts_table(record, record.contrasts)
    assert table in printed
    rows = msgspec.json.decode(printed.splitlines()[-1])["rows"]
    wanted = {"t_low", "t_high", "cluster_low", "cluster_high", "steps", "calls", "work"}
    assert all(wanted <= set(row) for row in rows)
