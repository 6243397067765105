"""A served actor in other processes: they ask the versions that the learner's process loads."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path

import cloudpickle
import pytest
from local_models import disturb
from tiny_causal import causal, screen
from vllm_stand_in import StandIn

from swarm_ui.errors import ModelError, ModelUnavailable
from swarm_ui.model import ChatMessage, Request, ScoringModel, VersionedModel
from swarm_ui.nodes import ActorModel, CausalModel, OpenAIModel
from swarm_ui.nodes.models.acting.actor_model import ActorCopy

NAMES = ("agent_0", "agent_1")


@pytest.fixture
def learner() -> CausalModel:
    model = causal("llama")
    for k, name in enumerate(NAMES):
        model.add_adapter(name, rank=4, alpha=8)
        disturb(model, name, seed=k)
    return model


def served_by(server: StandIn, learner: CausalModel, folder: Path, *, kept: int = 1) -> ActorModel:
    engine = OpenAIModel("base", f"{server.address}/v1", max_retries=0)
    return ActorModel(engine, learner, folder, kept=kept)


def sent(model: ActorModel) -> ActorCopy:
    copy = pickle.loads(cloudpickle.dumps(model))
    assert isinstance(copy, ActorCopy)
    return copy


def names(served: Iterable[str]) -> list[str]:
    """Served names without the hash of the weights."""
    return [name.rpartition("-")[0] for name in served]


def ask(adapter: str | None) -> Request:
    return Request(decision=screen(), adapter=adapter)


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


@pytest.mark.parametrize("kept", [1, 2])
async def test_versions_stay_for_the_last_calls(
    learner: CausalModel, tmp_path: Path, kept: int
) -> None:
    with StandIn("base") as server:
        model = served_by(server, learner, tmp_path, kept=kept)
        seen = []
        for number in range(3):
            model.publish()
            await model.prepare()
            await model.prepare()  # before each graph
            seen.append({name for name in names(server.adapters) if name.startswith("agent_0")})
            disturb(learner, "agent_0", seed=9 + number)
        each = [f"agent_0@{k}" for k in (1, 2, 3)]
        assert seen == [set(each[max(0, k - kept) : k]) for k in (1, 2, 3)]
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
