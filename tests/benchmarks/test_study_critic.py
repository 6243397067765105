"""The study of learned critics, as small as it can be: what it writes, and that it goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import demo_runs  # noqa: F401  (puts demos/ on the path)
import msgspec
import pytest

from benchmarks.studies.critic import __main__ as study
from benchmarks.studies.critic.sizes import ARMS, QUICK, SOURCES
from benchmarks.support.records import read_record
from swarm_ui.environments.phone import TEST_APPS, TRAIN_SEEDS, VALIDATION_SEEDS, tasks
from swarm_ui.optim.credit.judged import read_judged

SMALL = msgspec.structs.replace(
    QUICK, phone=1, invented=1, devices=1, validation=1, test=1, minutes=0.01
)


def run(folder: Path, *arguments: str) -> int:
    sys.argv = ["critic", "--out", str(folder), *arguments]
    return study.main()


@pytest.mark.slow
def test_the_study_trains_on_no_test_task_and_goes_on_where_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(study, "QUICK", SMALL)
    folder = tmp_path / "study"
    assert run(folder, "--quick") == 0
    out = capsys.readouterr().out
    figures = msgspec.json.decode(out.splitlines()[-1])
    places = {(row["name"], row["split"]) for row in figures["rows"]}
    names = ("all-1", "untrained", "majority", "likelihood", "outcome")
    splits = ("parameters", "templates", "apps")
    assert places == {(name, split) for name in names for split in splits}
    card = figures["critics"]["all-1"]
    assert card["settings"]["sources"] == ["phone", "invented"]
    assert card["replies"] > 0 and card["validation"]["replies"] > 0
    held_out = {*tasks("new_templates"), *tasks("new_apps")}
    for source in ("phone", "invented"):
        head, episodes = read_judged(folder / "judged" / f"train-{source}.jsonl", purpose="train")
        assert head.settings["guide"] == SMALL.guide
        assert len(episodes) == 1
        for episode in episodes:
            assert episode.task not in held_out
            assert episode.seed in TRAIN_SEEDS
            apps = {e.label for s in episode.screens for e in s.observation.elements}
            assert not apps & set(TEST_APPS)
    _, validation = read_judged(folder / "judged" / "validation.jsonl", purpose="validation")
    assert all(e.seed in VALIDATION_SEEDS and e.task in tasks("train") for e in validation)
    before = {p: p.stat().st_mtime_ns for p in (folder / "figures").iterdir()}
    next(iter(before)).unlink()
    assert run(folder, "--quick") == 0
    after = {p: p.stat().st_mtime_ns for p in (folder / "figures").iterdir()}
    assert sum(before[p] != after[p] for p in before) == 1
    monkeypatch.setattr(study, "QUICK", msgspec.structs.replace(SMALL, test=3))
    assert run(folder, "--quick") == 2
    assert "was started with other options (test=1, now 3)" in capsys.readouterr().err


def test_every_arm_names_its_sources() -> None:
    assert all(set(sources) <= set(SOURCES) for sources in ARMS.values())


def test_the_page_shows_the_recorded_figures() -> None:
    from benchmarks.studies.critic.report import Record, overview

    record = read_record(study.NAME, Record)
    page = Path(__file__).parents[2] / "docs" / "credit.md"
    assert overview(record) in page.read_text(encoding="utf-8")
