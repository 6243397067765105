"""The agents that ship: they belong to today's tokenizer and phone, and they can act."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from swarm_ui.nodes import BASE_AGENT, GENERAL_AGENT

AGENTS = [BASE_AGENT, GENERAL_AGENT]
DIGESTS = {
    BASE_AGENT: "6e0a1f531a407e6e4ad96013ba3aa5630dd701389cf5d9826ce45d61316391f8",
    GENERAL_AGENT: "c38d6d0fd7e7cd6d41e5e257207757d6b6b36da39cb9663b835802b0d5c3e9f4",
}
"""SHA-256 of the weights. Published figures belong to them: another agent needs new figures."""
each_agent = pytest.mark.parametrize("agent", AGENTS, ids=lambda folder: folder.name)


@each_agent
def test_its_weights_are_those_of_the_published_figures(agent: Path) -> None:
    weights = (agent / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == DIGESTS[agent]
