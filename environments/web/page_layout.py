"""Where the nodes of a page and of its frames are, and what of them is visible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from swarm_ui.environments.web import css
from swarm_ui.environments.web.browser import Reply, whole
from swarm_ui.environments.web.painting import Painting, Surroundings

Bounds = tuple[int, int, int, int]


class Layout(NamedTuple):
    """Places of nodes in the window, in pixels."""

    bounds: Mapping[int, Bounds]
    frames: Mapping[int, str]
    """The frame in each frame element."""
    paintings: Mapping[str, Painting]
    """What is visible in each frame."""
    listening: frozenset[int]
    """Nodes that listen to clicks."""
    pointing: frozenset[int]
    """Nodes over which the mouse becomes a hand."""


def layout_of(snapshot: Reply, height: int) -> Layout:
    """The layout in a snapshot of DevTools; ``height`` is that of the window."""
    documents = snapshot["documents"]
    words = [whole(word) for word in snapshot["strings"]]
    bounds: dict[int, Bounds] = {}
    frames: dict[int, str] = {}
    paintings: dict[str, Painting] = {}
    listening: set[int] = set()
    pointing: set[int] = set()
    # A document's places count from its own corner; a frame's corner is known after its parent's.
    waiting = [(0, Surroundings((0.0, 0.0), height))]
    while waiting:
        index, around = waiting.pop()
        document = documents[index]
        nodes, layout = document["nodes"], document["layout"]
        ids = nodes["backendNodeId"]
        x = around.corner[0] - document.get("scrollOffsetX", 0)
        y = around.corner[1] - document.get("scrollOffsetY", 0)
        painting = Painting(document, words, around._replace(corner=(x, y)))
        paintings[words[document["frameId"]]] = painting
        inner = nodes.get("contentDocumentIndex", {"index": (), "value": ()})
        corners: dict[int, tuple[float, float]] = {}
        pages = dict(zip(inner["index"], inner["value"], strict=True))
        for place, box, styles in zip(
            layout["nodeIndex"], layout["bounds"], layout["styles"], strict=True
        ):
            left, top = round(x + box[0]), round(y + box[1])
            bounds[ids[place]] = left, top, left + round(box[2]), top + round(box[3])
            if styles and words[styles[0]] == "pointer":
                pointing.add(ids[place])
            if place in pages:  # the page of a frame is inside of its border and padding
                edges = [css.pixels(words[style]) for style in styles[1:5]]
                corners[place] = x + box[0] + sum(edges[:2]), y + box[1] + sum(edges[2:])
        listening.update(ids[place] for place in nodes.get("isClickable", {}).get("index", ()))
        for place, child in pages.items():
            frames[ids[place]] = words[documents[child]["frameId"]]
            corner = corners.get(place, (x, y))  # a frame without a place is not shown
            shown = around.shown and painting.shows(ids[place])
            waiting.append((child, Surroundings(corner, height, shown, painting.over(place))))
    return Layout(bounds, frames, paintings, frozenset(listening), frozenset(pointing))
