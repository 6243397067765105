"""The policy gradient learns from exactly the tokens that were sampled."""

from __future__ import annotations

import asyncio

import pytest
from local_models import disturb
from tiny_causal import screen, text_model

from swarm_ui.collab_graph import CollabGraph
from swarm_ui.nodes import CausalModel
from swarm_ui.optim.examples import encode, with_reference
from swarm_ui.optim.preferences import PreferencePair, scored_replies
from swarm_ui.trace.records import Call, Episode, StepRecord


def played(
    model: CausalModel, temperature: float, runs: int = 6, max_tokens: int = 9
) -> tuple[list[PreferencePair], list[Call]]:
    """Replies of two agents with one adapter, every other one praised, and their calls."""
    graph = CollabGraph.collaborative(
        2, 2, model=model, adapters=["one", "one"], temperature=temperature, views="shuffle",
        max_tokens=max_tokens,
    )  # fmt: skip
    steps = []
    for seed in range(runs):
        shown = screen("Save it " * (seed + 1), 3).observation
        trace = asyncio.run(graph.run(shown, seed=seed))
        credit = ((1.0, 0.0), (0.0, 1.0))
        steps.append(StepRecord(trace=trace, credit=credit))
    episode = Episode(environment="e", task="t", seed=0, steps=tuple(steps), success=True)
    calls = [c for s in steps for c in s.trace.calls if c.node in s.trace.agents]
    return scored_replies([episode]), calls


@pytest.fixture(scope="module")
def model() -> CausalModel:
    made = text_model(constrained=False)  # random bytes, which hardly ever are text
    made.add_adapter("one", rank=4, alpha=8)
    disturb(made, "one", 0, 0.2)
    return made


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_importance_ratio_is_one_before_the_first_step(
    model: CausalModel, temperature: float
) -> None:
    replies, calls = played(model, temperature)
    assert len(replies) == len(calls)
    assert any(reply.sampled for reply in replies)  # those that the text does not give back
    examples = with_reference(model, encode(model, replies, "one"))
    for call, example in zip(calls, examples, strict=True):
        assert call.completion is not None and call.completion.logprob is not None
        assert example.reference[0] == pytest.approx(call.completion.logprob, abs=1e-4)
        assert len(example.chosen[1]) == call.usage.completion_tokens


def test_constrained_replies_have_the_log_probability_of_the_unconstrained_model() -> None:
    """So the importance ratio is one for them too."""
    made = text_model(constrained=True)
    made.add_adapter("one", rank=4, alpha=8)
    disturb(made, "one", 0, 0.2)
    replies, calls = played(made, 1.0, runs=3, max_tokens=64)
    assert all(reply.chosen is not None for reply in replies)
    examples = with_reference(made, encode(made, replies, "one"))
    assert len(replies) > 6
    for reply, example in zip(replies, examples, strict=True):
        found = example.reference[0]
        said = [
            c.completion.logprob
            for c in calls
            if c.completion and (c.node, c.reply) == (reply.node, reply.chosen_text)
        ]
        assert any(found == pytest.approx(value, abs=1e-3) for value in said)
