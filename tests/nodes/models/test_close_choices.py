"""A reply of the embedded agent does not depend on the other requests of its batch."""

from __future__ import annotations

import msgspec
import pytest
import torch
from local_models import answers, requests, with_adapters

from swarm_ui.nodes.models.transformers import choosing as selection
from swarm_ui.nodes.models.transformers import decoding
from swarm_ui.nodes.models.transformers.choosing import Choice, choose

ROWS, WORDS = 400, 30


def choices(temperature: float) -> list[Choice]:
    """The choices of all rows, each with a generator in its first state."""
    made = []
    for k in range(ROWS):
        noise = torch.Generator().manual_seed(k) if temperature else None
        made.append(Choice(temperature, noise, None, False))
    return made


@pytest.mark.parametrize("temperature", [0.0, 0.2, 0.8, 2.0])
def test_rounding_of_another_batch_changes_no_choice(temperature: float) -> None:
    draw = torch.Generator().manual_seed(0)
    exact = torch.randn(ROWS, WORDS, generator=draw)
    # The two best scores of every row, with their noise, are made equal.
    noise = torch.stack(
        [torch.rand(WORDS, generator=torch.Generator().manual_seed(k)) for k in range(ROWS)]
    )
    gumbel = selection._gumbel_(noise) * temperature if temperature else torch.zeros(ROWS, WORDS)
    best = (exact - gumbel).topk(2)
    rows = torch.arange(ROWS)
    exact[rows, best.indices[:, 1]] += best.values[:, 0] - best.values[:, 1]
    batches = [exact + 4e-6 * torch.randn(ROWS, WORDS, generator=draw) for _ in range(2)]

    plain = [choose(logits, choices(temperature)) for logits in batches]
    assert not torch.equal(*plain)
    first, second = (choose(batch, choices(temperature), lambda k: exact[k]) for batch in batches)
    assert torch.equal(first, second)


def test_the_row_alone_is_read_with_its_own_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """If every choice were close, the replies would be those of requests one at a time."""
    monkeypatch.setattr(selection, "CLOSE", 1e9)
    names = [None, "agent_0", "agent_1", "agent_2"]
    asked = [
        msgspec.structs.replace(r, adapter=names[i % 4], temperature=0.7 * (i % 2))
        for i, r in enumerate(requests(12))
    ]
    calls: list[torch.Tensor] = []
    own = decoding._logits_alone

    def counted(*given: object) -> torch.Tensor:
        calls.append(own(*given))  # type: ignore[arg-type]
        return calls[-1]

    monkeypatch.setattr(decoding, "_logits_alone", counted)
    together = answers(with_adapters(), asked)
    model = with_adapters()
    alone = [answers(model, [request])[0] for request in asked]
    assert len(calls) > len(asked)
    assert [c.text for c in together] == [c.text for c in alone]
