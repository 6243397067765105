"""Stage 2 on windows: its templates, its cells and controls, and the record that the page shows."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import demo_runs  # noqa: F401  (puts demos/ on the path)

from benchmarks.studies.windows.__main__ import main
from benchmarks.studies.windows.agent import WindowAgentConfig, mix_of
from benchmarks.studies.windows.arms import NAMES
from benchmarks.studies.windows.cells import Cell, EdgeArm, Plan, team_config, train
from benchmarks.studies.windows.controls import Condition, Contestant, Tested, Tests, test_episodes
from benchmarks.studies.windows.fixed import differences, rows_of
from benchmarks.studies.windows.held_out import NEW, SETS, WITHHELD
from benchmarks.studies.windows.record import (
    NAMED,
    Record,
    all_rows,
    cells_table,
    contrasts_table,
    main_table,
    make_record,
    rows_table,
)
from benchmarks.studies.windows.replication import replication_tables
from benchmarks.studies.windows.stage2 import AgentMade, Stage2
from benchmarks.support import records
from benchmarks.support.origin import Origin
from benchmarks.support.records import read_record
from swarm_ui.environments.phone import TEST_SEEDS, tasks
from swarm_ui.experiment.script_runner import check_study
from swarm_ui.files import write_atomic
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import PASS
from swarm_ui.stats import Outcome

ROOT = Path(__file__).parents[2]

test_episodes.__test__ = False  # type: ignore[attr-defined]
Tested.__test__ = Tests.__test__ = False  # type: ignore[attr-defined]
TINY = Plan(
    iterations=2, shared_iterations=1, shared_steps=2, own_steps=1, episodes=4, graphs=2, each=1
)


def test_held_out_templates_are_in_no_stage() -> None:
    trained = set(SETS["known"])
    assert not trained & set(SETS["held_out"]) and trained <= set(tasks("train"))
    assert set(WITHHELD) <= set(tasks("train"))
    assert set(NEW) <= {*tasks("new_templates"), *tasks("new_apps")}
    assert WindowAgentConfig.without_edges(10).withheld == WITHHELD
    played = test_episodes(2)
    for name, jobs in played.items():
        assert {task for task, _ in jobs} == set(SETS[name]) and len(jobs) == 2 * len(SETS[name])
        assert all(seed in TEST_SEEDS for _, seed in jobs)


def test_an_agent_without_edges_gets_no_message_in_stage_1() -> None:
    config = WindowAgentConfig.without_edges(10)
    assert config.windows.densities == (0.0,) and not config.messages
    assert mix_of(config).invented_with_messages == 0.0
    assert mix_of(WindowAgentConfig.of(10)).invented_with_messages > 0.0


def test_arms_differ_in_the_edges_only() -> None:
    settings = [team_config(TINY, edges, 3) for edges in ("none", "redrawn", "random", "learned")]
    assert [s.edges for s in settings] == ["fixed", "redraw", "fixed", "learned"]
    assert len({(s.episodes, s.shared_steps, s.update, s.pairs, s.guide) for s in settings}) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:iteration .* no adapter was trained")
@pytest.mark.parametrize("credit", ["critic", "outcome"])
def test_a_cell_trains_a_team_and_its_controls_play_the_same_episodes(
    credit: str, tmp_path: Path
) -> None:
    LocalModel.load().with_words([PASS]).save(tmp_path)
    cell, model = train(TINY, "learned", credit, 0, tmp_path)  # type: ignore[arg-type]
    again, _ = train(TINY, "learned", credit, 0, tmp_path)  # type: ignore[arg-type]
    assert cell.digest == again.digest and cell.graph == again.graph
    # An agent that solves nothing has no examples if the outcome is the credit.
    assert (
        cell.steps == (2 + 4 if credit == "critic" else 0)
        and cell.episodes == 8
        and cell.tokens > cell.calls > 8
    )
    assert len(cell.probabilities) == 12 and set(model.adapters) >= set(NAMES)
    tests = Tests(Contestant(arm=cell.arm, seed=0, model=model, graph=cell.graph), 1)
    found = [tests.test(c) for c in ("own edges", "shuffled", "scroller with notes")]
    assert len({tuple((o.template, o.seed) for o in f.outcomes["known"]) for f in found}) == 1
    assert all(f.calls["known"] > 0 and f.tokens["held_out"] > 0 for f in found)


def outcome_of(arm: str, seed: int, rate: float, condition: Condition = "own edges") -> Tested:
    def outcomes(templates: tuple[str, ...]) -> tuple[Outcome, ...]:
        return tuple(
            Outcome(task, k, float(k < 4 * rate), seed) for task in templates for k in range(4)
        )

    sets = {name: outcomes(templates) for name, templates in SETS.items()}
    mean = dict.fromkeys(SETS, 10.0)
    return Tested(arm=arm, seed=seed, condition=condition, outcomes=sets, calls=mean, tokens=mean)


def test_contrasts_are_paired_by_seed_and_the_named_ones_come_first() -> None:
    tests = [outcome_of("none-critic", s, 0.5) for s in range(3)]
    tests += [outcome_of("learned-critic", s, r) for s, r in enumerate((0.75, 1.0, 0.75))]
    tests += [outcome_of("untrained", 0, 0.25)]
    origin = Origin(commit="c", dirty=False, command="", machine="")
    made = AgentMade(steps=1, tokens=1, cpu_seconds=1.0, digest="")
    record = make_record(origin, Plan(), made, [], tests)
    first = record.contrasts[0]
    assert first.named and first.seeds == 3 and first.difference == pytest.approx(1 / 3, abs=1e-3)
    assert first.t_low is not None and first.t_low < 0 < first.low
    untrained = next(c for c in record.contrasts if c.name.endswith("before stage 2: no edges"))
    assert not untrained.named and untrained.seeds == 3
    assert "learned-outcome" in record.missing and "learned-critic" not in record.missing
    assert "**named**" in contrasts_table(record.contrasts).splitlines()[2]
    assert len(record.rows) == 6


def test_the_record_has_an_origin_and_holds_what_the_page_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = read_record("windows", Record)
    assert len(record.origin.commit) == 40 and not record.origin.dirty
    assert record.templates == SETS and record.plan == Plan()
    assert all(len(commit) == 40 for commit in record.commits)
    monkeypatch.setattr("sys.argv", ["windows", "--recorded"])
    assert main() == 0
    printed = capsys.readouterr().out
    rows = json.loads(printed.splitlines()[-1])
    assert len(rows) == len(all_rows(record))
    for row in rows:
        assert {"name", "success", "low", "high", "seeds", "tokens"} <= set(row)
    page = (ROOT / "docs" / "windows.md").read_text(encoding="utf-8")
    assert record.fixed is not None and record.replication is not None
    again = replication_tables(record.replication)
    assert again in page and again in printed
    fixed = [rows_of(record.fixed, "forms"), differences(record.fixed)]
    assert all(table in page and table in printed for table in [main_table(record), *fixed])
    assert contrasts_table([one for one in record.contrasts if one.named]) in page
    tables = [rows_table(record, "known"), rows_table(record, "held_out")]
    for table in [*tables, contrasts_table(record.contrasts), cells_table(record)]:
        assert table in printed


def a_cell(edges: EdgeArm, seed: int) -> Cell:
    return Cell(
        edges=edges, credit="critic", seed=seed, graph=(), rollouts=(0.5,), sources={},
        probabilities={}, steps=1, episodes=1, calls=1, tokens=1, digest="d", seconds=1.0,
        commit="c" * 40,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study of two seeds, with an agent that cannot act."""
    stage2 = tmp_path / "study" / "stage2"
    agent = tmp_path / "study" / "agent-without-edges"
    write_atomic(agent / "model.safetensors", "weights")
    write_atomic(agent / "made.json", '{"steps": 1, "tokens": 2, "cpu_seconds": 3}')
    check_study(stage2 / "plan.json", Plan())
    arms: tuple[EdgeArm, ...] = ("none", "learned")
    for arm, seed in product(arms, (0, 1)):
        cell, test = a_cell(arm, seed), outcome_of(f"{arm}-critic", seed, 0.5)
        for path, made in (
            (stage2 / "cells" / f"{cell.arm}-{seed}" / "cell.json", cell),
            (stage2 / "tests" / f"{cell.arm}-{seed}-own-edges.json", test),
        ):
            write_atomic(path, msgspec.json.format(msgspec.json.encode(made), indent=1))
    return tmp_path / "study"


