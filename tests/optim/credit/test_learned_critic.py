"""A critic that a language model learned: what it asks, how it scores, and its files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from learning_fakes import click, decided, screen

from swarm_ui.action import Action
from swarm_ui.adapter_metadata import CRITIC_FILE
from swarm_ui.credit import Matrix
from swarm_ui.errors import ConfigError
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.optim.credit.critic import credit_of
from swarm_ui.optim.credit.learned import (
    OPTIONS,
    LearnedCritic,
    Scaling,
    auc,
    learned_critic,
    question,
    read_card,
)
from swarm_ui.prompts import FORMATS
from swarm_ui.trace.records import Episode, StepRecord, Trace


class KnowsTheGoal:
    """A choosing model that says yes if the reply names the first word of the goal."""

    name = "knows"

    def __init__(self, yes: float = 0.9) -> None:
        self.yes = yes
        self.calls: list[int] = []

    async def probabilities(
        self, requests: Sequence[Request], options: Sequence[str]
    ) -> list[tuple[float, ...]]:
        assert tuple(options) == OPTIONS
        self.calls.append(len(requests))
        found = []
        for request in requests:
            assert request.chat is not None
            *_, user, reply, _ = (turn.content for turn in request.chat)
            goal = user.split("Goal: ")[1].split()[0]
            right = goal.casefold() in reply.casefold()
            found.append((self.yes, 1 - self.yes) if right else (1 - self.yes, self.yes))
        return found

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        raise AssertionError("a critic writes nothing")

    async def close(self) -> None: ...


async def credit_by(critic: LearnedCritic, trace: Trace) -> Matrix:
    steps = (StepRecord(trace=trace),)
    episode = Episode(environment="e", task="t", seed=0, steps=steps, success=True)
    (credit,) = await credit_of(critic, [episode])
    assert credit.source == critic.name
    return credit.values[0]


async def test_each_distinct_proposal_is_asked_about_once_in_one_call() -> None:
    model = KnowsTheGoal()
    critic = LearnedCritic(model)
    assert critic.name == "learned critic (knows)"
    trace = decided([[click(0), click(1), click(0)], [click(1), click(1), click(2)]])
    values = await credit_by(critic, trace)
    assert [pytest.approx(row) for row in values] == [(0.9, 0.1, 0.9), (0.1, 0.1, 0.1)]
    assert model.calls == [3]
    assert await credit_by(critic, trace) == values
    assert model.calls == [3]


async def test_what_cannot_be_judged_is_wrong_or_unscored() -> None:
    model = KnowsTheGoal()
    trace = decided([[click(0), None, None]], errors={"agent_2:0": "TimeoutError: 5 s"})
    assert await credit_by(LearnedCritic(model), trace) == ((pytest.approx(0.9), 0.0, None),)
    nothing = decided([[None]], errors={"agent_0:0": "TimeoutError: 5 s"})
    assert await credit_by(LearnedCritic(model), nothing) == ((None,),)
    assert model.calls == [1]


def test_the_question_is_an_agent_s_chat_with_its_reply_and_one_more_turn() -> None:
    proposal, form = click(1, "a label of the sender's own"), FORMATS["compact"]
    *asked, reply, last = question(screen(), proposal)
    assert tuple(asked) == form.chat(Decision(observation=screen()))
    assert reply.role == "assistant" and last.role == "user"
    read = form.parse(reply.content, screen())
    assert isinstance(read, Action) and read.key == proposal.key
    assert "sender" not in reply.content and "sender" not in last.content


# -- scaling --------------------------------------------------------------------------------------


def test_scaling_finds_the_share_that_is_right() -> None:
    scores = [0.9] * 400 + [0.2] * 400
    right = [k % 10 < 6 for k in range(400)] + [k % 10 < 3 for k in range(400)]
    scaling = Scaling.fitted(scores, right)
    assert scaling(0.9) == pytest.approx(0.6, abs=0.01)
    assert scaling(0.2) == pytest.approx(0.3, abs=0.01)


# -- figures -------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=12))
def test_auc_is_the_share_of_pairs_in_order(rows: list[tuple[int, bool]]) -> None:
    good = [s for s, right in rows if right]
    bad = [s for s, right in rows if not right]
    scores, right = [float(s) for s, _ in rows], [right for _, right in rows]
    found = auc(scores, right, range(len(rows)))
    if not good or not bad:
        assert found is None
    else:
        pairs = [(g > b) + (g == b) / 2 for g in good for b in bad]
        assert found is not None and found.mean == pytest.approx(sum(pairs) / len(pairs))


def test_intervals_draw_whole_tasks() -> None:
    rng = random.Random(0)
    scores = [float(rng.random() < 0.5) for _ in range(30)]
    right = [s > 0.5 if rng.random() < 0.8 else s < 0.5 for s in scores]
    many = 20  # messages of a task that are all alike say no more than one
    one = auc(scores, right, range(30))
    alike = auc(scores * many, right * many, [*range(30)] * many)
    apart = auc(scores * many, right * many, range(30 * many))
    assert one is not None and alike is not None and apart is not None
    assert (alike.low, alike.high) == (one.low, one.high)
    assert alike.high - alike.low > 3 * (apart.high - apart.low)


# -- files ----------------------------------------------------------------------------------------


def test_a_folder_that_is_no_critic_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        learned_critic(KnowsTheGoal(), tmp_path)
    (tmp_path / CRITIC_FILE).write_text('{"scaling": 3}')
    with pytest.raises(ConfigError):
        read_card(tmp_path)
