"""Runs of graphs: how they fail, resume, end their rounds and are traced."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from swarm_ui import (
    Action,
    CollabGraph,
    Completion,
    ConfigError,
    Element,
    GraphPolicy,
    Journal,
    Message,
    ModelError,
    ModelUnavailable,
    Node,
    NodeContext,
    NodeError,
    Observation,
    ReplyError,
    Request,
    RunFailed,
    Step,
    Trace,
    rollout_many,
)
from swarm_ui.nodes import AgentNode, MajorityVote, function_node

SCREEN = Observation(goal="press", elements=(Element(index=0, role="button", text="OK"),))


class Failing:
    """A model that raises for the adapters named, and clicks for all others."""

    name = "failing"

    def __init__(self, error: Exception, *adapters: str | None) -> None:
        self.error: Exception | None = error
        self.adapters = adapters

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        if self.error is not None and any(r.adapter in self.adapters for r in requests):
            raise self.error
        text = Action(action_type="click", index=0).json()
        return [Completion(text=text, prompt="p", adapter=r.adapter) for r in requests]


class OneScreen:
    """An environment of three steps with a reward at the end."""

    name = "one-screen"

    def __init__(self) -> None:
        self.taken: list[Action] = []

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.taken = []
        return SCREEN

    async def step(self, action: Action) -> Step:
        self.taken.append(action)
        return Step(observation=SCREEN, reward=1.0, terminated=len(self.taken) == 3)

    async def close(self) -> None: ...


def team(model: Failing, *adapters: str | None) -> CollabGraph:
    agents = [AgentNode(f"agent_{k}", model, adapter=name) for k, name in enumerate(adapters)]
    edges = [(agent.id, "vote") for agent in agents]
    return CollabGraph([*agents, MajorityVote()], edges)


# -- failures ------------------------------------------------------------------------------------


def test_a_run_in_which_every_call_failed_raises_the_first_failure() -> None:
    cause = ModelError("no key in OPENAI_API_KEY")
    graph = team(Failing(cause, "a", "b"), "a", "b")
    with pytest.raises(RunFailed, match=r"agent_0.*monday.*no key in OPENAI_API_KEY") as failed:
        graph.run_sync(SCREEN, run_id="monday")
    error = failed.value
    assert isinstance(error, NodeError)
    assert (error.node, error.round, error.run, error.kind) == ("agent_0", 0, "monday", "model")
    assert error.__cause__ is cause
    trace = error.partial
    assert isinstance(trace, Trace) and len(trace.calls) == 3 and trace.action is None


def test_one_of_several_failures_is_data() -> None:
    graph = team(Failing(ModelError("down"), "a"), "a", "b")
    trace = graph.run_sync(SCREEN)
    assert trace.action == Action(action_type="click", index=0)
    assert [call.error is not None for call in trace.calls] == [True, False, False]


def test_a_failed_node_whose_successor_answers_is_data() -> None:
    @function_node
    def broken(inbox: Sequence[Message], context: NodeContext) -> str:
        raise ValueError("no")

    @function_node
    def careful(inbox: Sequence[Message], context: NodeContext) -> str:
        return "told: " + str(inbox[0].error)

    trace = CollabGraph([broken, careful], [("broken", "careful")]).run_sync("a goal")
    assert trace.output == "told: ValueError: no"


def test_a_nested_graph_counts_by_the_nodes_inside_it() -> None:
    inner = team(Failing(ModelError("down"), "a", "b"), "a", "b").named("inner")
    with pytest.raises(RunFailed, match=r"inner/agent_0.*down"):
        CollabGraph([inner]).run_sync(SCREEN)
    inner = team(Failing(ModelError("down"), "a"), "a", "b").named("inner")
    assert CollabGraph([inner]).run_sync(SCREEN).action is not None


def test_a_stored_run_in_which_every_call_failed_is_made_again(tmp_path: Path) -> None:
    model, journal = Failing(ModelError("no key"), "a"), Journal(tmp_path / "runs.jsonl")
    graph = team(model, "a")
    for _ in range(2):
        with pytest.raises(RunFailed):
            graph.run_sync(SCREEN, run_id="r", journal=journal)
    model.error = None
    assert not journal.read("r").finished
    assert graph.run_sync(SCREEN, run_id="r", journal=journal).action is not None
    assert journal.read("r").finished


async def test_in_episodes_a_failure_of_all_agents_is_a_fault_and_never_reward_0() -> None:
    policy = GraphPolicy(team(Failing(ModelUnavailable("down"), "a", "b"), "a", "b"))
    [episode] = await rollout_many(OneScreen, policy, [("t", 1)])
    assert episode.success is None and not episode.steps
    assert episode.fault is not None and episode.fault.kind == "unavailable"


async def test_in_episodes_unusable_replies_of_all_agents_cost_a_step() -> None:
    policy = GraphPolicy(team(Failing(ReplyError("nothing in it"), "a", "b"), "a", "b"))
    [episode] = await rollout_many(OneScreen, policy, [("t", 1)])
    assert episode.fault is None and len(episode.steps) == 3
    assert all(step.executed == Action(action_type="wait") for step in episode.steps)


# -- rounds that end early -----------------------------------------------------------------------


def rounds_of_a_critic(critic: Node, rounds: int = 5) -> CollabGraph:
    """A writer and a critic, until the critic's newest message says that it is good."""

    @function_node
    def writer(inbox: Sequence[Message], context: NodeContext) -> str:
        return f"draft {context.round}"

    def good(newest: Mapping[str, Message]) -> bool:
        return bool(json.loads(newest["critic"].content)["good"])

    return CollabGraph(
        [writer, critic], [("writer", "critic")], "critic", rounds=rounds, until=good
    )


@function_node(id="critic")
def strict_critic(inbox: Sequence[Message], context: NodeContext) -> str:
    return json.dumps({"good": context.round == 2})


def test_until_that_reads_a_failed_node_reports_the_failure_of_the_node() -> None:
    @function_node(id="critic")
    def broken(inbox: Sequence[Message], context: NodeContext) -> str:
        raise ModelUnavailable("the endpoint is busy")

    with pytest.raises(NodeError, match="the endpoint is busy") as failed:
        rounds_of_a_critic(broken).run_sync("a letter", run_id="r")
    error = failed.value
    assert (error.node, error.round, error.run, error.kind) == ("critic", 0, "r", "unavailable")
    assert "good" in str(error), "the function is named too"


def test_until_that_fails_by_itself_is_an_error_of_the_configuration() -> None:
    @function_node(id="critic")
    def chatty(inbox: Sequence[Message], context: NodeContext) -> str:
        return "well done"

    with pytest.raises(ConfigError, match="good"):
        rounds_of_a_critic(chatty).run_sync("a letter")


def test_with_rounds_keeps_until() -> None:
    graph = rounds_of_a_critic(strict_critic)
    assert graph.run_sync("a letter").rounds == 3
    assert graph.with_rounds(6).until is graph.until
    assert graph.with_rounds(6).run_sync("a letter").rounds == 3
    assert graph.with_rounds(2).run_sync("a letter").rounds == 2
    assert graph.with_rounds(6, until=None).run_sync("a letter").rounds == 6
    assert graph.with_rounds(6, until=lambda newest: True).run_sync("a letter").rounds == 1
