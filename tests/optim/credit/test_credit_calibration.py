"""Calibration and comparison: figures by hand, tables, plots, the command."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learning_fakes import ButtonWorld, click, decided, screen
from test_counterfactual_credit import vote_on

from swarm_ui.credit import Credit
from swarm_ui.errors import ConfigError, Failure
from swarm_ui.optim import DrMAS, LeaveOneOut, Outcome, ScriptedCritic
from swarm_ui.optim.credit.compare import Assessed, Comparison, assess, compare, compare_recorded
from swarm_ui.optim.credit.figures import auc_by_bootstrap
from swarm_ui.rollout import GraphPolicy, rollout
from swarm_ui.trace.records import Episode, StepRecord


def lived(number: int, success: bool | None, steps: int = 1) -> Episode:
    traces = [
        decided([[click(0), click(1)]], observation=screen(goal=f"{number}/{k}"))
        for k in range(steps)
    ]
    records = tuple(StepRecord(trace=t, executed=t.action) for t in traces)
    fault = Failure(kind="environment", message="x") if success is None else None
    return Episode(
        environment="e", task="t", seed=number, steps=records, success=success, fault=fault
    )


def given_credit(
    name: str, *rows: Sequence[Sequence[float | None]], calls: int | None = None
) -> Assessed:
    """Credit of single-round decisions: ``[episodes][steps][agents]``."""
    tables = tuple(
        Credit(values=tuple((tuple(row),) for row in steps), source=name) for steps in rows
    )
    return Assessed(name, tables, 0.25, calls)


EPISODES = [lived(0, True, 2), lived(1, False), lived(2, None), lived(3, False)]
TRUTH = given_credit("solver", [[1, 0], [1, 1]], [[0, 0]], [[1, 1]], [[0, 1]])
CRITIC = given_credit(
    "critic", [[0.9, 0.1], [0.9, 0.3]], [[0.1, 0.6]], [[0.0, 0.0]], [[0.6, None]], calls=7
)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=12))
def test_auc_is_the_share_of_pairs_in_order(rows: list[tuple[int, bool]]) -> None:
    good = [s for s, right in rows if right]
    bad = [s for s, right in rows if not right]
    scores, right = [float(s) for s, _ in rows], [right for _, right in rows]
    found = auc_by_bootstrap(scores, right, range(len(rows)))
    if not good or not bad:
        assert found is None
    else:
        pairs = [(g > b) + (g == b) / 2 for g in good for b in bad]
        assert found is not None and found.mean == pytest.approx(sum(pairs) / len(pairs))


def test_intervals_draw_whole_episodes() -> None:
    rng = random.Random(0)
    scores = [float(rng.random() < 0.5) for _ in range(30)]
    right = [s > 0.5 if rng.random() < 0.8 else s < 0.5 for s in scores]
    many = 20  # messages of an episode that are all alike say no more than one
    one = auc_by_bootstrap(scores, right, range(30))
    alike = auc_by_bootstrap(scores * many, right * many, [*range(30)] * many)
    apart = auc_by_bootstrap(scores * many, right * many, range(30 * many))
    assert one is not None and alike is not None and apart is not None
    assert one.mean == alike.mean == apart.mean
    assert (alike.low, alike.high) == (one.low, one.high)
    assert alike.high - alike.low > 3 * (apart.high - apart.low)


def test_calibration_by_hand() -> None:
    _, side = compare(EPISODES, [TRUTH, CRITIC], reference="solver").sides
    # Masked and unscored messages are left out: 7 of 8 remain.
    assert side.share == 7 / 8
    # right: .9 .9 .3; wrong: .1 .1 .6 .6
    assert side.auc is not None and side.auc.mean == pytest.approx((4 + 4 + 2) / 12)
    # inside decisions: only the first step of the first episode has a right and a wrong one
    assert side.inside is not None and side.inside.mean == 1.0
    assert side.outcome_auc is not None and side.outcome_auc.n == 3
    assert side.outcome_auc.mean == pytest.approx((3 + 3 + 0.5 + 1) / 12)
    expected = (2 * 0.1 + 0.7 + 2 * 0.6 + 2 * 0.1) / 7
    assert side.calibration == pytest.approx(expected)


def test_what_cannot_be_compared_is_none() -> None:
    (side,) = compare(EPISODES, [CRITIC]).sides  # without a reference
    assert side.calibration is None and side.auc is None and side.outcome_auc is not None
    signed = tuple(Credit(values=(((0.5, -0.5),),), source="s", signed=True) for _ in range(2))
    one = Assessed("s", signed, 0.0, None)
    (side,) = compare([lived(0, True), lived(1, False)], [one], reference="s").sides
    assert side.calibration is None and side.auc is not None  # a difference is no probability
    with pytest.raises(ConfigError, match="no critic 'x'"):
        compare(EPISODES, [TRUTH], reference="x")
    for wrong in ([TRUTH, TRUTH], []):
        with pytest.raises(ConfigError, match="different names"):
            compare(EPISODES, wrong)


async def test_calls_seconds_and_errors_of_real_critics() -> None:
    graph = vote_on(0, 1, 1)
    episode = await rollout(ButtonWorld(), GraphPolicy(graph, name="p"), task="press", seed=3)
    by_replay = LeaveOneOut(graph, ScriptedCritic(ButtonWorld), samples=2)
    assessed = [await assess(critic, [episode]) for critic in (Outcome(), by_replay)]
    outcome, replayed = assessed
    assert outcome.calls == 0 and outcome.name == "outcome"
    assert replayed.calls == 3 * 2 * len(episode.steps)  # no edges: only the message itself
    found = compare([episode], assessed)
    assert [side.calls for side in found.sides] == [0, replayed.calls]
    silent = await assess(Mute(), [episode])
    assert (silent.name, silent.calls) == ("Mute", None)  # nobody counted
    again = await assess(by_replay, [episode])
    assert again.calls == replayed.calls  # counted anew, not in total


class Mute:
    """Counts nothing."""

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        return [Credit.unscored(episode) for episode in episodes]


def names(found: Comparison) -> list[str]:
    return [side.name for side in found.sides]


async def test_recorded_episodes_are_compared_with_all_that_can_judge_them() -> None:
    graph = vote_on(0, 1, 1)
    policy = GraphPolicy(graph, name="p")
    episodes = [await rollout(ButtonWorld(), policy, task="press", seed=s) for s in range(6)]
    bare = await compare_recorded(episodes, critics=[DrMAS()])
    assert names(bare) == ["outcome", DrMAS.name] and bare.reference == ""
    critic = await compare_recorded(episodes, make_environment=ButtonWorld)
    assert names(critic) == ["scripted critic", "outcome"]
    assert critic.reference == "scripted critic"
    replayed = await compare_recorded(episodes, make_environment=ButtonWorld, graph=graph)
    assert names(replayed)[2:] == [
        "counterfactual, removed (scripted critic)", "Shapley over agents (scripted critic)",
    ]  # fmt: skip
    step = msgspec.structs.replace(episodes[0].steps[0], credit=((1.0, 0.0, 0.0),))
    credited = [msgspec.structs.replace(episodes[0], steps=(step, *episodes[0].steps[1:]))]
    recorded = await compare_recorded(credited)
    assert names(recorded) == ["outcome", "recorded"]
    assert recorded.reference == "recorded"
    with pytest.raises(ConfigError, match="no episodes"):
        await compare_recorded([])
