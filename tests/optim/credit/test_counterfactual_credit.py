"""Credit by replay: what is asked again, and what it comes to; Shapley values of known games."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import msgspec
import pytest
from graph_fakes import SCREEN, in_virtual_time
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_fakes import ButtonWorld
from replay_fakes import Telling, team

from swarm_ui import (
    Action,
    CollabGraph,
    ConfigError,
    Credit,
    Episode,
    Failure,
    GraphPolicy,
    Message,
    NodeContext,
    NodeReply,
    Observation,
    StepRecord,
    Trace,
)
from swarm_ui.nodes import AgentNode, MajorityVote
from swarm_ui.optim import LeaveOneOut, ScriptedCritic, Shapley
from swarm_ui.optim.credit.critic import credit_of
from swarm_ui.rollout import rollout


def click(index: int) -> Action:
    return Action(action_type="click", index=index)


class Says:
    """Proposes a click: a fixed one, or what a rule makes of what it hears."""

    def __init__(self, id: str, rule: int | Callable[[list[int]], int]) -> None:
        self.id, self.rule = id, rule
        self.asked = 0

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        self.asked += 1
        heard = [m.action.index for m in inbox if m.action and m.action.index is not None]
        index = self.rule if isinstance(self.rule, int) else self.rule(heard)
        return NodeReply(content=str(index), action=click(index))


class Fraction:
    """A click's grade is its index over 5; it cannot grade 4."""

    name = "fraction"

    def __init__(self, unknown: int | None = 4) -> None:
        self.judged, self.unknown = 0, unknown

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        self.judged += len(actions)
        return [None if a.index == self.unknown else (a.index or 0) / 5 for a in actions]


def vote_on(*clicks: int) -> CollabGraph:
    return CollabGraph([*[Says(f"a{k}", i) for k, i in enumerate(clicks)], MajorityVote()])


def assign(critic: Any, trace: Trace) -> Credit:
    """The credit of an episode of one decision."""
    episode = Episode(
        environment="e", task="t", seed=0, steps=(StepRecord(trace=trace),), success=True
    )
    (credit,) = in_virtual_time(credit_of(critic, [episode]))
    assert isinstance(credit, Credit)
    return credit


def row(credit: Credit, round: int = 0) -> tuple[float | None, ...]:
    return credit.values[0][round]


def test_a_pivotal_message_gets_the_difference_and_a_spare_one_nothing() -> None:
    chain = CollabGraph(
        [Says("a", 5), Says("b", lambda heard: max(heard, default=2)), Says("c", 1)],
        [("a", "b"), ("c", "b")],
        output="b",
    )
    trace = chain.run_sync(SCREEN)
    table = assign(LeaveOneOut(chain, Fraction()), trace)
    by_agent = dict(zip(trace.agents, row(table), strict=True))
    # Without a, b hears 1; without b nothing is decided; without c nothing changes.
    assert by_agent == pytest.approx({"a": 0.8, "b": 1.0, "c": 0.0})
    assert table.signed
    unit = dict(zip(trace.agents, row(table.unit()), strict=True))
    assert unit == pytest.approx({"a": 0.9, "b": 1.0, "c": 0.5})


def test_a_resampled_message_is_compared_with_the_mean_of_its_samples() -> None:
    model = Telling()
    graph = CollabGraph([AgentNode("a", model), MajorityVote()], [("a", "vote")])
    trace = graph.run_sync(SCREEN, seed=2)
    value = Fraction(None)
    table = assign(LeaveOneOut(graph, value, samples=5), trace)
    others = in_virtual_time(graph.resample(trace, "a:0", 5))
    actions = [other.action for other in (trace, *others) if other.action is not None]
    worth, *drawn = in_virtual_time(value.grade(SCREEN, actions, None))
    known = [w for w in drawn if w is not None]
    assert worth is not None and len(known) > 1 and len(set(known)) > 1
    mean = sum(known) / len(known)
    assert row(table) == (pytest.approx(worth - mean),)


