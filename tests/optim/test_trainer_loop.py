"""The team trainer: it learns, and every setting does what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_fakes import ButtonWorld, TinyModel, button_team
from learning_run import CONFIG, run, trainer

from swarm_ui.credit import Credit
from swarm_ui.errors import ConfigError
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.rollout_supervisor import Guidance
from swarm_ui.optim.training_progress import Progress, ProgressReporter
from swarm_ui.rollout import GraphPolicy, rollout_many
from swarm_ui.trace.records import Episode

SHORT = replace(CONFIG, iterations=1, edges="redraw", graphs=1)


def success(model: TinyModel) -> float:
    """Unguided, on episodes not trained on."""
    jobs = [("press", 20_000 + k) for k in range(80)]
    policy = GraphPolicy(button_team(model))
    episodes = asyncio.run(rollout_many(ButtonWorld, policy, jobs))
    return sum(bool(e.success) for e in episodes) / len(episodes)


def seen(**other: Any) -> tuple[Any, list[Sequence[Episode]]]:
    """A run's result, and the episodes of each iteration."""
    episodes: list[Sequence[Episode]] = []
    result = run(
        TinyModel(), None, callbacks=Callbacks(on_episodes=lambda _, e: episodes.append(e)), **other
    )
    return result, episodes


@pytest.fixture(scope="module")
def untrained() -> float:
    """Success before any training."""
    return success(TinyModel([f"agent_{k}" for k in range(3)]))


@pytest.mark.parametrize(
    "method", ["dpo", *(pytest.param(m, marks=pytest.mark.slow) for m in ("rft", "pg"))]
)
def test_the_team_learns(method: str, untrained: float) -> None:
    model = TinyModel()
    config = replace(
        CONFIG, edges="redraw", graphs=1, episodes=32, shared_steps=60,
        update=replace(CONFIG.update, method=method, steps=20),
    )  # fmt: skip
    result = run(model, None, config=config)
    assert success(model) > untrained + 0.3
    assert [m.shared for m in result.history] == [True, False, False]
    assert [len(m.updates) for m in result.history] == [1, 3, 3]
    assert all(m.credit_source == "scripted critic, 3 % flipped" for m in result.history)


def test_a_shared_iteration_gives_all_the_same_weights_and_a_later_one_does_not() -> None:
    def alike(iterations: int) -> bool:
        model = TinyModel()
        run(model, None, config=replace(CONFIG, iterations=iterations, shared_iterations=1))
        one, two = (model.adapter_parameters(f"agent_{k}") for k in (0, 1))
        return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))

    assert alike(1)
    assert not alike(2)


def test_redrawn_edges_differ_and_are_on_the_trace_with_their_log_prob() -> None:
    result, episodes = seen(config=replace(SHORT, iterations=4))
    drawn = [m.graphs[0].edges for m in result.history]
    assert len(set(drawn)) > 1
    for metrics, played in zip(result.history, episodes, strict=True):
        trace = played[0].steps[0].trace
        assert set(trace.edges) == set(metrics.graphs[0].edges)
        assert trace.edge_logprob == metrics.graphs[0].log_prob


def test_fixed_edges_stay() -> None:
    result, episodes = seen(config=replace(SHORT, iterations=2, edges="fixed"))
    assert {m.graphs[0].edges for m in result.history} == {()}
    assert episodes[0][0].steps[0].trace.edge_logprob is None


def test_learned_edges_are_compared_on_the_same_episodes_and_move() -> None:
    result, episodes = seen(config=replace(CONFIG, iterations=1, graphs=4, episodes=64))
    jobs = [(e.task, e.seed) for e in episodes[0]]
    assert jobs[:16] == jobs[16:32] == jobs[32:48] == jobs[48:]
    assert len(result.history[0].graphs) == 4
    for metrics in result.history:
        worth = [g.right for g in metrics.graphs]
        assert (metrics.edge_update.moved > 0) == (len(set(worth)) > 1)
    assert any(m.edge_update.moved > 0 for m in result.history)
    assert result.history[-1].edge_probabilities is not None


def test_a_shared_out_iteration_plays_each_episode_once() -> None:
    _, episodes = seen(config=replace(SHORT, graphs=4, episodes=10))
    jobs = [e.seed for e in episodes[0]]
    assert len(jobs) == len(set(jobs)) == 10
    assert len({e.steps[0].trace.edges for e in episodes[0]}) > 1


def test_faults_are_masked_and_learning_goes_on() -> None:
    config = replace(SHORT, edges="learned", graphs=2)
    everything = frozenset(range(10_000))
    model = TinyModel()
    dead = trainer(model, config=config, make_environment=lambda: ButtonWorld(everything))
    with pytest.warns(UserWarning, match="broke in all 16 episodes"):
        (metrics,) = asyncio.run(dead.run()).history
    assert (metrics.masked, metrics.success, metrics.credit) == (16, None, None)
    assert metrics.pairs == {}
    assert all(u.steps == 0 for u in metrics.updates)
    assert metrics.edge_update is not None
    assert (metrics.edge_update.used, metrics.edge_update.moved) == (0, 0.0)
    assert set(model.versions.values()) == {0}

    even = frozenset(range(0, 10_000, 2))
    half = trainer(TinyModel(), config=SHORT, make_environment=lambda: ButtonWorld(even))
    (metrics,) = asyncio.run(half.run()).history
    assert 0 < metrics.masked < 16
    assert metrics.success is not None
    assert sum(metrics.pairs.values()) > 0


