"""Models and limits in a real local Ray cluster: equal replies, restarts, shared budgets."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from local_ray import local_ray
from loopback import Loopback, Reply

pytest.importorskip("torch")

from local_models import asking, requests, untrained, with_adapters
from ray_callers import Caller, greeter, no_weights

from swarm_ui import CollabGraph
from swarm_ui.budget import Budget
from swarm_ui.errors import ConfigError, ModelUnavailable
from swarm_ui.model import ScoringModel
from swarm_ui.nodes import OpenAIModel, RateLimits, hold_model
from swarm_ui.nodes.models.acting import published
from swarm_ui.nodes.models.acting.published import ModelCopy

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


def saved(model: Any, version: str, folder: Path) -> Any:
    """Ray's reference to the files of a version."""
    import ray

    model.save_version(version, folder)
    return ray.put({path.name: path.read_bytes() for path in folder.iterdir()})


async def test_workers_get_the_replies_that_the_model_gives_in_process(
    callers: list[Any], tmp_path: Path
) -> None:
    local = with_adapters()
    files = {"agent_9@7": saved(local, "agent_2@0", tmp_path)}
    model = await hold_model(with_adapters, cpus=0.1)
    assert isinstance(model, ScoringModel)
    names = ["agent_0", "agent_1@0", None, "agent_9@7"]
    asked = [asking(name, requests(6)) for name in names]
    named = ModelCopy(model.place, model.name, True, {**(model.versions or {}), **files})
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
    await model.close()
    with pytest.raises(ModelUnavailable, match="does not answer"):
        await model.generate(asked[0])


async def test_a_model_that_is_killed_comes_back_with_its_adapters(
    callers: list[Any], tmp_path: Path
) -> None:
    local = with_adapters()
    files = {"agent_2@7": saved(local, "agent_2@0", tmp_path)}
    model = await hold_model(untrained, cpus=0.1, restarts=2)
    asked = asking("agent_2@7", requests(4))
    named = ModelCopy(model.place, model.name, True, files)
    first = await callers[0].generate.remote(named, asked)
    os.kill(await model.place.actor.ready.remote(), signal.SIGKILL)
    again = await callers[0].generate.remote(named, asked)
    assert [text for text, _, _ in again] == [text for text, _, _ in first]
    await model.close()


async def test_a_model_that_is_lost_for_good_is_unavailable_and_never_an_empty_reply(
    callers: list[Any],
) -> None:
    model = await hold_model(greeter, cpus=0.1, restarts=0)
    assert [text for text, *_ in await callers[0].generate.remote(model, requests(1))] == ["hi"]
    os.kill(await model.place.actor.ready.remote(), signal.SIGKILL)
    failure = await callers[1].fails.remote(model, requests(1))
    assert failure.kind == "unavailable" and "does not answer" in failure.message
    assert "\n" not in failure.message
    trace = await callers[2].decide.remote(CollabGraph.solo(model), "wait")
    assert trace.action is None and trace.calls[0].error.kind == "unavailable"
    await model.close()


async def test_the_errors_of_a_factory_and_of_a_cluster_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigError, match="no weights"):
        await hold_model(no_weights, cpus=0.1)
    with pytest.raises(ModelUnavailable, match=r"test_ray_model.*same code on every machine"):
        await hold_model(_not_on_the_machines, cpus=0.1)
    monkeypatch.setattr(published, "_PATIENCE", 2.0)
    with pytest.raises(ConfigError, match=r"room for .*'num_cpus': 99"):
        await hold_model(no_weights, cpus=99)


async def test_all_workers_together_make_exactly_the_calls_of_the_budget(
    callers: list[Any],
) -> None:
    async with Loopback(lambda body: Reply(delay=0.01)) as server:
        limits = {"budget": Budget(max_calls=50), "limits": RateLimits(requests=30)}
        model = await hold_model(partial(OpenAIModel, "tiny", server.url, **limits), cpus=0.1)
        counts = await asyncio.gather(*(c.spend.remote(model, 2) for c in callers))
        assert len(server.requests) == sum(counts) == 50
        assert all(counts)
        assert await model.place.used() == (50, 50 * 18)
        at = [seen.at for seen in server.requests]
        assert max(at) - min(at) > 0.95  # 30 in each second
        await model.close()


def _not_on_the_machines() -> Any:
    raise AssertionError("this module cannot be imported there")
