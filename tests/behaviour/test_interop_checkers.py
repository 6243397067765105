"""Environments in the interfaces of other libraries, by the checkers of these libraries."""

from __future__ import annotations

import copy
import pickle

import pytest
from small_world import Notebook

pytest.importorskip("gymnasium")
pytest.importorskip("pettingzoo")

from pettingzoo.test import api_test  # the two above bring it
from pettingzoo.utils.conversions import parallel_to_aec

from swarm_ui.environments import TeamView


@pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")  # what is not an array
def test_pettingzoo_finds_nothing_wrong_in_turns() -> None:
    env = parallel_to_aec(TeamView(Notebook))
    api_test(env, num_cycles=10)
    env.close()


def test_texts_of_observations_are_strings() -> None:
    env = TeamView(Notebook)
    observations, _ = env.reset(seed=1)
    goal = observations["agent_0"]["observation"]["goal"]
    for text in (goal, pickle.loads(pickle.dumps(goal)), copy.deepcopy(goal)):
        assert isinstance(text, str) and text == goal != ""
    env.close()
