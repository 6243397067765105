"""A model that is held for other processes: equal replies, shared batches, published versions."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from local_models import asking, disturb, newest, requests, untrained, with_adapters

from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.model import ChatModel, Completion
from swarm_ui.nodes import LocalModel, ScriptedModel
from swarm_ui.nodes.models.acting.held_model import HeldModel
from swarm_ui.nodes.models.leases import served_name
from swarm_ui.nodes.models.published_adapters import VersionMissing
from swarm_ui.nodes.models.published_version import write_version


def held(factory: Any, folder: Path | None = None, **settings: Any) -> HeldModel:
    return HeldModel(factory, folder, **{"kept": 2, "linger": 0.0} | settings)


def publish(learner: LocalModel, version: str, folder: Path, digest: str = "") -> None:
    learner.save_version(version, folder / f"{served_name(version)}{digest}")


def told(completions: list[Completion]) -> list[tuple[str, str | None]]:
    return [(completion.text, completion.adapter) for completion in completions]


async def test_replies_and_scores_are_those_of_the_model() -> None:
    local, model = with_adapters(), held(with_adapters)
    asked = asking("agent_1@0", requests(8))
    replies = await local.generate(asked)
    assert told(await model.generate(asked)) == told(replies)
    texts = [reply.text for reply in replies]
    scores = await local.score(asked, texts)
    assert await model.score(asked, texts) == pytest.approx(scores, abs=1e-4)
    about = await model.about()
    assert about.scores and about.name == local.name
    assert about.adapters == {f"agent_{k}": f"agent_{k}@0" for k in range(3)}


async def test_requests_of_several_processes_share_a_batch() -> None:
    made: list[LocalModel] = []

    def factory() -> LocalModel:
        made.append(untrained())
        return made[0]

    model = held(factory)
    await model.about()
    await asyncio.gather(*(model.generate([request]) for request in requests(16)))
    assert made[0].counters.calls == 16 and made[0].counters.batches <= 4


async def test_a_published_version_is_loaded_when_it_is_asked(tmp_path: Path) -> None:
    learner = with_adapters(1)
    model = held(untrained, tmp_path, kept=2)
    asked = requests(6)
    seen: dict[str, list[tuple[str, str | None]]] = {}
    for number in range(1, 5):
        disturb(learner, "agent_0", seed=number)
        version = newest(learner, "agent_0")
        publish(learner, version, tmp_path, "-0123456789abcdef" if number % 2 else "")
        seen[version] = told(await learner.generate(asking(version, asked)))
        assert told(await model.generate(asking(version, asked))) == seen[version]
    assert len({str(replies) for replies in seen.values()}) > 1
    assert await model.versions() == tuple(list(seen)[-2:])
    for version in list(seen)[:2]:  # an episode that is behind is answered too
        assert told(await model.generate(asking(version, asked))) == seen[version]
    mixed = [asking(version, asked[:1])[0] for version in seen]
    assert told(await model.generate(mixed)) == [replies[0] for replies in seen.values()]


async def test_weights_that_are_published_again_are_the_newest(tmp_path: Path) -> None:
    asked, learners = asking("agent_0@1", requests(6)), [with_adapters(1), with_adapters(1)]
    for number, learner in enumerate(learners):
        disturb(learner, "agent_0", seed=number)
        newest(learner, "agent_0")
    first, second = learners
    # A run that is continued trains the version anew, and is then continued as it was at first.
    for k, learner in enumerate([first, second, first]):
        place = write_version(learner, "agent_0@1", tmp_path, base="")
        if k < 2:
            os.utime(place.folder, (k, k))
    replies = told(await held(untrained, tmp_path).generate(asked))
    assert replies == told(await first.generate(asked)) != told(await second.generate(asked))


async def test_a_version_that_is_in_use_stays(tmp_path: Path) -> None:
    learner = with_adapters(1)
    for number in range(1, 4):
        disturb(learner, "agent_0", seed=number)
        publish(learner, newest(learner, "agent_0"), tmp_path)
    model = held(untrained, tmp_path, kept=1)
    versions = [f"agent_0@{number}" for number in (1, 2, 3)]
    both = await asyncio.gather(*(model.generate(asking(v, requests(4))) for v in versions))
    assert [{c.adapter for c in done} for done in both] == [{v} for v in versions]
    (kept,) = await model.versions()  # which one depends on the order of the answers
    assert kept in versions


async def test_a_version_that_is_missing_masks_the_episode(tmp_path: Path) -> None:
    model = held(untrained, tmp_path)
    with pytest.raises(ModelUnavailable, match=r"agent_0-v7.*a folder that all machines read"):
        await model.generate(asking("agent_0@7", requests(1)))
    with pytest.raises(ModelError, match="give hold_model the folder of published adapters"):
        await held(untrained).generate(asking("agent_0@7", requests(1)))
    learner = with_adapters(1)
    publish(learner, "agent_0@0", tmp_path)
    shutil.move(tmp_path / "agent_0-v0", tmp_path / "agent_0-v7")
    (done,) = await model.generate(asking("agent_0@7", requests(1)))
    assert done.adapter == "agent_0@7"


async def test_versions_that_were_sent_are_loaded_without_a_folder() -> None:
    learner = with_adapters(1)
    published = {"agent_0@0": write_version(learner, "agent_0@0", None, base="")}
    disturb(learner, "agent_0", seed=1)
    new = newest(learner, "agent_0")
    published[new] = write_version(learner, new, None, base="")
    model = held(untrained, kept=1)
    with pytest.raises(VersionMissing, match="got 'agent_0@1'"):
        await model.generate(asking(new, requests(1)))
    await model.receive(published)
    both = await asyncio.gather(
        *(model.generate(asking(v, requests(6))) for v in (new, "agent_0@0", new))
    )
    assert told(both[0]) == told(both[2]) == told(await learner.generate(asking(new, requests(6))))
    assert {c.adapter for c in both[1]} == {"agent_0@0"} and told(both[1]) != told(both[0])
    assert len(await model.versions()) == 1


async def test_a_factory_that_fails_is_called_again() -> None:
    failures = [ConfigError("no weights here")]

    async def factory() -> ChatModel:
        if failures:
            raise failures.pop()
        return ScriptedModel(lambda request: "hello")

    model = held(factory)
    with pytest.raises(ConfigError, match="no weights here"):
        await model.about()
    about = await model.about()
    assert about.adapters is None and not about.scores
    assert [c.text for c in await model.generate(requests(1))] == ["hello"]
    await model.close()
    with pytest.raises(ConfigError, match="returned a str; expected a model"):
        await held(lambda: "base").about()
