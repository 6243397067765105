"""Edge probabilities as a picture: arcs over a row of nodes, or a matrix for many nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from swarm_ui.errors import ConfigError
from swarm_ui.graph.topology import Edge
from swarm_ui.viz import svg
from swarm_ui.viz.layout import Point
from swarm_ui.viz.svg import Box, Canvas, arrow, group, number, rect, small, tag, text, width

MOST_ARCS = 8
"""Maximum number of nodes in a row; more are drawn as a matrix."""
_NAMED, _FIGURED, _MOST_CELLS = 40, 16, 64
_MARGIN, _HIGH, _RISE = 14.0, 30.0, 30.0


def edges_svg(
    probabilities: Mapping[Edge, float],
    order: Sequence[str],
    chosen: Collection[Edge] = (),
    title: str = "",
    delays: Mapping[Edge, int] = MappingProxyType({}),
) -> str:
    """Edges with their probabilities as an SVG document.

    Up to eight nodes are drawn as a row: arcs above run forwards in ``order``, arcs below run
    backwards, and a more probable edge is thicker; delayed edges are dashed. More nodes are drawn
    as a matrix with senders down and listeners across. Beyond 64 nodes a cell shows the mean of
    several edges.

    Args:
        probabilities: the probability of each edge that may occur.
        order: all nodes, first speaker first.
        chosen: edges of the most probable graph, drawn in blue.
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
    draw = _arcs if len(order) <= MOST_ARCS else matrix
    wide, high = draw(canvas, probabilities, order, top, frozenset(chosen), delays)
    wide = max(wide, 240.0)
    if title:
        room = wide - 2 * _MARGIN
        line = text(_MARGIN, _MARGIN + 11, title, size=svg.WORDS, room=room, opacity=0.85)
        canvas.over.append(group(title, line))
    return canvas.document(wide, high, title or f"{len(probabilities)} edges")


def _arcs(
    canvas: Canvas,
    probabilities: Mapping[Edge, float],
    order: Sequence[str],
    top: float,
    chosen: Collection[Edge],
    delays: Mapping[Edge, int],
) -> Point:
    """Draw the row of nodes and its arcs; returns the width and height of the picture."""
    size = min(150.0, max((width(name, svg.NAME) for name in order), default=0.0) + 22)
    step = max(size + 26, 96.0)
    place = {name: k for k, name in enumerate(order)}
    spans = [place[b] - place[a] for a, b in probabilities]
    above, below = max([0, *spans]), -min([0, *spans])
    line = top + 10 + _RISE * above
    for edge in sorted(probabilities, key=lambda e: (probabilities[e], e)):
        chance, picked = probabilities[edge], edge in chosen
        tooltip = _tooltip(edge, chance, picked, delays)
        curve, (x, y) = _arc(place[edge[0]], place[edge[1]], step, size, line)
        drawn = arrow(
            curve,
            tooltip,
            colour=svg.BLUE if picked else svg.INK,
            thick=0.8 + 3.0 * chance,
            opacity=0.2 + 0.75 * chance,
            dash="5 3" if delays.get(edge) else None,
        )
        canvas.lines.append(drawn)
        near = [(x + shift, y) for shift in (0.0, -14.0, 14.0)]
        canvas.label(near, f"{chance:.2f}", tooltip, opacity=0.45 + 0.55 * chance)
    for name, k in place.items():
        box = Box(_MARGIN + k * step, line, size, _HIGH)
        label = text(box.centre, box.middle + 4, name, anchor="middle", room=size - 12)
        canvas.over.append(group(name, rect(box, svg.BLUE), label))
    wide = 2 * _MARGIN + (len(order) - 1) * step + size
    return wide, line + _HIGH + _RISE * below + 10 + _MARGIN


