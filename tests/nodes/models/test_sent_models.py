"""What is sent of a team and its models to another process: settings, no weights and no secret."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from loopback import Loopback
from loopback_client import ask, no_proxy  # noqa: F401  (a fixture)

from swarm_ui.budget import Budget, Price
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.errors import (
    ConfigError,
)
from swarm_ui.nodes import OpenAIModel, RateLimits
from swarm_ui.rollout import GraphPolicy

SECRET = "sk-0123456789abcdef"


def sent(value: Any) -> Any:
    """The copy of a value in another process."""
    return pickle.loads(cloudpickle.dumps(value))


async def test_the_key_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Loopback() as server:
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        model = OpenAIModel("tiny", server.url)
        await model.generate([ask()])
        team = CollabGraph.collaborative(agents=2, rounds=1, model=model)
        message = cloudpickle.dumps([model, team, GraphPolicy(team)])
        assert SECRET.encode() not in message and b"0123456789" not in message
        await model.close()
        monkeypatch.setenv("OPENAI_API_KEY", "the-worker's-own")
        copy = pickle.loads(message)[0]
        await copy.generate([ask()])
        assert server.requests[-1].authorization == "Bearer the-worker's-own"
        await copy.close()


@pytest.mark.parametrize(
    "limited",
    [
        {"budget": Budget(max_calls=5)},
        {"budget": Budget(max_tokens=5)},
        {"budget": Budget(max_cost=1.0, prices={"tiny": Price(prompt=1, completion=1)})},
        {"limits": RateLimits(requests=5)},
    ],
    ids=lambda given: next(iter(given)),
)
def test_limits_that_each_copy_would_count_for_itself_are_not_sent(limited: Any) -> None:
    with pytest.raises(ConfigError, match="hold_model"):
        sent(OpenAIModel("tiny", "http://127.0.0.1:9/v1", **limited))


def test_weights_are_not_sent() -> None:
    pytest.importorskip("torch")
    from local_models import untrained
    from tiny_causal import text_model

    from swarm_ui.nodes import ActorModel

    text = text_model()
    acting = ActorModel(OpenAIModel("tiny", "http://127.0.0.1:9/v1"), text, Path("served"))
    for model in (untrained(), text, acting):
        team = CollabGraph.collaborative(agents=2, rounds=1, model=model)
        with pytest.raises(ConfigError, match=r"hold_model\(factory\)"):
            sent(team)
