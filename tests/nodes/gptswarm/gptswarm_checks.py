"""Checks against the real GPTSwarm; run inside its environment by test_gptswarm_package.py.

By hand: ``PYTHONPATH=. PYTHON_OF_THAT_ENVIRONMENT -m pytest --noconftest -o addopts= -o
filterwarnings=default tests/gptswarm_checks*.py``
"""

from __future__ import annotations

import asyncio
import copy
import random
from typing import Any

import pytest
from gptswarm_samples import (
    Broken,
    Chain,
    Hashing,
    Operation,
    Single,
    task,
    theirs,
    with_hashing,
)
from swarm.environment.agents.cot import COT
from swarm.environment.agents.io import IO
from swarm.environment.operations import CombineAnswer, DirectAnswer, GenerateQuery
from swarm.graph.graph import Graph
from swarm.memory.memory import GlobalMemory

from swarm_ui import CollabGraph, Completion, Limits, Request, Usage
from swarm_ui.engine.run import trace_of
from swarm_ui.errors import ConfigError, NodeError
from swarm_ui.nodes import function_node
from swarm_ui.nodes.gptswarm import GPTSwarmNode, import_graph, import_swarm


@pytest.fixture(autouse=True)
def empty_memory() -> None:
    """GPTSwarm's own deepcopy copies all that was ever remembered: minutes, after some tests."""
    GlobalMemory.instance().clear()


# -- one operation --------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [DirectAnswer, GenerateQuery])
def test_an_operation_answers_as_in_gptswarm(make: Any) -> None:
    operation = make("gaia", "mock")
    assert CollabGraph([GPTSwarmNode(operation)]).run_sync("q").messages[-1].content == (
        theirs(Single(copy.deepcopy(operation)), "q")
    )
    with_hashing(Single(operation))
    expected = theirs(Single(copy.deepcopy(operation)), "which city is this?")
    trace = CollabGraph([GPTSwarmNode(operation)]).run_sync("which city is this?")
    assert trace.messages[-1].content == expected
    assert "which city is this?" in trace.calls[-1].prompt


def test_a_gptswarm_operation_stands_among_other_nodes() -> None:
    @function_node
    def scout(inbox: Any, context: Any) -> str:
        return "the door is blue"

    @function_node
    def loud(inbox: Any, context: Any) -> str:
        return "/".join(m.content for m in inbox).upper()

    combine = GPTSwarmNode(CombineAnswer("gaia", "mock"), "combine")
    with_hashing(Single(combine.operation))
    team = CollabGraph([scout, combine, loud], [("scout", "combine"), ("combine", "loud")])
    trace = team.run_sync("which colour?")
    prompt = trace.calls[1].prompt
    assert "which colour?" in prompt and "for scout" in prompt and "the door is blue" in prompt
    assert trace.messages[-1].content == trace.messages[1].content.upper() != ""

    deaf = GPTSwarmNode(DirectAnswer("gaia", "mock"), "deaf", starts=True)
    trace = CollabGraph([scout, deaf], [("scout", "deaf")]).run_sync("which colour?")
    assert "blue" not in trace.calls[1].prompt


# -- many runs at a time --------------------------------------------------------------------------


def test_100_runs_of_one_graph_are_right_where_gptswarm_without_deepcopy_is_not() -> None:
    class Slow(Hashing):
        async def agen(self, messages: Any, *args: Any, **kwargs: Any) -> str:
            for _ in range(random.Random(messages[-1].content).randrange(4)):
                await asyncio.sleep(0)
            return self.gen(messages)

    goals = [f"question {k}" for k in range(100)]

    async def ours(team: CollabGraph) -> list[str]:
        traces = await asyncio.gather(*(team.run(goal) for goal in goals))
        return [trace.messages[-1].content for trace in traces]

    async def own(agent: Graph) -> list[str]:
        found = await asyncio.gather(*(agent.run(task(goal)) for goal in goals))
        return [answers[0] for answers in found]

    for make in (IO, COT):
        agent = make("gaia", "mock")
        for node in agent.nodes.values():
            node.llm = Slow()
        expected = [theirs(copy.deepcopy(agent), goal) for goal in goals]
        assert len(set(expected)) == 100
        assert asyncio.run(ours(import_graph(agent))) == expected
        if make is IO:  # COT's shared outputs multiply: 100 runs would make 10,000 calls a step
            wrong = asyncio.run(own(agent))
            # All runs write their question to one place before the first one reads it.
            assert sum(a == e for a, e in zip(wrong, expected, strict=True)) <= 1


# -- failures -------------------------------------------------------------------------------------


def test_a_failure_that_gptswarm_swallows_is_the_nodes_own() -> None:
    assert theirs(Chain(Operation(), Broken()), "q").startswith("No answer")
    team = import_graph(Chain(Operation(), Broken()))
    last = asyncio.run(trace_of(team.run("q"))).messages[-1]
    assert (last.sender, last.error) == ("Broken", "LookupError: the cupboard is bare")
    with pytest.raises(NodeError, match=r"'Broken'.*the cupboard is bare") as raised:
        asyncio.run(team.run("q", limits=Limits(on_failure="abort")))
    assert isinstance(raised.value.__cause__, LookupError)


def test_other_objects_are_refused() -> None:
    for make in (GPTSwarmNode, import_graph, import_swarm):
        with pytest.raises(ConfigError, match="GPTSwarm"):
            make(object())


# -- a model of ours ------------------------------------------------------------------------------


class Counting:
    """A chat model of ours that numbers nothing and hides nothing."""

    name = "counting"

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def generate(self, requests: Any) -> list[Completion]:
        await asyncio.sleep(0)
        self.requests.extend(requests)
        usage = Usage(prompt_tokens=7, completion_tokens=2)
        return [
            Completion(text=f"said at {r.temperature}", prompt=r.chat[-1].content, usage=usage,
                       logprob=-1.5, adapter="agent@3")
            for r in requests
        ]  # fmt: skip

    async def close(self) -> None: ...


def test_a_model_of_ours_answers_and_is_accounted_for() -> None:
    model = Counting()
    node = GPTSwarmNode(DirectAnswer("gaia", "mock"), "direct", model=model)
    trace = CollabGraph([node]).run_sync("q", seed=5)
    (call,) = trace.calls
    assert trace.messages[-1].content == "said at 0.2"
    assert call.usage == Usage(prompt_tokens=7, completion_tokens=2)
    assert call.completion.logprob == -1.5
    (request,) = model.requests
    assert request.max_tokens == 50
    assert [m.role for m in request.chat or ()] == ["system", "user"]
    import_graph(COT("gaia", "mock"), model=model).run_sync("q")
    assert len({r.seed for r in model.requests}) == 4