def test_a_record_is_restored_and_its_agent_is_not_mixed_with_another(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")

    def run(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["windows", *words])
        return main()

    assert run("--out", str(folder), "--record") == 0
    kept = read_record("windows", Record)
    assert len(kept.cells) == 4 and kept.fixed is None and kept.agent.tokens == 2
    other = tmp_path / "other"
    assert run("--out", str(other), "--restore", "--record") == 0
    again = read_record("windows", Record)
    assert msgspec.structs.replace(again, origin=kept.origin) == kept
    capsys.readouterr()

    agent = other / "agent-without-edges"
    write_atomic(agent / "model.safetensors", "weights")
    write_atomic(agent / "made.json", '{"steps": 1, "tokens": 2, "cpu_seconds": 9}')
    monkeypatch.setattr(Stage2, "_untrained", lambda *_: None)
    assert run("--out", str(other), "--train-teams", "--teams-seeds", "0", "1") == 2
    said = capsys.readouterr().err
    assert "none-critic 0 has tests that are not played" in said and "'cell.json'" in said
    write_atomic(agent / "model.safetensors", "other weights")
    assert run("--out", str(other), "--record") == 2
    assert "has other weights" in capsys.readouterr().err
    assert run("--out", str(tmp_path / "empty"), "--record") == 2
    assert "there is no window agent" in capsys.readouterr().err


def test_named_contrasts_are_three() -> None:
    assert len(NAMED) == 3
