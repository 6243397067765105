"""Credit that compares the episodes of a batch: numbers by hand, and a team that learns from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from learning_fakes import ButtonWorld, TinyModel, click, decided, screen
from learning_run import CONFIG, run

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError, Failure
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.credit.analysis.compare import assess_all
from swarm_ui.optim.credit.assigners.batch import BatchAssigner, by_start, squashed
from swarm_ui.optim.credit.assigners.critic import ScriptedCritic
from swarm_ui.optim.credit.assigners.group_advantages import DrMAS, GiGPO
from swarm_ui.optim.credit.assigners.progress_attribution import (
    ProgressAttribution,
    fitted,
    step_features,
)
from swarm_ui.optim.credit.assigners.search_tree import SearchTreeCredit
from swarm_ui.optim.rollout_supervisor import Critics
from swarm_ui.trace.records import Episode, StepRecord

ALL: tuple[type[BatchAssigner], ...] = (
    DrMAS,
    GiGPO,
    SearchTreeCredit,
    ProgressAttribution,
)
Row = Sequence[Action | None]


def step(row: Row, goal: str = "start", executed: Action | None = None) -> StepRecord:
    trace = decided([row], observation=screen(("a", "b", "c", "d", "e"), goal=goal))
    return StepRecord(trace=trace, executed=executed or row[0])


def episode(success: bool | None, *steps: StepRecord, seed: int = 0) -> Episode:
    fault = Failure(kind="environment", message="x") if success is None else None
    return Episode(environment="e", task="t", seed=seed, steps=steps, success=success, fault=fault)


async def values(assigner: BatchAssigner, *episodes: Episode) -> list[list[object]]:
    """``[episodes][steps]``, the row of each decision."""
    tables = await assigner.assess_batch(episodes)
    assert all(table.source == assigner.name for steps in tables for table in steps)
    return [[table.values[0] for table in steps] for steps in tables]


def near(*row: float | None) -> object:
    return pytest.approx(row, abs=1e-4)


@pytest.mark.parametrize("kind", ALL)
async def test_every_assigner_keeps_the_contract(kind: type[BatchAssigner]) -> None:
    """Shapes, range, masked episodes, and no dependence on the order of the episodes."""
    batch = [
        episode(True, step([click(0), click(1)]), step([click(1), None], "two"), seed=1),
        episode(False, step([click(1), click(0)]), seed=2),
        episode(None, step([click(0), click(1)]), seed=3),
    ]
    assigner = kind()
    assert isinstance(assigner, BatchAssigner)
    tables = await assigner.assess_batch(batch)
    assert [len(steps) for steps in tables] == [2, 1, 1]
    assert tables[2][0].values == ((None, None),) and not tables[2][0].signed
    for steps in tables[:2]:
        for table in steps:
            assert table.signed and len(table.values[0]) == 2
            assert all(v is None or -1.0 <= v <= 1.0 for v in table.values[0])
    turned = await assigner.assess_batch(batch[::-1])
    for ours, theirs in zip(tables, turned[::-1], strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert other.values[0] == pytest.approx(one.values[0])
    assert await assigner.assess_batch([]) == ()
    assessed = await assess_all(assigner, batch)
    assert (assessed.name, assessed.calls, assessed.tables) == (assigner.name, 0, tables)


async def test_state_wise_advantages_compare_equal_screens_and_outcomes() -> None:
    solved = episode(True, step([click(0), click(1)]), step([click(1), click(2)], "two"), seed=1)
    failed = episode(False, step([click(1), click(2)]), seed=2)
    found = await values(GiGPO(discount=0.5), solved, failed)
    # Outcome: +1 and -1. On the first screen the returns 0.5 and 0 are +1 and -1. The second
    # screen occurs once: 0.
    assert found[0][0] == near(2 / 3, -1 / 2)  # agent_1 proposed what the other attempt did
    assert found[0][1] == near(1 / 2, None)  # nobody tried its action there
    assert found[1][0] == near(-2 / 3, None)
    alone = await values(GiGPO(weight=0.0), solved, failed)
    assert alone[0][0] == near(1 / 2, 0.0)
    for wrong in ({"discount": 0.0}, {"discount": 1.1}, {"weight": -1.0}):
        with pytest.raises(ConfigError, match="GiGPO"):
            GiGPO(**wrong)


async def test_agent_wise_advantages_use_the_mean_of_each_agents_messages() -> None:
    solved = episode(True, step([click(0), click(1)]), seed=1)
    failed = episode(
        False,
        step([click(1), click(0)]),
        step([click(1), click(0)], "two"),
        step([click(1), click(0)], "three"),
        seed=2,
    )
    found = await values(DrMAS(), solved, failed)
    high = 0.75 / (3 / 16) ** 0.5  # outcomes 1, 0, 0, 0
    assert found[0][0] == near(squashed(high), squashed(high))
    assert found[1] == [near(squashed(-high / 3), squashed(-high / 3))] * 3


async def test_a_tree_node_has_the_success_rate_of_the_attempts_through_it() -> None:
    attempts = [
        episode(True, step([click(0), click(3)]), step([click(1), click(4)], "two"), seed=1),
        episode(False, step([click(0), click(4)]), step([click(2), click(1)], "two"), seed=2),
        episode(True, step([click(3), click(0)]), seed=3),
    ]
    found = await values(SearchTreeCredit(), *attempts)
    assert found[0] == [near(0.0, 1.0), near(1.0, None)]
    assert found[1] == [near(0.0, None), near(-1.0, 1.0)]
    assert found[2] == [near(1.0, 0.0)]


async def test_starts_that_differ_are_not_compared() -> None:
    one = episode(True, step([click(0)], "one"), seed=1)
    other = episode(False, step([click(1)], "other"), seed=2)
    assert list(by_start([one, other, one]).values()) == [[0, 2], [1]]
    for kind in (DrMAS, GiGPO):
        assert await values(kind(), one, other) == [[near(0.0)], [near(0.0)]]
    assert await values(SearchTreeCredit(), one, other) == [[near(1.0)], [near(-1.0)]]


def test_contributions_add_up_to_the_outcome_up_to_the_penalty() -> None:
    # One feature: w minimises (2 w - 1)^2 + r w^2, so w = 2 / (4 + r).
    assert fitted([[("a",), ("a",)]], [1.0], 1.0) == {"a": pytest.approx(0.4)}
    two = fitted([[("a",), ("b",)], [("b",)]], [1.0, 0.0], 1e-9)
    assert two == {"a": pytest.approx(1.0), "b": pytest.approx(0.0, abs=1e-6)}
    assert fitted([], [], 1.0) == {}
    with pytest.raises(ConfigError, match="ridge must be above 0"):
        ProgressAttribution(ridge=0.0)


async def test_progress_goes_to_actions_of_solved_episodes_also_where_not_executed() -> None:
    batch = []
    for seed in range(6):
        good = seed % 2 == 0
        row = [click(0), click(1)] if good else [click(1), click(0)]
        batch.append(episode(good, step(row, f"goal {seed}"), seed=seed))
    found = await values(ProgressAttribution(), *batch)
    for seed, ((row,)) in enumerate(found):
        right, wrong = row if seed % 2 == 0 else reversed(row)  # type: ignore[call-overload]
        assert right > 0.3 > -0.3 > wrong
    same = [episode(True, step([click(0)]), seed=k) for k in range(3)]
    assert await values(ProgressAttribution(), *same) == [[near(0.0)]] * 3


def test_features_say_what_of_the_goal_an_action_uses() -> None:
    field = Element(index=0, role="field", text="note title", editable=True, clickable=True)
    look = Observation(goal="write milk as title", app="notes", elements=(field,))
    typed = Action(action_type="input_text", index=0, text="milk")
    found = step_features(look, typed, again=False)
    assert {"in goal some input_text", "text in goal all input_text"} <= set(found)
    assert step_features(look, None, again=True) == (
        "type none",
        "app notes none",
        "again True none",
    )


@pytest.mark.filterwarnings("ignore:.*no adapter was trained")  # no two attempts start alike
@pytest.mark.parametrize("kind", ALL)
def test_a_team_learns_from_the_credit_of_a_batch(kind: type[BatchAssigner]) -> None:
    config = replace(
        CONFIG, iterations=1, shared_iterations=1, edges="redraw", graphs=1, guide=0.0,
        grade_negatives=False,
    )  # fmt: skip
    result = run(
        TinyModel(),
        None,
        config=config,
        critic=Critics(batch=kind(), judge=ScriptedCritic(ButtonWorld)),
    )
    (metrics,) = result.history
    assert metrics.credit_source == kind().name
    assert metrics.critic_weights is None and metrics.guided == 0.0
    assert metrics.credit is not None and 0.0 <= metrics.credit <= 1.0


def test_credit_has_one_source() -> None:
    both = Critics(credit=ScriptedCritic(ButtonWorld), batch=DrMAS())
    with pytest.raises(ConfigError, match="both credit and batch"):
        run(TinyModel(), None, critic=both)
