"""Shapley values against their closed forms and their axioms."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.assigners.shapley_values import Coalition, ShapleyValues, shapley

Game = Callable[[Coalition], float | None]


def solve(
    players: Sequence[str], game: Game, *, seed: int = 0, exact_up_to: int = 6, pairs: int = 16
) -> ShapleyValues | None:
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


def test_a_weighted_majority_is_its_power_index() -> None:
    weights = {"a": 4, "b": 3, "c": 2, "d": 1}  # quota 6: known Shapley-Shubik index
    values = exact(list(weights), lambda c: float(sum(weights[p] for p in c) >= 6))
    assert values == pytest.approx({"a": 5 / 12, "b": 3 / 12, "c": 3 / 12, "d": 1 / 12})


def test_the_airport_game() -> None:
    costs = {"a": 1.0, "b": 2.0, "c": 4.0}
    values = exact(list(costs), lambda c: max((costs[p] for p in c), default=0.0))
    assert values == pytest.approx({"a": 1 / 3, "b": 1 / 3 + 1 / 2, "c": 1 / 3 + 1 / 2 + 2})


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
    assert math.fsum(found.values.values()) == pytest.approx(found.total)
    assert found.values["p0"] == 0.0 and found.errors["p0"] == 0.0


def test_sampled_values_lie_within_their_errors_of_the_exact_ones() -> None:
    players = [f"p{k}" for k in range(6)]
    inside = total = 0
    for seed in range(40):
        game = table_game(6, seed)
        truth = exact(players, game)
        found = solve(players, game, seed=seed, exact_up_to=0, pairs=20)
        assert found is not None and found.errors is not None
        for p in players:
            inside += abs(found.values[p] - truth[p]) <= 2 * found.errors[p]
            total += 1
    assert inside / total > 0.88  # t with 19 degrees of freedom: 0.94 expected


def test_antithetic_pairs_are_exact_where_only_the_order_of_two_matters() -> None:
    players = [f"p{k}" for k in range(8)]
    pairs = {frozenset(pair) for pair in zip(players[::2], players[1::2], strict=True)}
    found = solve(players, lambda c: float(sum(p <= c for p in pairs)), exact_up_to=6, pairs=2)
    assert found is not None
    assert found.values == pytest.approx(dict.fromkeys(players, 0.5))
    assert found.errors == pytest.approx(dict.fromkeys(players, 0.0))


def test_a_coalition_that_cannot_be_judged_spoils_the_exact_values_only() -> None:
    players = [f"p{k}" for k in range(7)]

    def game(c: Coalition) -> float | None:
        return None if c == {"p0"} else float(len(c))

    assert solve(players[:3], game) is None
    found = solve(players, game, exact_up_to=0, pairs=12)
    assert found is not None and found.values == pytest.approx(dict.fromkeys(players, 1.0))
    assert solve(players, lambda c: None, exact_up_to=0) is None


def test_bad_input_is_refused() -> None:
    with pytest.raises(ConfigError, match="have the same name: a, a"):
        solve(["a", "a"], glove)
    with pytest.raises(ConfigError, match="pairs must be at least 2, got 1"):
        solve(["a"], glove, pairs=1)
