"""The model of a run on a cluster: asked by the workers, held by an actor, or loaded by each."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from local_ray import local_ray
from loopback import Loopback
from loopback_client import ask, no_proxy  # noqa: F401  (a fixture)

from swarm_ui.errors import BudgetExceeded, ConfigError
from swarm_ui.experiment.config import Config, Ray
from swarm_ui.experiment.place import has_model_actor, open_shared_model


def config(name: str, actor: bool | None = None, **model: Any) -> Config:
    return Config.model_validate(
        {"model": {"name": name, **model}, "place": Ray(model_actor=actor)}
    )


@pytest.fixture
def script(tmp_path: Path) -> str:
    file = tmp_path / "replies.txt"
    file.write_text("one\ntwo\nthree\n", encoding="utf-8")
    return f"script:{file}"


def test_who_holds_the_model(script: str) -> None:
    url = "http://127.0.0.1:9/v1"
    assert not has_model_actor(config("base"))
    assert has_model_actor(config("base", actor=True))
    assert has_model_actor(config(script))
    assert not has_model_actor(config(script, actor=False))
    assert not has_model_actor(config("tiny", url=url))
    assert not has_model_actor(config("tiny", url=url, actor=True))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with local_ray(cpus=2) as found:
        yield found


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("cluster")
async def test_on_a_cluster(script: str) -> None:
    # A script is one for all workers, in the order of the requests.
    async with open_shared_model(config(script)) as model:
        copies = [pickle.loads(pickle.dumps(model)) for _ in range(3)]
        replies = [(await copy.generate([ask()]))[0].text for copy in copies]
        assert replies == ["one", "two", "three"]
    with pytest.raises(ConfigError, match="cannot read the script"):
        async with open_shared_model(config("script:nowhere.txt")):
            raise AssertionError("it opened")
    # A budget is one for all workers.
    async with Loopback() as server:
        section = config("tiny", url=server.url, max_calls=7)
        async with open_shared_model(section) as model:
            copies = [pickle.loads(cloudpickle.dumps(model)) for _ in range(3)]
            counts = await asyncio.gather(*map(_spend, copies))
        assert sum(counts) == len(server.requests) == 7


async def _spend(model: Any) -> int:
    done = 0
    try:
        while True:
            await model.generate([ask()])
            done += 1
    except BudgetExceeded:
        await model.close()
        return done
