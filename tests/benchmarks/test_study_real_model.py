"""The study of a real model: its plan can be done in order, and its table averages over seeds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks import records
from benchmarks.records import read_record
from benchmarks.studies.commands import study
from benchmarks.studies.commands.report import Row, StudyRecord, markdown, over_seeds
from benchmarks.studies.diversity import plan as diversity
from benchmarks.studies.real_model.plan import Plan
from benchmarks.studies.real_model.sizes import Sizes
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.results import ArmResult
from swarm_ui.stats import Outcome


def test_each_cell_comes_after_those_it_needs(tmp_path: Path) -> None:
    cells = Plan(Sizes(blind_pages=3), tmp_path, (1, 2, 3), tmp_path / "critic").cells()
    done: set[str] = set()
    for cell in cells:
        assert cell.name not in done
        assert set(cell.needs) <= done
        done.add(cell.name)
    assert sum(cell.row == "stage 2: rft, learned critic, vote of 4" for cell in cells) == 3


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


def test_every_arm_of_the_diversity_study_has_as_many_samples(tmp_path: Path) -> None:
    sizes = diversity.Sizes()
    cells = diversity.cells(sizes, tmp_path)
    trained = [cell for cell in cells if cell.words[0] == "finetune"]
    assert len(trained) == len(diversity.ARMS) and len({cell.name for cell in cells}) == len(cells)
    walks = {cell.name: int(cell.words[3]) for cell in cells if cell.words[0] == "synthesize"}
    eight, many = (walks[f"corpus-{n}-devices-invented"] for n in (8, 128))
    assert eight == many
    assert walks["corpus-0-devices-phone"] == 2 * walks["corpus-8-devices-phone"]


def test_the_page_shows_the_recorded_table() -> None:
    root = Path(__file__).parents[2]
    record = read_record("real_model", StudyRecord)
    table = markdown(record.rows, list(dict.fromkeys(row.split for row in record.rows)))
    assert table.strip() in (root / "docs" / "results.md").read_text(encoding="utf-8")
