"""A corpus of what the agents of a team saw, heard and replied."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from swarm_ui.environments.phone.split import SplitPhone
from swarm_ui.errors import ConfigError, ModelUnavailable
from swarm_ui.experiment.split_teams import SplitTeams
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.model import Completion, Request
from swarm_ui.optim.stage1 import CorpusConfig, HeldOut, Models, Sample, read_corpus, synthesize
from swarm_ui.rollout import GraphPolicy

TASK = "split-phone-message"
COMPACT = CorpusConfig(levels=(3,), prompt_format="compact")
JOBS = [(TASK, seed) for seed in range(0, 6, 2)]  # an odd seed is the twin of the one before
MAKE = partial(SplitPhone, agents=4)


def models(edges: str = "oracle") -> Models:
    teams = SplitTeams(MAKE())
    policy = teams.policy("the scripted team", getattr(teams, edges))
    return dataclasses.replace(Models.scripted(), team=policy)


async def corpus(
    folder: Path, edges: str = "oracle", config: CorpusConfig = COMPACT
) -> list[Sample]:
    await synthesize(MAKE, models(edges), JOBS, folder, held_out=HeldOut(), config=config)
    return list(read_corpus(folder))


async def test_senders_say_values_and_the_listener_uses_them(tmp_path: Path) -> None:
    samples = await corpus(tmp_path)
    assert {sample.kind for sample in samples} == {"team"}
    assert all(sample.rejected is None for sample in samples)
    for _, seed in JOBS:
        own = [sample for sample in samples if sample.origin.seed == seed]
        (sent,) = [sample for sample in own if sample.response.endswith("\npass")]
        assert sent.origin.agent == "contacts of the scripted team" and sent.heard == 0
        said = sent.response.removesuffix("\npass")
        (typed,) = [s for s in own if s.response.startswith("input_text text ")]
        assert typed.heard == 1 and f"contacts: {said}" in typed.chat[-1].content
        value = typed.response.rpartition(" : ")[2]
        assert f"phone {value}" in said
        assert value not in typed.chat[-1].content.partition("Messages:")[0]
        assert len(own) == 1 + 5  # add, two fields, send, complete


async def test_an_agent_that_nobody_told_a_value_gives_up(tmp_path: Path) -> None:
    samples = await corpus(tmp_path, "silent")
    assert [sample.response for sample in samples] == ["status infeasible"] * 3


class Away:
    """A model behind an endpoint that does not answer."""

    name = "away"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        raise ModelUnavailable("model 'away': no answer")

    async def close(self) -> None: ...


async def test_a_model_that_cannot_be_reached_ends_the_synthesis(tmp_path: Path) -> None:
    """As in all other roles: the walks are not made with nobody to play them."""
    team = GraphPolicy(CollabGraph.solo(Away()), name="a team")
    roles = dataclasses.replace(Models.scripted(), team=team)
    with pytest.raises(ModelUnavailable, match=r"a team, task 'split-phone.* no answer"):
        await synthesize(MAKE, roles, JOBS, tmp_path, held_out=HeldOut(), config=COMPACT)
    assert list(read_corpus(tmp_path)) == []


@pytest.mark.parametrize(
    "config, words",
    [
        (CorpusConfig(levels=(1, 2), prompt_format="compact"), "level 3"),
        (CorpusConfig(stray=0.1, prompt_format="compact"), "stray"),
        (CorpusConfig(levels=(3,)), "prompt_format='compact'"),
    ],
)
async def test_settings_that_a_team_cannot_follow(
    tmp_path: Path, config: CorpusConfig, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        await corpus(tmp_path, config=config)
