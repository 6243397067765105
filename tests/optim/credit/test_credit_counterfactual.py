"""Credit by replay: what is asked again, and what it comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

import msgspec
import pytest
from graph_fakes import SCREEN, in_virtual_time
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_fakes import ButtonWorld
from replay_fakes import Telling, after, team

from swarm_ui import (
    Action,
    CollabGraph,
    ConfigError,
    Environment,
    Message,
    NodeContext,
    NodeReply,
    Trace,
)
from swarm_ui.credit import CreditTable
from swarm_ui.environment import Step
from swarm_ui.errors import BudgetExceeded
from swarm_ui.nodes import AgentNode, MajorityVote
from swarm_ui.optim.credit.assigners.assigner import replay_snapshots
from swarm_ui.optim.credit.assigners.counterfactual import Counterfactual
from swarm_ui.optim.credit.assigners.critic import ScriptedCritic
from swarm_ui.optim.credit.assigners.shapley_values import ShapleyCredit
from swarm_ui.optim.credit.assigners.values import CriticValue, OutcomeValue
from swarm_ui.rollout import GraphPolicy, rollout


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
    """A decision's worth is its click's index over 5."""

    name = "fraction"

    def __init__(self) -> None:
        self.judged = 0

    async def __call__(self, trace: Trace, state: object | None) -> float | None:
        self.judged += 1
        if trace.action is None or trace.action.index is None:
            return 0.0
        return None if trace.action.index == 4 else trace.action.index / 5


def vote_on(*clicks: int) -> CollabGraph:
    return CollabGraph([*[Says(f"a{k}", i) for k, i in enumerate(clicks)], MajorityVote()])


def assign(assigner: object, trace: Trace, state: object = None) -> CreditTable:
    table = in_virtual_time(assigner.assign(trace, state))  # type: ignore[attr-defined]
    assert isinstance(table, CreditTable)
    return table


def test_a_pivotal_message_gets_the_difference_and_a_spare_one_nothing() -> None:
    chain = CollabGraph(
        [Says("a", 5), Says("b", lambda heard: max(heard, default=2)), Says("c", 1)],
        [("a", "b"), ("c", "b")],
        output="b",
    )
    trace = chain.run_sync(SCREEN)
    table = assign(Counterfactual(chain, Fraction()), trace)
    by_agent = dict(zip(trace.agents, table.values[0], strict=True))
    # Without a, b hears 1; without b nothing is decided; without c nothing changes.
    assert by_agent == pytest.approx({"a": 0.8, "b": 1.0, "c": 0.0})
    assert table.signed and table.errors is None
    unit = dict(zip(trace.agents, table.unit().values[0], strict=True))
    assert unit == pytest.approx({"a": 0.9, "b": 1.0, "c": 0.5})


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), size=st.integers(2, 5), rounds=st.integers(1, 3))
def test_only_descendants_are_asked_again(seed: int, size: int, rounds: int) -> None:
    model = Telling()
    graph = team(model, seed, size, rounds)
    trace = graph.run_sync(SCREEN, seed=seed)
    said = [m.id for m in trace.messages if m.sender != "vote"]
    model.requests.clear()
    removing = Counterfactual(graph, Plain())
    assign(removing, trace)
    followers = sum(len(after(trace, {id})) for id in said)
    assert len(model.requests) == removing.cost.calls == followers
    assert removing.cost.runs == len(said)

    model.requests.clear()
    drawing = Counterfactual(graph, Plain(), samples=3)
    assign(drawing, trace)
    assert len(model.requests) == drawing.cost.calls == 3 * (len(said) + followers)


def test_a_resampled_message_is_compared_with_the_mean_of_its_samples() -> None:
    model = Telling()
    graph = CollabGraph([AgentNode("a", model), MajorityVote()], [("a", "vote")])
    trace = graph.run_sync(SCREEN, seed=2)
    value = Fraction()
    table = assign(Counterfactual(graph, value, samples=5), trace)
    worth = in_virtual_time(value(trace, None))
    others = in_virtual_time(graph.resample(trace, "a:0", 5))
    drawn = [in_virtual_time(value(other, None)) for other in others]
    known = [w for w in drawn if w is not None]
    assert worth is not None and len(known) > 1 and len(set(known)) > 1
    mean = sum(known) / len(known)
    assert table.values == ((pytest.approx(worth - mean),),)
    spread = sum((w - mean) ** 2 for w in known) / (len(known) - 1) / len(known)
    assert table.errors is not None and table.errors[0][0] == pytest.approx(spread**0.5)


def test_the_edges_of_the_trace_are_used_and_another_team_is_refused() -> None:
    model = Telling()
    graph = team(model, 1, 4, 2)
    trace = graph.run_sync(SCREEN, seed=1)
    bare = graph.with_edges([])
    assert graph.communication_edges and bare.communication_edges == ()
    model.requests.clear()
    ours = assign(Counterfactual(graph, Fraction()), trace)
    asked = len(model.requests)
    assert assign(Counterfactual(bare, Fraction()), trace) == ours
    assert len(model.requests) == 2 * asked
    with pytest.raises(ConfigError, match="made with agents"):
        assign(Counterfactual(vote_on(1, 2), Fraction()), trace)
    with pytest.raises(ConfigError, match="made with rounds 2, but the graph has 3"):
        assign(Counterfactual(graph.with_rounds(3), Fraction()), trace)
    with pytest.raises(ConfigError, match="samples must be 0 or more"):
        Counterfactual(graph, Fraction(), samples=-1)


def test_the_delays_of_the_trace_are_used() -> None:
    """In the graph at hand, b hears a at once; in the run it heard a in the second round only."""
    now = CollabGraph(
        [Says("a", 5), Says("b", lambda heard: max(heard, default=2))],
        [("a", "b")],
        output="b",
        rounds=2,
    )
    late = now.with_edges([("a", "b")], delays={("a", "b"): 1})
    trace = late.run_sync(SCREEN)
    assert trace.edges == now.communication_edges and trace.delays == (1,)
    ours = assign(Counterfactual(late, Fraction()), trace)
    assert ours.values[0][0] == pytest.approx(0.6)  # the first message is the one that b heard
    assert assign(Counterfactual(now, Fraction()), trace) == ours


def test_faults_are_masked() -> None:
    class Broken(Says):
        async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
            raise ValueError("down")

    graph = CollabGraph([Says("a0", 2), Broken("a1", 0), MajorityVote()])
    trace = graph.run_sync(SCREEN)
    for assigner in (Counterfactual(graph, Fraction()), ShapleyCredit(graph, Fraction())):
        assert assign(assigner, trace).values == ((0.4, None),)
    # A worth that cannot be found: 4 is Fraction's fault.
    graph = vote_on(4)
    trace = graph.run_sync(SCREEN)
    for assigner in (Counterfactual(graph, Fraction()), ShapleyCredit(graph, Fraction())):
        assert assign(assigner, trace).values == ((None,),)


def test_shapley_of_a_vote_is_the_glove_game() -> None:
    class Pair:
        """1 if two agree on 5, which needs a1 and one of the others."""

        name = "pair"

        async def __call__(self, trace: Trace, state: object | None) -> float | None:
            weight = max(trace.ballot.values(), default=0.0)
            return float(weight >= 2)

    graph = CollabGraph([Says("a0", 5), Says("a1", 5), Says("a2", 5), MajorityVote()])
    trace = graph.run_sync(SCREEN)
    assert assign(ShapleyCredit(graph, Pair()), trace).values[0] == pytest.approx([1 / 3] * 3)
    apart = CollabGraph([Says("a0", 5), Says("a1", 5), Says("a2", 3), MajorityVote()])
    trace = apart.run_sync(SCREEN)
    assert assign(ShapleyCredit(apart, Pair()), trace).values[0] == pytest.approx([0.5, 0.5, 0])


def test_coalitions_that_come_to_the_same_are_run_once() -> None:
    first = Says("a", 1)
    middle = Says("b", lambda heard: max(heard, default=0) + 1)
    last = Says("c", lambda heard: max(heard, default=0) + 1)
    chain = CollabGraph([first, middle, last], [("a", "b"), ("b", "c")], output="c")
    trace = chain.run_sync(SCREEN)
    value = Fraction()
    shapley = ShapleyCredit(chain, value)
    table = assign(shapley, trace)
    # Worth by who reaches c through whom: c alone 1/5, bc 2/5, abc 3/5, ac as c, no c nothing.
    assert value.judged == 4 and shapley.cost.runs == 3
    assert shapley.cost.calls == 3  # c alone; b and then c without a
    total = sum(v for v in table.values[0] if v is not None)
    assert total == pytest.approx(3 / 5)
    by_agent = dict(zip(trace.agents, table.values[0], strict=True))
    assert by_agent == pytest.approx({"a": 1 / 15, "b": 1 / 5 * 1 / 2 + 1 / 15, "c": 11 / 30})


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 99), size=st.integers(2, 4), rounds=st.integers(1, 2))
def test_memoised_coalitions_are_worth_what_a_plain_replay_is(
    seed: int, size: int, rounds: int
) -> None:
    model = Telling()
    graph = team(model, seed, size, rounds)
    trace = graph.run_sync(SCREEN, seed=seed)
    table = assign(ShapleyCredit(graph, Plain()), trace)
    agents = list(trace.agents)
    worth: dict[frozenset[str], float] = {}
    for bits in range(2 ** len(agents)):
        kept = frozenset(a for k, a in enumerate(agents) if bits >> k & 1)
        without = [m.id for m in trace.messages if m.sender in set(agents) - kept]
        run = in_virtual_time(graph.replay(trace, without=without))
        worth[kept] = in_virtual_time(Plain()(run, None))
    orders = _orders(agents)
    for k, agent in enumerate(agents):
        added = [
            worth[frozenset(o[: o.index(agent) + 1])] - worth[frozenset(o[: o.index(agent)])]
            for o in orders
        ]
        expected = pytest.approx(sum(added) / len(added))
        assert all(row[k] == expected for row in table.values)


class Plain:
    """A worth for every decision."""

    name = "plain"

    async def __call__(self, trace: Trace, state: object | None) -> float:
        return 0.0 if trace.action is None else (1 + (trace.action.index or 0)) / 6


def _orders(players: list[str]) -> list[list[str]]:
    if not players:
        return [[]]
    return [[p, *rest] for p in players for rest in _orders([q for q in players if q != p])]


def test_many_messages_are_sampled_with_errors_that_sum_to_the_same() -> None:
    graph = team(Telling(), 3, 4, 2)
    trace = graph.run_sync(SCREEN, seed=3)
    table = assign(ShapleyCredit(graph, Plain(), players="messages", pairs=6, seed=1), trace)
    assert table.errors is not None and len(table.values) == 2
    whole = in_virtual_time(Plain()(trace, None))
    scored = [v for row in table.values for v in row if v is not None]
    assert len(scored) == 8 and sum(scored) == pytest.approx(whole)
    again = assign(ShapleyCredit(graph, Plain(), players="messages", pairs=6, seed=1), trace)
    assert again == table


async def test_a_critic_or_the_outcome_can_say_what_a_decision_is_worth() -> None:
    world = ButtonWorld()
    screen = await world.reset(task="press", seed=0)
    right = world.expert().index or 0
    wrong = (right + 1) % 4
    graph = vote_on(right, wrong, right)
    trace = await graph.run(screen, run_id="press/0/0")
    state = world.snapshot()
    value = CriticValue(ScriptedCritic(ButtonWorld))
    assert await value(trace, state) == 1.0
    bad = msgspec.structs.replace(trace, action=click(wrong))
    assert await value(bad, state) == 0.0
    assert await value(msgspec.structs.replace(trace, action=None), state) == 0.0

    policy = GraphPolicy(vote_on(right, right), name="p")
    going_on = OutcomeValue(ButtonWorld, policy)
    assert await going_on(trace, state) == 1.0
    assert await asyncio.gather(going_on(trace, state), going_on(bad, state)) == [1.0, 1.0]
    assert going_on.played == 2  # the same decision at the same place is played once
    hopeless = OutcomeValue(ButtonWorld, GraphPolicy(vote_on(wrong), name="p"), samples=2)
    assert await hopeless(trace, state) == 0.0
    assert hopeless.played == 2
    broken = OutcomeValue(lambda: ButtonWorld(frozenset([0])), policy)
    assert (await rollout(ButtonWorld(frozenset([0])), policy, task="press", seed=0)).fault
    with pytest.raises(ConfigError, match="no snapshot"):
        await broken(trace, None)
    with pytest.raises(ConfigError, match="samples must be at least 1"):
        OutcomeValue(ButtonWorld, policy, samples=0)


async def test_a_fault_of_the_environment_says_nothing_about_a_decision() -> None:
    world = ButtonWorld()
    screen = await world.reset(task="press", seed=0)
    trace = await vote_on(0).run(screen, run_id="press/0/0")
    broken = OutcomeValue(lambda: ButtonWorld(frozenset([0])), GraphPolicy(vote_on(0), name="p"))
    assert await broken(trace, world.snapshot()) is None


async def test_equal_runs_in_other_states_are_continued_apart() -> None:
    """Two teams play one task and seed, and one of them is further at this step."""
    world = ButtonWorld()
    screen = await world.reset(task="press", seed=0)
    right = world.expert().index or 0
    wrong = GraphPolicy(vote_on((right + 1) % 4), name="p")
    value = OutcomeValue(ButtonWorld, wrong)
    slow = await vote_on(right).run(screen, run_id="press/0/1")
    assert await value(slow, world.snapshot()) == 0.0
    further = (await world.step(click(right))).observation
    quick = await vote_on(right).run(further, run_id="press/0/1")
    assert await value(quick, world.snapshot()) == 1.0


async def test_a_cancelled_value_can_be_asked_for_again() -> None:
    class Slow(ButtonWorld):
        async def step(self, action: Action) -> Step:
            await asyncio.sleep(0.01)
            return await super().step(action)

    world = ButtonWorld()
    screen = await world.reset(task="press", seed=0)
    right = world.expert().index or 0
    trace = await vote_on(right).run(screen, run_id="press/0/0")
    value = OutcomeValue(Slow, GraphPolicy(vote_on(right), name="p"))
    first = asyncio.ensure_future(value(trace, world.snapshot()))
    second = asyncio.ensure_future(value(trace, world.snapshot()))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 1.0
    assert await value(trace, world.snapshot()) == 1.0


async def test_nothing_runs_on_after_an_error() -> None:
    """Values may cost money: what nobody waits for any more must not go on."""

    class Spent:
        name = "spent"
        asked = ended = 0

        async def __call__(self, trace: Trace, state: object | None) -> float:
            self.asked += 1
            if self.asked == 2:
                raise BudgetExceeded("used up")
            if self.asked > 2:
                await asyncio.sleep(0.01)
            self.ended += 1
            return 1.0

    graph = vote_on(0, 1, 2)
    trace = await graph.run(SCREEN)
    for assigner in (Counterfactual(graph, spent := Spent()), ShapleyCredit(graph, spent)):
        spent.asked, spent.ended = 0, 0
        with pytest.raises(BudgetExceeded):
            await assigner.assign(trace, None)
        before = spent.ended
        await asyncio.sleep(0.03)
        assert spent.ended == before


async def test_an_environment_without_snapshots_is_refused_and_closed() -> None:
    class Once:
        name = "once"
        closed = 0

        async def close(self) -> None:
            self.closed += 1

    world, one = ButtonWorld(), Once()
    screen = await world.reset(task="press", seed=0)
    graph = vote_on(0, 0)
    policy, make = GraphPolicy(graph, name="p"), cast(Callable[[], Environment], lambda: one)
    trace = await graph.run(screen, run_id="press/0/0")
    with pytest.raises(ConfigError, match="has no snapshot"):
        await OutcomeValue(make, policy)(trace, world.snapshot())
    assert one.closed == 1
    episode = await rollout(world, policy, task="press", seed=0)
    with pytest.raises(ConfigError, match="has no snapshot"):
        await replay_snapshots(make, episode)
    assert one.closed == 2
