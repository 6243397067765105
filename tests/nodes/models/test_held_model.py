"""Copies and held models in other processes answer as the learner, with versions they pull."""

from __future__ import annotations

import asyncio
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import msgspec
from local_models import answers, asking, disturb, requests, untrained, with_adapters

from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.model import ChatModel, Completion, Request, ScoringModel, VersionedModel
from swarm_ui.nodes import LocalModel, PublishedModel, ScriptedModel
from swarm_ui.nodes.models.acting.board import FolderBoard, PullingModel, RayBoard, Shelf
from swarm_ui.nodes.models.acting.published_model import LoadedCopy
from swarm_ui.nodes.models.acting.ray_model import HeldModel


def told(completions: list[Completion]) -> list[tuple[str, str | None]]:
    return [(completion.text, completion.adapter) for completion in completions]


def trained(learner: LocalModel, seed: int) -> str:
    """The version of the first adapter after a training step."""
    disturb(learner, "agent_0", seed=seed)
    version = learner.lease("agent_0")
    learner.release(version)
    return version


# -- held in an actor ------------------------------------------------------------------------


async def test_replies_and_scores_are_those_of_the_model() -> None:
    local, model = with_adapters(), HeldModel(with_adapters)
    versions = {name: local.lease(name) for name in local.adapters}
    asked = asking(versions["agent_1"], requests(8))
    replies = await local.generate(asked)
    assert told(await model.ask("generate", asked)) == told(replies)
    texts = [reply.text for reply in replies]
    scores = await local.score(asked, texts)
    assert await model.ask("score", asked, texts) == pytest.approx(scores, abs=1e-4)
    about = await model.about()
    assert about.scores and about.name == local.name and about.adapters == versions


async def test_a_version_is_pulled_when_it_is_asked(tmp_path: Path) -> None:
    learner, board = with_adapters(1), FolderBoard(tmp_path)
    model = HeldModel(untrained)
    asked = requests(6)
    seen: dict[str, list[tuple[str, str | None]]] = {}

    async def pulled(version: str) -> list[tuple[str, str | None]]:
        return told(await model.ask("generate", asking(version, asked), board=board))

    for number in range(1, 5):
        version = trained(learner, number)
        board.put(version, learner)
        seen[version] = told(await learner.generate(asking(version, asked)))
        assert (
            told(await model.ask("generate", asking(version, asked), board=board)) == seen[version]
        )
    assert len({str(replies) for replies in seen.values()}) > 1
    assert await model.versions() == tuple(list(seen)[-2:])
    for version in list(seen)[:2]:  # an episode that is behind is answered too
        assert (
            told(await model.ask("generate", asking(version, asked), board=board)) == seen[version]
        )
    mixed = [asking(version, asked[:1])[0] for version in seen]
    assert told(await model.ask("generate", mixed, board=board)) == [
        replies[0] for replies in seen.values()
    ]
    one = PullingModel(untrained(), kept=1)
    both = await asyncio.gather(*(one.ask("generate", board, asking(v, asked)) for v in seen))
    assert [told(done) for done in both] == list(seen.values())
    assert len(one.recent) == 1


async def test_a_version_that_is_missing_masks_the_episode(tmp_path: Path) -> None:
    model, learner, board = HeldModel(untrained), with_adapters(1), FolderBoard(tmp_path)
    with pytest.raises(ModelUnavailable, match=r"agent_0@7.*a folder that all machines read"):
        await model.ask("generate", asking("agent_0@7", requests(1)), board=board)
    version = learner.lease("agent_0")
    board.put(version, learner)
    shutil.move(board.path(version), board.path("agent_0@7"))
    (done,) = await model.ask("generate", asking("agent_0@7", requests(1)), board=board)
    assert done.adapter == "agent_0@7"


async def test_a_factory_that_fails_is_called_again() -> None:
    failures = [ConfigError("no weights here")]

    async def factory() -> ChatModel:
        if failures:
            raise failures.pop()
        return ScriptedModel(lambda request: "hello")

    model = HeldModel(factory)
    with pytest.raises(ConfigError, match="no weights here"):
        await model.about()
    about = await model.about()
    assert about.adapters is None and not about.scores
    assert [c.text for c in await model.ask("generate", requests(1))] == ["hello"]
    await model.close()
    wrong: Any = lambda: "base"  # noqa: E731
    with pytest.raises(ConfigError, match="returned a str"):
        await HeldModel(wrong).about()


# -- copies in workers -----------------------------------------------------------------------


def sent(model: PublishedModel) -> LoadedCopy:
    copy = pickle.loads(pickle.dumps(model))
    assert isinstance(copy, LoadedCopy)
    assert isinstance(copy, VersionedModel) and isinstance(copy, ScoringModel)
    return copy


def asked_of(version: str | None, count: int = 6) -> list[Request]:
    return [
        msgspec.structs.replace(r, temperature=0.9 * (k % 2), adapter=version)
        for k, r in enumerate(requests(count))
    ]


def test_a_copy_answers_as_the_learner_with_the_version_that_is_asked(tmp_path: Path) -> None:
    learner = with_adapters()
    model = PublishedModel(learner, untrained, tmp_path)
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


def test_the_versions_of_the_last_calls_stay_on_the_board(tmp_path: Path) -> None:
    learner, folder = with_adapters(1), tmp_path / "published"
    model = PublishedModel(learner, untrained, folder)
    versions, kept = [], []
    for number in range(4):
        versions.append(model.publish()["agent_0"])
        kept.append(sorted(path.name for path in folder.iterdir()))
        disturb(learner, "agent_0", seed=number)
    assert kept == [versions[max(0, k - 1) : k + 1] for k in range(4)]
    asyncio.run(model.close())
    assert not folder.exists()


def test_weights_that_cannot_be_read_or_belong_to_another_base_are_named(tmp_path: Path) -> None:
    model = PublishedModel(with_adapters(1), untrained, tmp_path / "published")
    version = model.publish()["agent_0"]
    shutil.rmtree(tmp_path / "published")
    with pytest.raises(ModelUnavailable, match=version):
        answers(sent(model), asked_of(version))
    other = PublishedModel(with_adapters(1), lambda: untrained(seed=1), tmp_path / "published")
    other.publish()
    rebuild, state = other.__reduce__()
    with pytest.raises(ModelError, match="was trained on another base"):
        answers(rebuild(*state), asked_of(version))
    (tmp_path / "file").write_text("")
    full = PublishedModel(with_adapters(1), untrained, tmp_path / "file")
    with pytest.raises(ConfigError, match="cannot publish"):
        full.publish()


def test_a_shelf_gives_what_was_put_on_it() -> None:
    shelf = Shelf()
    shelf.put("a@1", {"adapter_config.json": b"{}"})
    assert shelf.get("a@1") == {"adapter_config.json": b"{}"}
    shelf.drop("a@1")
    with pytest.raises(ModelUnavailable, match="a@1"):
        shelf.get("a@1")
    with pytest.raises(ConfigError):  # no cluster
        RayBoard()
