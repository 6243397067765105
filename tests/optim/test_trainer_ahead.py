"""Episodes that other processes play, and rollouts one update ahead of the learner."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from learning_fakes import ButtonWorld, TinyAgent, TinyModel
from learning_run import CONFIG, trainer
from sent_rollouts import SentRollouts, figures

from swarm_ui.errors import ConfigError, ModelUnavailable
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.model import Completion, Request
from swarm_ui.optim import playing
from swarm_ui.optim.config import TeamConfig, UpdateConfig
from swarm_ui.optim.trainer import TeamResult
from swarm_ui.trace.records import Episode

SHORT = replace(
    CONFIG,
    episodes=6,
    shared_steps=3,
    update=UpdateConfig(method="dpo", steps=3, batch_size=4, lr=5e-2),
)


class PublishedAgent(TinyAgent):
    """Answers requests for a version with the weights that were published as this version."""

    def __init__(self, model: TinyModel) -> None:
        super().__init__(model)
        self.published: dict[str, TinyModel] = {}

    def publish(self) -> dict[str, str]:
        current = {name: f"{name}@{number}" for name, number in self.model.versions.items()}
        weights = copy.deepcopy(self.model)
        self.published |= dict.fromkeys(current.values(), weights)
        return current

    async def prepare(self) -> None: ...

    def _answer(self, request: Request) -> Completion:
        name, _, number = (request.adapter or "").partition("@")
        model = self.published[f"{name}@{number}"] if number else self.model
        return TinyAgent(model)._answer(msgspec.structs.replace(request, adapter=name))


def train(
    model: TinyModel,
    folder: Path | None,
    *,
    sent: bool = False,
    config: TeamConfig = SHORT,
    resume: bool = False,
    **other: Any,
) -> TeamResult:
    agent = PublishedAgent(model)
    team = CollabGraph.collaborative(
        3, 2, model=agent, edges=[], adapters=[f"agent_{k}" for k in range(3)], temperature=1.0
    )
    played = SentRollouts(ButtonWorld) if sent else ButtonWorld
    learning = trainer(
        model, team=team, make_environment=played, config=config, folder=folder, **other
    )
    return asyncio.run(learning.run(resume=resume))


def weights(model: TinyModel) -> list[torch.Tensor]:
    return [p.detach() for name in model.adapters for p in model.adapter_parameters(name)]


def lines(folder: Path) -> list[dict[str, Any]]:
    return figures(
        [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    )


def assert_equal(ours: TinyModel, theirs: TinyModel) -> None:
    assert ours.versions == theirs.versions
    assert all(torch.equal(a, b) for a, b in zip(weights(ours), weights(theirs), strict=True))


@pytest.mark.parametrize(
    ("staleness", "method"),
    [
        (0, "grpo"),
        (1, "dpo"),
        pytest.param(0, "dpo", marks=pytest.mark.slow),
        pytest.param(1, "gspo", marks=pytest.mark.slow),
    ],
)
def test_episodes_played_elsewhere_teach_what_those_played_here_teach(
    tmp_path: Path, staleness: int, method: Any
) -> None:
    config = replace(SHORT, overlap=bool(staleness), update=replace(SHORT.update, method=method))
    if method == "gspo" and staleness:
        config = replace(config, update=replace(config.update, method="rft"))
    here, there = TinyModel(), TinyModel()
    train(here, tmp_path / "here", config=config)
    train(there, tmp_path / "there", config=config, sent=True)
    assert lines(tmp_path / "here") == lines(tmp_path / "there")
    assert [line["staleness"] for line in lines(tmp_path / "there")] == [0, staleness, staleness]
    assert lines(tmp_path / "here")[0]["pairs"]
    assert_equal(here, there)


def test_episodes_name_the_version_that_played(tmp_path: Path) -> None:
    versions: list[set[str | None]] = []

    def note(iteration: int, episodes: Sequence[Episode]) -> None:
        calls = [c for e in episodes for s in e.steps for c in s.trace.calls]
        versions.append({c.adapter for c in calls if c.node == "agent_0"})

    for staleness, expected in ((0, [0, 1, 2]), (1, [0, 0, 1])):
        versions.clear()
        config = replace(SHORT, overlap=bool(staleness))
        train(TinyModel(), None, config=config, sent=True, on_episodes=note)
        assert versions == [{f"agent_0@{number}"} for number in expected]


def test_staleness_is_a_setting_of_the_run(tmp_path: Path) -> None:
    train(TinyModel(), tmp_path, config=replace(SHORT, iterations=1))
    with pytest.raises(ConfigError, match="overlap: False then, True now"):
        train(TinyModel(), tmp_path, config=replace(SHORT, overlap=True), resume=True)


def test_versions_that_cannot_be_brought_to_the_actors_cost_no_episode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(playing, "FIRST_PAUSE", 0.01)
    refused = iter([True, False, True, True])
    said: list[str] = []

    async def prepare(agent: PublishedAgent) -> None:
        if next(refused, False):
            raise ModelUnavailable("the server is being restarted")

    one, other = TinyModel(), TinyModel()
    here = train(one, None)
    monkeypatch.setattr(PublishedAgent, "prepare", prepare)
    there = train(other, None, sent=True, warn=said.append)
    assert [m["success"] for m in there.history] == [m["success"] for m in here.history]
    assert [m["pairs"] for m in there.history] == [m["pairs"] for m in here.history]
    assert [m["replayed"] for m in there.history] == [SHORT.episodes // SHORT.graphs, 0, 0]
    assert len(said) == 1 and "the server is being restarted" in said[0]
