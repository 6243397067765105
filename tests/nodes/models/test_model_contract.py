"""What every model keeps: scripted, behind an endpoint, and in this process, with any codec."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tiny_vision
import torch
from local_models import disturb, newest, untrained, with_adapters
from loopback import Loopback, Reply, failing
from loopback_client import no_proxy  # noqa: F401  (a fixture)
from tiny_causal import causal, screen

from swarm_ui import CollabGraph, ModelError, Request
from swarm_ui.model import (
    ChatModel,
    ChoosingModel,
    Decision,
    ScoringModel,
    StreamingModel,
    VersionedModel,
    close_model,
)
from swarm_ui.nodes import LocalModel, OpenAIModel, ScriptedModel, VisionModel

LABELS = ("Save", "Back", "Send", "Open", "Save all of the files", "Go")
NAMES = (None, "agent_0", "agent_1")
SLOW = pytest.param("mistral", marks=pytest.mark.slow)
IN_PROCESS = ("tiny", "llama", "gpt2", SLOW, "llava")


def asked(adapter: str | None = None, **settings: Any) -> list[Request]:
    settings = {"max_tokens": 6} | settings
    return [
        Request(decision=screen(label), adapter=adapter, seed=k, **settings)
        for k, label in enumerate(LABELS)
    ]


def mixed() -> list[Request]:
    """Requests of many lengths to several adapters, greedy and sampled."""
    return [
        msgspec.structs.replace(one, adapter=NAMES[k % 3], temperature=(0.0, 0.9)[k // 3 % 2])
        for k, one in enumerate(asked())
    ]


def told(body: dict[str, Any]) -> Reply:
    if "agent_9" in body["model"]:
        return failing(404, "no such model")
    goal = body["messages"][-1]["content"].partition("press ")[2][:4]
    return Reply(f"press {goal} now", delay=0.02 if goal == "Save" else 0.0)


def bare(kind: str) -> Any:
    """A model in this process, without adapters."""
    if kind == "tiny":
        return untrained()
    if kind in tiny_vision.KINDS:
        reader = tiny_vision.processor(kind)
        return VisionModel(tiny_vision.network(kind, reader), reader, name=kind)
    return causal(kind)


def in_process(kind: str) -> Any:
    """A model in this process with two adapters that differ."""
    if kind == "tiny":
        return with_adapters(2)
    made = bare(kind)
    for k in range(2):
        made.add_adapter(f"agent_{k}", rank=4, alpha=16)
        disturb(made, f"agent_{k}", k, 0.2)
    return made


@pytest.fixture(params=["scripted", "endpoint", *IN_PROCESS])
async def model(request: pytest.FixtureRequest) -> AsyncIterator[ChatModel]:
    if request.param == "scripted":
        yield ScriptedModel(lambda request: f"{request.seed} said {request.adapter}")
        return
    if request.param == "endpoint":
        async with Loopback(told) as server:
            made = OpenAIModel("tiny", server.url)
            yield made
            await made.close()
        return
    here = in_process(request.param)
    yield here
    await close_model(here)


@pytest.fixture(params=IN_PROCESS)
def local(request: pytest.FixtureRequest) -> Any:
    return in_process(request.param)


async def test_a_batch_is_answered_as_each_request_alone_and_in_order(model: ChatModel) -> None:
    assert isinstance(model, ChatModel) and model.name
    batch = await model.generate(mixed())
    alone = [done for one in mixed() for done in await model.generate([one])]
    at_once = await asyncio.gather(*(model.generate([one]) for one in mixed()))
    for one, other, third in zip(batch, alone, at_once, strict=True):
        assert one.text == other.text == third[0].text
        assert one.logprob == pytest.approx(other.logprob, abs=1e-3)
        assert (one.prompt, one.usage, one.adapter) == (other.prompt, other.usage, other.adapter)
    assert await model.generate([]) == []


async def test_a_completion_has_the_prompt_the_model_and_what_was_used(model: ChatModel) -> None:
    batch = await model.generate(asked())
    for done, label in zip(batch, LABELS, strict=True):
        assert f"press {label}".lower() in done.prompt.lower() and done.model
        assert done.usage.prompt_tokens > 0 and done.usage.completion_tokens > 0
        assert done.logprob is None or done.logprob <= 0.0


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
    disturb(model, "agent_0", 7)  # type: ignore[arg-type]
    again, newer = await model.generate(asked(version)), await model.generate(asked("agent_0"))
    assert [done.text for done in again] == [done.text for done in batch]
    assert {done.adapter for done in newer}.isdisjoint({version})
    model.release(version)
    with pytest.raises(ModelError):
        model.release(version)
    for unknown in (version, "agent_9"):
        with pytest.raises(ModelError):
            await model.generate(asked(unknown))


async def test_one_failure_is_the_failure_of_the_batch_and_of_no_other(model: ChatModel) -> None:
    if isinstance(model, ScriptedModel):
        answers = model._script
        model._script = lambda one: ModelError("no") if one.adapter else answers(one)
    other = asyncio.ensure_future(model.generate(asked()))
    with pytest.raises(ModelError):
        await model.generate([*asked(), *asked("agent_9")])
    assert len(await other) == len(LABELS)


async def test_a_team_plays_with_it_and_its_trace_holds_all_that_it_said(model: ChatModel) -> None:
    team = CollabGraph.collaborative(agents=2, rounds=2, model=model, max_tokens=6)
    trace = await team.run(screen().observation, seed=1)
    calls = [call for call in trace.calls if call.prompt]
    assert len(calls) == 4 and all(call.usage.prompt_tokens for call in calls)


# -- models in this process -------------------------------------------------------------------


async def test_a_seed_decides_a_sample(local: Any) -> None:
    warm = asked(temperature=1.5, max_tokens=20)
    texts = [done.text for done in await local.generate(warm)]
    assert texts == [done.text for done in await local.generate(warm)]
    others = [msgspec.structs.replace(one, seed=one.seed + 1000) for one in warm]
    assert texts != [done.text for done in await local.generate(others)]


def by_hand(model: Any, decision: Decision, reply: str, adapter: str | None) -> float:
    """The log-probability of a reply, from the logits of one forward with peft's own adapter."""
    prompt, said = model.encode(decision, reply, adapter=adapter)
    ids = torch.tensor([prompt + said])
    with model.activate(adapter) if adapter else model.routed([None]), torch.no_grad():
        model.module.eval()
        logits = model.network(input_ids=ids, use_cache=False).logits[0].log_softmax(-1)
        whole, count = model.forward_logprobs(
            ids, torch.ones_like(ids), torch.arange(ids.shape[1])[None] >= len(prompt)
        )
    value = sum(float(logits[len(prompt) - 1 + k, token]) for k, token in enumerate(said))
    assert count.tolist() == [len(said)] and float(whole.sum()) == pytest.approx(value, abs=1e-3)
    return value


