"""Credit of messages, sent back along the edges that carried them."""

from __future__ import annotations

import pytest

from swarm_ui.message import Message
from swarm_ui.observation import Observation
from swarm_ui.optim.edges.optim import edge_credit, episode_edge_credit
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

EDGES = (("a", "b"), ("b", "c"), ("a", "c"))


def trace(*, rounds: int = 1, silent: tuple[str, ...] = ()) -> Trace:
    """a -> b -> c and a -> c; each also hears its own message of the round before."""
    calls = []
    for r in range(rounds):
        for name in "abc":
            heard = [f"{s}{r}" for s, t in EDGES if t == name]
            if r:
                heard.insert(0, f"{name}{r - 1}")
            id = f"{name}{r}"
            error = "down" if id in silent else None
            said = Message(id=id, sender=name, round=r, content="x", error=error)
            calls.append(Call(message=said, heard=tuple(heard), error=error))
    return Trace(
        run="t", seed=0, observation=Observation(goal="g", elements=()), agents=("a", "b", "c"),
        rounds=rounds, edges=EDGES, calls=tuple(calls),
    )  # fmt: skip


def test_an_edge_earns_the_advantage_of_what_it_carried() -> None:
    earned = edge_credit(trace(), [[1.0, 0.0, 1.0]], discount=0.0)
    assert earned == {("a", "b"): 0.5, ("a", "c"): 0.5, ("b", "c"): -0.5}


def test_credit_travels_back_hop_by_hop() -> None:
    earned = edge_credit(trace(), [[None, None, 1.0]], discount=0.5)
    # c earned 1/2; b -> c gets half of it, a -> b half of what b earned (half of c's).
    assert earned == {("b", "c"): 0.25, ("a", "c"): 0.25, ("a", "b"): 0.125}


def test_unscored_messages_give_no_edge_a_zero() -> None:
    assert edge_credit(trace(), [[None, None, None]]) == {}
    assert edge_credit(trace(), [[None, 1.0, None]], discount=0.0) == {("b", "c"): 0.5}


def test_rounds_are_averaged_and_own_messages_are_not_edges() -> None:
    earned = edge_credit(trace(rounds=2), [[1.0, 0.5, 0.5], [0.0, 0.5, 0.5]], discount=0.0)
    assert earned == {("a", "b"): 0.0, ("a", "c"): 0.0, ("b", "c"): 0.0}
    # Credit of the last round reaches the first through what an agent says to itself.
    late = edge_credit(trace(rounds=2), [[None] * 3, [None, None, 1.0]], discount=0.5)
    assert late["b", "c"] > late["a", "b"] > 0.0


def played(*credit: list[list[float | None]] | None, success: bool | None = True) -> Episode:
    steps = tuple(
        StepRecord(trace=trace(), credit=None if c is None else tuple(map(tuple, c)))
        for c in credit
    )
    return Episode(environment="e", task="t", seed=0, steps=steps, success=success)


def test_a_graphs_credit_is_the_mean_over_all_its_decisions() -> None:
    episodes = [
        played([[1.0, 0.0, 1.0]], [[0.0, None, 1.0]], None),
        played([[1.0, 1.0, 1.0]], success=False),
        played([[0.0, 0.0, 0.0]], success=None),  # masked: proves nothing
    ]
    earned = episode_edge_credit(episodes, discount=0.0)
    assert earned == {("a", "b"): pytest.approx(0.5 / 3), ("a", "c"): pytest.approx(0.5 / 3),
                      ("b", "c"): 0.0}  # fmt: skip
    assert set(episode_edge_credit(episodes, edges=[("b", "c")])) == {("b", "c")}
    assert episode_edge_credit([played(None)]) == {}
