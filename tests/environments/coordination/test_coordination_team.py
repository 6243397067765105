"""Teams on a network: who hears whom and when, scripted bounds, and unreliable agents."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.support.coordination_agents import distributed, silent
from swarm_ui import rollout_many
from swarm_ui.environments.coordination import (
    CoordinationEnvironment,
    CoordinationPolicy,
    draw_problem,
)
from swarm_ui.errors import ModelUnavailable, ReplyError
from swarm_ui.model import ChatModel, Request
from swarm_ui.nodes import AgentNode, ScriptedModel
from swarm_ui.rollout import Job
from swarm_ui.trace.records import Episode, Trace

JOB: Job = ("colouring-geometric-8", 20_000_005)


def policy(model: ChatModel) -> CoordinationPolicy:
    return CoordinationPolicy(lambda name, view: AgentNode(name, model, view=view))


async def play(model: ChatModel, jobs: list[Job] | None = None) -> list[Episode]:
    acting = policy(model)
    return await rollout_many(CoordinationEnvironment, acting, jobs or [JOB])


def decision(episode: Episode) -> Trace:
    (step,) = episode.steps
    return step.trace


# -- message passing --------------------------------------------------------------------------


async def test_a_message_reaches_the_neighbours_of_its_sender_in_the_next_round() -> None:
    problem = draw_problem(*JOB)
    (episode,) = await play(distributed())
    trace = decision(episode)
    assert trace.rounds == problem.rounds
    for call in trace.calls:
        if call.node == "answers":
            continue
        expected: list[str] = []
        if call.round:
            before = call.round - 1
            expected = [f"{n}:{before}" for n in (call.node, *problem.neighbours[call.node])]
        assert list(call.heard) == expected


# -- bounds -----------------------------------------------------------------------------------


def jobs(kind: str, size: int, count: int) -> list[Job]:
    families = ("smallworld", "preferential", "geometric")
    return [(f"{kind}-{f}-{size}", 20_000_000 + k) for f in families for k in range(count)]


def successes(episodes: list[Episode]) -> float:
    assert all(episode.fault is None for episode in episodes)
    return sum(bool(episode.success) for episode in episodes) / len(episodes)


@pytest.mark.parametrize("kind", ["leader", "cover"])
async def test_messages_are_necessary_and_sufficient(kind: str) -> None:
    told = await play(
        distributed(), [*jobs(kind, 8, 2), *jobs(kind, 16, 2), *jobs(kind, 100, 1)[:1]]
    )
    assert successes(told) == 1.0
    some = jobs(kind, 16, 4)
    alone = successes(await play(silent(), some))
    assert alone <= 0.35


# -- agents that cannot be relied on ----------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        "",
        '{"action_type": "answer", "text": "99999"}',
        '{"action_type": "answer", "text": "1\\nBado: 2\\n"}',
        '{"action_type": "answer", "text": "' + "9" * 9_000 + '"}',
        'Reason: I keep 77. Bob has x. I am with Nobody.\nAction: {"action_type": "wait"}',
    ],
)
async def test_nonsense_is_never_an_exception_and_never_right(reply: str) -> None:
    right = distributed()
    job = ("consensus-geometric-8", 7)
    odd = draw_problem(*job).names[0]

    async def say(request: Request) -> str:
        assert request.decision is not None
        if request.decision.observation.elements[0].value == odd:
            return reply
        return (await right.generate([request]))[0].text

    (episode,) = await play(ScriptedModel(say), [job])
    assert episode.fault is None and episode.success is False
    (everybody,) = await play(ScriptedModel(lambda request: reply), [job])
    assert everybody.fault is None and everybody.success is False


def failing(error: Exception, when: Callable[[Request], bool]) -> ScriptedModel:
    right = distributed()

    async def say(request: Request) -> str | Exception:
        return error if when(request) else (await right.generate([request]))[0].text

    return ScriptedModel(say)


@pytest.mark.parametrize("round", [0, 1])
async def test_a_lost_call_masks_the_episode(round: int) -> None:
    name = draw_problem(*JOB).names[0]

    def lost(request: Request) -> bool:
        assert request.decision is not None
        mine = request.decision.observation.elements[0].value == name
        return mine and bool(request.decision.heard) == bool(round)

    (episode,) = await play(failing(ModelUnavailable("the endpoint is gone"), lost))
    assert episode.success is None and episode.fault is not None
    assert episode.fault.kind == "model" and f"agent '{name}' failed" in str(episode.fault)
    (episode,) = await play(failing(ReplyError("a reply without end"), lost))
    assert episode.fault is None and episode.success in (True, False)
