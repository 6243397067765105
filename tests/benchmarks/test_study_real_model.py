"""The study of a real model: its plan can be done in order, and its table averages over seeds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.studies.commands import study
from benchmarks.studies.commands.cells import Cell, Record
from benchmarks.studies.commands.report import Row, StudyRecord, markdown, over_seeds
from benchmarks.studies.diversity import plan as diversity
from benchmarks.studies.real_model.plan import Plan
from benchmarks.studies.real_model.sizes import Sizes
from benchmarks.studies.restore import packed_files
from benchmarks.support import records
from benchmarks.support.records import read_record
from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic
from swarm_ui.report.results import ArmResult, Cost, Results
from swarm_ui.stats import Outcome


def test_each_cell_comes_after_those_it_needs(tmp_path: Path) -> None:
    cells = Plan(Sizes(blind_pages=3), tmp_path, (1, 2, 3), tmp_path / "critic").cells()
    done: set[str] = set()
    for cell in cells:
        assert cell.name not in done
        assert set(cell.needs) <= done
        done.add(cell.name)
    learned = [c for c in cells if c.row == "stage 2: rft, learned critic, vote of 4"]
    assert [c.words[1] for c in learned] == ["phone", "miniwob", "phone", "phone"]


def test_without_a_learned_critic_its_arm_is_left_out(tmp_path: Path) -> None:
    cells = Plan(Sizes(), tmp_path, (1,), None).cells()
    assert not any("learned" in cell.name for cell in cells)


def test_an_episode_counts_once_over_training_seeds() -> None:
    jobs = (("add", 1), ("add", 2), ("call", 1))
    one = ArmResult(split="apps", jobs=jobs, outcomes=(1.0, 0.0, None))
    two = ArmResult(split="apps", jobs=jobs, outcomes=(0.0, 0.0, None))
    other = ArmResult(split="apps", jobs=(("call", 7),), outcomes=(1.0,))
    assert over_seeds([one, two, other]) == [
        Outcome("add", 1, pytest.approx(0.5)),
        Outcome("add", 2, 0.0),
        Outcome("call", 1, None),
        Outcome("call", 7, 1.0),
    ]


def test_a_recorded_table_is_printed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    given = study.study_parser("", diversity.Sizes()).parse_args(["--recorded"])

    def show() -> int:
        return study.run_study("some", given, diversity.Sizes, diversity.QUICK, (), diversity.cells)

    with pytest.raises(
        ConfigError, match=r"nothing is recorded: .*'python -m benchmarks.studies.some --out"
    ):
        show()
    row = Row(
        name="stage 1", split="apps", success=0.5, low=0.25, high=0.75, seeds=1, by_seed=(0.5,),
        episodes=4, calls=40, cpu_s=10.0,
    )  # fmt: skip
    record = StudyRecord(rows=[row], cells=[])
    (tmp_path / "some.json").write_bytes(msgspec.json.encode(record))
    assert show() == 0
    table, figures = capsys.readouterr().out.strip().rsplit("\n", 1)
    assert "| stage 1 | 50.0 [25, 75] | 1 | 40 | 10 |" in table
    assert msgspec.json.decode(figures)["rows"][0]["split"] == "apps"


def test_a_record_is_restored_and_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    jobs, made = tuple((f"task-{k % 3}", k) for k in range(9)), list[str]()

    def cells(seeds: int) -> list[Cell]:
        trained = [Cell(f"train-{s}", ("train",)) for s in range(1, seeds + 1)]
        tests = [Cell(f"test-{c.name[-1]}", ("eval",), (c.name,), "stage 2", 1) for c in trained]
        return [*trained, *tests]

    def perform(out: Path, cell: Cell) -> None:
        made.append(cell.name)
        record = Record(
            name=cell.name, command="x", commit="c" * 40, dirty=False, cpu_s=2.5, seconds=3.0,
            threads="1",
        )  # fmt: skip
        (out / cell.name).mkdir()
        write_atomic(out / "records" / f"{cell.name}.json", msgspec.json.encode(record))
        if cell.row:
            outcomes = tuple(float(k % 2) for k in range(len(jobs)))
            arm = ArmResult(split="apps", jobs=jobs, outcomes=outcomes, work=Cost(calls=40))
            Results(arms=[arm]).save(out / cell.name)

    def run(seeds: int, *words: str) -> StudyRecord:
        given = study.study_parser("", diversity.Sizes()).parse_args([*words, "--record"])
        study.run_study(
            "some", given, diversity.Sizes, diversity.QUICK, (), lambda *_: cells(seeds)
        )
        return read_record("some", StudyRecord)

    monkeypatch.setattr(study, "perform", perform)
    first = run(2, "--out", str(tmp_path / "first"))
    assert len(made) == 4 and first.rows[0].seeds == 2 and first.rows[0].calls == 80
    other = ("--out", str(tmp_path / "other"), "--restore")
    assert run(2, *other) == first and len(made) == 4
    assert run(3, *other).rows[0].seeds == 3 and made[4:] == ["train-3", "test-3"]

    run(2, "--out", str(tmp_path / "third"), "--restore")
    (tmp_path / "third" / "records" / "test-2.json").unlink()
    with pytest.raises(ConfigError, match=r"'test-2' needs train-2, .* delete '.*/train-2.json'"):
        run(2, "--out", str(tmp_path / "third"))


def test_a_record_keeps_rows_of_the_plan_that_the_folder_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    cells = [Cell(row, ("eval",), row=row) for row in ("base", "stage 1", "stage 2")]

    def made(commit: str, *names: str) -> StudyRecord:
        return StudyRecord(
            rows=[Row(name=name, split="apps", success=0.5, low=0.4, high=0.6, seeds=1,
                      by_seed=(0.5,), episodes=4, calls=len(commit), cpu_s=1.0) for name in names],
            cells=[Record(name=name, command="x", commit=commit, dirty=False, cpu_s=1.0,
                          seconds=1.0, threads="1") for name in names],
        )  # fmt: skip

    def kept(new: StudyRecord, **settings: object) -> StudyRecord:
        return study.with_recorded("some", new, cells, settings)

    assert kept(made("new", "stage 1"), steps=4) == made("new", "stage 1")
    files = packed_files({"settings.json": {"steps": 4}})
    records.write_record("some", made("earlier", "of an older plan", "base", "stage 1"), files)
    assert kept(made("new", "stage 1"), steps=5) == made("new", "stage 1")
    found = kept(made("new", "stage 2", "stage 1"), steps=4)
    commits = [("base", "earlier"), ("stage 1", "new"), ("stage 2", "new")]
    assert [(each.name, each.commit) for each in found.cells] == commits
    assert [(row.name, row.calls) for row in found.rows] == [(n, len(c)) for n, c in commits]


def test_settings_name_the_weights_of_the_adapter(tmp_path: Path) -> None:
    (tmp_path / "adapter").mkdir()
    weights = tmp_path / "adapter" / "adapter_model.safetensors"
    sizes = Sizes(adapter=str(weights.parent))
    with pytest.raises(ConfigError, match=r"--adapter .*: expected the folder of an adapter"):
        study.settings_of(sizes)
    weights.write_bytes(b"one")
    first = study.settings_of(sizes)
    weights.write_bytes(b"two")
    assert study.settings_of(sizes) != first
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / weights.name).write_bytes(b"one")
    assert study.settings_of(Sizes(adapter=str(tmp_path / "moved"))) == first


def test_every_arm_of_the_diversity_study_has_as_many_samples(tmp_path: Path) -> None:
    sizes = diversity.Sizes()
    cells = diversity.cells(sizes, tmp_path)
    trained = [cell for cell in cells if cell.words[0] == "finetune"]
    assert len(trained) == len(diversity.ARMS) and len({cell.name for cell in cells}) == len(cells)
    walks = {cell.name: int(cell.words[3]) for cell in cells if cell.words[0] == "synthesize"}
    eight, many = (walks[f"corpus-{n}-devices-invented"] for n in (8, 128))
    assert eight == many
    half, whole = walks["corpus-8-devices-phone"], walks["corpus-0-devices-phone"]
    assert abs(whole - 2 * half) <= 1  # whole walks


@pytest.mark.parametrize(
    ("name", "page"), [("real_model", "results.md"), ("diversity", "generalisation.md")]
)
def test_the_page_shows_the_recorded_table(name: str, page: str) -> None:
    root = Path(__file__).parents[2]
    record = read_record(name, StudyRecord)
    table = markdown(record.rows, list(dict.fromkeys(row.split for row in record.rows)))
    assert table.strip() in (root / "docs" / page).read_text(encoding="utf-8")
