"""Versions of models in use, their names and prices, and ``doctor``."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest
from cli_world import Shell
from local_models import untrained, with_adapters
from loopback import Loopback, failing
from loopback_client import ask, no_proxy  # noqa: F401

from swarm_ui import Budget, ModelError, Price
from swarm_ui.nodes import OpenAIModel, PublishedModel


def client(url: str, **settings: Any) -> OpenAIModel:
    return OpenAIModel("tiny", url, **settings)


# -- versions and caches -------------------------------------------------------------------------


async def test_a_published_model_in_use_outlives_newer_ones(tmp_path: Path) -> None:
    learner = with_adapters(1)
    copies = []
    for _ in range(6):
        model = PublishedModel(learner, untrained)
        model.publish()
        copies.append(pickle.loads(pickle.dumps(model)))
        copies[-1].lease("agent_0")
    for copy in copies:
        copy.release("agent_0@0")
        assert pickle.loads(pickle.dumps(copy)).lease("agent_0") == "agent_0@0"


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


# -- doctor --------------------------------------------------------------------------------------


def endpoint_check(done: Any) -> dict[str, Any]:
    (found,) = [check for check in done.json["checks"] if check["area"] == "endpoint"]
    return dict(found)


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
