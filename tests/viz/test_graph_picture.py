"""Pictures of graphs: all of it is there, and nothing but words comes of words."""

from __future__ import annotations

import random

import pytest
from graph_fakes import FixedModel, Sleeper, click
from picture_reading import HOSTILE, SVG, Picture

from swarm_ui import CollabGraph, Message
from swarm_ui.nodes import MajorityVote
from swarm_ui.topology import Edge, random_dag
from swarm_ui.viz import scrolling


def urgent(message: Message) -> bool:
    return "urgent" in message.content


def team(agents: int, rounds: int = 1, density: float = 0.5) -> CollabGraph:
    model = FixedModel({None: click(1)})
    return CollabGraph.collaborative(agents, rounds, model=model, density=density)


def sleepers(*names: str, edges: list[Edge], output: str | None = None) -> CollabGraph:
    return CollabGraph([Sleeper(name) for name in names], edges, output=output)


def test_conditions_are_dashed_and_named() -> None:
    graph = sleepers("router", "clerk", "letters", "end", edges=[("clerk", "end")], output="end")
    graph = graph.with_edge("router", "clerk", when=urgent).with_edge("router", "letters")
    graph = graph.with_edge("router", "end", when=lambda message: True)
    picture = Picture(graph._repr_svg_())
    assert {"if urgent", "if (…)"} <= set(picture.texts)
    assert picture.arrow("router → clerk").get("stroke-dasharray")
    assert picture.arrow("clerk → end").get("stroke-dasharray") is None


def test_a_nested_graph_is_opened_where_there_is_room() -> None:
    inner = team(3, 2).named("experts")
    graph = CollabGraph([Sleeper("router"), inner], [("router", "experts")])
    picture = Picture(graph._repr_svg_())
    assert {"router", "experts", "agent_0", "agent_1", "agent_2", "vote"} <= set(picture.texts)
    assert len(picture.arrows) == len(graph.edges) + len(inner.edges)
    outer, within = picture.box("experts"), picture.box("agent_1")
    for key, size in (("x", "width"), ("y", "height")):
        start, end = float(outer.get(key, 0)), float(outer.get(size, 0))
        place, room = float(within.get(key, 0)), float(within.get(size, 0))
        assert start < place and place + room < start + end
    crowd = CollabGraph([Sleeper("router"), team(50).named("crowd")], [("router", "crowd")])
    closed = Picture(crowd._repr_svg_())
    assert "51 nodes" in closed.texts and "agent_0" not in closed.texts
    assert (
        len(list(closed.root.iter(f"{SVG}rect"))) == 3
    )  # the router, and the crowd with two outlines


def test_hostile_names_are_words() -> None:
    names = [word.replace(":", ";").replace("/", "|") for word in HOSTILE[:3]]
    graph = sleepers(*names, "end", edges=[(name, "end") for name in names]).named(names[0])
    picture = Picture(graph._repr_html_().removesuffix("</div>").split(">", 1)[1])
    assert picture.harmless
    assert all(any(title.startswith(name) for title in picture.titles) for name in names)


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_conditions_and_adapters_are_words(word: str) -> None:
    def condition(message: Message) -> bool:
        return True

    condition.__name__ = word
    node = Sleeper("a")
    node.adapter = word  # type: ignore[attr-defined]
    graph = CollabGraph([node, Sleeper("b")], [("a", "b")], when={("a", "b"): condition})
    assert Picture(graph._repr_svg_()).harmless


def test_delayed_edges_are_dashed_named_and_pass_below_all_boxes() -> None:
    names = ("planner", "writer", "critic", "editor")
    edges = [("planner", "writer"), ("writer", "critic"), ("planner", "critic")]
    graph = sleepers(*names, edges=[*edges, ("critic", "editor")], output="writer")
    graph = graph.with_rounds(4, until=approved).with_edge("critic", "writer", delay=1)
    graph = graph.with_edge("editor", "planner", delay=2, when=urgent)
    picture = Picture(graph._repr_svg_())
    assert len(picture.arrows) == len(graph.edges)
    for edge, words in (("critic → writer", "1 round later"), ("editor → planner", "2 rounds")):
        arrow = picture.arrow(edge)
        assert arrow.get("stroke-dasharray") and words in (arrow[0].text or "")
    assert {"delay 1", "if urgent, delay 2"} <= set(picture.texts)
    assert "at most 4 rounds, until approved" in picture.texts
    assert picture.inside()


def approved(newest: object) -> bool:
    return True


@pytest.mark.parametrize(("agents", "rounds"), [(1, 1), (4, 3), (12, 2), (30, 1)])
def test_every_node_and_edge_is_there(agents: int, rounds: int) -> None:
    graph = team(agents, rounds, 0.3)
    picture = Picture(graph._repr_svg_())
    assert set(graph.nodes) <= set(picture.texts)
    for sender, listener in graph.edges:
        picture.arrow(f"{sender} → {listener}")
    assert len(picture.arrows) == len(graph.edges)
    assert (f"{rounds} rounds" in " ".join(picture.texts)) == (rounds > 1)
    assert picture.inside()


def test_equal_graphs_give_equal_bytes_and_ids_differ_between_pictures() -> None:
    assert team(5, 2)._repr_html_() == scrolling(team(5, 2)._repr_svg_())
    ids = [
        {e.get("id") for e in Picture(svg).root.iter() if e.get("id")}
        for svg in (team(5)._repr_svg_(), team(4)._repr_svg_())
    ]
    assert ids[0] and not ids[0] & ids[1]


@pytest.mark.parametrize(("agents", "density"), [(60, 0.1), (700, 1.0)])
def test_a_large_graph_is_a_small_picture(agents: int, density: float) -> None:
    names = [f"agent_{k}" for k in range(agents)]
    edges = random_dag(names, density, random.Random(0))
    graph = CollabGraph([*map(Sleeper, names), MajorityVote()], edges, output="vote")
    svg = graph._repr_svg_()
    assert len(svg) < 400_000 and Picture(svg).inside()
    count = f"{agents + 1} nodes, {agents + len(edges):,} edges"
    assert any(count in text for text in Picture(svg).texts)
