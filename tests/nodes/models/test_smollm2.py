"""SmolLM2 itself, if it was pulled: ``swarm-ui models pull smollm2``, then ``pytest -m slow``."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_ui.model import ChatMessage, Request
from swarm_ui.nodes.models.pretrained.catalogue import pulled_folder

FOLDER = pulled_folder("smollm2")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOLDER is None, reason="not pulled: swarm-ui models pull smollm2"),
]


async def test_it_knows_the_capital_of_france(tmp_path: Path) -> None:
    from swarm_ui.nodes import CausalModel

    model = CausalModel.named("smollm2")
    assert model.name == "smollm2"
    chat = (ChatMessage("user", "What is the capital of France?"),)
    (reply,) = await model.generate([Request(chat=chat, max_tokens=12)])
    assert reply.text == "The capital of France is Paris."
    model.add_adapter("one", rank=4)
    model.save_adapters(tmp_path)
    assert CausalModel.named("smollm2").load_adapter(tmp_path / "one", "one") == "one@0"


def test_what_was_pulled_says_where_it_comes_from() -> None:
    assert FOLDER is not None
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "Dequantised from Q4_1" in card and "Apache-2.0" in card