async def test_scores_are_those_of_one_forward_of_each_reply(local: Any) -> None:
    assert isinstance(local, ScoringModel)
    replies = [
        f'{{"action_type":"click","target":"{label}","index":0}}' if k % 2 else
        '{"action_type":"navigate_back"}'
        for k, label in enumerate(LABELS)
    ]  # fmt: skip
    batch = await local.score(mixed(), replies)
    for one, reply, score in zip(mixed(), replies, batch, strict=True):
        assert one.decision is not None
        assert score == pytest.approx(by_hand(local, one.decision, reply, one.adapter), abs=1e-3)
    assert await local.score(asked()[:1], ["no action"]) == [-math.inf]


async def test_a_reply_has_the_logprob_of_its_tokens(local: Any) -> None:
    done = await local.generate(asked("agent_0", max_tokens=60))
    for one, said in zip(asked(), done, strict=True):
        assert one.decision is not None
        if not said.sampled:
            wanted = by_hand(local, one.decision, said.text, "agent_0")
            assert said.logprob == pytest.approx(wanted, abs=1e-3)


async def test_questions_together_have_the_answers_of_questions_alone(local: Any) -> None:
    if not isinstance(local, ChoosingModel):
        pytest.skip("it answers no questions")
    options = ("yes", "no", "button")
    together = await local.probabilities(mixed(), options)
    for one, found in zip(mixed(), together, strict=True):
        local.forget_prompts()
        [alone] = await local.probabilities([one], options)
        assert found == pytest.approx(alone, abs=1e-4) and sum(found) == pytest.approx(1.0)
        ids = torch.tensor([local.prompt(one).ids])  # type: ignore[attr-defined]
        firsts = [local.codec.first_token(option) for option in options]  # type: ignore[attr-defined]
        version = None if one.adapter is None else newest(local, one.adapter)  # type: ignore[arg-type]
        with local.routed([version]) as network, torch.no_grad():  # type: ignore[attr-defined]
            logits = network(input_ids=ids, use_cache=False).logits[0, -1, firsts]
        assert found == pytest.approx(logits.double().softmax(0).tolist(), abs=1e-4)


async def test_what_is_saved_answers_as_before(local: Any, tmp_path: Path) -> None:
    before = await local.generate(asked("agent_1"))
    local.save(tmp_path / "model")
    local.save_adapters(tmp_path / "adapters")
    version = local.lease("agent_1")
    local.save_version(version, tmp_path / "version")
    if isinstance(local, LocalModel):
        again: Any = LocalModel.load(tmp_path / "model")
    else:
        again = type(local).from_pretrained(tmp_path / "model")
    again.load_adapters(tmp_path / "adapters")
    assert again.versions == local.versions
    assert [d.text for d in await again.generate(asked("agent_1"))] == [d.text for d in before]
    again.load_version("agent_1@9", tmp_path / "version")
    assert [d.text for d in await again.generate(asked("agent_1@9"))] == [d.text for d in before]


async def test_an_update_reaches_the_next_request_and_not_the_base(local: Any) -> None:
    [request] = asked("agent_0")[:1]
    assert request.decision is not None
    reply = '{"action_type":"navigate_back"}'
    before = await local.score([request, *asked()[:1]], [reply] * 2)
    prompt, said = local.encode(request.decision, reply)
    ids = torch.tensor([prompt + said])
    mask = torch.arange(ids.shape[1])[None] >= len(prompt)
    optimizer = torch.optim.AdamW(local.adapter_parameters("agent_0"), lr=1e-2)
    for _ in range(4):
        optimizer.zero_grad()
        with local.activate("agent_0"):
            found, _ = local.forward_logprobs(ids, torch.ones_like(ids), mask)
            (-found.sum()).backward()
        optimizer.step()
    after = await local.score([request, *asked()[:1]], [reply] * 2)
    assert after[0] > before[0] and after[1] == pytest.approx(before[1], abs=1e-4)
