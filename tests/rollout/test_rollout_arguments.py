"""An object in the place of a function, a graph in the place of a policy: errors say what to do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from swarm_ui import CollabGraph, GraphPolicy, rollout_many
from swarm_ui.environments import GymView, check_environment
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.nodes import ScriptedModel
from swarm_ui.rollout import LocalWorker, spread_jobs

TEAM = CollabGraph.solo(ScriptedModel(lambda request: '{"action_type": "wait"}'))
JOBS = [("contacts-add", 7)]
MADE: Any = PhoneEnvironment()


def test_an_environment_in_the_place_of_its_class() -> None:
    said = "write PhoneEnvironment instead of PhoneEnvironment()"
    with pytest.raises(ConfigError) as told:
        LocalWorker(MADE)
    assert said in str(told.value)
    with pytest.raises(ConfigError, match="expected a function that makes an environment"):
        asyncio.run(rollout_many(MADE, GraphPolicy(TEAM), JOBS))
    for refuses in (check_environment, GymView):
        with pytest.raises(ConfigError, match="expected a function that makes an environment"):
            refuses(MADE)
    with pytest.raises(ConfigError, match="at least 1"):
        asyncio.run(rollout_many(PhoneEnvironment, TEAM, JOBS, concurrency=0))


def test_episodes_cannot_be_drawn_from_no_tasks() -> None:
    with pytest.raises(ConfigError, match="cannot draw 3 episodes from 0 tasks"):
        spread_jobs((), 3, 0, range(9))
    with pytest.raises(ConfigError, match="and 0 seeds"):
        spread_jobs(("t",), 3, 0, range(0))
    assert spread_jobs((), 0, 0, range(9)) == []
