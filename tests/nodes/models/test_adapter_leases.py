"""A version of an adapter stands for one set of weights, whatever happens to its name."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_fakes import fitted
from local_models import (
    alike,
    answers,
    asking,
    at_once,
    disturb,
    newest,
    requests,
    with_adapters,
)

from swarm_ui.action import Action
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import Completion
from swarm_ui.nodes import LocalModel, ScriptedModel
from swarm_ui.optim.config import UpdateConfig
from swarm_ui.optim.preferences import PreferencePair
from swarm_ui.trace.records import Trace

ASKED = requests(6)


def by(model: LocalModel, adapter: str | None) -> list[Completion]:
    return answers(model, asking(adapter, ASKED))


def versions(completions: list[Completion]) -> set[str | None]:
    return {completion.adapter for completion in completions}


def lessons() -> list[PreferencePair]:
    back = Action(action_type="navigate_back")
    return [
        PreferencePair(node="agent_0", decision=request.decision, chosen=back, rejected=None)
        for request in ASKED
        if request.decision is not None
    ]


def train(model: LocalModel, name: str = "agent_0") -> None:
    config = UpdateConfig(method="rft", steps=4, batch_size=4, lr=3e-2)
    fitted(model, name, lessons(), config)


def test_requests_under_way_are_answered_by_the_version_they_asked(tmp_path: Path) -> None:
    """Before, across and after a training and a swap."""
    model = with_adapters(2)
    disturb(model, "agent_1", 77)
    model.save_adapters(tmp_path)
    runs: dict[str, list[Completion]] = {}

    async def main() -> None:
        waiting: dict[str, asyncio.Task[list[Completion]]] = {}

        async def start() -> None:
            version = model.lease("agent_0")
            model.release(version)
            runs[version] = await at_once(model, asking("agent_0", ASKED))  # undisturbed
            waiting[version] = asyncio.create_task(at_once(model, asking("agent_0", ASKED)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # the requests are in the queue, not yet answered

        await start()
        train(model)
        await start()
        assert model.load_adapter(tmp_path / "agent_1", "agent_0") == "agent_0@2"
        await start()
        for version, task in waiting.items():
            done = await task
            assert versions(done) == {version}
            assert alike(done, runs[version]), version

    asyncio.run(main())
    assert list(runs) == ["agent_0@0", "agent_0@1", "agent_0@2"]
    kinds = list(runs.values())
    assert not any(alike(a, b) for k, a in enumerate(kinds) for b in kinds[:k])
    assert alike(runs["agent_0@2"], by(model, "agent_1"))  # the same weights
    assert [version for version in runs if model.has_version(version)] == ["agent_0@2"]


@pytest.mark.parametrize("options", [{"foreach": True}, {"foreach": False}, {"fused": True}])
def test_any_optimiser_may_change_the_live_weights(options: dict[str, bool]) -> None:
    model = with_adapters(2)
    before = by(model, "agent_0")
    optimizer = torch.optim.AdamW(model.adapter_parameters("agent_0"), lr=0.3, **options)
    for weight in model.adapter_parameters("agent_0"):
        weight.grad = torch.ones_like(weight)
    held = model.lease("agent_0")
    optimizer.step()
    assert newest(model, "agent_0") == "agent_0@1"
    assert alike(by(model, held), before) and not alike(by(model, "agent_0"), before)
    assert model.versions == {"agent_0": 1, "agent_1": 0}


def test_a_team_with_lora_has_an_adapter_for_each_agent() -> None:
    model = with_adapters(0)
    team = CollabGraph.collaborative(3, 1, model=model, lora=8)
    assert model.adapters == ("agent_0", "agent_1", "agent_2")
    weights = [p for name in model.adapters for p in model.adapter_parameters(name)]
    assert all(a is b for a, b in zip(team.parameters(), weights, strict=True))
    assert all(p.requires_grad and 8 in p.shape for p in weights)
    assert ASKED[0].decision is not None
    trace = team.run_sync(ASKED[0].decision.observation)
    assert {call.adapter for call in trace.calls if call.adapter} == {
        f"{name}@{number}" for name, number in model.versions.items()
    }
    solo = CollabGraph.solo(model, adapter="agent_1")
    assert len(solo.parameters()) == len(weights) // 3
    assert CollabGraph.solo(model).parameters() == []
    with pytest.raises(ConfigError, match="agent_0, agent_1 already"):
        CollabGraph.collaborative(2, 1, model=model, lora=8)
    scripted = ScriptedModel(["{}"])
    with pytest.raises(ConfigError, match="lora"):
        CollabGraph.collaborative(2, 1, model=scripted, lora=8)
    with pytest.raises(ConfigError, match="not in this process"):
        CollabGraph.collaborative(1, 1, model=scripted, adapters=["a"]).parameters()


def test_a_folder_that_does_not_fit_is_refused_and_costs_nothing(tmp_path: Path) -> None:
    model = with_adapters(2)
    before = by(model, "agent_0")
    wide = LocalModel.untrained(model.tokenizer, width=64, layers=2, heads=2, seed=0)
    wide.add_adapter("agent_0", rank=4)
    wide.save_adapters(tmp_path / "wide")
    for folder, said in ((tmp_path, "missing: adapter_config"), (tmp_path / "wide/agent_0", "fit")):
        for name in ("agent_0", "another"):
            with pytest.raises(ConfigError, match=said):
                model.load_adapter(folder, name)
    assert model.adapters == ("agent_0", "agent_1")
    assert alike(by(model, "agent_0"), before)
    assert versions(by(model, "agent_0")) == {"agent_0@0"}


def test_wrong_uses_say_what_is_wrong(tmp_path: Path) -> None:
    model = with_adapters(2)
    model.save_adapters(tmp_path)
    with model.activate("agent_0"):
        for change in (
            lambda: model.load_adapter(tmp_path / "agent_0", "agent_1"),
            lambda: model.add_adapter("agent_2"),
        ):
            with pytest.raises(ConfigError, match="is in training"):
                change()
        with pytest.raises(ModelError, match="is in training"):
            by(model, "agent_0")
    for name in ("", "a@1", "a.b", "1st", "q_proj", "lora/x", "lora_A", "keys", "train"):
        with pytest.raises(ConfigError, match="cannot be named"):
            model.add_adapter(name)
    version = model.lease("agent_0")
    train(model)
    with pytest.raises(ConfigError, match="runs still use other weights"):
        model.load_adapters(tmp_path)
    model.release(version)
    model.load_adapters(tmp_path)
    assert versions(by(model, "agent_0")) == {"agent_0@0"}


def test_a_run_keeps_the_versions_it_started_with_in_all_its_rounds() -> None:
    model = with_adapters(2)
    graph = CollabGraph.collaborative(
        2, 3, model=model, adapters=["agent_0", "agent_1"], edges=[("agent_0", "agent_1")]
    )
    assert ASKED[0].decision is not None
    seen = ASKED[0].decision.observation

    async def main() -> list[Trace]:
        quiet = await graph.run(seen)
        said = list[object]()
        across = asyncio.create_task(graph.run(seen, on_event=said.append))
        while len(said) < 2:
            await asyncio.sleep(0)
        assert not across.done()
        train(model, "agent_0")
        after = asyncio.create_task(graph.run(seen))
        return [quiet, await across, await after]

    quiet, across, after = asyncio.run(main())
    assert [m.content for m in quiet.messages] == [m.content for m in across.messages]
    spoken = [{c.adapter for c in t.calls if c.node == "agent_0"} for t in (quiet, across, after)]
    assert spoken == [{"agent_0@0"}, {"agent_0@0"}, {"agent_0@1"}]
    assert not model.has_version("agent_0@0")
    with pytest.raises(ModelError, match="is not leased"):  # the runs gave their leases back
        model.release("agent_0@1")


async def test_training_waits_for_the_batch_under_way() -> None:
    model, inside = with_adapters(2), threading.Event()
    free, generate = threading.Event(), model.decoder.generate
    before = await at_once(model, asking("agent_0", ASKED))

    def slow(routing: Any, jobs: Any) -> Any:
        inside.set()
        assert free.wait(10)
        return generate(routing, jobs)

    model.decoder.generate = slow  # type: ignore[method-assign]
    asked = asyncio.create_task(model.generate(asking("agent_0", ASKED)))
    while not inside.is_set():
        await asyncio.sleep(0)
    threading.Timer(0.05, free.set).start()
    with model.activate("agent_0"), torch.no_grad():
        assert free.is_set()
        for weight in model.adapter_parameters("agent_0"):
            weight += 0.5
    assert alike(await asked, before)
