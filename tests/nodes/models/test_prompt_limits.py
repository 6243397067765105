"""Models that shorten the prompts of long screens, and traces that say what was left out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from local_models import answers
from loopback_client import no_proxy  # noqa: F401  (a fixture)
from tiny_causal import network, tokenizer

from swarm_ui.collab_graph import CollabGraph
from swarm_ui.model import Decision, Request
from swarm_ui.nodes import CausalModel
from swarm_ui.observation import Element, Observation

CONTEXT = 2048


def causal(**settings: Any) -> CausalModel:
    words = tokenizer()
    return CausalModel(network("llama", len(words)), words, **settings)


def page(links: int = 300, goal: str = "show the weather") -> Decision:
    elements = [Element(index=k, role="link", text=f"headline number {k}") for k in range(links)]
    elements[-1] = Element(index=links - 1, role="link", text="Weather in Ulm")
    return Decision(observation=Observation(goal=goal, elements=tuple(elements)))


@pytest.mark.parametrize("form", ["json", "compact"])
def test_a_long_screen_leaves_room_for_the_reply(form: str) -> None:
    model = causal(prompt_format=form)
    for most in (8, 500):
        prompt = model.prompt(Request(decision=page(), max_tokens=most))
        assert 0.9 * (CONTEXT - most) < len(prompt.ids) <= CONTEXT - most
    asked = [Request(decision=page(n), max_tokens=2) for n in (300, 3)]
    said, short = answers(model, asked)
    assert said.usage.prompt_tokens <= CONTEXT - 2
    assert said.dropped is not None and 299 not in said.dropped.elements
    assert f"({len(said.dropped.elements)} elements are left out)" in said.prompt
    assert "Weather in Ulm" in said.prompt
    assert short.dropped is None


async def test_the_trace_says_what_was_left_out_and_training_reads_the_same_prompt() -> None:
    model = causal(prompt_format="compact", prompt_tokens=400)
    screen = page(60).observation
    team = CollabGraph.collaborative(agents=2, rounds=2, model=model, max_tokens=4)
    trace = await team.run(screen)
    calls = [(call, call.completion) for call in trace.calls if call.completion is not None]
    assert len(calls) == 4 and all(made.dropped is not None for _, made in calls)
    again = msgspec.json.decode(msgspec.json.encode(trace), type=type(trace))
    assert again == trace
    for call, made in calls:
        decision = again.decision(call)
        assert decision.dropped == made.dropped
        assert model.prompt(Request(decision=decision)).text == call.prompt
        ids, _ = model.encode(decision, "click headline number 0 [0]")
        assert len(ids) == call.usage.prompt_tokens
