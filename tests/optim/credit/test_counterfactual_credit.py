"""Credit by replay: what is asked again, and what it comes to; Shapley values of known games."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from graph_fakes import SCREEN, in_virtual_time
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_fakes import ButtonWorld
from replay_fakes import Telling, after, team

from swarm_ui import (
    Action,
    BudgetExceeded,
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
from swarm_ui.optim.credit.counterfactual import Coalition, Values, shapley
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
    assert table.signed and table.errors is None
    unit = dict(zip(trace.agents, row(table.unit()), strict=True))
    assert unit == pytest.approx({"a": 0.9, "b": 1.0, "c": 0.5})


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), size=st.integers(2, 5), rounds=st.integers(1, 3))
def test_only_descendants_are_asked_again(seed: int, size: int, rounds: int) -> None:
    model = Telling()
    graph = team(model, seed, size, rounds)
    trace = graph.run_sync(SCREEN, seed=seed)
    said = [m.id for m in trace.messages if m.sender != "vote"]
    model.requests.clear()
    removing = LeaveOneOut(graph, Fraction(None))
    assign(removing, trace)
    followers = sum(len(after(trace, {id})) for id in said)
    assert len(model.requests) == removing.calls == followers

    model.requests.clear()
    drawing = LeaveOneOut(graph, Fraction(None), samples=3)
    assign(drawing, trace)
    assert len(model.requests) == drawing.calls == 3 * (len(said) + followers)


def test_a_resampled_message_is_compared_with_the_mean_of_its_samples() -> None:
    model = Telling()
    graph = CollabGraph([AgentNode("a", model), MajorityVote()], [("a", "vote")])
    trace = graph.run_sync(SCREEN, seed=2)
    value = Fraction()
    table = assign(LeaveOneOut(graph, value, samples=5), trace)
    others = in_virtual_time(graph.resample(trace, "a:0", 5))
    actions = [other.action for other in (trace, *others) if other.action is not None]
    worth, *drawn = in_virtual_time(value.grade(SCREEN, actions, None))
    known = [w for w in drawn if w is not None]
    assert worth is not None and len(known) > 1 and len(set(known)) > 1
    mean = sum(known) / len(known)
    assert row(table) == (pytest.approx(worth - mean),)
    spread = sum((w - mean) ** 2 for w in known) / (len(known) - 1) / len(known)
    assert table.errors is not None and table.errors[0][0][0] == pytest.approx(spread**0.5)


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
    with pytest.raises(ConfigError, match="made with agents"):
        assign(LeaveOneOut(vote_on(1, 2), Fraction()), trace)
    with pytest.raises(ConfigError, match="made with agents and rounds"):
        assign(LeaveOneOut(graph.with_rounds(3), Fraction()), trace)
    with pytest.raises(ConfigError, match="samples must be 0 or more"):
        LeaveOneOut(graph, Fraction(), samples=-1)


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
    ours = assign(LeaveOneOut(late, Fraction()), trace)
    assert row(ours)[0] == pytest.approx(0.6)  # the first message is the one that b heard
    assert assign(LeaveOneOut(now, Fraction()), trace) == ours


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


def test_coalitions_that_come_to_the_same_are_run_once() -> None:
    first = Says("a", 1)
    middle = Says("b", lambda heard: max(heard, default=0) + 1)
    last = Says("c", lambda heard: max(heard, default=0) + 1)
    chain = CollabGraph([first, middle, last], [("a", "b"), ("b", "c")], output="c")
    trace = chain.run_sync(SCREEN)
    value = Fraction()
    shapley = Shapley(chain, value)
    table = assign(shapley, trace)
    # Worth by who reaches c through whom: c alone 1/5, bc 2/5, abc 3/5, ac as c, no c nothing.
    assert value.judged == 3  # without c there is no decision
    assert shapley.calls == 3  # c alone; b and then c without a
    total = sum(v for v in row(table) if v is not None)
    assert total == pytest.approx(3 / 5)
    by_agent = dict(zip(trace.agents, row(table), strict=True))
    assert by_agent == pytest.approx({"a": 1 / 15, "b": 1 / 5 * 1 / 2 + 1 / 15, "c": 11 / 30})


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 99), size=st.integers(2, 4), rounds=st.integers(1, 2))
def test_memoised_coalitions_are_worth_what_a_plain_replay_is(
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
    orders = _orders(agents)
    for k, agent in enumerate(agents):
        added = [
            worth[frozenset(o[: o.index(agent) + 1])] - worth[frozenset(o[: o.index(agent)])]
            for o in orders
        ]
        expected = pytest.approx(sum(added) / len(added))
        assert all(of_round[k] == expected for of_round in table.values[0])


def _orders(players: list[str]) -> list[list[str]]:
    if not players:
        return [[]]
    return [[p, *rest] for p in players for rest in _orders([q for q in players if q != p])]


def test_many_messages_are_sampled_with_errors_that_sum_to_the_same() -> None:
    graph = team(Telling(), 3, 4, 2)
    trace = graph.run_sync(SCREEN, seed=3)
    table = assign(Shapley(graph, Fraction(None), players="messages", pairs=6, seed=1), trace)
    assert table.errors is not None and table.shape == (1, 2, 4) and trace.action is not None
    scored = [v for of_round in table.values[0] for v in of_round if v is not None]
    assert len(scored) == 8 and sum(scored) == pytest.approx((trace.action.index or 0) / 5)
    again = assign(Shapley(graph, Fraction(None), players="messages", pairs=6, seed=1), trace)
    assert again == table


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


async def test_nothing_runs_on_after_an_error() -> None:
    """Grades may cost money: what nobody waits for any more must not go on."""

    class Spent:
        name = "spent"
        asked = ended = 0

        async def grade(
            self, observation: Observation, actions: Sequence[Action], state: object
        ) -> list[float | None]:
            self.asked += 1
            if self.asked == 2:
                raise BudgetExceeded("used up")
            if self.asked > 2:
                await asyncio.sleep(0.01)
            self.ended += 1
            return [1.0] * len(actions)

    graph = vote_on(0, 1, 2)
    trace = await graph.run(SCREEN)
    steps = (StepRecord(trace=trace),)
    episode = Episode(environment="e", task="t", seed=0, steps=steps, success=True)
    for critic in (LeaveOneOut(graph, spent := Spent()), Shapley(graph, spent)):
        spent.asked, spent.ended = 0, 0
        with pytest.raises(BudgetExceeded):
            await critic([episode])
        before = spent.ended
        await asyncio.sleep(0.03)
        assert spent.ended == before


# -- Shapley values of any game ---------------------------------------------------------------

Game = Callable[[Coalition], float | None]


def solve(
    players: Sequence[str], game: Game, *, seed: int = 0, exact_up_to: int = 6, pairs: int = 16
) -> Values | None:
    async def worth(coalitions: Sequence[Coalition]) -> Sequence[float | None]:
        return [game(c) for c in coalitions]

    rng = random.Random(seed)
    return asyncio.run(shapley(players, worth, rng, exact_up_to=exact_up_to, pairs=pairs))


def exact(players: Sequence[str], game: Game) -> dict[str, float]:
    found = solve(players, game)
    assert found is not None and found.errors is None
    return found.values


def glove(c: Coalition) -> float:
    """Two left gloves and one right: a pair is worth 1."""
    return float("right" in c and len(c) >= 2)


def test_the_glove_game() -> None:
    values = exact(["left 1", "left 2", "right"], glove)
    assert values == pytest.approx({"left 1": 1 / 6, "left 2": 1 / 6, "right": 4 / 6})


@pytest.mark.parametrize("n", [1, 3, 5])
def test_the_majority_game_shares_equally(n: int) -> None:
    players = [f"p{k}" for k in range(n)]
    values = exact(players, lambda c: float(len(c) > n / 2))
    assert values == pytest.approx(dict.fromkeys(players, 1 / n))


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=5))
def test_an_additive_game_gives_each_its_own(worths: list[float]) -> None:
    own = {f"p{k}": w for k, w in enumerate(worths)}
    values = exact(list(own), lambda c: math.fsum(own[p] for p in c))
    assert values == pytest.approx(own, abs=1e-9)


def table_game(n: int, seed: int, *, null: str = "", twins: tuple[str, str] | None = None) -> Game:
    """A random game; ``null`` never matters, ``twins`` are interchangeable."""

    def game(c: Coalition) -> float:
        kept = set(c) - {null}
        if twins is not None and len(kept & set(twins)) == 1:
            kept = (kept - set(twins)) | {twins[0]}
        return random.Random(f"{seed}{sorted(kept)}").uniform(-1, 1)

    return game


@settings(max_examples=30, deadline=None)
@given(n=st.integers(2, 5), seed=st.integers(0, 999))
def test_efficiency_symmetry_and_null_player(n: int, seed: int) -> None:
    players = [f"p{k}" for k in range(n)]
    game = table_game(n, seed, null="p0", twins=("p0", "p0"))
    values = exact(players, game)
    assert values["p0"] == pytest.approx(0.0, abs=1e-12)
    whole, nobody = game(frozenset(players)), game(frozenset())
    assert whole is not None and nobody is not None
    assert math.fsum(values.values()) == pytest.approx(whole - nobody)
    twins = exact(players, table_game(n, seed, twins=("p0", "p1")))
    assert twins["p0"] == pytest.approx(twins["p1"])


@settings(max_examples=20, deadline=None)
@given(n=st.integers(2, 9), seed=st.integers(0, 999))
def test_sampled_values_are_efficient_too_and_a_null_player_gets_nothing(n: int, seed: int) -> None:
    players = [f"p{k}" for k in range(n)]
    found = solve(players, table_game(n, seed, null="p0"), seed=seed, exact_up_to=0, pairs=4)
    assert found is not None and found.errors is not None
    whole, nobody = (
        table_game(n, seed, null="p0")(frozenset(players)),
        table_game(n, seed, null="p0")(frozenset()),
    )
    assert whole is not None and nobody is not None
    assert math.fsum(found.values.values()) == pytest.approx(whole - nobody)
    assert found.values["p0"] == 0.0 and found.errors["p0"] == 0.0


def test_a_coalition_that_cannot_be_judged_spoils_the_exact_values_only() -> None:
    players = [f"p{k}" for k in range(7)]

    def game(c: Coalition) -> float | None:
        return None if c == {"p0"} else float(len(c))

    assert solve(players[:3], game) is None
    found = solve(players, game, exact_up_to=0, pairs=12)
    assert found is not None and found.values == pytest.approx(dict.fromkeys(players, 1.0))
    assert solve(players, lambda c: None, exact_up_to=0) is None


def test_bad_input_is_refused() -> None:
    for players, pairs in ((["a", "a"], 16), (["a"], 1)):
        with pytest.raises(ConfigError, match="different players and at least 2 pairs"):
            solve(players, glove, pairs=pairs)
