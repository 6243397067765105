"""Whether two trainings are the same one: weights, versions, edges and metrics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from swarm_ui.optim.trainer import TeamResult

FIGURES = ("iteration", "success", "pairs", "credit", "critic_weights", "steps")


def weights(model: Any) -> list[torch.Tensor]:
    """Copies of the weights of all adapters."""
    return [p.detach().clone() for n in model.adapters for p in model.adapter_parameters(n)]


def equal(ours: Iterable[torch.Tensor], theirs: Iterable[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def lines(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def checkpoints(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def figures(history: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: m.get(name) for name in FIGURES} for m in history]


def same_run(
    model: Any, result: TeamResult, other: Any, expected: TeamResult, *, tolerance: float = 0.0
) -> None:
    """Assert that a training ended as another one.

    ``tolerance``: the largest difference of a weight, where sums are added up in another order.
    """
    assert model.adapters == other.adapters and model.versions == other.versions
    assert figures(result.history) == figures(expected.history)
    ours = [*weights(model), result.edges.logits, result.edges.scores]
    theirs = [*weights(other), expected.edges.logits, expected.edges.scores]
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0.0, atol=tolerance)
