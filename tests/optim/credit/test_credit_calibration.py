"""Calibration and comparison of critics: figures by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from learning_fakes import ButtonWorld, click, decided, screen
from test_counterfactual_credit import vote_on

from swarm_ui.credit import Credit
from swarm_ui.errors import ConfigError, Failure
from swarm_ui.optim import LeaveOneOut, Outcome, ScriptedCritic, compare_critics
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


class Gives:
    """A critic with given credit of single-round decisions: ``[seed][steps][agents]``."""

    def __init__(self, *rows: Sequence[Sequence[float | None]], signed: bool = False) -> None:
        self.rows, self.signed = rows, signed

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        return [
            Credit(values=tuple((tuple(row),) for row in self.rows[e.seed]), signed=self.signed)
            for e in episodes
        ]


EPISODES = [lived(0, True, 2), lived(1, False), lived(2, None), lived(3, False)]
TRUTH = Gives([[1, 0], [1, 1]], [[0, 0]], [[1, 1]], [[0, 1]])
CRITIC = Gives([[0.9, 0.1], [0.9, 0.3]], [[0.1, 0.6]], [[0.0, 0.0]], [[0.6, None]])


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


async def test_calibration_by_hand() -> None:
    (side,) = await compare_critics(EPISODES, [CRITIC], reference=TRUTH)
    assert side.scored == 7 and side.name == "Gives"  # masked and unscored ones are left out
    # right: .9 .9 .3; wrong: .1 .1 .6 .6
    assert side.auc is not None and side.auc.mean == pytest.approx((4 + 4 + 2) / 12)
    # inside decisions: only the first step of the first episode has a right and a wrong one
    assert side.inside is not None and side.inside.mean == 1.0
    assert side.outcome_auc is not None and side.outcome_auc.n == 3
    assert side.outcome_auc.mean == pytest.approx((3 + 3 + 0.5 + 1) / 12)
    expected = (2 * 0.1 + 0.7 + 2 * 0.6 + 2 * 0.1) / 7
    assert side.calibration == pytest.approx(expected)


async def test_what_cannot_be_compared_is_none() -> None:
    (side,) = await compare_critics(EPISODES, [CRITIC])  # without a reference
    assert side.calibration is None and side.auc is None and side.outcome_auc is not None
    signed = Gives([[0.5, -0.5]], [[0.5, -0.5]], signed=True)
    pair = [lived(0, True), lived(1, False)]
    (side,) = await compare_critics(pair, [signed], reference=signed)
    assert side.calibration is None and side.auc is not None  # a difference is no probability
    with pytest.raises(ConfigError, match="none of 1 episodes"):
        await compare_critics([lived(2, None)], [TRUTH])


async def test_calls_are_those_of_the_comparison() -> None:
    graph = vote_on(0, 1, 1)
    episode = await rollout(ButtonWorld(), GraphPolicy(graph, name="p"), task="press", seed=3)
    by_replay = LeaveOneOut(graph, ScriptedCritic(ButtonWorld), samples=2)
    critics = [Outcome(), by_replay, Gives(*[[[0.5] * 3] * len(episode.steps)] * 4)]
    for _ in range(2):  # counted anew, not in total
        sides = await compare_critics([episode], critics)
        # No edges, so only the message itself is made again.
        assert [side.calls for side in sides] == [0, 3 * 2 * len(episode.steps), None]
