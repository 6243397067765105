"""The LLM critic reads what models really write, and never trusts it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from swarm_ui.action import Action
from swarm_ui.credit import Credit, Judge
from swarm_ui.errors import BudgetExceeded, ModelError, ModelUnavailable
from swarm_ui.message import Message
from swarm_ui.model import Completion, Request
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.optim.credit.critic import credit_of
from swarm_ui.optim.credit.llm import LLMCritic, read_verdict
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

AGENTS = ("agent_0", "agent_1")
SAVE = Action(action_type="click", target="Save", index=1)
SCREEN = Observation(
    goal="Save the note",
    elements=(
        Element(index=0, role="button", text="Cancel"),
        Element(index=1, role="button", text="Save"),
    ),
    history=(Past(action=SAVE, role="button", label="New"),),
)


def said(agent: str, round: int, content: str = "Reason: x", error: str | None = None) -> Message:
    action = SAVE if error is None else None
    ident = f"{agent}:{round}"
    return Message(id=ident, sender=agent, round=round, content=content, action=action, error=error)


def trace(*messages: Message, rounds: int = 1) -> Trace:
    heard = messages or (said("agent_0", 0), said("agent_1", 0, "Reason: y"))
    calls = tuple(Call(message=message) for message in heard)
    return Trace(run="r", seed=0, observation=SCREEN, agents=AGENTS, rounds=rounds, calls=calls)


def episode(*traces: Trace) -> Episode:
    steps = tuple(StepRecord(trace=each) for each in traces)
    return Episode(environment="e", task="t", seed=0, steps=steps, success=True)


async def credit_by(critic: LLMCritic, of: Trace) -> Credit:
    (found,) = await credit_of(critic, [episode(of)])
    return found


def verdict(**scores: object) -> str:
    return f"Rationale: as it is.\n{json.dumps(scores)}"


async def test_one_call_a_round_sees_everything_and_fills_the_table() -> None:
    messages = [said(a, r, f"Reason: {a} in {r}") for r in range(3) for a in AGENTS]
    model = ScriptedModel([verdict(agent_0=r / 2, agent_1=1) for r in range(3)])
    critic = LLMCritic(model)
    table = await credit_by(critic, trace(*messages, rounds=3))
    assert table.values[0] == ((0.0, 1.0), (None, 1.0), (1.0, 1.0))
    assert table.source == critic.name == "LLM critic (scripted)"
    assert table.rationale[0] == ("as it is.",) * 3
    assert len(model.requests) == 3
    for round, request in enumerate(model.requests):
        assert request.chat is not None
        text = request.chat[-1].content
        for part in ("Save the note", 'the button "New"', '1: button "Save"', SAVE.json()):
            assert part in text
        for agent in AGENTS:
            assert f"{agent} in {round}" in text
        assert f"in {round + 1}" not in text


async def test_after_two_unreadable_verdicts_the_round_is_unscored_and_not_kept() -> None:
    model = ScriptedModel(["no", "still no", verdict(agent_0=1, agent_1=1)])
    critic = LLMCritic(model)
    table = await credit_by(critic, trace())
    assert table.values[0] == ((None, None),)
    assert "still no" in table.rationale[0][0]
    assert model.requests[1].chat is not None and model.requests[1].chat[-2].content == "no"
    assert (await credit_by(critic, trace())).values[0] == ((1.0, 1.0),)


async def test_equal_questions_asked_at_the_same_time_are_asked_once() -> None:
    class Slow(ScriptedModel):
        async def generate(self, requests: Sequence[Request]) -> list[Completion]:
            await asyncio.sleep(0)
            return await super().generate(requests)

    model = Slow([ModelError("down"), verdict(agent_0=1, agent_1=0)])
    critic = LLMCritic(model)
    first, *others = await asyncio.gather(
        *[credit_by(critic, trace()) for _ in range(5)], return_exceptions=True
    )
    assert isinstance(first, ModelError)  # whoever waited asks in its place
    assert all(isinstance(t, Credit) and t.values[0] == ((1.0, 0.0),) for t in others)
    assert len(model.requests) == 2


async def test_a_failed_agent_is_unscored_and_an_unparsable_reply_is_judged() -> None:
    failed = said("agent_0", 0, content="", error="timed out")
    garbled = said("agent_1", 0, content="press the moon", error="no JSON object in the reply")
    model = ScriptedModel([verdict(agent_0=1, agent_1=0)])
    table = await credit_by(LLMCritic(model), trace(failed, garbled))
    assert table.values[0] == ((None, 0.0),)


async def test_a_model_that_fails_is_an_error_and_not_a_zero() -> None:
    with pytest.raises(ModelError, match="down"):
        await credit_by(LLMCritic(ScriptedModel([ModelError("down")])), trace())
    other = trace(said("agent_0", 0, "Reason: other"), said("agent_1", 0))
    for error in (ModelUnavailable("away"), BudgetExceeded("spent")):
        replies = [verdict(agent_0=1, agent_1=0), error]
        with pytest.raises(type(error)):
            await LLMCritic(ScriptedModel(replies))([episode(trace(), other)])
    model = ScriptedModel([verdict(agent_0=1, agent_1=0), ModelError("too long")])
    (found,) = await credit_of(LLMCritic(model), [episode(trace(), other)])
    assert found.values == (((1.0, 0.0),), ((None, None),))
    assert "too long" in found.rationale[1][0]


async def test_single_actions_are_judged_in_one_call() -> None:
    model = ScriptedModel([verdict(agent_0=0.9, agent_1=0.2)])
    critic = LLMCritic(model)
    assert isinstance(critic, Judge)
    other = Action(action_type="navigate_back")
    assert await critic.grade(SCREEN, [SAVE, other], None) == [1.0, 0.0]
    assert await critic.grade(SCREEN, [SAVE, other], object()) == [1.0, 0.0]  # no state is needed
    assert await critic.grade(SCREEN, [], None) == []
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        ('x {"agent_0": 1, "agent_1": 0.25} y', (1.0, 0.25)),
        ('```json\n{"agent_0": "0.5", "agent_1": 1.0}\n```', (0.5, 1.0)),
        ('{"agent_0": {"score": 1}, "agent_1": 1}', (None, 1.0)),
        ('{"Agent 0": 1, "AGENT-1": 0}', (1.0, 0.0)),
        ('{"agent_0": 1}', (1.0, None)),
        ('{"agent_0": 7, "agent_1": -0.1}', (None, None)),
        ('{"agent_0": NaN, "agent_1": Infinity}', (None, None)),
        ('{"agent_0": 0, "agent_1": 0} no: {"agent_0": 1, "agent_1": 1}', (1.0, 1.0)),
        ('{"agent_0": 1, "agent_1": 0} and {"note": 3}', (1.0, 0.0)),
        ("", (None, None)),
    ],
)
def test_reads_what_models_write(reply: str, scores: tuple[float | None, ...]) -> None:
    assert tuple(read_verdict(reply, AGENTS).scores.values()) == scores
