"""Edge probabilities as a picture: arcs over a row of nodes, or a matrix for many nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from swarm_ui.errors import ConfigError
from swarm_ui.graph.topology import Edge
from swarm_ui.viz import svg
from swarm_ui.viz.layered_layout import Point
from swarm_ui.viz.svg import Box, Canvas, arrow, group, rect, small, tag, text
from swarm_ui.viz.svg_text import number, width

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
    _check(probabilities, order)
    canvas = Canvas()
    top = _MARGIN + (22 if title else 0)
    if len(order) <= MOST_ARCS:
        wide, high = _arcs(canvas, probabilities, order, frozenset(chosen), top, delays=delays)
    else:
        wide, high = _matrix(canvas, probabilities, order, frozenset(chosen), top, delays)
    wide = max(wide, 240.0)
    if title:
        line = text(
            _MARGIN, _MARGIN + 11, title, size=svg.WORDS, room=wide - 2 * _MARGIN, opacity=0.85
        )
        canvas.over.append(group(title, line))
    return canvas.document(wide, high, title or f"{len(probabilities)} edges")


def arcs_svg(probabilities: Mapping[Edge, float], order: Sequence[str], label: str) -> str:
    """Draw any number of nodes in a row, close together, with arcs that have no numbers on them.

    ``label`` describes the picture to screen readers. Raises ``ConfigError`` as `edges_svg` does.
    """
    _check(probabilities, order)
    canvas = Canvas()
    size = _arcs(canvas, probabilities, order, frozenset(), 0.0, figures=False)
    return canvas.document(*size, label)


def _check(probabilities: Mapping[Edge, float], order: Sequence[str]) -> None:
    known = frozenset(order)
    for (sender, listener), chance in probabilities.items():
        if not {sender, listener} <= known:
            raise ConfigError(
                f"edges to draw: {sender} -> {listener}: both names must be in `order`"
            )
        if not 0.0 <= chance <= 1.0:
            raise ConfigError(
                f"edges to draw: the probability of {sender} -> {listener} must be in [0, 1], "
                f"got {chance}"
            )


def _arcs(
    canvas: Canvas,
    probabilities: Mapping[Edge, float],
    order: Sequence[str],
    chosen: frozenset[Edge],
    top: float,
    *,
    figures: bool = True,
    delays: Mapping[Edge, int] = MappingProxyType({}),
) -> tuple[float, float]:
    """Draw the row of nodes and its arcs; returns the width and height of the picture."""
    size = min(150.0, max((width(name, svg.NAME) for name in order), default=0.0) + 22)
    step = max(size + 26, 96.0) if figures else size + 10
    place = {name: k for k, name in enumerate(order)}
    spans = [place[b] - place[a] for a, b in probabilities]
    above, below = max([0, *spans]), -min([0, *spans])
    line = top + 10 + _RISE * above
    for edge in sorted(probabilities, key=lambda e: (probabilities[e], e)):
        chance, picked = probabilities[edge], edge in chosen
        tooltip = _tooltip(edge, chance, picked, delays.get(edge, 0))
        curve, middle = _arc(place[edge[0]], place[edge[1]], step, size, line)
        drawn = arrow(
            curve,
            tooltip,
            colour=svg.BLUE if picked or not figures else svg.INK,
            thick=0.8 + (3.0 if figures else 1.0) * chance,
            opacity=0.2 + 0.75 * chance,
            dash="5 3" if delays.get(edge) else None,
        )
        canvas.lines.append(drawn)
        if figures:
            near = [(middle[0] + shift, middle[1]) for shift in (0.0, -14.0, 14.0)]
            canvas.label(near, f"{chance:.2f}", tooltip, opacity=0.45 + 0.55 * chance)
    for name, k in place.items():
        box = Box(_MARGIN + k * step, line, size, _HIGH)
        label = text(box.x + size / 2, box.middle + 4, name, anchor="middle", room=size - 12)
        canvas.over.append(group(name, rect(box, svg.BLUE), label))
    wide = 2 * _MARGIN + (len(order) - 1) * step + size
    return wide, line + _HIGH + _RISE * below + 10 + _MARGIN


def _tooltip(edge: Edge, chance: float, chosen: bool, delay: int) -> str:
    told = f"{edge[0]} → {edge[1]}: {chance:.3f}" + ", in the most probable graph" * chosen
    return told + (f", delivered {delay} round{'s' * (delay > 1)} later" if delay else "")


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


# -- many nodes -------------------------------------------------------------------------------


def _matrix(
    canvas: Canvas,
    probabilities: Mapping[Edge, float],
    order: Sequence[str],
    chosen: frozenset[Edge],
    top: float,
    delays: Mapping[Edge, int],
) -> tuple[float, float]:
    count = len(order)
    side = 30.0 if count <= _FIGURED else 18.0 if count <= _NAMED else 9.0
    named = count <= _NAMED
    room = min(130.0, max(width(name, svg.WORDS) for name in order) + 8) if named else 0.0
    left, high = _MARGIN + room, top + (room * 0.75 + 8 if named else 6)
    shown = min(count, _MOST_CELLS)
    if named:
        _names(canvas, order, side, (left, high))
        _cells(canvas, probabilities, order, chosen, side, (left, high), delays)
    else:
        _levels(canvas, _means(probabilities, order, shown), side, (left, high))
    extent = shown * side
    outline = Box(left, high, extent, extent)
    canvas.over.append(rect(outline, svg.INK, alpha=0.0, radius=0, thick=0.6))
    caption = "rows send, columns listen, in the most probable order"
    if count > shown:
        each = (count / shown) ** 2
        caption += f"; {count:,} nodes, a cell is the mean of about {each:.0f} edges"
    canvas.over.append(small(_MARGIN, high + extent + 18, caption, opacity=0.75))
    wide = max(left + extent, width(caption, svg.SMALL) + _MARGIN) + _MARGIN
    return wide + room * 0.35, high + extent + 18 + _MARGIN


def _names(canvas: Canvas, order: Sequence[str], side: float, corner: tuple[float, float]) -> None:
    x, y = corner
    for k, name in enumerate(order):
        row = text(x - 6, y + k * side + side / 2 + 4, name, size=svg.WORDS, anchor="end", room=120)
        column = text(0, 0, name, size=svg.WORDS, room=120)
        turn = f"translate({number(x + k * side + side / 2 + 2)} {number(y - 5)}) rotate(-50)"
        canvas.over.append(group(name, row))
        canvas.over.append(tag("g", column, transform=turn))


def _cells(
    canvas: Canvas,
    probabilities: Mapping[Edge, float],
    order: Sequence[str],
    chosen: frozenset[Edge],
    side: float,
    corner: tuple[float, float],
    delays: Mapping[Edge, int],
) -> None:
    place = {name: k for k, name in enumerate(order)}
    for (a, b), chance in probabilities.items():
        box = Box(corner[0] + place[b] * side, corner[1] + place[a] * side, side, side)
        picked = (a, b) in chosen
        parts = [rect(box.grown(-1), svg.BLUE, alpha=chance, stroke=None, radius=2)]
        if picked:
            parts.append(
                rect(box.grown(-1.5), svg.BLUE, alpha=0.0, stroke=svg.BLUE, thick=1.6, radius=2)
            )
        if side >= 30:
            figure = f"{chance:.2f}".removeprefix("0") if chance < 0.995 else "1"
            parts.append(small(box.centre, box.middle + 3.5, figure, anchor="middle"))
        tooltip = _tooltip((a, b), chance, picked, delays.get((a, b), 0))
        canvas.over.append(group(tooltip, *parts))


def _means(
    probabilities: Mapping[Edge, float], order: Sequence[str], shown: int
) -> dict[tuple[int, int], float]:
    """Mean probability of the edges in each cell, by (row, column)."""
    place = {name: k * shown // len(order) for k, name in enumerate(order)}
    total: dict[tuple[int, int], list[float]] = {}
    for (a, b), chance in probabilities.items():
        total.setdefault((place[a], place[b]), []).append(chance)
    return {cell: sum(found) / len(found) for cell, found in total.items()}


def _levels(
    canvas: Canvas, means: Mapping[tuple[int, int], float], side: float, corner: tuple[float, float]
) -> None:
    level: dict[int, list[str]] = {}
    across = number(side)
    for (row, column), chance in sorted(means.items()):
        x, y = number(corner[0] + column * side), number(corner[1] + row * side)
        level.setdefault(round(chance * 20), []).append(f"M{x} {y}h{across}v{across}h-{across}z")
    for strength, squares in sorted(level.items()):
        shape, alpha = "".join(squares), strength / 20
        drawn = tag("path", d=shape, fill=svg.BLUE, fill_opacity=alpha, stroke="none")
        canvas.over.append(group(f"about {alpha:.2f}", drawn))
