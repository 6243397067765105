"""What a vote counts, and how it breaks ties."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from swarm_ui import CollabGraph
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.nodes import LocalModel
from swarm_ui.nodes.vote import by_seed


def test_ties_are_broken_by_the_seed_in_any_order() -> None:
    winners = [by_seed(seed)(["a", "b"]) for seed in range(20)]
    assert set(winners) == {"a", "b"}
    assert winners == [by_seed(seed)(["b", "a"]) for seed in range(20)]


def test_a_probability_vote_sums_probabilities() -> None:
    """Of one decision, each agent gives all actions together at most 1."""
    team = CollabGraph.collaborative(
        4, 1, model=LocalModel.load(), edges=(), views="shuffle", vote="probability",
        temperature=3.0,
    )  # fmt: skip
    screen = PhoneEnvironment().first_screen("contacts-add", seed=7)
    ballots = [team.run_sync(screen, seed=seed).ballot for seed in range(4)]
    assert max(map(len, ballots)) > 1
    for ballot in ballots:
        assert all(weight > 0 for weight in ballot.values()) and sum(ballot.values()) <= 4.0001
