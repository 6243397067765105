"""The study of split facts with a language model, played here with scripted agents instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

import demo_runs  # noqa: F401  (puts demos/ on the path)

from benchmarks.studies.restore import packed_files, restore
from benchmarks.studies.split_model.__main__ import main
from benchmarks.studies.split_model.controls import answers
from benchmarks.studies.split_model.plan import QUICK, TRAINING, training_cells
from benchmarks.studies.split_model.play import (
    ARMS,
    SWAPPED,
    TEMPLATES,
    Player,
    arm_jobs,
    open_model,
)
from benchmarks.studies.split_model.report import (
    Study,
    contrast_table,
    control_line,
    curve_line,
    kept_files,
    main_table,
    markdown,
    study,
)
from benchmarks.support import records
from benchmarks.support.origin import origin
from benchmarks.support.records import read_record, write_record
from swarm_ui.environments.phone import TEST_SEEDS
from swarm_ui.environments.phone.split import split_tasks
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.split_facts import ScriptedAgents

ROOT = Path(__file__).parents[2]

LOSSES = [{"step": k, "loss": 3.0 / k} for k in range(1, 5)]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study whose agents are scripted, without a training."""
    folder = tmp_path_factory.mktemp("split_model")
    stage = folder / TRAINING / "3-supervised"
    stage.mkdir(parents=True)
    (stage / "stage.json").write_text(json.dumps({"samples": 8, "tokens": 1600, "steps": 4}))
    (stage / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LOSSES))
    player = Player(QUICK, folder, ScriptedAgents())
    for arm in ARMS:
        for templates in TEMPLATES:
            player.play(arm, templates)
    return folder


def test_every_arm_does_what_its_messages_allow(out: Path) -> None:
    found = study(origin("test"), QUICK, out)
    rows = {(row.name, row.templates): row for row in found.rows}
    assert len(rows) == len(ARMS) * len(TEMPLATES)
    silent, needed = rows["no talk", "train"], rows["needed edges", "train"]
    assert (silent.success, silent.said, silent.gave_up, silent.calls) == (0.0, None, 1.0, 1.0)
    assert (needed.success, needed.said, needed.written, needed.gave_up) == (1.0, 1.0, 1.0, 0.0)
    assert needed.copying == 1.0 and silent.copying == 0.0
    swapped = rows[SWAPPED, "train"]
    assert (swapped.success, swapped.said, swapped.written) == (0.0, 1.0, 0.0)
    assert (swapped.written_twin, needed.written_twin) == (1.0, 0.0)
    assert rows["broadcast", "train"].tokens > needed.tokens > silent.tokens
    assert [(gap.name, gap.difference) for gap in found.differences[::2][:1]] == [
        ("needed edges - no talk", 1.0)
    ]
    assert found.training.curve == tuple((k, 3.0 / k) for k in range(1, 5))
    assert "| needed edges | known templates | 100.0 [" in markdown(found)


def test_what_was_played_is_not_played_again(out: Path) -> None:
    reader = Player(QUICK, out, None)
    assert all(not reader.left(arm, t) for arm in ARMS for t in TEMPLATES)
    fewer = Player(QUICK, out / "elsewhere", None)
    assert len(fewer.left("no talk", "train")) == QUICK.known


def test_a_record_holds_what_the_tables_need(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    made = origin("test")
    found = study(made, QUICK, out)
    write_record("split_model", found, packed_files(kept_files(QUICK, out)))
    restore("split_model", tmp_path / "other", {})
    assert study(made, QUICK, tmp_path / "other") == found
    assert kept_files(QUICK, tmp_path / "other") == kept_files(QUICK, out)
    with pytest.raises(ConfigError, match=r"no trained adapter in .* a record holds no weights"):
        open_model(QUICK, tmp_path / "other")


def test_the_corpus_has_training_data_and_the_episodes_are_tests() -> None:
    corpus, training = training_cells(QUICK, Path("runs/x"))
    assert corpus.words[:2] == ("synthesize", "phone-split") and training.needs == (corpus.name,)
    for templates in TEMPLATES:
        for task, seed in arm_jobs(QUICK, templates):
            assert task in split_tasks(templates) and seed in TEST_SEEDS


def test_twins_need_other_values() -> None:
    seed = TEST_SEEDS.start + 6
    own, twin = (answers(4, "split-phone-message", seed ^ k) for k in (0, 1))
    assert own.facts[0][0] == twin.facts[0][0] == "contacts"
    assert own.facts[0][1] != twin.facts[0][1]
    assert own.written == (own.facts[0][1],)


def test_the_record_has_an_origin_and_the_page_holds_its_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_record("split_model", Study)
    assert len(found.origin.commit) == 40 and not found.origin.dirty
    assert all(len(cell.commit) == 40 and not cell.dirty for cell in found.cells)
    page = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
    for part in (main_table(found), contrast_table(found), control_line(found), curve_line(found)):
        assert part in page
    monkeypatch.setattr("sys.argv", ["split_model", "--recorded"])
    assert main() == 0
    printed = capsys.readouterr().out
    for row in json.loads(printed.splitlines()[-1])["rows"]:
        assert {"name", "success", "low", "high", "seeds", "tokens"} <= set(row)
    assert main_table(found) in printed