def test_guided_rollouts_execute_a_right_proposal_where_the_vote_was_wrong() -> None:
    guided, episodes = seen(config=replace(SHORT, guide=1.0), guidance=None)
    free, _ = seen(config=replace(SHORT, guide=0.0), guidance=None)
    assert free.history[0].guided == 0.0
    assert guided.history[0].guided > 0.0
    assert guided.history[0].success > free.history[0].success
    for episode in episodes[0]:
        for step in episode.steps:
            if step.executed != step.trace.action:
                assert step.executed in [a for row in step.trace.matrix() for a in row]


def test_without_a_critic_the_outcome_is_everybodys_credit() -> None:
    result, episodes = seen(config=SHORT, critic=None)
    metrics = result.history[0]
    assert metrics.credit_source == "outcome"
    assert metrics.guided == 0.0
    assert metrics.credit is not None
    for episode in episodes[0]:
        for step in episode.steps:
            assert step.credit is not None
            assert {v for row in step.credit for v in row} == {float(bool(episode.success))}
    # Everybody succeeded or everybody failed, so no message of a colleague's is an opposite.
    assert set(metrics.sources) <= {"own > adversary", "own > nothing"}


def test_without_an_adversary_only_real_mistakes_are_rejected() -> None:
    result, _ = seen(config=SHORT, guidance=None)
    assert set(result.history[0].sources) <= {"own > mistake", "colleague > own", "own > nothing"}
    result, _ = seen(config=SHORT)
    assert "own > adversary" in result.history[0].sources


def test_progress_tells_phases_and_time_left() -> None:
    reports: list[Progress] = []
    run(TinyModel(), None, config=CONFIG, callbacks=Callbacks(on_progress=reports.append))
    first = [r.phase for r in reports if r.iteration == 0]
    assert first[:1] == ["rollout"]
    assert {"rollout", "update", "checkpoint"} == set(first)
    rollouts = [r for r in reports if r.phase == "rollout" and r.iteration == 2]
    assert [r.done for r in rollouts] == list(range(1, 17))
    assert {r.total for r in rollouts} == {16}
    assert all(r.remaining is None for r in reports if r.iteration == 0 and r.phase == "rollout")
    assert all(r.remaining is not None for r in reports if r.iteration > 0)
    assert (reports[-1].phase, reports[-1].iteration) == ("iteration", 3)
    for iteration, adapters in ((0, 1), (2, 3)):  # one adapter for all at first
        updates = [r for r in reports if r.phase == "update" and r.iteration == iteration]
        assert [(r.done, r.total) for r in updates] == [(k, adapters) for k in range(adapters + 1)]


def test_time_left_shrinks_with_the_clock() -> None:
    now = [0.0]
    reports: list[Progress] = []
    progress = ProgressReporter(4, reports.append, clock=lambda: now[0])
    progress.start_iteration()
    now[0] = 10.0
    progress.finish_iteration(0)
    assert reports[-1].remaining == pytest.approx(30.0)
    now[0] = 14.0
    progress.report(1, "update", 1, 2)
    assert (reports[-1].remaining, reports[-1].elapsed) == (pytest.approx(26.0), 14.0)


def test_the_first_iteration_tells_the_time_when_an_adapter_is_updated() -> None:
    now = [0.0]
    reports: list[Progress] = []
    progress = ProgressReporter(3, reports.append, clock=lambda: now[0])
    progress.start_iteration()
    for second, phase, done, total in (
        (20.0, "rollout", 8, 8), (20.0, "update", 0, 4), (23.0, "update", 1, 4),
        (32.0, "update", 4, 4), (34.0, "checkpoint", 1, 1),
    ):  # fmt: skip
        now[0] = second
        progress.report(0, phase, done, total)  # type: ignore[arg-type]
    # An iteration takes 20 s of rollouts and four times 3 s of updates, and then 2 s to save.
    assert [r.remaining for r in reports] == [None, None, 73.0, 64.0, 68.0]


def test_nothing_is_written_without_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(TinyModel(), None, config=SHORT)
    assert list(tmp_path.iterdir()) == []


class WrongCritic:
    """Gives credit to the wrong actions."""

    name = "wrong critic"

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        return await ScriptedCritic(ButtonWorld, flips=1.0)(episodes)


def test_the_outcome_can_be_the_credit_while_a_judge_guides() -> None:
    """The variant "w/o CR" changes the credit alone, if a judge is given."""
    config = replace(SHORT, guide=1.0, grade_negatives=True)
    judge = ScriptedCritic(ButtonWorld)
    judged = run(TinyModel(), None, config=config, critic=None, guidance=Guidance(judge))
    assert judged.history[0].credit_source == "outcome"
    assert (judged.history[0].guided or 0) > 0
    with pytest.raises(ConfigError, match="guide would not be used"):
        run(TinyModel(), None, config=config, critic=None)
    split = run(
        TinyModel(),
        None,
        config=config,
        critic=WrongCritic(),
        guidance=Guidance(ScriptedCritic(ButtonWorld)),
    )
    assert split.history[0].credit_source == "wrong critic"
