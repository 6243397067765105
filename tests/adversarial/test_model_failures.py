"""What a model says is its own failure: it is counted, masks nothing and ends no suite."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
from graph_fakes import FixedModel

from swarm_ui import (
    Action,
    CollabGraph,
    Episode,
    GraphPolicy,
    Message,
    ModelError,
    NodeContext,
    NodeReply,
    Step,
    rollout_many,
)
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ReplyError
from swarm_ui.nodes import MajorityVote

REPLIES = {
    "a number that is infinite": '{"action_type":"click","x":1e400,"y":1}',
    "an index that is infinite": '{"action_type":"click","index":1e400}',
    "400 digits": '{"action_type":"click","x":' + "9" * 400 + ',"y":1}',
    "5,000 digits": '{"action_type":"click","index":' + "9" * 5000 + "}",
    "5,000 digits as text": '{"action_type":"click","index":"' + "9" * 5000 + '"}',
    "not a number": '{"action_type":"click","index":NaN}',
    "beyond 64 bits": f'{{"action_type":"click","x":{2**64},"y":-{2**70}}}',
    "60,000 characters": '{"action_type":"input_text","index":0,"text":"' + "x" * 60_000 + '"}',
    "a long app name": '{"action_type":"open_app","app_name":"' + "a" * 100_000 + '"}',
    "deep": '{"a":' * 2_000,
    "half a character": '{"action_type":"answer","text":"\\ud83d"}',
    "a zero byte": '{"action_type":"input_text","index":0,"text":"\\u0000"}',
    "no text": "",
}


def play(
    policy: GraphPolicy, world: type = PhoneEnvironment, jobs: Sequence[tuple[str, int]] = ()
) -> list[Episode]:
    jobs = jobs or [("contacts-add", seed) for seed in range(2)]
    return asyncio.run(rollout_many(world, policy, jobs, max_steps=2))


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("agents", [1, 3])
def test_no_reply_masks_an_episode(reply: str, agents: int) -> None:
    model = FixedModel({None: reply})
    team = CollabGraph.collaborative(agents, 1, model=model)
    for episode in play(GraphPolicy(team)):
        assert episode.success is False and episode.fault is None and len(episode.steps) == 2


class Fails:
    """A node whose model said something that it cannot use; or whose endpoint is broken."""

    def __init__(self, id: str, error: Exception) -> None:
        self.id, self.error = id, error

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        raise self.error


REPLY, WORLD = ReplyError("nothing usable in 60000 characters"), ModelError("HTTP 500")


@pytest.mark.parametrize(
    ("errors", "masked"), [((REPLY, REPLY), False), ((REPLY, WORLD), False), ((WORLD,), True)]
)
def test_only_what_the_world_causes_masks(errors: tuple[Exception, ...], masked: bool) -> None:
    nodes = [Fails(f"n{k}", error) for k, error in enumerate(errors)]
    graph = CollabGraph([*nodes, MajorityVote()])
    for episode in play(GraphPolicy(graph)):
        assert (episode.success is None) is masked and (episode.fault is not None) is masked
        failures = [c.error for step in episode.steps for c in step.trace.calls if c.error]
        assert masked or [f.by_model for f in failures[:2]] == [e is REPLY for e in errors]


class Wire(PhoneEnvironment):
    """An environment that exchanges records, and gets one that is none."""

    async def step(self, action: Action) -> Step:
        msgspec.json.decode(b'{"observation": 7}', type=Step)
        raise AssertionError


def test_records_that_an_environment_cannot_read_are_a_fault_of_the_world() -> None:
    policy = GraphPolicy(CollabGraph.solo(FixedModel({None: '{"action_type":"wait"}'})))
    for episode in play(policy, Wire):
        assert episode.success is None
        assert episode.fault is not None and episode.fault.kind == "environment"
