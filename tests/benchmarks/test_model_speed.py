"""The benchmarks of language models run, with a tiny model and a stand-in for vLLM."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

pytest.importorskip("peft")

from tiny_causal import reads_alike, saved
from vllm_stand_in import StandIn

from benchmarks import served_actor
from benchmarks.support import text_model_speed as speed
from swarm_ui.action import Unparsed
from swarm_ui.model import Request
from swarm_ui.prompts import format_named


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("model"))


def test_decisions_per_second_of_every_way(folder: Path) -> None:
    sizes = speed.Sizes(at_once=2, alone=1, repeats=1)
    with StandIn("base", tokens=reads_alike(folder), reply=lambda body: "wait") as server:
        url = f"{server.address}/v1"
        found = speed.measure_text_model(str(folder), None, url, sizes=sizes).figures
        assert {name.partition("@")[0] for name in server.asked} == {"agent_0"}
        assert server.adapters == {}, "unloaded at the end"
    rates = found["decisions_per_s"]
    assert set(rates) == {
        "solo", "team", "talk", "team_shuffled", "team_adapters",
    }  # fmt: skip
    assert all(set(by) == {"1", "2"} and min(by.values()) > 0 for by in rates.values())
    for name in ("vs_generate", "vs_generate_batched", "vs_vllm", "merged_vs_routed"):
        assert found[name] > 0
    assert (found["at_once"], found["repeats"]) == (2, 1)
    assert set(found["team_cost"]) == set(rates) - {"solo"}


def test_agents_with_one_adapter_differ_as_after_separate_training(
    folder: Path, tmp_path: Path
) -> None:
    trained, names = speed.with_adapters(str(folder), None)
    trained.save_version(trained.lease(names[0]), tmp_path / "one")
    for model in (
        speed.with_adapters(str(folder), str(tmp_path / "one"))[0],
        served_actor.learner(folder, [tmp_path / "one"], 4),
    ):
        weights = [model.adapter_parameters(name) for name in names]
        same = trained.adapter_parameters(names[0])
        assert all((a == b).all() for a, b in zip(weights[0], same, strict=True))
        for own in weights[1:]:
            assert any((a != b).any() for a, b in zip(weights[0], own, strict=True))


def test_replies_in_process_and_served_are_compared(folder: Path, tmp_path: Path) -> None:
    model = served_actor.learner(folder, [], 2)
    requests = [
        Request(decision=decision, adapter=f"agent_{k % 2}", max_tokens=6)
        for k, decision in enumerate(served_actor.decisions(6))
    ]
    rounds = [requests[:2], requests[2:4], requests[4:]]
    with StandIn("actor", tokens=reads_alike(folder), reply=lambda body: "wait") as server:
        running = served_actor.Server(f"{server.address}/v1", os.getpgid(0))
        found = asyncio.run(served_actor.measure(model, running, rounds, tmp_path / "served", 2))
    assert all([len(part.replies) for part in parts] == [2, 2] for parts in found.values())
    # Neither side is restricted to the actions on the screen: this model would write none itself.
    compact = format_named("compact")
    for request, reply in zip(rounds[1], found["in_process_base"][0].replies, strict=True):
        assert request.decision is not None
        assert isinstance(compact.parse(reply.text, request.decision.observation), Unparsed)
    result = served_actor.compared(model, requests[2:], found)
    assert result["equal"] == {"adapters": 0.0, "base": 0.0}
    assert all(gap > 0 for gap in result["largest_gap"].values())
    same = dict.fromkeys(found, found["in_process"])
    assert served_actor.compared(model, requests[2:], same)["equal"]["adapters"] == 1.0
