"""Progress, agreement, noise, normalisation, mixtures: numbers by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learning_fakes import ButtonWorld, click, decided, screen

from swarm_ui.action import Action
from swarm_ui.credit import CreditTable, EpisodeAssigner, credited
from swarm_ui.errors import ConfigError, Failure
from swarm_ui.optim.credit.assigners.assigner import PerDecision, replay_snapshots
from swarm_ui.optim.credit.assigners.critic import NoisyCritic, OutcomeCredit, ScriptedCritic
from swarm_ui.optim.credit.assigners.mixture import Mixture, blend
from swarm_ui.optim.credit.assigners.normalise import By, normalise
from swarm_ui.optim.credit.assigners.progress_credit import (
    AgreementCredit,
    NoveltyCredit,
    ProgressCredit,
)
from swarm_ui.rollout import GraphPolicy, rollout
from swarm_ui.trace.records import Episode, StepRecord, Trace


def episode(
    *steps: StepRecord, success: bool | None = True, fault: Failure | None = None
) -> Episode:
    return Episode(environment="e", task="t", seed=0, steps=steps, success=success, fault=fault)


def step(
    matrix: Sequence[Sequence[Action | None]],
    goal: str = "save it",
    executed: Action | None = None,
    credit: Sequence[Sequence[float | None]] | None = None,
    terminated: bool = False,
) -> StepRecord:
    trace = decided(matrix, observation=screen(goal=goal))
    return StepRecord(
        trace=trace,
        executed=executed or trace.action,
        credit=None if credit is None else tuple(map(tuple, credit)),
        terminated=terminated,
    )


class Fixed:
    """The same table for every decision."""

    def __init__(self, *values: float | None, name: str = "fixed", signed: bool = False) -> None:
        self.values, self.name, self.signed = values, name, signed

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        return CreditTable(values=(self.values,), source=self.name, signed=self.signed)


async def values_of(assigner: EpisodeAssigner, of: Episode, states: object = None) -> list[object]:
    tables = await assigner.assess(of, states)  # type: ignore[arg-type]
    return [table.values for table in tables]


async def test_progress_goes_to_those_who_proposed_what_was_done() -> None:
    lived = episode(
        step([[click(0), click(1)]], "one"),
        step([[click(1), click(1)]], "two"),
        step([[click(2), click(2)]], "three", executed=click(0)),
        step([[click(2), None]], "four", terminated=True),
    )
    measure = ProgressCredit(lambda state: float(str(state)), scale=2.0)
    states = ["0", "1", "4", "3"]
    assert await values_of(measure, lived, states) == [
        ((0.5, None),),  # half of the scale
        ((1.0, 1.0),),  # cut at 1
        ((None, None),),  # guided: nobody proposed what was done
        ((1.0, None),),  # solved
    ]
    failed = msgspec.structs.replace(lived, success=False)
    assert (await values_of(measure, failed, states))[-1] == ((-1.0, None),)
    cut = msgspec.structs.replace(failed.steps[-1], terminated=False, truncated=True)
    cut_off = msgspec.structs.replace(failed, steps=(*failed.steps[:-1], cut))
    assert (await values_of(measure, cut_off, states))[-1] == ((None, None),)
    with pytest.raises(ConfigError, match="has no snapshots"):
        await measure.assess(lived)
    with pytest.raises(ConfigError, match="4 steps but 1 snapshots"):
        await measure.assess(lived, ["0"])
    with pytest.raises(ConfigError, match="scale must be above 0"):
        ProgressCredit(lambda state: 0.0, scale=0)


async def test_a_new_screen_is_progress_and_an_old_one_is_not() -> None:
    lived = episode(
        step([[click(0), click(1)]], "one"),
        step([[click(1), click(1)]], "two"),
        step([[click(2), click(1)]], "one"),
        step([[click(2), click(2)]], "one"),
        success=False,
    )
    assert await values_of(NoveltyCredit(), lived) == [
        ((1.0, None),), ((0.0, 0.0),), ((0.0, None),), ((0.0, 0.0),),
    ]  # fmt: skip


async def test_agreement_is_the_share_of_the_others_in_the_last_round() -> None:
    trace = decided([[click(1), click(0), None], [click(0), click(0), click(1)]])
    table = await AgreementCredit().assign(trace, None)
    assert table.values == ((0.5, 0.5, 0.0), (0.5, 0.5, 0.0))
    alone = await AgreementCredit().assign(decided([[click(0)]]), None)
    assert alone.values == ((None,),)


async def test_masked_episodes_are_unscored_by_all() -> None:
    masked = episode(
        step([[click(0)]], credit=[[1.0]]),
        success=None,
        fault=Failure(kind="environment", message="x"),
    )
    everybody: list[EpisodeAssigner] = [
        OutcomeCredit(),
        NoveltyCredit(),
        ProgressCredit(lambda state: 0.0),
        PerDecision(AgreementCredit()),
        Mixture([(OutcomeCredit(), 1.0)]),
    ]
    for assigner in everybody:
        tables = await assigner.assess(masked, [None])
        assert [table.values for table in tables] == [((None,),)]
        assert all(table.source == assigner.name for table in tables)
    assert normalise([masked]).values == ((None,),)


async def test_a_mixture_is_the_weighted_mean_of_those_that_scored() -> None:
    one = episode(step([[click(0), click(1), click(2)]]), success=False)
    mixture = Mixture(
        [
            (PerDecision(Fixed(1.0, None, 0.0, name="a")), 3.0),
            (PerDecision(Fixed(-1.0, 1.0, None, name="b", signed=True)), 1.0),
        ]
    )
    assert mixture.name == "3 a + 1 b"
    assert await values_of(mixture, one) == [((0.75, 1.0, 0.0),)]
    for weights in ([], [(OutcomeCredit(), 0.0)], [(OutcomeCredit(), -1.0)]):
        with pytest.raises(ConfigError, match="must be 0 or more, and at least one above 0"):
            Mixture(weights)
    with pytest.raises(ConfigError, match="different shapes"):
        blend([(((1.0,),), [1.0]), (((1.0, 1.0),), [1.0])])


async def test_credit_is_written_in_its_unit_form() -> None:
    one = episode(step([[click(0), click(1)]]))
    tables = await PerDecision(Fixed(-1.0, 0.5, signed=True)).assess(one)
    assert credited(one, tables).steps[0].credit == ((0.0, 0.75),)


async def test_a_mixture_gives_the_reasons_of_all_its_parts() -> None:
    one = episode(step([[click(0), click(1)]]), success=True)
    parts = [(OutcomeCredit(), 1.0), (PerDecision(Fixed(1.0, 0.0)), 1.0)]
    (table,) = await Mixture(parts).assess(one)
    assert table.rationale == ("outcome: the episode was solved",)
    assert credited(one, [table]).steps[0].rationale == table.rationale


async def test_noise_has_its_share_its_bias_and_its_direction() -> None:
    exact = NoisyCritic(Fixed(1.0, 0.0, None), anti=True)
    trace = decided([[click(0), click(1), click(2)]])
    assert (await exact.assign(trace, None)).values == ((0.0, 1.0, None),)
    biased = NoisyCritic(Fixed(0.9, 0.2, None), bias=0.25)
    assert (await biased.assign(trace, None)).values == ((1.0, pytest.approx(0.45), None),)
    assert biased.name == "fixed, bias +0.25"
    for fresh in (False, True):
        critic = NoisyCritic(Fixed(1.0), flip=0.25, seed=3, fresh=fresh)
        wrong = 0
        for k in range(400):
            one = decided([[click(0)]], observation=screen(goal=f"goal {k}"), run=f"{k}")
            (value,) = (await critic.assign(one, None)).values[0]
            again = decided([[click(0)]], observation=screen(goal=f"goal {k}"), run=f"other {k}")
            same = (await critic.assign(again, None)).values == ((value,),)
            assert same or fresh
            wrong += value == 0.0
        assert 70 <= wrong <= 130  # 100 expected, standard deviation 8.7
    for wrong_setting in ({"flip": 2.0}, {"bias": -2.0}):
        with pytest.raises(ConfigError, match="must be in"):
            NoisyCritic(Fixed(1.0), **wrong_setting)


BATCH = [
    episode(
        step([[click(0), click(1)], [click(0), None]], "one", credit=[[1.0, 0.0], [0.5, None]]),
        step([[click(0), click(1)]], "two", credit=[[0.0, 1.0]]),
    ),
    episode(step([[click(0), click(1)]], "one", credit=[[0.5, 1.0]]), success=False),
    episode(
        step([[click(0), click(1)]], "one", credit=[[0.0, 0.0]]),
        success=None,
        fault=Failure(kind="environment", message="x"),
    ),
    episode(step([[click(0), click(1)]], "one")),
]


@pytest.mark.parametrize(
    ("by", "means", "spreads", "groups"),
    [
        ("batch", (4 / 7, 4 / 7), (None, None), 1),
        ("agent", (0.5, 2 / 3), (math.sqrt(0.125), math.sqrt(2) / 3), 2),
    ],
)
def test_advantages_against_the_closed_form(
    by: By, means: tuple[float, float], spreads: tuple[float | None, ...], groups: int
) -> None:
    plain = normalise(BATCH, by=by, scale=False)
    a, b = means
    assert plain.groups == groups
    first, second, masked, none = plain.values
    assert first[0] == ((pytest.approx(1 - a), pytest.approx(-b)), (pytest.approx(0.5 - a), None))
    assert first[1] == ((pytest.approx(-a), pytest.approx(1 - b)),)
    assert second == (((pytest.approx(0.5 - a), pytest.approx(1 - b)),),)
    assert masked == none == (None,)
    if spreads[0] is not None and spreads[1] is not None:
        scaled = normalise(BATCH, by=by).values[0][0]
        assert scaled is not None
        assert scaled[0] == (
            pytest.approx((1 - a) / spreads[0], rel=1e-4),
            pytest.approx(-b / spreads[1], rel=1e-4),
        )


def test_advantages_by_round_and_by_anchor() -> None:
    by_round = normalise(BATCH, by="agent and round", scale=False)
    assert by_round.groups == 2  # the second round's lone message has nobody to be compared with
    assert by_round.values[0][0] == (
        (pytest.approx(0.5), pytest.approx(-2 / 3)),
        (0.0, None),
    )
    anchors = normalise(BATCH, by="state", scale=False)
    assert anchors.groups == 2
    one = 3.0 / 5  # 1, 0, .5 of the first episode and .5, 1 of the second: equal screens
    assert anchors.values[0][0] == (
        (pytest.approx(1 - one), pytest.approx(-one)),
        (pytest.approx(0.5 - one), None),
    )
    assert anchors.values[0][1] == ((-0.5, 0.5),)
    assert anchors.values[1][0] == ((pytest.approx(0.5 - one), pytest.approx(1 - one)),)
    with pytest.raises(ConfigError, match="by must be one of batch, agent"):
        normalise(BATCH, by="team")  # type: ignore[arg-type]


@given(st.lists(st.lists(st.none() | st.floats(0, 1), min_size=3, max_size=3), min_size=1))
def test_advantages_have_mean_zero_and_variance_one(rows: list[list[float | None]]) -> None:
    episodes = [episode(step([[click(0)] * 3], credit=[row])) for row in rows]
    found = normalise(episodes, by="agent", floor=1e-12).values
    for agent in range(3):
        column = [
            steps[0][0][agent]
            for steps in found
            if steps[0] is not None and steps[0][0][agent] is not None
        ]
        kept = [v for v in column if v is not None]
        given_values = {row[agent] for row in rows if row[agent] is not None}
        if kept:
            assert math.fsum(kept) == pytest.approx(0.0, abs=1e-6)
        spread = max(given_values, default=0) - min(given_values, default=0)
        if spread > 1e-3:
            assert math.fsum(v * v for v in kept) / len(kept) == pytest.approx(1.0, rel=1e-6)


def test_equal_credit_is_no_advantage_however_it_is_rounded() -> None:
    value = 0.45975772132034287  # of which three have a mean that is another float
    batch = [episode(step([[click(0)]], credit=((value,),))) for _ in range(3)]
    assert normalise(batch).values == ((((0.0,),),),) * 3


async def test_snapshots_of_a_recorded_episode_come_from_playing_it_again() -> None:
    from test_credit_counterfactual import vote_on

    policy = GraphPolicy(vote_on(0, 1, 1), name="p")
    lived = await rollout(ButtonWorld(), policy, task="press", seed=3)
    states = await replay_snapshots(ButtonWorld, lived)
    assert len(states) == len(lived.steps) > 1
    tables = await PerDecision(ScriptedCritic(ButtonWorld)).assess(lived, states)
    world = ButtonWorld()
    for record, state, table in zip(lived.steps, states, tables, strict=True):
        seen = world.restore(state)
        assert seen == record.trace.observation
        assert table.values[0][0] == world.grade(click(0))
    with pytest.raises(ConfigError, match="another screen at step 0"):
        await replay_snapshots(ButtonWorld, msgspec.structs.replace(lived, seed=4))
