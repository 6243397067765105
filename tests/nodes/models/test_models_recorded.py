"""The scripted model on recorded traces, and its streams."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import msgspec
import pytest
from graph_fakes import SCREEN, HashModel, timeless
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui import CollabGraph
from swarm_ui.errors import ModelError
from swarm_ui.message import Message, Usage
from swarm_ui.model import (
    Completion,
    Decision,
    Generation,
    Request,
)
from swarm_ui.nodes import ScriptedModel
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace


def recorded_team(model: object) -> CollabGraph:
    return CollabGraph.collaborative(
        agents=3,
        rounds=2,
        model=model,  # type: ignore[arg-type]
        views="shuffle",
        adapters=["a", "b", "c"],
    )


def shuffled_ends(model: ScriptedModel, seed: int) -> ScriptedModel:
    """The same model, whose answers come back in another order than they were asked for."""
    rng, generate = random.Random(seed), model.generate

    async def late(requests: Sequence[Request]) -> list[Completion]:
        for _ in range(rng.randrange(6)):
            await asyncio.sleep(0)
        return await generate(requests)

    model.generate = late  # type: ignore[method-assign]
    return model


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(0, 3))
def test_a_run_on_its_own_trace_is_the_same_run_whatever_order_replies_come_in(
    order: int, seed: int
) -> None:
    first = recorded_team(HashModel()).run_sync(SCREEN, seed=seed, run_id="r")
    again = recorded_team(shuffled_ends(ScriptedModel.from_trace(first), order))
    assert timeless(again.run_sync(SCREEN, seed=seed, run_id="r")) == timeless(first)


def test_one_model_replays_a_whole_episode_and_any_number_of_runs() -> None:
    team = recorded_team(HashModel())
    traces = [team.run_sync(SCREEN, seed=k, run_id=f"run {k}") for k in range(3)]
    steps = tuple(StepRecord(trace=trace) for trace in traces)
    episode = Episode(environment="e", task="t", seed=0, steps=steps)
    decoded = msgspec.json.decode(msgspec.json.encode(episode), type=Episode)
    for recorded in (episode, decoded, traces, iter(traces)):
        replayed = recorded_team(ScriptedModel.from_trace(recorded))
        for k in (2, 0, 1, 0):
            assert timeless(replayed.run_sync(SCREEN, seed=k, run_id=f"run {k}")) == timeless(
                traces[k]
            )


def trace_of(*calls: Call, **kwargs: object) -> Trace:
    given: dict[str, object] = {"run": "r1", "seed": 0, "rounds": 1, "agents": ("a",)}
    return Trace(observation=SCREEN, calls=calls, **(given | kwargs))  # type: ignore[arg-type]


def call(reply: str, **kwargs: object) -> Call:
    """``kwargs``: of the call, or of its completion."""
    id = str(kwargs.pop("id", "a:0"))
    said = Message(id=id, sender=id[0], round=int(id[2:]), content=reply)
    own = {name: kwargs.pop(name) for name in Call.__struct_fields__ if name in kwargs}
    made = Generation(**({"prompt": "[user]\nhi"} | kwargs))  # type: ignore[arg-type]
    return Call(message=said, completion=made, **own)  # type: ignore[arg-type]


def asks(**kwargs: object) -> Request:
    return Request(decision=Decision(observation=SCREEN), **kwargs)  # type: ignore[arg-type]


async def test_gives_back_all_that_was_recorded_of_a_call() -> None:
    usage = Usage(prompt_tokens=5, completion_tokens=2)
    said = call(
        "yes",
        adapter="agent_2@7",
        model="large",
        seed=3,
        temperature=0.5,
        logprob=-1.5,
        usage=usage,
    )
    model = ScriptedModel.from_trace(trace_of(said))
    for adapter in ("agent_2", "agent_2@7"):
        (completion,) = await model.generate([asks(adapter=adapter, seed=3, temperature=0.5)])
        assert completion == Completion(
            text="yes",
            prompt="[user]\nhi",
            usage=usage,
            logprob=-1.5,
            model="large",
            adapter="agent_2@7",
        )
    with pytest.raises(ModelError):
        await model.generate([asks(adapter="agent_2@8", seed=3, temperature=0.5)])
