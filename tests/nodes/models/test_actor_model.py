"""Agents that ask a server while their adapters are trained here, against a stand-in for vLLM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from local_models import disturb, newest
from tiny_causal import causal, screen
from vllm_stand_in import StandIn

from swarm_ui import CollabGraph
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import (
    ChatMessage,
    Request,
    ScoringModel,
    VersionedModel,
)
from swarm_ui.nodes import ActorModel, CausalModel, OpenAIModel

NAMES = ("agent_0", "agent_1")


@pytest.fixture
def learner() -> CausalModel:
    model = causal("llama")
    for k, name in enumerate(NAMES):
        model.add_adapter(name, rank=4, alpha=8)
        disturb(model, name, seed=k)
    return model


def served_by(server: StandIn, learner: CausalModel, folder: Path) -> ActorModel:
    engine = OpenAIModel("base", f"{server.address}/v1", max_retries=0)
    return ActorModel(engine, learner, folder)


def ask(adapter: str | None) -> Request:
    return Request(decision=screen(), adapter=adapter)


async def test_each_version_is_loaded_once_and_named_alike_in_traces(
    learner: CausalModel, tmp_path: Path
) -> None:
    with StandIn("base") as server:
        model = served_by(server, learner, tmp_path)
        assert isinstance(model, VersionedModel) and isinstance(model, ScoringModel)
        team = CollabGraph.collaborative(2, 2, model=model, adapters=NAMES, edges=[])
        trace = await team.run(screen().observation)
        names = {call.adapter for call in trace.calls if call.adapter}
        assert names == {learner.lease(name) for name in NAMES} == set(model.loaded)
        assert len(set(server.asked)) == 2
        assert model.counters.calls == 4 and model.counters.prompt_tokens > 0
        await model.close()
        assert server.adapters == {} and list(tmp_path.iterdir()) == []


async def test_the_prompt_is_what_the_learner_trains_on(
    learner: CausalModel, tmp_path: Path
) -> None:
    with StandIn("base") as server:
        model = served_by(server, learner, tmp_path)
        [there], [here] = (
            await model.generate([ask("agent_0")]),
            await learner.generate([ask("agent_0")]),
        )
        assert (there.prompt, there.prompt_format) == (here.prompt, here.prompt_format)
        request, reply = ask("agent_0"), '{"action_type":"click","target":"Save","index":0}'
        assert await model.score([request], [reply]) == await learner.score([request], [reply])
        await model.close()


async def test_training_makes_new_versions_and_leased_ones_stay(
    learner: CausalModel, tmp_path: Path
) -> None:
    with StandIn("base") as server:
        model = served_by(server, learner, tmp_path)
        await model.generate([ask("agent_0")])
        old = model.lease("agent_0")
        disturb(learner, "agent_0", seed=5)  # a training step
        new = newest(learner, "agent_0")
        replies = await model.generate([ask(old), ask("agent_0")])
        assert [reply.adapter for reply in replies] == [old, new]
        assert set(model.loaded) == {old, new}
        model.release(old)
        await model.generate([ask("agent_0")])
        assert model.loaded == (new,) and len(server.adapters) == len(list(tmp_path.iterdir())) == 1
        with pytest.raises(ModelError, match="no adapter"):
            await model.generate([ask(old)])
        await model.close()


async def test_layers_of_other_ranks_and_scales_become_alike(tmp_path: Path) -> None:
    """Servers know one rank and one scale for an adapter."""
    one, config = causal("llama"), tmp_path / "first" / "agent" / "adapter_config.json"
    one.add_adapter("agent", rank=4, alpha=8)
    disturb(one, "agent", seed=1)
    one.save_adapters(tmp_path / "first")
    fields = json.loads(config.read_text())
    config.write_text(json.dumps({**fields, "alpha_pattern": {"q_proj": 3.0}}))
    two = causal("llama")
    version = two.load_adapter(tmp_path / "first" / "agent", "agent")
    two.save_version(version, tmp_path / "second")
    three = causal("llama")
    three.load_adapter(tmp_path / "second", "agent")
    replies = ['{"action_type":"click","target":"Save","index":0}']
    scores = [(await m.score([ask("agent")], replies))[0] for m in (one, two, three)]
    assert scores[1] == pytest.approx(scores[2], abs=1e-4)
    assert scores[0] != pytest.approx(scores[1], abs=1e-3)


async def test_an_engine_that_reads_chats_in_another_way_is_refused(
    learner: CausalModel, tmp_path: Path
) -> None:
    def tokens(turns: Sequence[Mapping[str, str]]) -> list[int]:
        chat = tuple(ChatMessage(role="user", content=turn["content"]) for turn in turns)
        return learner.prompt(Request(chat=chat)).ids

    with StandIn("base", tokens=tokens) as server:
        model = served_by(server, learner, tmp_path)
        await model.check()
        await model.close()
    with StandIn("base", tokens=lambda turns: [1, 2, 3]) as server:
        model = served_by(server, learner, tmp_path)
        with pytest.raises(ConfigError, match="the same model and chat template on both sides"):
            await model.check()
        await model.close()
