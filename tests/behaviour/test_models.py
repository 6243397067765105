"""Versions and caches of models, their names and prices, votes, and ``doctor``."""

from __future__ import annotations

import asyncio
import gc
import pickle
import tomllib
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_world import RIGHT, Shell
from local_models import untrained, with_adapters
from loopback import Loopback, failing
from loopback_client import ask, no_proxy  # noqa: F401
from packaging.requirements import Requirement
from tiny_causal import causal, screen
from vllm_stand_in import StandIn

from swarm_ui import Budget, CollabGraph, ConfigError, ModelError, Price, Request
from swarm_ui.nodes import (
    ActorModel,
    LocalModel,
    MajorityVote,
    OpenAIModel,
    PublishedModel,
    ScriptedModel,
)


def client(url: str, **settings: Any) -> OpenAIModel:
    return OpenAIModel("tiny", url, **settings)


# -- versions and caches -------------------------------------------------------------------------


_MADE: list[weakref.ref[LocalModel]] = []


def copied() -> LocalModel:
    model = untrained()
    _MADE.append(weakref.ref(model))
    return model


async def test_a_process_does_not_keep_every_published_model(tmp_path: Path) -> None:
    _MADE.clear()
    learner = with_adapters(1)
    asked = Request(decision=screen(), adapter="agent_0", max_tokens=1)
    for _ in range(6):
        model = PublishedModel(learner, copied)
        model.publish()
        for _ in range(2):  # a team is sent in every iteration
            copy = pickle.loads(pickle.dumps(model))
            version = copy.lease("agent_0")
            await copy.generate([asked])
            copy.release(version)
        del copy
    gc.collect()
    assert len(_MADE) == 6 and sum(made() is not None for made in _MADE) < 6


async def test_a_published_model_in_use_outlives_newer_ones(tmp_path: Path) -> None:
    learner = with_adapters(1)
    copies = []
    for _ in range(6):
        model = PublishedModel(learner, copied)
        model.publish()
        copies.append(pickle.loads(pickle.dumps(model)))
        copies[-1].lease("agent_0")
    for copy in copies:
        copy.release("agent_0@0")
        assert pickle.loads(pickle.dumps(copy)).lease("agent_0") == "agent_0@0"


async def test_a_process_does_not_keep_every_served_actor(tmp_path: Path) -> None:
    learner = causal("llama")
    learner.add_adapter("agent_0", rank=2, alpha=4)
    count = 12
    with StandIn("base") as server:
        for k in range(count):
            engine = OpenAIModel("base", f"{server.address}/v1")
            model = ActorModel(engine, learner, tmp_path / str(k))
            model.publish()
            await model.prepare()
            copy = pickle.loads(pickle.dumps(model))
            await engine.close()
            server.restart()
            del engine, model, copy
    gc.collect()
    assert sum(isinstance(each, OpenAIModel) for each in gc.get_objects()) < count


# -- names, versions and prices ------------------------------------------------------------------


async def test_a_server_may_list_a_model_with_its_tag() -> None:
    """Ollama lists ``llama3:latest`` and accepts ``llama3``."""
    async with Loopback(models=["llama3:latest", "qwen:7b"]) as server:
        for name in ("llama3", "llama3:latest", "qwen:7b"):
            model = OpenAIModel(name, server.url)
            assert await model.check() == ("llama3:latest", "qwen:7b")
            await model.close()
        for name in ("qwen", "llama"):
            model = OpenAIModel(name, server.url)
            with pytest.raises(ModelError, match="not served"):
                await model.check()
            await model.close()


def test_vllm_is_new_enough_for_structured_outputs() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    (needed,) = map(Requirement, project["optional-dependencies"]["vllm"])
    assert "0.10.1" not in needed.specifier and "0.10.2" in needed.specifier


async def test_the_cost_of_an_adapter_with_a_price_is_counted() -> None:
    price = Price(prompt=1.0, completion=2.0)
    async with Loopback() as server:
        budget = Budget(prices={"agent_0": price, "another model": price})
        model = client(server.url, budget=budget)
        await model.generate([ask()])
        assert model.budget.cost == 0
        await model.generate([ask(adapter="agent_0")])
        assert budget.cost == pytest.approx((11 * 1.0 + 7 * 2.0) / 1e6)
        await model.close()


# -- votes ---------------------------------------------------------------------------------------


def test_a_mistyped_scope_of_a_vote_is_an_error() -> None:
    with pytest.raises(ConfigError, match="scope"):
        MajorityVote(scope="every")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="every"):
        CollabGraph.collaborative(2, 1, model=ScriptedModel([RIGHT]), vote_scope="every")  # type: ignore[arg-type]


# -- doctor --------------------------------------------------------------------------------------


def endpoint_check(done: Any) -> dict[str, Any]:
    (found,) = [check for check in done.json["checks"] if check["area"] == "endpoint"]
    return dict(found)


def test_doctor_asks_an_endpoint_before_it_is_ok(shell: Shell) -> None:
    seen: list[Mapping[str, Any]] = []
    with StandIn("tiny", reply=lambda body: seen.append(body) or RIGHT) as server:
        for named in ("", " --model tiny"):
            done = shell(f"doctor --json --url {server.address}/v1{named}")
            assert endpoint_check(done)["state"] == "ok"
    assert [set(body) for body in seen] == [{"model", "messages"}] * 2  # as agents ask


async def test_doctor_reports_an_endpoint_that_refuses_every_request(shell: Shell) -> None:
    refusing = failing(400, "this model is for embeddings")
    async with Loopback(lambda body: refusing, models=["tiny"]) as server:
        done = await asyncio.to_thread(shell, f"doctor --json --url {server.url} --model tiny")
    found = endpoint_check(done)
    assert done.code == 1 and found["state"] == "missing" and "for embeddings" in found["do"]


async def test_doctor_does_not_guess_which_of_several_models_is_meant(shell: Shell) -> None:
    async with Loopback(models=["one", "two"]) as server:
        done = await asyncio.to_thread(shell, f"doctor --json --url {server.url}")
    found = endpoint_check(done)
    assert found["state"] == "missing" and "--model" in found["do"] and not server.requests