def _tooltip(edge: Edge, chance: float, chosen: bool, delays: Mapping[Edge, int]) -> str:
    told = f"{edge[0]} → {edge[1]}: {chance:.3f}" + ", in the most probable graph" * chosen
    late = f", delivered {svg.counted(delays[edge], 'round')} later" if delays.get(edge) else ""
    return told + late


def _arc(start: int, end: int, step: float, size: float, line: float) -> tuple[str, Point]:
    """The curve of an arc and its middle.

    Arcs to the right are above the line, arcs to the left below it. A longer arc is higher.
    """
    ahead = end > start
    side = 1 if ahead else -1
    reach = abs(end - start)
    aside = side * min(size * 0.36, 40.0) * (1.05 - 0.85 * min(1.0, reach / MOST_ARCS))
    x = _MARGIN + start * step + size / 2 + aside
    to_x = _MARGIN + end * step + size / 2 - aside
    y = line if ahead else line + _HIGH
    peak = y - side * _RISE * reach
    # A bend of this kind reaches three quarters of the way to its control points.
    control = y + (peak - y) / 0.75
    lean = side * min(step * 0.3, 34.0)
    curve = (
        f"M{number(x)} {number(y)}C{number(x + lean * 0.4)} {number(control)} "
        f"{number(to_x - lean * 0.4)} {number(control)} {number(to_x)} {number(y)}"
    )
    return curve, ((x + to_x) / 2, peak)


def matrix(
    canvas: Canvas,
    probabilities: Mapping[Edge, float],
    order: Sequence[str],
    top: float,
    chosen: Collection[Edge] = (),
    delays: Mapping[Edge, int] = MappingProxyType({}),
) -> Point:
    """Draw senders down and listeners across; returns the width and height of the picture."""
    count = len(order)
    side = 30.0 if count <= _FIGURED else 18.0 if count <= _NAMED else 9.0
    named, shown = count <= _NAMED, min(count, _MOST_CELLS)
    room = min(130.0, max(width(name, svg.WORDS) for name in order) + 8) if named else 0.0
    left, high = _MARGIN + room, top + (room * 0.75 + 8 if named else 6)
    place = {name: k * shown // count for k, name in enumerate(order)}
    inside = Counter(place.values())
    cells: dict[tuple[int, int], list[Edge]] = {}
    for a, b in probabilities:
        cells.setdefault((place[a], place[b]), []).append((a, b))
    if named:
        _names(canvas, order, side, left, high)
    levels: dict[int, str] = {}
    for (row, column), edges in sorted(cells.items()):
        chance = sum(map(probabilities.__getitem__, edges)) / (inside[row] * inside[column])
        box = Box(left + column * side, high + row * side, side, side)
        if count > shown:  # too many for a tooltip each
            level, to = round(chance * 20), number(side)
            square = f"M{number(box.x)} {number(box.y)}h{to}v{to}h-{to}z"
            levels[level] = levels.get(level, "") + square
            continue
        parts = [rect(box.grown(-1), svg.BLUE, alpha=chance, stroke=None, radius=2)]
        if edges[0] in chosen:
            outline = box.grown(-1.5)
            parts.append(rect(outline, svg.BLUE, alpha=0, stroke=svg.BLUE, thick=1.6, radius=2))
        if count <= _FIGURED:
            figure = f"{chance:.2f}".removeprefix("0") if chance < 0.995 else "1"
            parts.append(small(box.centre, box.middle + 3.5, figure, anchor="middle"))
        told = _tooltip(edges[0], chance, edges[0] in chosen, delays)
        canvas.over.append(group(told, *parts))
    for level, squares in sorted(levels.items()):
        filled = tag("path", d=squares, fill=svg.BLUE, fill_opacity=level / 20, stroke="none")
        canvas.over.append(group(f"about {level / 20:.2f}", filled))
    extent = shown * side
    canvas.over.append(rect(Box(left, high, extent, extent), svg.INK, alpha=0, radius=0, thick=0.6))
    caption = "rows send, columns listen"
    if count > shown:
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
