"""The whole loop against a real vLLM server with SmolLM2: it acts, this process learns, adapters
are loaded while it runs, and it is killed in the middle of an iteration."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from learning_fakes import Contrary
from vllm_places import VLLMServer, smollm2, vllm_python

from swarm_ui.collab_graph import CollabGraph
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ModelError, ModelUnavailable
from swarm_ui.model import ChatMessage, Request
from swarm_ui.nodes import ActorModel, CausalModel, OpenAIModel
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.config import TeamConfig, UpdateConfig
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.rollout import Job
from swarm_ui.trace.records import Episode

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(3600)]

AGENTS = ("agent_0", "agent_1")
CONFIG = TeamConfig(
    iterations=2, shared_iterations=1, episodes=3, concurrency=3,
    edges="fixed", guide=0.0, rank=4,
    update=UpdateConfig(method="rft", steps=2, batch_size=2, lr=1e-3),
)  # fmt: skip
CRITIC = Contrary(PhoneEnvironment)
"""It is always wrong, so that there is something to learn from agents that know nothing."""
CHAT = (ChatMessage(role="user", content="Name the capital of France."),)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VLLMServer]:
    log = tmp_path_factory.mktemp("vllm") / "vllm.log"
    with VLLMServer(vllm_python(), smollm2(), log=log, max_loras=len(AGENTS) + 1) as running:
        yield running


@pytest.fixture
def learner() -> CausalModel:
    torch.set_num_threads(1)
    return CausalModel.from_pretrained(smollm2(), prompt_format="compact")


def engine(server: VLLMServer) -> OpenAIModel:
    return OpenAIModel(server.name, server.url, max_retries=1, timeout=600.0)


async def test_the_server_does_what_the_stand_in_does(
    server: VLLMServer, learner: CausalModel, tmp_path: Path
) -> None:
    """What ``tests/support/vllm_stand_in.py`` says of vLLM."""
    model = engine(server)
    learner.add_adapter("probe", rank=4)
    learner.save_version(learner.lease("probe"), tmp_path / "one")
    await model.load_version("probe@3", tmp_path / "one")
    await model.load_version("probe@3", tmp_path / "one")
    served, name = {each.name: each for each in await model.served()}, model.loaded["probe@3"]
    assert served[name].root == str(tmp_path / "one")
    assert served[name].parent == server.name and served[server.name].parent is None
    [reply] = await model.generate([Request(chat=CHAT, adapter="probe@3", max_tokens=8)])
    [here] = await learner.generate([Request(chat=CHAT, adapter="probe", max_tokens=8)])
    assert (reply.adapter, reply.text) == ("probe@3", here.text), "a new adapter changes nothing"
    await model.unload_version("probe@3")
    await model.unload_version("probe@3")
    with pytest.raises(ModelError, match="HTTP 404"):
        await model.generate([Request(chat=CHAT, adapter=name, max_tokens=8)])
    with pytest.raises(ModelError):
        await model.load_version("probe@4", tmp_path / "nowhere")
    await model.close()
    learner.release("probe@0")


def sample_jobs(count: int, /, *, seed: int) -> Sequence[Job]:
    return PhoneEnvironment.training_jobs(count, seed=seed % 1000)


async def test_a_server_acts_while_this_process_learns(
    server: VLLMServer, learner: CausalModel, tmp_path: Path
) -> None:
    for k, name in enumerate(AGENTS):
        learner.add_adapter(name, rank=4, alpha=8)
        draw = torch.Generator().manual_seed(k)
        with learner.activate(name), torch.no_grad():
            for weight in learner.adapter_parameters(name):
                weight.copy_(0.01 * torch.randn(weight.shape, generator=draw))
    model = ActorModel(engine(server), learner, tmp_path / "served")
    await model.check()
    held = model.lease("agent_0")
    [first] = await model.generate([Request(chat=CHAT, adapter=held, max_tokens=12)])
    assert first.adapter == held

    episodes = list[list[Episode]]()
    killed = asyncio.create_task(kill(server, model, episodes))
    team = CollabGraph.collaborative(2, 1, model=model, edges=[], adapters=AGENTS, max_tokens=24)
    trainer = TeamTrainer(
        team, PhoneEnvironment, sample_jobs, config=CONFIG, critic=CRITIC,
        adversary=ScriptedAdversary(), folder=tmp_path / "run",
    )  # fmt: skip
    trainer.on_episodes = lambda _, found: episodes.append(list(found))
    with pytest.raises(ModelUnavailable, match="iteration 2 of 2"):
        await trainer.run()
    await killed
    result = await trainer.run(resume=True)
    assert all(each["steps"] > 0 for each in result.history)
    assert all(e.fault is None and e.steps for part in episodes for e in part)
    spoken = [
        {c.adapter for e in part for s in e.steps for c in s.trace.calls if c.adapter}
        for part in episodes
    ]
    assert [len(part) for part in spoken] == [2, 2] and not spoken[0] & spoken[1]

    # A version that a run holds still answers, also after the server was killed.
    again, new = await model.generate(
        [Request(chat=CHAT, adapter=name, max_tokens=12) for name in (held, "agent_0")]
    )
    assert (again.adapter, again.text) == (held, first.text) and new.adapter != held
    model.release(held)
    await model.generate([Request(chat=CHAT, adapter="agent_1", max_tokens=2)])
    served = [each.name for each in await engine(server).served() if each.parent]
    loaded = {name.rpartition("-")[0] for name in served}
    assert len(loaded) == len(served) and held not in loaded and new.adapter in loaded
    await model.close()
    assert not [each for each in await engine(server).served() if each.parent]


async def kill(server: VLLMServer, model: ActorModel, episodes: list[list[Episode]]) -> None:
    """``kill -9`` in the second iteration, after its first replies; it is started again at once."""
    while not episodes:
        await asyncio.sleep(0.1)
    before = model._engine.budget.calls
    while model._engine.budget.calls < before + 2:
        await asyncio.sleep(0.02)
    server.kill()
    server.start()
    began = time.monotonic()
    seconds = await asyncio.to_thread(server.wait)
    assert seconds <= time.monotonic() - began + 1.0