def test_the_edges_of_the_trace_are_used_and_another_team_is_refused() -> None:
    model = Telling()
    graph = team(model, 1, 4, 2)
    trace = graph.run_sync(SCREEN, seed=1)
    bare = graph.with_edges([])
    assert graph.communication_edges and bare.communication_edges == ()
    model.requests.clear()
    ours = assign(LeaveOneOut(graph, Fraction()), trace)
    asked = len(model.requests)
    assert assign(LeaveOneOut(bare, Fraction()), trace) == ours
    assert len(model.requests) == 2 * asked
    with pytest.raises(ConfigError):
        assign(LeaveOneOut(vote_on(1, 2), Fraction()), trace)
    with pytest.raises(ConfigError):
        assign(LeaveOneOut(graph.with_rounds(3), Fraction()), trace)


def test_faults_are_masked() -> None:
    class Broken(Says):
        async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
            raise ValueError("down")

    graph = CollabGraph([Says("a0", 5), Broken("a1", 0), Says("a2", 5), MajorityVote()])
    trace = graph.run_sync(SCREEN)
    assert row(assign(LeaveOneOut(graph, Fraction()), trace)) == (0.0, None, 0.0)
    # Without anybody the failed agent alone remains, so that worth is a fault and not 0.
    assert row(assign(Shapley(graph, Fraction()), trace)) == (None,) * 3
    # A worth that cannot be found: 4 is Fraction's fault.
    graph = vote_on(4)
    trace = graph.run_sync(SCREEN)
    for critic in (LeaveOneOut(graph, Fraction()), Shapley(graph, Fraction())):
        assert row(assign(critic, trace)) == (None,)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 99), size=st.integers(2, 4), rounds=st.integers(1, 2))
def test_the_worth_of_a_coalition_is_that_of_a_plain_replay(
    seed: int, size: int, rounds: int
) -> None:
    model = Telling()
    graph = team(model, seed, size, rounds)
    trace = graph.run_sync(SCREEN, seed=seed)
    table = assign(Shapley(graph, Fraction(None)), trace)
    agents = list(trace.agents)
    worth: dict[frozenset[str], float] = {}
    for bits in range(2 ** len(agents)):
        kept = frozenset(a for k, a in enumerate(agents) if bits >> k & 1)
        without = [m.id for m in trace.messages if m.sender in set(agents) - kept]
        run = in_virtual_time(graph.replay(trace, without=without))
        worth[kept] = 0.0 if run.action is None else (run.action.index or 0) / 5
    orders = list(permutations(agents))
    for k, agent in enumerate(agents):
        added = [
            worth[frozenset(o[: o.index(agent) + 1])] - worth[frozenset(o[: o.index(agent)])]
            for o in orders
        ]
        expected = pytest.approx(sum(added) / len(added))
        assert all(of_round[k] == expected for of_round in table.values[0])


async def test_a_judge_that_needs_it_gets_the_state_of_each_decision() -> None:
    world = ButtonWorld()
    await world.reset(task="press", seed=0)
    right = world.expert().index or 0
    graph = vote_on(right, (right + 1) % 4, right)
    episode = await rollout(ButtonWorld(), GraphPolicy(graph, name="p"), task="press", seed=0)
    assert episode.success and len(episode.steps) == 2
    judge = ScriptedCritic(ButtonWorld)
    (credit,) = await credit_of(LeaveOneOut(graph, judge), [episode])
    assert credit.shape == (2, 1, 3) and credit.scored == 6
    (shared,) = await credit_of(Shapley(graph, judge), [episode])
    assert [sum(v or 0 for v in matrix[0]) for matrix in shared.values] == [1.0, 1.0]
    masked = msgspec.structs.replace(
        episode, success=None, fault=Failure(kind="environment", message="x")
    )
    assert [c.scored for c in await Shapley(graph, judge)([masked])] == [0]


# -- Shapley values of any game ---------------------------------------------------------------
