"""What the library does is what it did when ``behaviour.json`` was recorded."""

from __future__ import annotations

import json
from typing import Any

import behaviour
import pytest
import recorded_scores

SLOW = ("few wordings", "unseen devices", "invented detours")
RECORD: dict[str, Any] = json.loads(behaviour.FILE.read_text(encoding="utf-8"))


def test_the_phone_and_its_solver() -> None:
    assert behaviour.walks() == RECORD["walks"]


def test_wrong_turns_on_the_phone_and_the_way_back() -> None:
    assert behaviour.detours() == RECORD["detours"]


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
        for name in RECORD["other_walks"]
    ],
)
def test_invented_apps_and_split_facts(world: str) -> None:
    assert behaviour.other_walks(world) == RECORD["other_walks"][world]


async def test_messages_of_a_hundred_graphs() -> None:
    assert await behaviour.drawn_traces() == RECORD["traces"]


@pytest.mark.parametrize(
    "step", [pytest.param(3, id="a third"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)
async def test_episodes_of_the_base_agent(step: int) -> None:
    """Another processor rounds otherwise, and a near tie may fall the other way."""
    played = await behaviour.base_agent_episodes(step)
    for arm, recorded in RECORD["episodes"].items():
        differ = [(a, b) for a, b in zip(played[arm], recorded[::step], strict=True) if a != b]
        assert len(differ) <= max(1, len(played[arm]) // 20), differ


def test_edges_of_a_seeded_training() -> None:
    assert behaviour.edge_probabilities() == pytest.approx(RECORD["edges"], abs=1e-4)


async def test_scores_of_drawn_replies_to_recorded_tasks() -> None:
    now, before = (
        await recorded_scores.record(),
        json.loads(recorded_scores.FILE.read_text(encoding="utf-8")),
    )
    assert {name: now[name] for name in before} == before
