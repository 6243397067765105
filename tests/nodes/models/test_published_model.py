"""Adapters that are published by version, for copies of the model in other processes."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from local_models import answers, disturb, requests, untrained, with_adapters

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import Completion, Request, ScoringModel, VersionedModel
from swarm_ui.nodes import LocalModel, PublishedModel
from swarm_ui.nodes.models import published_model
from swarm_ui.nodes.models.published_model import PublishedCopy
from swarm_ui.optim.rollout_actors import Publisher


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No model of a test stays in this process."""
    yield
    published_model._COPIES.clear()


def sent(model: PublishedModel) -> PublishedCopy:
    copy = pickle.loads(pickle.dumps(model))
    assert isinstance(copy, PublishedCopy)
    assert isinstance(copy, VersionedModel) and isinstance(copy, ScoringModel)
    return copy


def asked(version: str | None, count: int = 6) -> list[Request]:
    heat = [msgspec.structs.replace(r, temperature=0.9 * (k % 2)) for k, r in
            enumerate(requests(count))]  # fmt: skip
    return [msgspec.structs.replace(r, adapter=version) for r in heat]


def texts(replies: list[Completion]) -> list[tuple[str, str | None]]:
    return [(reply.text, reply.adapter) for reply in replies]


@pytest.fixture(params=["folder", "sent"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "published" if request.param == "folder" else None


def test_a_copy_answers_as_the_learner_with_the_version_that_is_asked(place: Path | None) -> None:
    learner = with_adapters()
    model = PublishedModel(learner, untrained, place)
    assert isinstance(model, VersionedModel) and isinstance(model, ScoringModel)
    publisher: Publisher = model
    versions = publisher.publish()
    assert versions == {f"agent_{k}": f"agent_{k}@0" for k in range(3)}
    first = sent(model)
    expected = {v: texts(answers(learner, asked(v))) for v in versions.values()}
    for version in versions.values():
        assert texts(answers(first, asked(version))) == expected[version]
    assert texts(answers(first, asked(None))) == texts(answers(learner, asked(None)))

    disturb(learner, "agent_1", seed=3)
    assert texts(answers(first, asked("agent_1@0"))) == expected["agent_1@0"]
    assert model.publish()["agent_1"] == "agent_1@1"
    second = sent(model)
    now = texts(answers(learner, asked("agent_1@1")))
    assert now != expected["agent_1@0"]
    assert texts(answers(second, asked("agent_1@1"))) == now
    # An episode that began before goes on with its own version, in the same process.
    assert texts(answers(second, asked("agent_1@0"))) == expected["agent_1@0"]
    assert texts(answers(second, asked("agent_1"))) == now


def test_the_version_before_stays_published_and_older_ones_do_not(tmp_path: Path) -> None:
    learner, folder = with_adapters(1), tmp_path / "published"
    model = PublishedModel(learner, untrained, folder)
    kept = []
    for number in range(4):
        model.publish()
        kept.append(sorted(path.name.rpartition("-")[0] for path in folder.iterdir()))
        disturb(learner, "agent_0", seed=number)
    assert kept == [
        ["agent_0-v0"],
        ["agent_0-v0", "agent_0-v1"],
        ["agent_0-v1", "agent_0-v2"],
        ["agent_0-v2", "agent_0-v3"],
    ]
    copy = sent(model)
    with pytest.raises(ModelError, match="no adapter 'agent_0@0' is published; there are: agent_0"):
        answers(copy, asked("agent_0@0"))
    with pytest.raises(ModelError, match="'agent_0@3' is not leased"):
        copy.release("agent_0@3")


def test_after_a_full_disk_it_publishes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = with_adapters()
    model = PublishedModel(learner, untrained, tmp_path / "published")
    model.publish()
    first = texts(answers(sent(model), asked("agent_0")))
    disturb(learner, "agent_0", seed=1)
    wrote, full = published_model.write_version, iter([False, True])

    def write(*given: Any, **more: Any) -> Any:
        if next(full):
            raise ConfigError("no space left")
        return wrote(*given, **more)

    monkeypatch.setattr(published_model, "write_version", write)
    with pytest.raises(ConfigError, match="no space left"):
        model.publish()
    assert texts(answers(sent(model), asked("agent_0"))) == first
    monkeypatch.undo()
    assert model.publish()["agent_0"] == "agent_0@1"


def test_the_base_model_is_made_once_in_a_process_and_never_sent(tmp_path: Path) -> None:
    made: list[LocalModel] = []

    def make() -> LocalModel:
        made.append(untrained())
        return made[-1]

    model = PublishedModel(with_adapters(1), make, tmp_path)
    model.publish()
    rebuild, state = model.__reduce__()
    assert not any(isinstance(part, LocalModel) for part in state)
    for _ in range(2):
        answers(rebuild(*state), asked("agent_0@0", 1))
    assert len(made) == 1


def test_a_version_is_loaded_under_its_own_number(tmp_path: Path) -> None:
    learner, other = with_adapters(1), untrained()
    disturb(learner, "agent_0", seed=1)
    learner.save_version("agent_0@1", tmp_path)
    other.load_version("agent_0@7", tmp_path)
    expected = [text for text, _ in texts(answers(learner, asked("agent_0")))]
    assert texts(answers(other, asked("agent_0"))) == [(text, "agent_0@7") for text in expected]
    for wrong in ("agent_0", "@3", "agent_0@x"):
        with pytest.raises(ConfigError, match="expected a version such as 'agent_2@7'"):
            other.load_version(wrong, tmp_path)


@pytest.mark.parametrize("layers", [None, [0], [1]])
def test_an_adapter_of_some_layers_is_published(layers: list[int] | None) -> None:
    learner = untrained()
    learner.add_adapter("agent_0", rank=4, layers=layers)
    disturb(learner, "agent_0", seed=1)
    model = PublishedModel(learner, untrained)
    version = model.publish()["agent_0"]
    here, there = (answers(each, asked(version)) for each in (learner, sent(model)))
    assert texts(here) == texts(there)
    assert texts(here) != texts(answers(untrained(), asked(None)))


def test_weights_that_cannot_be_read_or_belong_to_another_base_are_named(tmp_path: Path) -> None:
    model = PublishedModel(with_adapters(1), untrained, tmp_path / "published")
    model.publish()
    shutil.rmtree(tmp_path / "published")
    with pytest.raises(ModelError, match=r"cannot load the published agent_0@0.*same path"):
        answers(sent(model), asked("agent_0@0"))
    other = PublishedModel(with_adapters(1), lambda: untrained(seed=1), tmp_path / "published")
    other.publish()
    rebuild, state = other.__reduce__()
    with pytest.raises(ModelError, match="was trained on another base"):
        answers(rebuild(*state), asked("agent_0@0"))


def test_other_weights_under_a_version_replace_those_in_memory(
    place: Path | None, tmp_path: Path
) -> None:
    """As after a run that was resumed in another way."""
    learner = with_adapters(1)
    model = PublishedModel(learner, untrained, place)
    model.publish()
    first = texts(answers(sent(model), asked("agent_0@0")))
    other = with_adapters(1)
    disturb(other, "agent_0", seed=4)
    other.save_version("agent_0@1", tmp_path)
    learner.load_version("agent_0@0", tmp_path)
    model.publish()
    now = texts(answers(sent(model), asked("agent_0@0")))
    assert now == texts(answers(learner, asked("agent_0@0"))) and now != first
