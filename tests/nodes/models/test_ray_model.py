"""Models and limits in a real local Ray cluster: equal replies, restarts, shared budgets."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_ray import local_ray
from loopback import Loopback, Reply

pytest.importorskip("torch")

from local_models import asking, requests, untrained, with_adapters
from ray_callers import Caller, greeter, no_weights

from swarm_ui import CollabGraph, GraphPolicy
from swarm_ui.budget import Budget
from swarm_ui.errors import ConfigError, ModelUnavailable
from swarm_ui.nodes import OpenAIModel, RateLimits, hold_model, share_limits
from swarm_ui.nodes.models.acting import ray_model
from swarm_ui.nodes.models.acting.board import FolderBoard
from swarm_ui.nodes.models.acting.ray_model import RayScoringModel

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[Any]:
    with local_ray(cpus=16, accelerator=1) as found:
        yield found


@pytest.fixture(scope="module")
def callers() -> list[Any]:
    """Four processes."""
    import ray

    kind = ray.remote(Caller).options(num_cpus=0.1, max_concurrency=16)
    made = [kind.remote() for _ in range(4)]
    ray.get([caller.pid.remote() for caller in made])
    return made


async def test_workers_get_the_replies_that_the_model_gives_in_process(
    callers: list[Any], tmp_path: Path
) -> None:
    local = with_adapters()
    local.save_version("agent_2@0", tmp_path / "agent_9@7")
    model = await hold_model(with_adapters, replicas=2, cpus=0.1, resources={"accelerator": 0.5})
    assert isinstance(model, RayScoringModel)
    names = ["agent_0", "agent_1@0", None, "agent_9@7"]
    asked = [asking(name, requests(6)) for name in names]
    versions = {**(model.current or {}), "agent_9": "agent_9@7"}
    named = model.with_versions(versions, FolderBoard(tmp_path))
    there = await asyncio.gather(
        *(c.generate.remote(named, some) for c, some in zip(callers, asked, strict=True))
    )
    twin = asking("agent_2@0", requests(6))  # the weights of agent_9@7
    expected = ("agent_0@0", "agent_1@0", None, "agent_9@7")
    for version, some, got in zip(expected, [*asked[:3], twin], there, strict=True):
        here = await local.generate(some)
        assert [text for text, _, _ in got] == [reply.text for reply in here]
        assert [p for *_, p in got] == pytest.approx([reply.logprob for reply in here], abs=1e-3)
        assert {adapter for _, adapter, _ in got} == {version}
    replies = [reply.text for reply in await local.generate(asked[1])]
    scores = await local.score(asked[1], replies)
    assert await model.score(asked[1], replies) == pytest.approx(scores, abs=1e-3)
    loaded = await model.versions()
    assert {version for replica in loaded for version in replica} == {"agent_9@7"}
    await model.close()
    with pytest.raises(ModelUnavailable, match="lost or closed"):
        await model.generate(asked[0])


async def test_a_model_that_is_killed_comes_back_with_its_adapters(
    callers: list[Any], tmp_path: Path
) -> None:
    local = with_adapters()
    local.save_version("agent_2@0", tmp_path / "agent_2@7")
    model = await hold_model(untrained, cpus=0.1, restarts=2)
    asked = asking("agent_2@7", requests(4))
    named = model.with_versions({"agent_2": "agent_2@7"}, FolderBoard(tmp_path))
    first = await callers[0].generate.remote(named, asked)
    os.kill(await model._actors[0].ready.remote(), signal.SIGKILL)
    again = await callers[0].generate.remote(named, asked)
    assert [text for text, _, _ in again] == [text for text, _, _ in first]
    await model.close()


async def test_a_model_that_is_lost_for_good_is_unavailable_and_never_an_empty_reply(
    callers: list[Any],
) -> None:
    model = await hold_model(greeter, replicas=2, cpus=0.1, restarts=0)
    pids = await asyncio.gather(*(actor.ready.remote() for actor in model._actors))
    os.kill(pids[0], signal.SIGKILL)
    assert [text for text, *_ in await callers[0].generate.remote(model, requests(1))] == ["hi"]
    os.kill(pids[1], signal.SIGKILL)
    failure = await callers[1].fails.remote(model, requests(1))
    assert failure.kind == "unavailable" and "all of these actors are lost" in failure.message
    assert "\n" not in failure.message
    trace = await callers[2].decide.remote(CollabGraph.solo(model), "wait")
    assert trace.action is None and trace.calls[0].error.kind == "unavailable"
    await model.close()


async def test_the_errors_of_a_factory_and_of_a_cluster_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigError, match="no weights"):
        await hold_model(no_weights, cpus=0.1)
    with pytest.raises(ConfigError, match=r"same code installed on every.*test_ray_model"):
        await hold_model(_not_on_the_machines, cpus=0.1)
    monkeypatch.setattr(ray_model, "_PATIENCE", 2.0)
    with pytest.raises(ConfigError, match=r"2 actors of 0.1 CPU, 0 GPU and \{'accelerator': 0.7\}"):
        await hold_model(no_weights, replicas=2, cpus=0.1, resources={"accelerator": 0.7})


async def test_all_workers_together_make_exactly_the_calls_of_the_budget(
    callers: list[Any],
) -> None:
    async with Loopback(lambda body: Reply(delay=0.01)) as server:
        model = OpenAIModel("tiny", server.url, budget=Budget(max_calls=50))
        limits = share_limits(model)
        team = CollabGraph.solo(model)
        counts = await asyncio.gather(
            *(c.spend.remote(GraphPolicy(team)._graph.nodes["agent_0"].model, 2) for c in callers)  # type: ignore[union-attr]
        )
        assert len(server.requests) == sum(counts) == 50
        assert all(counts)
        (totals,) = await limits.totals()
        assert (totals.calls, totals.tokens) == (50, 50 * 18)
        await limits.close()
        assert (model.budget.calls, model.budget.tokens) == (50, 50 * 18)
        failure = await callers[0].fails.remote(model, requests(1))
        assert failure.kind == "unavailable"
        await model.close()


async def test_a_worker_that_is_killed_does_not_break_the_budget(callers: list[Any]) -> None:
    import ray

    mortal = ray.remote(Caller).options(num_cpus=0.1, max_concurrency=16).remote()
    pid = await mortal.pid.remote()
    async with Loopback(lambda body: Reply(delay=0.02)) as server:
        model = OpenAIModel("tiny", server.url, budget=Budget(max_calls=60))
        limits = share_limits(model)
        dying = mortal.spend.remote(model, 2)
        playing = [asyncio.ensure_future(_result(c.spend.remote(model, 2))) for c in callers[:3]]
        while len(server.requests) < 20:
            await asyncio.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        counts = await asyncio.gather(*playing)
        with pytest.raises(ray.exceptions.RayActorError):
            await dying
        (totals,) = await limits.totals()
        assert totals.calls == 60  # what the dead worker held counts
        assert 60 - 32 <= len(server.requests) <= 60
        assert sum(counts) <= len(server.requests)
        await limits.close()
        await model.close()


async def test_requests_per_second_are_limited_over_all_workers(callers: list[Any]) -> None:
    async with Loopback() as server:
        limits = RateLimits(requests=10, period=1.0)
        model = OpenAIModel("tiny", server.url, budget=Budget(max_calls=40), limits=limits)
        shared, began = share_limits(model), time.monotonic()
        await asyncio.gather(*(c.spend.remote(model, 2) for c in callers))
        at = sorted(seen.at - began for seen in server.requests)
        assert len(at) == 40
        # 10 in each second. A call may travel for any time, so no later limit holds.
        assert all(moment > k // 10 - 0.05 for k, moment in enumerate(at))
        await shared.close()
        await model.close()


async def _result(ref: Any) -> Any:
    return await ref


def _not_on_the_machines() -> Any:
    raise AssertionError("this module cannot be imported there")
