"""What every model keeps: scripted, behind an endpoint, and in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from local_models import with_adapters
from loopback import Loopback, Reply, failing
from loopback_client import no_proxy  # noqa: F401  (a fixture)
from tiny_causal import causal, screen

from swarm_ui import CollabGraph, ModelError, Request
from swarm_ui.model import (
    ChatModel,
    ScoringModel,
    StreamingModel,
    VersionedModel,
    close_model,
)
from swarm_ui.nodes import OpenAIModel, ScriptedModel

LABELS = ("Save", "Back", "Send", "Open")


def asked(adapter: str | None = None) -> list[Request]:
    return [
        Request(decision=screen(label), adapter=adapter, seed=k, max_tokens=6)
        for k, label in enumerate(LABELS)
    ]


def told(body: dict[str, Any]) -> Reply:
    if "agent_9" in body["model"]:
        return failing(404, "no such model")
    goal = body["messages"][-1]["content"].partition("press ")[2][:4]
    return Reply(f"press {goal} now", delay=0.02 if goal == "Save" else 0.0)


def with_one_adapter() -> ChatModel:
    made = causal("llama")
    made.add_adapter("agent_0", rank=2)
    return made


@pytest.fixture(params=["scripted", "endpoint", "tiny", "causal"])
async def model(request: pytest.FixtureRequest) -> AsyncIterator[ChatModel]:
    if request.param == "scripted":
        yield ScriptedModel(lambda request: f"{request.seed} said {request.adapter}")
        return
    if request.param == "endpoint":
        async with Loopback(told) as server:
            names = {"agent_0": "agent_0@3"}
            made = OpenAIModel("tiny", server.url, adapter_names=names)
            yield made
            await made.close()
        return
    made_here = with_adapters(1) if request.param == "tiny" else with_one_adapter()
    yield made_here
    await close_model(made_here)


async def test_a_batch_is_answered_as_each_request_alone_and_in_order(model: ChatModel) -> None:
    assert isinstance(model, ChatModel) and model.name
    batch = await model.generate(asked())
    alone = [done for one in asked() for done in await model.generate([one])]
    at_once = await asyncio.gather(*(model.generate([one]) for one in asked()))
    texts = [done.text for done in batch]
    assert texts == [done.text for done in alone] == [done.text for (done,) in at_once]
    assert await model.generate([]) == []


async def test_a_completion_has_the_prompt_the_model_and_what_was_used(model: ChatModel) -> None:
    batch = await model.generate(asked())
    for done, label in zip(batch, LABELS, strict=True):
        assert f"press {label}".lower() in done.prompt.lower() and done.model
        assert done.usage.prompt_tokens > 0 and done.usage.completion_tokens > 0
        assert done.logprob is None or done.logprob <= 0.0
    assert [done.prompt for done in batch] == [
        done.prompt for one in asked() for done in await model.generate([one])
    ]


async def test_a_stream_is_the_whole_reply_in_pieces(model: ChatModel) -> None:
    if not isinstance(model, StreamingModel):
        pytest.skip("it does not stream")
    for one in asked():
        async with aclosing(model.stream(one)) as pieces:  # type: ignore[type-var]
            *texts, last = [piece async for piece in pieces]
        (whole,) = await model.generate([one])
        assert last == whole and "".join(map(str, texts)) == whole.text and len(texts) > 1


async def test_an_adapter_answers_in_the_version_that_was_leased(model: ChatModel) -> None:
    batch = await model.generate(asked("agent_0"))
    assert all((done.adapter or "").startswith("agent_0") for done in batch)
    if not isinstance(model, VersionedModel):
        return
    version = model.lease("agent_0")
    assert {done.adapter for done in batch} == {version}
    again = await model.generate(asked(version))
    assert [done.text for done in again] == [done.text for done in batch]
    model.release(version)
    with pytest.raises(ModelError):
        model.release(version)
    with pytest.raises(ModelError):
        await model.generate(asked("agent_9"))


async def test_one_failure_is_the_failure_of_the_batch_and_of_no_other(model: ChatModel) -> None:
    if isinstance(model, ScriptedModel):
        answers = model._script
        model._script = lambda one: ModelError("no") if one.adapter else answers(one)
    other = asyncio.ensure_future(model.generate(asked()))
    with pytest.raises(ModelError):
        await model.generate([*asked(), *asked("agent_9")])
    assert len(await other) == len(LABELS)


async def test_scores_are_those_of_each_reply_alone(model: ChatModel) -> None:
    if not isinstance(model, ScoringModel):
        pytest.skip("it does not score")
    replies = ['{"action_type":"click","index":0}', '{"action_type":"wait"}'] * 2
    batch = await model.score(asked(), replies)
    pairs = zip(asked(), replies, strict=True)
    alone = [score for one, reply in pairs for score in await model.score([one], [reply])]
    assert batch == pytest.approx(alone, abs=1e-3) and all(score <= 0.0 for score in batch)


async def test_a_team_plays_with_it_and_its_trace_holds_all_that_it_said(model: ChatModel) -> None:
    team = CollabGraph.collaborative(agents=2, rounds=2, model=model, max_tokens=6)
    trace = await team.run(screen().observation, seed=1)
    calls = [call for call in trace.calls if call.prompt]
    assert len(calls) == 4 and all(call.usage.prompt_tokens for call in calls)
    recorded = ScriptedModel.from_trace(trace)
    again = await CollabGraph.collaborative(agents=2, rounds=2, model=recorded, max_tokens=6).run(
        screen().observation, seed=1
    )
    assert [m.content for m in again.messages] == [m.content for m in trace.messages]
