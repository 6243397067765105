"""Training in this process while a server acts: a stand-in for vLLM that dies and comes back."""

from __future__ import annotations

import asyncio
import json
import threading
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_fakes import ButtonWorld
from learning_run import CONFIG, sample_jobs
from sent_rollouts import SentRollouts
from tiny_causal import causal
from vllm_stand_in import StandIn

from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes import ActorModel, OpenAIModel, RetryPolicy
from swarm_ui.optim import retry
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.credit.assigners.critic import ScriptedCritic
from swarm_ui.optim.preferences.scripted_adversary import ScriptedAdversary
from swarm_ui.optim.rollout_actors import RolloutActors
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.optim.update.adapter_trainer import UpdateConfig
from swarm_ui.trace.records import Episode

NAMES = ("agent_0", "agent_1")
SMALL = replace(
    CONFIG, iterations=2, shared_iterations=1, shared_steps=2, episodes=4, edges="fixed", graphs=1,
    max_steps=2, patience=30.0, update=UpdateConfig(steps=2, batch_size=4, lr=1e-3),
)  # fmt: skip


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(retry, "LONGEST_PAUSE", 0.2)


class Server(StandIn):
    """Decides every answer by the words of the question; at one of them it is killed, and comes
    back without its adapters."""

    def __init__(self, dies_at: int = 0) -> None:
        super().__init__("base", reply=self._choose)
        self.dies_at, self.deaths = dies_at, 0

    def _choose(self, body: Mapping[str, Any]) -> str:
        if len(self.asked) == self.dies_at:
            self.deaths += 1
            self.dead = True
            threading.Timer(0.4, self.restart).start()
        words = zlib.crc32(json.dumps(body["messages"]).encode())
        return f"click it [{words % 4}]"


async def trained(
    server: Server, folder: Path, *, sent: bool = False, staleness: int = 0
) -> tuple[list[torch.Tensor], list[Episode]]:
    """The weights, and all episodes; ``sent``: played by copies, as in other processes."""
    learner, episodes = causal("llama", "compact"), list[Episode]()
    engine = OpenAIModel(
        "base", f"{server.address}/v1", retry=RetryPolicy(retries=1, backoff=0.01, timeout=20.0)
    )
    model = ActorModel(engine, learner, folder / "served", kept=1 + staleness)
    team = CollabGraph.collaborative(
        len(NAMES), 2, model=model, edges=[], adapters=NAMES, temperatures=1.0
    )
    places = RolloutActors(SentRollouts(ButtonWorld), model) if sent else ButtonWorld
    config = replace(SMALL, staleness=staleness, iterations=3 if staleness else 2)
    trainer = TeamTrainer(
        learner, team, places, sample_jobs, config=config, critic=ScriptedCritic(ButtonWorld),
        adversary=ScriptedAdversary(), folder=folder,
        callbacks=Callbacks(
            on_episodes=lambda _, found: episodes.extend(found), on_warning=lambda _: None
        ),
    )  # fmt: skip
    await trainer.run()
    weights = [p.detach().clone() for name in NAMES for p in learner.adapter_parameters(name)]
    await model.close()
    return weights, episodes


def spoken(episode: Episode) -> dict[str, set[str]]:
    """The versions that spoke in an episode, by agent."""
    found: dict[str, set[str]] = {}
    for step in episode.steps:
        for call in step.trace.calls:
            if call.adapter is not None:
                found.setdefault(call.node, set()).add(call.adapter)
    return found


async def test_each_iteration_acts_with_what_the_one_before_it_learned(tmp_path: Path) -> None:
    with Server() as server:
        _, episodes = await trained(server, tmp_path)
        assert server.adapters == {}, "what was loaded is unloaded in the end"
    first, second = episodes[:4], episodes[4:]
    for name in NAMES:
        old, new = ({v for e in part for v in spoken(e)[name]} for part in (first, second))
        assert len(old) == len(new) == 1 and old != new
        assert all(version.startswith(f"{name}@") for version in old | new)
    asked = {name.replace("@", "-v") for e in episodes for v in spoken(e).values() for name in v}
    assert asked == set(server.asked)


async def test_workers_ask_for_what_this_process_loads_once(tmp_path: Path) -> None:
    with Server() as server:
        here, episodes = await trained(server, tmp_path / "here")
    with Server() as server:
        there, again = await trained(server, tmp_path / "there", sent=True)
        assert server.adapters == {}
        assert sorted(server.loads) == sorted(set(server.asked))
        assert len(server.loads) == 2 * len(NAMES)
    assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))
    assert [e.success for e in again] == [e.success for e in episodes]
    assert [spoken(e) for e in again] == [spoken(e) for e in episodes]
    assert not list((tmp_path / "there/served").iterdir())


async def test_one_update_ahead_the_versions_before_stay(tmp_path: Path) -> None:
    with Server() as server:
        here, episodes = await trained(server, tmp_path / "here", staleness=1)
    with Server() as server:
        there, again = await trained(server, tmp_path / "there", sent=True, staleness=1)
        assert sorted(server.loads) == sorted(set(server.asked))
    assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))
    assert [spoken(e) for e in again] == [spoken(e) for e in episodes]


@pytest.mark.slow
async def test_a_server_that_dies_while_workers_ask_gets_its_versions_again(tmp_path: Path) -> None:
    with Server() as server:
        whole, episodes = await trained(server, tmp_path / "whole", sent=True)
        calls = len(server.asked)
    with Server(dies_at=calls * 3 // 4) as server:
        kept, again = await asyncio.wait_for(trained(server, tmp_path / "killed", sent=True), 120.0)
        assert server.deaths == 1 and server.adapters == {}
    assert all(e.fault is None for e in again)
    assert [e.success for e in again] == [e.success for e in episodes]
    assert all(torch.equal(a, b) for a, b in zip(whole, kept, strict=True))


@pytest.mark.slow
async def test_a_server_that_dies_in_an_iteration_costs_nothing(tmp_path: Path) -> None:
    with Server() as server:
        whole, episodes = await trained(server, tmp_path / "whole")
        calls = len(server.asked)
    with Server(dies_at=calls * 3 // 4) as server:
        kept, again = await asyncio.wait_for(trained(server, tmp_path / "killed"), 120.0)
        assert server.deaths == 1
    assert [e.success for e in again] == [e.success for e in episodes]
    assert all(e.fault is None for e in again)
    assert all(torch.equal(a, b) for a, b in zip(whole, kept, strict=True))
