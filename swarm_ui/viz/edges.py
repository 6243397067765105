"""Edge probabilities as a picture: a matrix with senders down and listeners across."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from swarm_ui.errors import ConfigError
from swarm_ui.topology import Edge
from swarm_ui.viz import svg
from swarm_ui.viz.layout import Point
from swarm_ui.viz.svg import Box, Canvas, group, number, rect, small, tag, text, width

_FIGURED, _MOST_CELLS = 16, 32
_MARGIN = 14.0


def edges_svg(
    probabilities: Mapping[Edge, float],
    order: Sequence[str],
    chosen: Collection[Edge] = (),
    title: str = "",
    delays: Mapping[Edge, int] = MappingProxyType({}),
) -> str:
    """Edges with their probabilities as an SVG document: a matrix with senders down and listeners
    across.

    A more probable edge is darker; delayed edges have dashed outlines. Beyond 32 nodes a cell shows
    the mean of several edges.

    Args:
        probabilities: the probability of each edge that may occur.
        order: all nodes, first speaker first.
        chosen: edges of the most probable graph, with a blue outline.
        title: a line above.
        delays: for delayed edges, how many rounds later they deliver a message.

    Raises:
        ConfigError: a name is not in ``order``, or a probability is not in [0, 1].
    """
    known = frozenset(order)
    for edge, chance in probabilities.items():
        if not (known.issuperset(edge) and 0.0 <= chance <= 1.0):
            raise ConfigError(
                f"edge to draw: {edge[0]} -> {edge[1]} with probability {chance}: expected two "
                "names of `order`, and a probability in [0, 1]"
            )
    canvas = Canvas()
    top = _MARGIN + (22 if title else 0)
    wide, high = matrix(canvas, probabilities, order, top, frozenset(chosen), delays)
    if title:
        wide = max(wide, min(width(title, svg.WORDS), 420.0) + 2 * _MARGIN)
        room = wide - 2 * _MARGIN
        line = text(_MARGIN, _MARGIN + 11, title, size=svg.WORDS, room=room, opacity=0.85)
        canvas.over.append(group(title, line))
    return canvas.document(wide, high, title or f"{len(probabilities)} edges")


def matrix(
    canvas: Canvas,
    probabilities: Mapping[Edge, float],
    order: Sequence[str],
    top: float,
    chosen: Collection[Edge] = (),
    delays: Mapping[Edge, int] = MappingProxyType({}),
) -> Point:
    """Draw senders down and listeners across; returns the width and height of the picture."""
    count, shown = len(order), min(len(order), _MOST_CELLS)
    side, named = (30.0 if count <= _FIGURED else 18.0), count == shown
    names = order if named else ()
    room = min(130.0, max((width(name, svg.WORDS) for name in names), default=0.0) + 8)
    left, high = _MARGIN + room, top + room * 0.75 + 8
    _names(canvas, names, side, left, high)
    place = {name: k * shown // count for k, name in enumerate(order)}
    inside = Counter(place.values())
    cells: dict[tuple[int, int], list[Edge]] = {}
    for a, b in probabilities:
        cells.setdefault((place[a], place[b]), []).append((a, b))
    for (row, column), edges in sorted(cells.items()):
        chance = sum(map(probabilities.__getitem__, edges)) / (inside[row] * inside[column])
        box = Box(left + column * side, high + row * side, side, side)
        picked, late = named and edges[0] in chosen, delays.get(edges[0]) if named else None
        outline = svg.BLUE if picked else svg.INK if late else None
        dash = "3 2" if late else None
        parts = [rect(box.grown(-1.5), svg.BLUE, alpha=chance, stroke=outline, thick=1.6, radius=2,
                      dash=dash)]  # fmt: skip
        if count <= _FIGURED:
            figure = box.centre, box.middle + 3.5, f"{chance:.2f}"
            parts.append(small(*figure, anchor="middle"))
        told = f"about {chance:.2f}"
        if named:
            told = f"{edges[0][0]} → {edges[0][1]}: {chance:.3f}"
            told += ", in the most probable graph" * picked
            told += f", delivered {svg.counted(late, 'round')} later" if late else ""
        canvas.over.append(group(told, *parts))
    extent = shown * side
    canvas.over.append(rect(Box(left, high, extent, extent), svg.INK, alpha=0, radius=0, thick=0.6))
    caption = "rows send, columns listen"
    if not named:
        each = (count / shown) ** 2
        caption += f"; {count:,} nodes, a cell is the mean of about {each:.0f} pairs"
    canvas.over.append(small(_MARGIN, high + extent + 18, caption, opacity=0.75))
    wide = max(left + extent, width(caption, svg.SMALL) + _MARGIN) + _MARGIN
    return wide + room * 0.35, high + extent + 18 + _MARGIN


def _names(canvas: Canvas, order: Sequence[str], side: float, x: float, y: float) -> None:
    for k, name in enumerate(order):
        row = text(x - 6, y + k * side + side / 2 + 4, name, size=svg.WORDS, anchor="end", room=120)
        column = text(0, 0, name, size=svg.WORDS, room=120)
        turn = f"translate({number(x + k * side + side / 2 + 2)} {number(y - 5)}) rotate(-50)"
        canvas.over += [group(name, row), tag("g", column, transform=turn)]
