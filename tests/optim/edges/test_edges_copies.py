"""Edge distributions can be copied, pickled, printed and saved."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.edges.files import read_edges, save_edges
from swarm_ui.optim.edges.optimizer import EdgeOptimizer
from swarm_ui.optim.edges.sequential import SequentialEdges
from swarm_ui.optim.edges.thompson import ThompsonEdges

NAMES = ["ada", "grace", "edsger"]
DELAYS = {("grace", "ada"): 1}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda edges: pickle.loads(pickle.dumps(edges))])
@pytest.mark.parametrize("kind", [EdgeDistribution, SequentialEdges, ThompsonEdges])
def test_a_copy_samples_the_same_and_is_independent(
    kind: Any, copied: Callable[[Any], Any]
) -> None:
    edges = kind(NAMES, delays=DELAYS)
    other = copied(edges)
    assert other.delays == DELAYS and other.candidates == edges.candidates
    first, second = (e.sample(4, torch.Generator().manual_seed(3)) for e in (edges, other))
    assert first == second
    before = edges.marginals() if hasattr(edges, "marginals") else edges.logits.clone()
    if kind is ThompsonEdges:
        other.step(second, [1.0, 0.0, 0.5, 0.2])
        assert edges.marginals() == before and other.marginals() != before
    else:
        with torch.no_grad():
            other.logits.zero_().add_(2.0)
        assert not torch.equal(edges.logits, other.logits)


def test_a_distribution_says_what_it_holds() -> None:
    assert repr(EdgeDistribution(NAMES)) == (
        "EdgeDistribution(3 nodes: ada, edsger, grace; 6 possible edges)"
    )
    assert "8 nodes: n0, n1, n2, n3, n4, n5 and 2 more" in repr(
        EdgeDistribution([f"n{k}" for k in range(8)])
    )
    assert "0 samples seen" in repr(ThompsonEdges(NAMES))
    assert repr(EdgeOptimizer(EdgeDistribution(["a", "b"]))) == (
        "EdgeOptimizer(EdgeDistribution(2 nodes: a, b; 2 possible edges), lr=0.4, 0 samples seen)"
    )


def test_missing_folders_are_made(tmp_path: Path) -> None:
    file = tmp_path / "new" / "edges.safetensors"
    save_edges(EdgeDistribution(NAMES, density=0.7), file)
    assert read_edges(file).names == tuple(sorted(NAMES))


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match="the edges cannot be written"):
        save_edges(EdgeDistribution(NAMES), tmp_path / "taken" / "edges.safetensors")


def test_other_distributions_are_not_saved(tmp_path: Path) -> None:
    thompson: Any = ThompsonEdges(NAMES)
    with pytest.raises(ConfigError, match=r"got a ThompsonEdges.*from_probabilities"):
        save_edges(thompson, tmp_path / "edges.safetensors")
