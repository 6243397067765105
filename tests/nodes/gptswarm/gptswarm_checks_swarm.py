"""Checks of imported swarms against the real GPTSwarm; see gptswarm_checks.py."""

from __future__ import annotations

import copy
from collections import Counter
from hashlib import sha256
from typing import Any

import pytest
import torch
from gptswarm_samples import (
    Hashing,
    task,
    theirs,
    with_hashing,
)
from swarm.graph.swarm import Swarm
from swarm.memory.memory import GlobalMemory

from swarm_ui.nodes.gptswarm import import_swarm


@pytest.fixture(autouse=True)
def empty_memory() -> None:
    """GPTSwarm's own deepcopy copies all that was ever remembered: minutes, after some tests."""
    GlobalMemory.instance().clear()


def swarm(*agents: str, **options: Any) -> tuple[Swarm, Hashing]:
    made = Swarm(list(agents), "gaia", model_name="mock", **options)
    return made, with_hashing(made.composite_graph)


def test_a_swarm_of_mock_models_answers_as_its_own_run() -> None:
    made = Swarm(["IO", "IO", "IO"], "gaia", model_name="mock")
    trace = import_swarm(made).graph.run_sync("q")
    assert [trace.messages[-1].content] == made.run(task("q")) == ["Foo Bar Asy"]


@pytest.mark.parametrize("seed", range(12))
def test_a_drawn_swarm_answers_as_its_own_run_and_asks_the_same(seed: int) -> None:
    agents = (("IO", "COT", "IO"), ("COT", "COT"))[seed % 2]
    made, llm = swarm(*agents, edge_optimize=True, connect_output_nodes_to_final_node=seed % 3 == 0)
    torch.manual_seed(seed)
    with torch.no_grad():
        made.connection_dist.edge_logits.copy_(torch.randn(len(made.potential_connections)))
    drawn, _ = made.connection_dist.realize(made.composite_graph)
    their_llm = with_hashing(drawn)
    found = import_swarm(made)
    taken = [
        edge
        for edge, (sender, listener) in zip(
            found.potential, made.potential_connections, strict=True
        )
        if drawn.find_node(listener) in drawn.find_node(sender).successors
    ]
    assert len(found.with_edges(taken).edges) == drawn.num_edges
    expected = theirs(drawn, "q")
    trace = found.with_edges(taken).run_sync("q")
    assert Counter(their_llm.asked) <= Counter(llm.asked)  # GPTSwarm skips what leads nowhere
    last = trace.messages[-1]
    if their_llm.asked:
        assert last.content == expected
    else:  # nothing was drawn that leads to the decision
        assert expected.startswith("No answer") and last.error is not None
    assert len(trace.messages) == len(found.graph.nodes)


def test_a_swarm_without_inner_edges_runs_where_gptswarm_stops() -> None:
    made, llm = swarm("IO", "COT", include_inner_agent_connections=False)
    assert theirs(copy.deepcopy(made.composite_graph), "q").startswith("No answer")
    found = import_swarm(made)
    assert found.graph.edges == (
        ("0.IO.DirectAnswer", "FinalDecision"),
        ("1.COT.CoTStep.2", "FinalDecision"),
    )
    trace = found.graph.run_sync("q")
    assert [m.error is None for m in trace.messages] == [True, True, False, False, True]
    assert (
        trace.messages[0].content
        != trace.messages[-1].content
        in (sha256(text.encode()).hexdigest()[:12] for text in llm.asked)
    )
