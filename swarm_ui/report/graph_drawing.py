"""Who talks to whom, drawn as arcs over a row of agents in topological order."""

from __future__ import annotations

from swarm_ui.graph.topology import predecessors
from swarm_ui.report.contents import GraphDrawing
from swarm_ui.report.html import Markup, note, tag
from swarm_ui.viz.edge_picture import arcs_svg
from swarm_ui.viz.layered_layout import ordered


def graph(data: GraphDrawing) -> Markup:
    """One graph. A probable edge is thick. Arcs run from left to right, unless there is a cycle."""
    names = dict.fromkeys([*data.nodes, *(name for edge in data.edges for name in edge)])
    weights = data.weights or (1.0,) * len(data.edges)
    chances = {e: min(1.0, max(0.0, w)) for e, w in zip(data.edges, weights, strict=True)}
    order = ordered(predecessors(names, data.edges))
    picture = Markup(arcs_svg(chances, order, data.title))
    below = note("" if data.edges else "no edges")
    attributes = {"class": "drawn-graph"}
    return tag("figure", tag("figcaption", data.title), picture, below, attrs=attributes)
