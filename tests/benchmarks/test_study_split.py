"""The study of split facts: its arms, its record, and that learning finds a sender."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

import demo_runs  # noqa: F401  (puts demos/ on the path)

from benchmarks.studies.split.__main__ import main
from benchmarks.studies.split.arms import CONTRASTS, Arms
from benchmarks.studies.split.learning import Plan, learn
from benchmarks.studies.split.report import Study, main_table, needed_edges
from benchmarks.support.records import read_record
from swarm_ui.environments.phone.split import SplitPhone, split_tasks
from swarm_ui.experiment.split_facts import SplitTeams
from swarm_ui.graph.topology import descendants

ROOT = Path(__file__).parents[2]


def test_agents_without_a_path_to_the_acting_one_are_not_in_the_team() -> None:
    teams = SplitTeams(SplitPhone())
    task = "split-phone-message"
    edges = [("notes", "contacts"), ("contacts", "messages"), ("messages", "tasks")]
    team = teams.team(task, 0, edges)
    assert sorted(team.nodes) == ["contacts", "messages", "notes"]
    assert team.output == "messages" and len(team.edges) == 2
    assert set(teams.team(task, 0, teams.broadcast(task, 0)).nodes) == set(
        teams.phone.team(task, 0)
    )
    assert not teams.team(task, 0, teams.silent(task, 0)).edges


def test_arms_differ_as_their_edges_do() -> None:
    test = Arms("new_templates", 1, agents=6)
    test.play_fixed(("no talk", "broadcast", "oracle router", "one agent, switches apps"))
    rows = {name: test.row(name) for name in test.played}
    assert [row.success for row in rows.values()] == [0.0, 1.0, 1.0, 1.0]
    assert rows["broadcast"].tokens > 2 * rows["oracle router"].tokens > 0
    gap = test.difference("broadcast", "no talk")
    assert gap.difference == 1.0 and gap.low > 0.0


def test_learning_is_deterministic_and_its_graphs_lead_to_the_acting_agent() -> None:
    plan = Plan(steps=2, graphs=3)
    one, again = learn(plan, 3), learn(plan, 3)
    assert (one.edges, one.success, one.tokens) == (again.edges, again.success, again.tokens)
    assert plan.episodes == 2 * 13 * 3 and len(one.success) == 2
    assert set(one.edges) == {SplitPhone().spec(name).acting for name in split_tasks("train")}
    for acting, edges in one.edges.items():
        back = descendants([acting], [(b, a) for a, b in edges])
        assert all(listener in back for _, listener in edges)


def test_the_record_has_an_origin_and_holds_what_the_pages_say(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = read_record("split", Study)
    assert len(study.origin.commit) == 40 and not study.origin.dirty
    assert study.plan == Plan() and len(study.learned) >= 5
    assert len(study.differences) == 2 * len(CONTRASTS)
    monkeypatch.setattr("sys.argv", ["split", "--recorded"])
    assert main() == 0
    printed = capsys.readouterr().out
    rows = json.loads(printed.splitlines()[-1])
    for row in rows:
        assert {"name", "success", "low", "high", "seeds", "tokens"} <= set(row)
    pages = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
    assert main_table(study) in pages and main_table(study) in printed


def test_needed_edges_are_those_of_the_training_templates() -> None:
    assert needed_edges()["clock"] == {"calendar", "browser"}
    assert sum(map(len, needed_edges().values())) == 11
