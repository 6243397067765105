"""The window study: how graphs are compared, and that it is played as its options say."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import demo_runs  # noqa: F401  (puts demos/ on the path)

import benchmarks.studies.windows.__main__ as study_windows
from benchmarks.studies.windows.agent import WindowAgentConfig
from benchmarks.studies.windows.arms import (
    CHAIN,
    FULL,
    REVERSE,
    Played,
    arrows,
    control_arms,
    forms,
    measure,
    random_arms,
    test_jobs,
    tuning_jobs,
)
from benchmarks.studies.windows.edges import LearnedEdges, learn
from benchmarks.studies.windows.fixed import LearnedGraph, best_crossed, fixed_tables, make_fixed
from benchmarks.studies.windows.replication import (
    CONTROLS,
    LEARNED,
    FurtherAgent,
    FurtherAgents,
    make_replication,
    replication_tables,
)
from benchmarks.studies.windows.stage2 import AgentMade
from demos.base_agent.stream import COLLEAGUES
from swarm_ui.environments.phone import TEST_SEEDS, VALIDATION_SEEDS
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.script_runner import check_study
from swarm_ui.graph.topology import Edge
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import PASS

test_jobs.__test__ = False  # type: ignore[attr-defined]


def played(name: str, outcomes: list[float], edges: tuple[Edge, ...] = ()) -> Played:
    count = len(outcomes)
    return Played(
        name=name,
        label=name,
        edges=edges,
        outcomes=tuple(outcomes),
        decisions=count,
        lost=0,
        calls=4 * count,
        tokens=100.0,
        seconds=0.0,
    )


def test_the_best_graph_is_not_rewarded_for_the_half_it_was_chosen_on() -> None:
    lucky_even = played("a", [1.0, 0.0] * 10)
    lucky_odd = played("b", [0.0, 1.0] * 10)
    assert best_crossed([lucky_even, lucky_odd]) == [0.0] * 20
    good = played("c", [1.0] * 20)
    assert best_crossed([good, lucky_even, lucky_odd]) == [1.0] * 20


def test_edges_in_short() -> None:
    assert arrows(CHAIN) == "0→1 1→2 2→3"
    assert arrows(()) == "none"
    assert {(b, a) for a, b in FULL} == set(REVERSE)


def test_random_graphs_are_the_same_in_every_run_and_differ() -> None:
    drawn = [frozenset(arm.edges) for arm in random_arms()]
    assert drawn == [frozenset(arm.edges) for arm in random_arms()]
    assert len(drawn) == 20 and len(set(drawn)) > 10


def test_graphs_are_chosen_on_other_episodes_than_they_are_tested_on() -> None:
    tested = [*test_jobs("forms", 60), *test_jobs("new", 60), *test_jobs("all", 60)]
    assert all(seed in TEST_SEEDS for _, seed in tested)
    chosen = [*tuning_jobs(60, 0), *tuning_jobs(60, 1)]
    assert all(seed in VALIDATION_SEEDS and task in forms() for task, seed in chosen)
    assert tuning_jobs(60, 0) != tuning_jobs(60, 1)


def test_tables_show_what_there_is() -> None:
    kinds = {kind: dict[str, Played]() for kind in ("forms", "random", "new", "all")}
    kinds["forms"] = {
        "no-edges": played("no-edges", [0.0, 1.0, 0.0, 1.0]),
        "full": played("full", [1.0] * 4),
        "learned-thompson-0": played("learned-thompson-0", [1.0, 1.0, 1.0, 0.0], CHAIN),
        "learned-thompson-1": played("learned-thompson-1", [1.0, 1.0, 1.0, 1.0], CHAIN),
    }
    kinds["random"] = {"random-00": played("random-00", [0.0, 0.0], CHAIN)}
    learned = [
        LearnedEdges(
            method="thompson", seed=seed, edges=CHAIN, episodes=8, success=(), chances={},
            seconds=0.0,
        )
        for seed in (0, 1)
    ]  # fmt: skip
    jobs = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    fixed = make_fixed(
        AgentMade(steps=1, tokens=2, cpu_seconds=3, digest=""), kinds, learned,
        {"forms": jobs, "new": (), "all": ()},
    )  # fmt: skip
    rows = {row.name: row for row in fixed.rows}
    assert {row.templates for row in fixed.rows} == {"forms"}
    assert rows["learned edges, Thompson"].success == 0.875
    assert (rows["learned edges, Thompson"].seeds, rows["full"].seeds) == (2, 1)
    gaps = {gap.name: gap.difference for gap in fixed.gaps}
    assert gaps["learned edges, Thompson - no-edges"] == 0.375
    assert gaps["1 random graphs - no-edges"] == -0.5  # on the two episodes that both played
    (best,) = [one for one in fixed.contrasts if one.name.endswith("cross-fitted")]
    assert best.difference == 1.0
    text = fixed_tables(fixed)
    assert (
        "| full | 100.0" in text
        and "+50.0" in text
        and "| thompson | 1 | 8 | 0→1 1→2 2→3 |" in text
    )


def test_other_agents_are_the_runs_of_a_replication() -> None:
    """Agents differ by 20 and by 40 points; the mean over agents and its interval say so."""
    rates = ((0.5, 0.7), (0.5, 0.9), (0.4, 0.7))
    jobs = [("a", seed) for seed in range(10)]
    arms = [
        {name: played(name, _solved(alone)) for name in CONTROLS} | {LEARNED: _learned(team)}
        for alone, team in rates
    ]
    made = AgentMade(steps=1, tokens=2, cpu_seconds=3, digest="")
    graph = LearnedGraph(method="thompson", seed=0, edges=CHAIN, episodes=80)
    agents = [FurtherAgent(seed=k, made=made, graph=graph) for k in (1, 2, 3)]
    found = make_replication(agents, arms, jobs)
    rows = {row.name: row for row in found.rows}
    assert rows["no-edges"].success == 0.4667 and rows["no-edges"].seeds == 3
    gap = next(c for c in found.contrasts if c.name == f"{LEARNED} - no-edges")
    assert gap.named and gap.difference == 0.3
    assert gap.t_low is not None and gap.t_low < 0.2 < 0.4 < gap.t_high  # 0.2, 0.4 and 0.3
    assert "| **named**: learned-thompson-0 - no-edges | +30.0 [" in replication_tables(found)


def _solved(rate: float) -> list[float]:
    return [float(k < 10 * rate) for k in range(10)]


def _learned(rate: float) -> Played:
    return played(LEARNED, _solved(rate), CHAIN)


@pytest.mark.slow
def test_an_agent_with_another_seed_plays_the_main_policies(tmp_path: Path) -> None:
    asked: list[int] = []

    def train(config: WindowAgentConfig, folder: Path) -> None:
        asked.append(config.seed)
        LocalModel.load().with_words([PASS, *COLLEAGUES]).save(folder)
        (folder / "made.json").write_text('{"steps": 1, "tokens": 2, "cpu_seconds": 3}')

    further = FurtherAgents(tmp_path / "agents", steps=1, episodes=1, budget=80)
    assert further.found() is None and further.notes() == {}
    further.run([4], train, lambda text: None)
    further.run([4], train, lambda text: pytest.fail(f"repeated: {text}"))
    found = further.found()
    assert asked == [4] and found is not None
    assert [row.seeds for row in found.rows] == [1] * (len(CONTROLS) + 1)
    assert list(further.notes()) == ["agents/4/agent.json"]


def test_results_under_other_options_are_not_mixed(tmp_path: Path) -> None:
    options = study_windows.Options(
        episodes=1, episodes_random=1, episodes_all=1, budget=80, seeds=(0,), steps=1,
        agent="nowhere",
    )  # fmt: skip
    check_study(tmp_path / "options.json", options)
    check_study(tmp_path / "options.json", options)
    with pytest.raises(ConfigError, match="other options"):
        check_study(tmp_path / "options.json", msgspec.structs.replace(options, episodes=2))


def test_an_option_that_is_newer_than_the_study_has_its_default(tmp_path: Path) -> None:
    class Old(msgspec.Struct):
        episodes: int = 1

    class New(Old):
        start: str = "base"

    check_study(tmp_path / "options.json", Old())
    check_study(tmp_path / "options.json", New())
    with pytest.raises(ConfigError, match="start=base, now general"):
        check_study(tmp_path / "options.json", New(start="general"))


@pytest.fixture(scope="module")
def model() -> LocalModel:
    """An agent that has a word for passing and has not learned to use it."""
    return LocalModel.load().with_words([PASS])


@pytest.mark.parametrize("name", ["no-edges-top", "redrawn", "half-full", "scroll", "whole"])
def test_a_control_is_played_with_as_many_calls_as_agents(model: LocalModel, name: str) -> None:
    arm = next(arm for arm in control_arms() if arm.name == name)
    found = measure(model, arm, test_jobs("forms", 1))
    assert len(found.outcomes) == 1 and None not in found.outcomes
    assert found.calls == (4 if arm.kind == "team" else 1) * found.decisions


def test_shuffled_messages_are_those_of_other_decisions(model: LocalModel) -> None:
    arm = next(arm for arm in control_arms() if arm.shuffled)
    found = measure(model, arm, test_jobs("forms", 2))
    assert arm.edges == FULL and len(found.outcomes) == 2
    assert found.calls == 4 * found.decisions


@pytest.mark.slow
def test_learning_spends_its_budget_and_gives_a_graph(model: LocalModel) -> None:
    told: list[int] = []
    found = learn(model, "score", 0, budget=80, progress=told.append)
    assert found.episodes == 80 and told == [80]
    assert len(found.chances) == 12 and len(found.success) == 1
