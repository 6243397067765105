"""Pictures of edge distributions: every candidate with its probability."""

from __future__ import annotations

import pytest
import torch
from picture_reading import HOSTILE, Picture

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.viz import edges_svg


def learned(count: int) -> EdgeDistribution:
    made = EdgeDistribution([f"agent_{k}" for k in range(count)])
    generator = torch.Generator().manual_seed(count)
    with torch.no_grad():
        made.logits.copy_(torch.randn(made.logits.shape, generator=generator))
        made.scores.copy_(torch.randn(count, generator=generator))
    return made


def test_hostile_names_are_words() -> None:
    edges = EdgeDistribution(HOSTILE)
    assert Picture(edges._repr_svg_()).harmless
    many = EdgeDistribution([*HOSTILE, *(f"n{k}" for k in range(9))])
    assert Picture(many._repr_svg_()).harmless
    assert Picture(edges_svg({}, list(HOSTILE), title=HOSTILE[0])).harmless


@pytest.mark.parametrize("count", [2, 8, 9, 30])
def test_every_edge_is_told_with_its_probability(count: int) -> None:
    edges = learned(count)
    picture = Picture(edges._repr_svg_())
    for (a, b), chance in edges.marginals().items():
        assert any(title.startswith(f"{a} → {b}: {chance:.3f}") for title in picture.titles)
    assert set(edges.names) <= set(picture.texts) and picture.inside()
    assert edges._repr_html_() == learned(count)._repr_html_(), "equal input, equal bytes"


def test_a_more_probable_edge_is_stronger_and_a_delayed_one_dashed() -> None:
    svg = edges_svg({("a", "b"): 0.1, ("b", "a"): 0.9}, ["a", "b"], delays={("b", "a"): 2})
    picture = Picture(svg)
    weak, strong = picture.box("a → b"), picture.box("b → a: 0.900, delivered 2 rounds later")
    assert float(weak.get("fill-opacity", 0)) < float(strong.get("fill-opacity", 0))
    assert strong.get("stroke-dasharray") and not weak.get("stroke-dasharray")


@pytest.mark.parametrize("chance", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_or_no_edge_is_refused(chance: float) -> None:
    for edge in (("a", "b"), ("a", "c")):
        with pytest.raises(ConfigError, match="edge to draw"):
            edges_svg({edge: chance if edge == ("a", "b") else 0.5}, ["a", "b"])
    assert Picture(edges_svg({}, [])).inside()
