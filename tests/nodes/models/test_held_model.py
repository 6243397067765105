"""Copies and held models in other processes answer as the learner, with versions they pull."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import cloudpickle
import msgspec
from local_models import answers, asking, disturb, requests, untrained, with_adapters
from tiny_causal import text_model

from swarm_ui import CollabGraph
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatModel, Completion, Request, ScoringModel, VersionedModel
from swarm_ui.nodes import ActorModel, LocalModel, OpenAIModel, PublishedModel, ScriptedModel
from swarm_ui.nodes.models.acting.published import HeldModel, ModelCopy


def told(completions: list[Completion]) -> list[tuple[str, str | None]]:
    return [(completion.text, completion.adapter) for completion in completions]


def trained(learner: LocalModel, seed: int) -> str:
    """The version of the first adapter after a training step."""
    disturb(learner, "agent_0", seed=seed)
    version = learner.lease("agent_0")
    learner.release(version)
    return version


# -- held in an actor ------------------------------------------------------------------------


async def test_versions_are_loaded_when_they_are_asked_also_together() -> None:
    learner, held = with_adapters(1), untrained()
    published, model = PublishedModel(learner, untrained), HeldModel(lambda: held)
    asked = requests(6)
    files: dict[str, Any] = {}
    seen: dict[str, list[tuple[str, str | None]]] = {}
    for number in range(1, 5):
        version = trained(learner, number)
        published.publish()
        files |= pickle.loads(pickle.dumps(published)).versions
        seen[version] = told(await learner.generate(asking(version, asked)))
    assert len({str(replies) for replies in seen.values()}) > 1
    mixed = [asking(version, asked[:1])[0] for version in seen]
    assert told(await model.ask("generate", files, mixed)) == [r[0] for r in seen.values()]
    both = await asyncio.gather(
        *(model.ask("generate", {v: files[v]}, asking(v, asked)) for v in seen)
    )
    assert [told(done) for done in both] == list(seen.values())
    assert sum(map(held.has_version, seen)) == 1


async def test_a_factory_that_fails_is_called_again() -> None:
    failures = [ConfigError("no weights here")]

    async def factory() -> ChatModel:
        if failures:
            raise failures.pop()
        return ScriptedModel(lambda request: "hello")

    model = HeldModel(factory)
    with pytest.raises(ConfigError, match="no weights here"):
        await model.about()
    assert await model.about() == ("scripted", False, None)
    assert [c.text for c in await model.ask("generate", {}, requests(1))] == ["hello"]
    wrong: Any = lambda: "base"  # noqa: E731
    with pytest.raises(ConfigError, match=r"expected a model.*got 'base'"):
        await HeldModel(wrong).about()


# -- copies in workers -----------------------------------------------------------------------


def sent(model: PublishedModel) -> ModelCopy:
    copy = pickle.loads(pickle.dumps(model))
    assert isinstance(copy, ModelCopy)
    assert isinstance(copy, VersionedModel) and isinstance(copy, ScoringModel)
    return copy


def asked_of(version: str | None, count: int = 6) -> list[Request]:
    return [
        msgspec.structs.replace(r, temperature=0.9 * (k % 2), adapter=version)
        for k, r in enumerate(requests(count))
    ]


def test_a_copy_answers_as_the_learner_with_the_version_that_is_asked() -> None:
    learner = with_adapters()
    model = PublishedModel(learner, untrained)
    assert isinstance(model, VersionedModel) and isinstance(model, ScoringModel)
    versions = dict(model.publish())
    assert set(versions) == {f"agent_{k}" for k in range(3)}
    first = sent(model)
    expected = {v: told(answers(learner, asked_of(v))) for v in versions.values()}
    for version in versions.values():
        assert told(answers(first, asked_of(version))) == expected[version]
    assert told(answers(first, asked_of(None))) == told(answers(learner, asked_of(None)))

    old = versions["agent_1"]
    disturb(learner, "agent_1", seed=3)
    assert told(answers(first, asked_of(old))) == expected[old]
    new = model.publish()["agent_1"]
    second = sent(model)
    now = told(answers(learner, asked_of(new)))
    assert new != old and [text for text, _ in now] != [text for text, _ in expected[old]]
    assert told(answers(second, asked_of(new))) == told(answers(second, asked_of("agent_1"))) == now
    # An episode that began before goes on with its own version, in the same process.
    assert told(answers(first, asked_of("agent_1"))) == expected[old]
    with pytest.raises(ModelError, match="no adapter 'agent_9'"):
        answers(second, asked_of("agent_9"))


def test_weights_are_not_sent() -> None:
    text = text_model()
    acting = ActorModel(OpenAIModel("tiny", "http://127.0.0.1:9/v1"), text, Path("served"))
    for model in (untrained(), text, acting):
        team = CollabGraph.collaborative(agents=2, rounds=1, model=model)
        with pytest.raises(ConfigError, match=r"hold_model\(factory\)"):
            cloudpickle.dumps(team)
