"""Who talks to whom, drawn as arcs over a line of agents.

Agents stand in a topological order, so that all talk goes from left to right; arcs never run
through an agent, however many edges there are.
"""

from __future__ import annotations

import networkx

from swarm_ui.report.contents import GraphDrawing
from swarm_ui.report.html import Attribute, Markup, tag

_RADIUS = 8
_LONGEST = 14


def graph(data: GraphDrawing) -> Markup:
    """One graph. Edge weights show as strength of the arc."""
    order = _order(data)
    shown = {name: _short(name) for name in order}
    gap = max([52, *(7 * len(s) + 14 for s in shown.values())])
    place = {name: gap / 2 + k * gap for k, name in enumerate(order)}
    reach = max([1, *(abs(order.index(a) - order.index(b)) for a, b in data.edges)])
    base = 18 + gap * reach * 0.32 + _RADIUS
    weights = data.weights or (1.0,) * len(data.edges)
    arcs = [
        _arc(place[a], place[b], base, w, f"{a} → {b}: {w:.2f}")
        for (a, b), w in zip(data.edges, weights, strict=True)
    ]
    dots = [_node(place[name], base, name, shown[name]) for name in order]
    width, height = gap * max(1, len(order)), base + _RADIUS + 22
    frame: dict[str, Attribute] = {
        "viewBox": f"0 0 {width:g} {height:g}",
        "class": "arcs",
        "style": f"max-width:{width:g}px",
        "role": "img",
        "aria-label": data.title,
    }
    picture = tag("svg", *arcs, *dots, attrs=frame)
    none = tag("p", "no edges", attrs={"class": "note"}) if not data.edges else Markup("")
    return tag("figure", tag("figcaption", data.title), picture, none)


def _order(data: GraphDrawing) -> list[str]:
    """Topological, ties and cycles (which a report must survive) by the given order."""
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_nodes_from(data.nodes)
    graph.add_edges_from(data.edges)
    names = list(graph.nodes)
    if not networkx.is_directed_acyclic_graph(graph):
        return names
    return list(networkx.lexicographical_topological_sort(graph, key=names.index))


def _arc(start: float, end: float, base: float, weight: float, told: str) -> Markup:
    """A half ellipse from node to node with a head that points down on the listener."""
    side = 1 if end > start else -1
    x1, x2 = start + side * 4, end - side * 4
    top = base - _RADIUS
    peak = top - abs(end - start) * 0.42
    path = f"M{x1:.1f},{top:.1f} C{x1:.1f},{peak:.1f} {x2:.1f},{peak:.1f} {x2:.1f},{top:.1f}"
    head = f"M{x2 - 4:.1f},{top - 7:.1f} L{x2:.1f},{top:.1f} L{x2 + 4:.1f},{top - 7:.1f} Z"
    strength = 0.15 + 0.85 * min(1.0, max(0.0, weight))
    return tag(
        "g",
        tag("title", told),
        tag("path", attrs={"d": path, "class": "arc"}),
        tag("path", attrs={"d": head, "class": "head"}),
        attrs={"opacity": strength},
    )


def _node(x: float, base: float, name: str, shown: str) -> Markup:
    return tag(
        "g",
        tag("title", name),
        tag("circle", attrs={"cx": x, "cy": base, "r": _RADIUS, "class": "agent"}),
        tag("text", shown, attrs={"x": x, "y": base + _RADIUS + 15, "class": "name"}),
    )


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
