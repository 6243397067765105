"""The whole loop against a real vLLM server with SmolLM2: it acts, this process learns, adapters
are loaded while it runs, and it is killed in the middle of an iteration."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from learning_fakes import Contrary
from vllm_places import ROOT, smollm2, vllm_python

from benchmarks.speed.vllm import VLLMServer
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, draw_jobs, tasks
from swarm_ui.errors import ModelError
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.model import ChatMessage, Request
from swarm_ui.nodes import ActorModel, CausalModel, OpenAIModel
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.config import TeamConfig, UpdateConfig
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.rollout import Job
from swarm_ui.trace.jsonl import read_jsonl
from swarm_ui.trace.records import Episode

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(3600)]

AGENTS = ("agent_0", "agent_1")
CONFIG = TeamConfig(
    iterations=2, shared_iterations=1, shared_steps=2, episodes=3, concurrency=3,
    edges="fixed", guide=0.0, rank=4, patience=1500.0,
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
    return draw_jobs(tasks("train"), count, seed=seed % 1000, seeds=TRAIN_SEEDS)


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

    episodes, warned = list[list[Episode]](), list[str]()
    killed = asyncio.create_task(kill(server, model, episodes))
    team = CollabGraph.collaborative(2, 1, model=model, edges=[], adapters=AGENTS, max_tokens=24)
    trainer = TeamTrainer(
        team, PhoneEnvironment, sample_jobs, config=CONFIG, critic=CRITIC,
        adversary=ScriptedAdversary(), folder=tmp_path / "run",
    )  # fmt: skip
    trainer.on_episodes = lambda _, found: episodes.append(list(found))
    trainer.warn = warned.append
    result = await trainer.run()
    await killed
    assert result.history[1]["replayed"] > 0, "the server died while episodes were played"
    assert any("wait for a model that cannot be reached" in text for text in warned)
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
    served = {each.name for each in await engine(server).served() if each.parent}
    assert {name.rpartition("-")[0] for name in served} == {*model.loaded}
    assert held not in model.loaded and new.adapter in model.loaded
    await model.close()
    assert not [each for each in await engine(server).served() if each.parent]


async def kill(server: VLLMServer, model: ActorModel, episodes: list[list[Episode]]) -> None:
    """``kill -9`` in the second iteration, after its first replies; it is started again at once."""
    while not episodes:
        await asyncio.sleep(0.1)
    before = model.counters.calls
    while model.counters.calls < before + 2:
        await asyncio.sleep(0.02)
    server.kill()
    server.start()
    began = time.monotonic()
    seconds = await asyncio.to_thread(server.wait)
    assert seconds <= time.monotonic() - began + 1.0


ITERATIONS, ROLLOUTS = 3, 2
TRAIN = (
    f"train phone --adapters smollm2-phone --agents 2 --rounds 1 --iterations {ITERATIONS} "
    f"--rollouts {ROLLOUTS} train.shared_iterations=1 train.shared_steps=2 "
    "train.update.steps=2 train.update.batch_size=2 env.max_steps=3 "
    "train.guide=0.0 train.patience=1500 model.timeout=900 "
    "run.report=false --json"
)
ANSWERED, LOADED = '"POST /v1/chat/completions HTTP/1.1" 200', '/v1/load_lora_adapter HTTP/1.1" 200'


@pytest.mark.slow
def test_a_server_that_is_killed_in_an_iteration_of_train_loses_nothing(
    server: VLLMServer, tmp_path: Path
) -> None:
    """``swarm-ui train --actor``: kill -9 in the second of three iterations, and a restart."""
    assert server.log is not None
    words = [
        *TRAIN.split(),
        f"model.actor.url={server.url}",
        "--model",
        str(smollm2()),
        "--out",
        "t",
    ]
    traces, out, err = tmp_path / "t" / "traces", tmp_path / "out.txt", tmp_path / "err.txt"
    with out.open("wb") as told, err.open("wb") as warned:
        command = subprocess.Popen(
            [sys.executable, "-m", "swarm_ui", *words], cwd=tmp_path, stdout=told, stderr=warned,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    try:
        _wait_for((traces / "train-000.jsonl").is_file, command, err)
        before = _count(server.log, ANSWERED)
        _wait_for(lambda: _count(server.log, ANSWERED) >= before + 2, command, err)
        server.kill()
        loaded = _count(server.log, LOADED)
        assert not (traces / "train-001.jsonl").exists(), "killed in the middle of an iteration"
        server.start()
        server.wait()
        code = command.wait(timeout=3000)
    finally:
        command.kill()
        command.wait()
    assert code == 0, err.read_text()[-4000:]
    assert len(json.loads(out.read_text())["iterations"]) == ITERATIONS
    assert "wait for a model that cannot be reached" in " ".join(err.read_text().split())
    assert _count(server.log, LOADED) > loaded, "the restarted server had no adapters"
    _check_episodes(tmp_path / "t")
    assert not [each for each in asyncio.run(engine(server).served()) if each.parent]


def _check_episodes(run: Path) -> None:
    """Each episode is in the files once, and complete; each iteration has its own versions."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    metrics = [line for line in lines if line["kind"] == "iteration"]
    assert [at["iteration"] for at in metrics] == list(range(ITERATIONS))
    assert [(at["episodes"], at["masked"]) for at in metrics] == [(ROLLOUTS, 0)] * ITERATIONS
    again = [at.get("replayed", 0) for at in metrics]
    assert again[1] > 0 and (again[0], again[2]) == (0, 0)
    versions, seen = list[dict[str, int]](), set[tuple[str, int]]()
    for number in range(ITERATIONS):
        episodes = read_jsonl(run / "traces" / f"train-{number:03d}.jsonl")
        assert len(episodes) == ROLLOUTS and all(e.steps for e in episodes)
        calls = [call for e in episodes for step in e.steps for call in step.trace.calls]
        # No outcome is that of the outage: nothing is masked, and all agents answered every time.
        assert all(e.fault is None and e.success is not None for e in episodes)
        assert all(call.error is None for call in calls)
        names = {call.adapter for call in calls if call.adapter is not None}
        assert len(names) == len(AGENTS), "one version of each agent in an iteration"
        versions.append({name: int(v) for name, _, v in (each.partition("@") for each in names)})
        seen |= {(e.task, e.seed) for e in episodes}
    assert len(seen) == ROLLOUTS * ITERATIONS
    for old, new in pairwise(versions):
        assert set(old) == set(new) == set(AGENTS)
        assert all(new[name] > old[name] for name in AGENTS)


def _wait_for(ready: Callable[[], bool], command: subprocess.Popen[bytes], err: Path) -> None:
    while not ready():
        if command.poll() is not None:
            pytest.fail(f"the command ended with {command.returncode}: {err.read_text()[-4000:]}")
        time.sleep(0.05)


def _count(log: Path, text: str) -> int:
    return log.read_text(encoding="utf-8", errors="replace").count(text)
