"""Agents that ask a server while their adapters are trained here, against a stand-in for vLLM;
also from other processes, which ask the versions that the learner's process loads."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import cloudpickle
import pytest
from local_models import disturb, newest
from tiny_causal import causal, screen
from vllm_stand_in import StandIn

from swarm_ui import CollabGraph
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.model import (
    ChatMessage,
    Request,
    ScoringModel,
    VersionedModel,
)
from swarm_ui.nodes import ActorModel, CausalModel, OpenAIModel
from swarm_ui.nodes.models.acting.published import ModelCopy

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
        used = {call.adapter for call in trace.calls if call.adapter}
        assert used == {learner.lease(name) for name in NAMES} == set(names(server.adapters))
        assert len(set(server.asked)) == 2
        await model.close()
        assert server.adapters == {} and list(tmp_path.iterdir()) == []


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
        assert set(names(server.adapters)) == {old, new}
        model.release(old)
        await model.generate([ask("agent_0")])
        assert names(server.adapters) == [new] == [each.name for each in tmp_path.iterdir()]
        with pytest.raises(ModelError, match="no adapter"):
            await model.generate([ask(old)])
        await model.close()


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


# -- in other processes ---------------------------------------------------------------------------


def sent(model: ActorModel) -> ModelCopy:
    copy = pickle.loads(cloudpickle.dumps(model))
    assert isinstance(copy, ModelCopy)
    return copy


def names(served: Iterable[str]) -> list[str]:
    """Served names without the hash of the weights."""
    return [name.rpartition("-")[0] for name in served]


async def test_a_copy_asks_as_the_learner_would(learner: CausalModel, tmp_path: Path) -> None:
    with StandIn("base") as server:
        model = served_by(server, learner, tmp_path)
        versions = model.publish()
        await model.prepare()
        copy = sent(model)
        assert isinstance(copy, VersionedModel) and not isinstance(copy, ScoringModel)
        asked = [ask("agent_0"), ask(versions["agent_1"]), ask(None)]
        there, here = await copy.generate(asked), await model.generate(asked)
        assert there == here and [r.adapter for r in there] == [*versions.values(), None]
        read = await learner.generate(asked)
        assert [(r.prompt, r.prompt_format) for r in here] == [
            (r.prompt, r.prompt_format) for r in read
        ]
        chat = Request(chat=(ChatMessage("user", "yes or no?"),))  # as a critic asks
        assert await copy.generate([chat]) == await model.generate([chat])
        with pytest.raises(ModelError, match=r"no adapter 'agent_9'.*agent_0@1, a"):
            await copy.generate([ask("agent_9")])
        assert names(server.loads) == ["agent_0@1", "agent_1@1"]
        again = pickle.loads(cloudpickle.dumps(copy))  # a worker may send it on
        assert await again.generate(asked) == there
        for each in (again, copy, model):
            await each.close()
        assert server.adapters == {} and not list(tmp_path.iterdir())


async def test_published_versions_stay_until_the_next_are(
    learner: CausalModel, tmp_path: Path
) -> None:
    with StandIn("base") as server:
        model = served_by(server, learner, tmp_path)
        seen = []
        for number in range(3):
            model.publish()
            await model.prepare()
            await model.prepare()  # before each graph
            seen.append({name for name in names(server.adapters) if name.startswith("agent_0")})
            disturb(learner, "agent_0", seed=9 + number)
        assert seen == [{f"agent_0@{k}"} for k in (1, 2, 3)]
        assert names(server.loads) == ["agent_0@1", "agent_1@1", "agent_0@2", "agent_0@3"]
        await model.close()


async def test_a_restarted_server_gets_the_versions_again(
    learner: CausalModel, tmp_path: Path
) -> None:
    with StandIn("base") as server:
        model = served_by(server, learner, tmp_path)
        model.publish()
        await model.prepare()
        copy = sent(model)
        server.restart()  # without its adapters
        await copy.generate([ask("agent_0")])  # it loads what it needs
        assert len(server.adapters) == 1
        await model.prepare()
        assert len(server.adapters) == 2
        server.dead = True
        with pytest.raises(ModelUnavailable):
            await model.prepare()
        server.dead = False
        # The process was killed, and the run is continued.
        disturb(learner, "agent_0", seed=7)
        resumed = served_by(server, learner, tmp_path)
        resumed.publish()
        await resumed.prepare()
        assert set(names(server.adapters)) == {"agent_0@2", "agent_1@1"}
        await copy.close()
        await resumed.close()
        assert server.adapters == {}
