"""Pictures of edge distributions: every candidate with its probability."""

from __future__ import annotations

import pytest
import torch
from picture_reading import HOSTILE, SVG, Picture

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.viz import edges_svg
from swarm_ui.viz.svg import BLUE


def learned(count: int) -> EdgeDistribution:
    made = EdgeDistribution([f"agent_{k}" for k in range(count)])
    generator = torch.Generator().manual_seed(count)
    with torch.no_grad():
        made.logits.copy_(torch.randn(made.logits.shape, generator=generator))
        made.scores.copy_(torch.randn(count, generator=generator))
    return made


@pytest.mark.parametrize("count", [2, 4, 8])
def test_few_nodes_are_arcs_in_the_most_probable_order(count: int) -> None:
    edges = learned(count)
    picture = Picture(edges._repr_svg_())
    likely = edges.mode()
    place = [float(picture.box(name).get("x", 0)) for name in likely.order]
    assert place == sorted(place)
    for (a, b), chance in edges.marginals().items():
        arc = picture.arrow(f"{a} → {b}: {chance:.3f}")
        assert (arc.get("stroke") == BLUE) == ((a, b) in likely.edges)
        assert f"{chance:.2f}" in picture.texts
    assert len(picture.arrows) == len(edges.candidates)
    assert picture.inside()


def test_more_probable_arcs_are_thicker_and_run_above_forwards() -> None:
    picture = Picture(edges_svg({("a", "b"): 0.1, ("b", "a"): 0.9}, ["a", "b"]))
    ahead, back = picture.arrow("a → b"), picture.arrow("b → a")
    assert float(ahead.get("stroke-width", 0)) < float(back.get("stroke-width", 0))
    assert float(ahead.get("opacity", 0)) < float(back.get("opacity", 0))
    heights = [float(arc.get("d", "").split("C")[0].split()[1]) for arc in (ahead, back)]
    assert heights[0] < heights[1]


@pytest.mark.parametrize(("count", "figures"), [(9, True), (16, True), (30, False)])
def test_more_nodes_are_a_matrix(count: int, figures: bool) -> None:
    edges = learned(count)
    picture = Picture(edges._repr_svg_())
    assert picture.arrows == []
    for (a, b), chance in edges.marginals().items():
        cell = picture.box(f"{a} → {b}: {chance:.3f}")
        assert float(cell.get("fill-opacity", 0)) == pytest.approx(chance, abs=0.006)
    assert all(picture.texts.count(name) == 2 for name in edges.names)
    assert any(text.startswith(".") for text in picture.texts) == figures
    assert picture.inside()


def test_very_many_nodes_are_means_of_edges() -> None:
    names = [f"n{k}" for k in range(500)]
    chances = {(a, b): 0.25 for a in names for b in names if a != b}
    svg = edges_svg(chances, names)
    picture = Picture(svg)
    assert len(svg) < 150_000
    assert any("500 nodes, a cell is the mean of about 61 edges" in t for t in picture.texts)
    squares = [p for p in picture.root.iter(f"{SVG}path") if p.get("fill-opacity")]
    assert [p.get("fill-opacity") for p in squares] == ["0.25"]
    assert squares[0].get("d", "").count("M") == 64 * 64


def test_equal_distributions_give_equal_bytes_in_a_scrolling_box() -> None:
    assert learned(5)._repr_html_() == learned(5)._repr_html_()
    assert learned(5)._repr_html_().startswith('<div style="overflow-x:auto')


def test_hostile_names_are_words() -> None:
    edges = EdgeDistribution(HOSTILE)
    assert Picture(edges._repr_svg_()).harmless
    many = EdgeDistribution([*HOSTILE, *(f"n{k}" for k in range(9))])
    assert Picture(many._repr_svg_()).harmless
    assert Picture(edges_svg({}, list(HOSTILE), title=HOSTILE[0])).harmless


def test_nothing_to_draw_is_drawn() -> None:
    assert Picture(edges_svg({}, [])).texts == []


@pytest.mark.parametrize("chance", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(chance: float) -> None:
    with pytest.raises(ConfigError, match=r"a -> b must be in \[0, 1\]"):
        edges_svg({("a", "b"): chance}, ["a", "b"])
    with pytest.raises(ConfigError, match="both names must be in `order`"):
        edges_svg({("a", "b"): 0.5}, ["a"])


def test_delayed_edges_are_dashed_and_say_so() -> None:
    chances = {("a", "b"): 0.5, ("b", "a"): 0.25}
    picture = Picture(edges_svg(chances, ["a", "b"], delays={("b", "a"): 2}))
    late, other = picture.arrow("b → a"), picture.arrow("a → b")
    assert late.get("stroke-dasharray") and not other.get("stroke-dasharray")
    assert (late[0].text or "").endswith("delivered 2 rounds later")
    names = [f"n{k}" for k in range(12)]
    many = edges_svg({("n1", "n0"): 0.5}, names, delays={("n1", "n0"): 1})
    assert "delivered 1 round later" in many
