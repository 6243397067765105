"""What of a frame is painted so that a person can see it, from the browser's layout.

A text counts as invisible if it is transparent, has the colour of what is behind it, is tiny, is
clipped away, is covered by an opaque box, or is where no scrolling leads. The colours of pictures
are not known: they hide nothing.

The browser's own answers do not tell this (Chromium 156): ``checkVisibility`` takes a text of
opacity 0.02 and one of its background's colour for visible, ``elementsFromPoint`` misses what is
``inert`` or gets no mouse events, and snapshots have no blended colours of texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from swarm_ui.environments.web import css
from swarm_ui.environments.web.browser import Reply
from swarm_ui.environments.web.css import Colour, Rect, Style

_PICTURES = frozenset({"IMG", "SVG", "CANVAS", "VIDEO", "IFRAME", "OBJECT", "EMBED"})
_FIELDS = frozenset({"INPUT", "SELECT", "TEXTAREA", "METER", "PROGRESS"})
_SVG_TEXTS = frozenset({"TEXT", "TSPAN", "TEXTPATH"})
FAINT = 0.1
"""Opacity up to which nothing is seen."""
LEAST_LINE = 4
"""Height of a line of text that can be read, in pixels."""
_BAND = 64
"""Height of the stripes of the window in which boxes are looked up."""
_ROOTS = ("HTML", "BODY")
_PUSHED = ("submit", "button", "reset")
_VISIBLE = ("visible", "visible")
_NO_VALUES: Reply = {"index": (), "value": ()}

_EVERYWHERE: Rect = (-math.inf, -math.inf, math.inf, math.inf)
_NO_COLOUR: Colour = (0.0, 0.0, 0.0, 0.0)


class Box(NamedTuple):
    """A painted box. ``colour``: ``None`` for a picture or a gradient."""

    rect: Rect
    order: float
    place: int
    colour: Colour | None


class _Layer(NamedTuple):
    """What is painted together. First its own box, then, half of ``room`` above, what is in it."""

    number: int
    base: float
    room: float


class Surroundings(NamedTuple):
    """Where a frame is."""

    corner: tuple[float, float]
    """Corner of its document in the window."""
    height: int
    """Height of the window; only texts near it are compared with what is behind and over them."""
    shown: bool = True
    """Whether the frame is visible."""
    above: tuple[Box, ...] | None = None
    """Opaque boxes that lie over the frame; ``None`` for the page itself."""


class Painting:
    """The visible texts and boxes of a frame. Nodes are named by the browser's numbers of them, or
    by their places in the document."""

    def __init__(self, document: Reply, words: Sequence[str], around: Surroundings) -> None:
        nodes, layout = document["nodes"], document["layout"]
        self._words, self._around = words, around
        self._layout, self._attributes = layout, nodes["attributes"]
        self.parents: Sequence[int] = nodes["parentIndex"]
        self.numbers: Sequence[int] = nodes["backendNodeId"]
        self.places = {number: place for place, number in enumerate(self.numbers)}
        self.tags = [words[name].upper() for name in nodes["nodeName"]]
        self.ends = _ends(self.parents)
        self._values: Sequence[int] = nodes["nodeValue"]
        self._inputs: dict[int, str] = {
            place: words[k]
            for kind in ("inputValue", "textValue")
            for place, k in zip(*nodes.get(kind, _NO_VALUES).values(), strict=True)
        }
        marks = (
            nodes.get(kind, {}).get("index", ()) for kind in ("inputChecked", "optionSelected")
        )
        self.ticked = frozenset(place for places in marks for place in places)
        """Places of the check boxes, radio buttons and options that are on."""
        self._styles: dict[tuple[int, ...], Style] = {}
        self._stacks = frozenset(layout["stackingContexts"]["index"])
        self._entries: dict[int, int] = {}
        self._texts: dict[int, list[int]] = {}
        for entry, place in enumerate(layout["nodeIndex"]):
            if layout["text"][entry] >= 0:
                self._texts.setdefault(place, []).append(entry)
            else:
                self._entries.setdefault(place, entry)
        self._lines: dict[int, list[tuple[Rect, int, int]]] = {}
        boxes = document["textBoxes"]
        for entry, bounds, start, length in zip(
            boxes["layoutIndex"], boxes["bounds"], boxes["start"], boxes["length"], strict=True
        ):
            self._lines.setdefault(entry, []).append((self._moved(bounds), start, length))
        self._bands: dict[int, list[Box]] = {}
        self._seen: dict[int, Rect] = {}
        """The visible parts of visible boxes."""
        self._filled: set[int] = set()
        """Places of boxes in which something is painted."""
        self._labels: dict[str | None, int] | None = None
        self._pieces: dict[int, tuple[list[tuple[str, Rect]], bool]] = {}
        self._clip(document)

    # -- boxes --------------------------------------------------------------------------------

    def _clip(self, document: Reply) -> None:
        """Find for each node the area in which its content is visible, and its opacity."""
        area, window = self._extent(document)
        count = len(self.parents)
        self._flow, self._alpha = [area] * count, [float(self._around.shown)] * count
        self._hidden = [False] * count
        self._layers, self._contexts = [_Layer(0, 0, 1)] * count, [_Layer(0, 0, 1)] * count
        absolute, fixed = [area] * count, [window] * count
        for place, parent in enumerate(self.parents):
            if parent < 0:
                continue
            entry = self._entries.get(place)
            self._alpha[place], self._hidden[place] = self._alpha[parent], self._hidden[parent]
            if entry is None:
                self._flow[place] = self._flow[parent]
                absolute[place], fixed[place] = absolute[parent], fixed[parent]
                self._layers[place] = self._layers[parent]
                self._contexts[place] = self._contexts[parent]
                continue
            style, own = self._style(place), self._moved(self._layout["bounds"][entry])
            base = {"fixed": fixed, "absolute": absolute}.get(style["position"], self._flow)[parent]
            cut = css.cut(own, style)
            base = base if cut is None else css.common(base, cut)
            turned = style["transform"] != "none" or style["filter"] != "none" or cut is not None
            inside = self._content(place, style, own, base)
            self._flow[place] = inside
            absolute[place] = (
                inside if turned or style["position"] != "static" else absolute[parent]
            )
            fixed[place] = inside if turned else fixed[parent]
            self._alpha[place] *= float(style["opacity"]) * css.filtered(style["filter"])
            self._hidden[place] = style["visibility"] != "visible"
            self._lay(place, parent, entry, style)
            self._add(place, style, css.common(own, base))

    def _lay(self, place: int, parent: int, entry: int, style: Style) -> None:
        """Find the layer of a node. The browser counts layers from the back to the front, but one
        with a negative z-index after the one that it is behind."""
        below, number = self._layers[parent], self._layout["paintOrders"][entry]
        layer = below
        if number != below.number:
            context = self._contexts[parent]
            if style["z-index"].startswith("-"):
                layer = _Layer(number, context.base + context.room / 4, context.room / 8)
            elif below.room < 1:  # in one with a negative z-index
                layer = _Layer(number, below.base + below.room * 3 / 4, below.room / 8)
            else:
                layer = _Layer(number, number, 1)
        self._layers[place] = layer
        self._contexts[place] = layer if entry in self._stacks else self._contexts[parent]

    def _extent(self, document: Reply) -> tuple[Rect, Rect]:
        """The area to which scrolling leads, and the window of the frame."""
        entry = self._entries.get(0)
        if entry is None:
            return css.NOWHERE, css.NOWHERE
        _, _, width, height = self._layout["bounds"][entry]
        scrolled = document.get("scrollOffsetX", 0), document.get("scrollOffsetY", 0)
        left, top = (self._around.corner[axis] + scrolled[axis] for axis in (0, 1))
        window = left, top, left + width, top + height
        size = document.get("contentWidth", width), document.get("contentHeight", height)
        roots = [self._style(p) for p in self._entries if self.tags[p] in _ROOTS][:2]
        flows = [(one["overflow-x"], one["overflow-y"]) for one in roots]
        flow = next((one for one in flows if one != _VISIBLE), _VISIBLE)
        sides = ["auto" if one == "visible" else one for one in flow]
        rtl = bool(roots) and roots[0]["direction"] == "rtl"
        return css.reach(sides, window, window, window, (*scrolled, *size), rtl), window

    def _content(self, place: int, style: Style, own: Rect, base: Rect) -> Rect:
        """Where the content of an element can be seen, if need be by scrolling it."""
        flows = style["overflow-x"], style["overflow-y"]
        if flows == _VISIBLE or style["display"] == "inline" or self.tags[place] in _ROOTS:
            return base
        seen = css.common(own, base)
        if not css.large(seen):
            return css.NOWHERE
        scrolled = self._layout["scrollRects"][self._entries[place]] or (0, 0, 0, 0)
        return css.reach(flows, own, seen, base, scrolled, style["direction"] == "rtl")

    def _add(self, place: int, style: Style, seen: Rect) -> None:
        """Record a box that may be visible."""
        if self._hidden[place] or self._alpha[place] <= FAINT or not css.large(seen):
            return
        self._seen[place] = seen
        picture = self.tags[place] in _PICTURES or style["background-image"] != "none"
        colour = css.colour(style["background-color"])
        picture = picture or colour is None
        red, green, blue, alpha = colour or _NO_COLOUR
        framed = (style["border-left-width"], style["border-top-width"]) != ("0px", "0px")
        if picture or alpha > 0 or framed or self.tags[place] in _FIELDS:
            self._filled.add(place)
        if not picture and (alpha == 0 or style["background-clip"] == "text"):
            return
        order = self._order(place)
        if self.tags[place] in _ROOTS:  # it fills the window
            seen, order = _EVERYWHERE, -1
        # A clip path may have any shape, so that the box covers nothing.
        alpha *= self._alpha[place] * (1 if style["clip-path"] == "none" else 0.5)
        box = Box(seen, order, place, None if picture else (red, green, blue, alpha))
        height = self._around.height
        top, bottom = max(seen[1], -height / 2), min(seen[3], 1.5 * height)
        for band in range(int(top // _BAND), int(bottom // _BAND) + 1):
            self._bands.setdefault(band, []).append(box)

    def _at(self, x: float, y: float) -> Iterator[Box]:
        return _holding(self._bands.get(int(y // _BAND), ()), x, y)

    def _covered(self, rect: Rect, order: float) -> bool:
        """Whether opaque boxes lie over the ends and the middle of an area."""
        y = (rect[1] + rect[3]) / 2

        def hidden(x: float) -> bool:
            over = (box for box in self._at(x, y) if box.order > order)
            return any(_opaque(box) for box in (*over, *_holding(outer, x, y)))

        outer = self._around.above or ()
        return all(hidden(x) for x in (rect[0] + 1, (rect[0] + rect[2]) / 2, rect[2] - 1))

    def _behind(self, x: float, y: float, order: float) -> Colour | None:
        """The colour behind a point; ``None``: it is not known."""
        layers: list[Colour] = []
        under = [box for box in self._at(x, y) if box.order <= order]
        for box in sorted(under, key=lambda box: (box.order, box.place), reverse=True):
            if box.colour is None:
                return None
            layers.append(box.colour)
            if _opaque(box):
                break
        else:
            if self._around.above is not None:  # the page shows through a frame
                return None
        mixed: Colour = (255.0, 255.0, 255.0, 1.0)
        for layer in reversed(layers):
            mixed = css.mixed(layer, mixed)
        return mixed

    def shows(self, number: int, *, filled: bool = False) -> bool:
        """Whether something of an element is visible; ``filled``: more than an empty box."""
        place = self.places.get(number)
        if place is None:  # a part that the browser itself made
            return True
        for inner in range(place, self.ends[place]):
            seen = self._seen.get(inner)
            if seen is None or (filled and inner not in self._filled):
                continue
            if not self._near(seen) or not self._covered(seen, self._order(inner)):
                return True
        return False

    def offers(self, number: int, *, filled: bool = False) -> bool:
        """Whether an element is visible, or a field that only its label shows."""
        place = self.places.get(number)
        if self.shows(number, filled=filled) or place is None:
            return True
        if self.tags[place] == "OPTION":
            lists = (one for one in self.within(place) if self.tags[one] == "SELECT")
            return any(self.offers(self.numbers[one]) for one in lists)
        if self.tags[place] not in _FIELDS:
            return False
        if self._labels is None:
            labels = [place for place, tag in enumerate(self.tags) if tag == "LABEL"]
            self._labels = {self.attribute(one, "for"): one for one in labels}
        labels = [one for one in self.within(place) if self.tags[one] == "LABEL"]
        own = self.attribute(place, "id")
        if own and own in self._labels:
            labels.append(self._labels[own])
        return any(self.text(label) for label in labels)

    def over(self, place: int) -> tuple[Box, ...]:
        """The opaque boxes that are painted over a frame element."""
        order = self._order(place)
        boxes = {box for band in self._bands.values() for box in band}
        over = [box for box in boxes if box.order > order and _opaque(box)]
        return (*(self._around.above or ()), *over)

    # -- texts --------------------------------------------------------------------------------

    def text(self, place: int) -> str:
        """The visible text in a node, on one line."""
        if self.attribute(place, "type") in _PUSHED and self.tags[place] == "INPUT":
            return self.value(place) if self.shows(self.numbers[place]) else ""
        return _joined([piece for inner in self._inside(place) for piece in self._piece(inner)[0]])

    def written(self, place: int) -> bool:
        """Whether there is text in a node, visible or not."""
        return any(self._piece(inner)[1] for inner in self._inside(place))

    def _inside(self, place: int) -> Iterator[int]:
        """The places of the texts in a node, without the marks of lists."""
        inside = range(place, self.ends[place])
        return (k for k in inside if k in self._texts and self.tags[k] != "::MARKER")

    def visible_texts(self) -> Iterator[int]:
        """The places of texts that are visible."""
        for place in self._texts:
            if self.tags[place] != "::MARKER" and self._piece(place)[0]:
                yield place

    def option(self, place: int) -> str:
        """The text of an option of a list of choices, which need not be open."""
        if self.tags[place] != "OPTION":
            return ""
        inside = range(place + 1, self.ends[place])
        texts = [self._words[self._values[k]] for k in inside if self._values[k] >= 0]
        return " ".join((self.attribute(place, "label") or " ".join(texts)).split())

    def value(self, place: int) -> str:
        return self._inputs.get(place, "")

    def attribute(self, place: int, name: str) -> str | None:
        given = self._attributes[place]
        for key, value in zip(given[::2], given[1::2], strict=True):
            if self._words[key] == name:
                return self._words[value] if value >= 0 else ""
        return None

    def within(self, place: int) -> Iterator[int]:
        """A place and those around it, from the inside."""
        while place >= 0:
            yield place
            place = self.parents[place]

    def _piece(self, place: int) -> tuple[list[tuple[str, Rect]], bool]:
        """The visible parts of a text, and whether it has any characters."""
        if place not in self._pieces:
            found: list[tuple[str, Rect]] = []
            some = False
            for entry in self._texts[place]:
                text = self._words[self._layout["text"][entry]]
                if not text.strip():
                    continue
                some = True
                whole = self._moved(self._layout["bounds"][entry]), 0, len(text) * 2
                units = text.encode("utf-16-le", "surrogatepass")
                lines = self._lines.get(entry, [whole])
                seen = [self._reads(place, line) for line, _, _ in lines]
                if all(seen):
                    found.append((text, lines[0][0] if len(lines) == 1 else whole[0]))
                    continue
                for good, (line, start, length) in zip(seen, lines, strict=True):
                    part = units[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")
                    found += [(part, line)] if good and part.strip() else []
            self._pieces[place] = found, some
        return self._pieces[place]

    def _reads(self, place: int, line: Rect) -> bool:
        """Whether a line of a text can be read."""
        holder = place if place in self._entries else self.parents[place]
        while holder not in self._entries:
            holder = self.parents[holder]
        alpha = self._alpha[holder]
        part = css.common(line, self._flow[holder])
        if self._hidden[holder] or alpha <= FAINT or line[3] - line[1] < LEAST_LINE:
            return False
        if not css.large(part):
            return False
        style, layer = self._style(holder), self._layers[holder]
        order = layer.base + layer.room / 2
        decorated = style["text-shadow"] != "none" or style["-webkit-text-stroke-width"] != "0px"
        fill = css.colour(style["-webkit-text-fill-color"])
        if fill is not None and not decorated and self.tags[holder] not in _SVG_TEXTS:
            fill = (*fill[:3], fill[3] * alpha)
            if fill[3] <= FAINT:
                return self._cut_out(holder)
            middle = (part[0] + part[2]) / 2, (part[1] + part[3]) / 2
            ground = self._behind(*middle, order) if self._near(part) else None
            if ground is not None and css.alike(css.mixed(fill, ground), ground):
                return False
        return not (self._near(part) and self._covered(part, order))

    def _cut_out(self, place: int) -> bool:
        """Whether a transparent text lets a background with the shape of the letters show."""
        around = (one for one in self.within(place) if one > 0 and one in self._entries)
        return any(self._style(one)["background-clip"] == "text" for one in around)

    # -- helpers ------------------------------------------------------------------------------

    def _near(self, rect: Rect) -> bool:
        height = self._around.height
        return rect[3] >= -height / 2 and rect[1] <= 1.5 * height

    def _moved(self, bounds: Sequence[float]) -> Rect:
        x, y = self._around.corner
        return x + bounds[0], y + bounds[1], x + bounds[0] + bounds[2], y + bounds[1] + bounds[3]

    def _order(self, place: int) -> float:
        """When a box is painted."""
        layer = self._layers[place]
        begins = layer.number != self._layers[max(0, self.parents[place])].number
        return layer.base if begins else layer.base + layer.room / 2

    def _style(self, place: int) -> Style:
        numbers = tuple(self._layout["styles"][self._entries[place]])
        if numbers not in self._styles:  # most nodes share theirs
            given = (self._words[style] for style in numbers)
            self._styles[numbers] = dict(zip(css.STYLES, given, strict=True))
        return self._styles[numbers]


def _ends(parents: Sequence[int]) -> list[int]:
    """For each node, the place after its last descendant."""
    ends = list(range(1, len(parents) + 1))
    for place in range(len(parents) - 1, 0, -1):
        ends[parents[place]] = max(ends[parents[place]], ends[place])
    return ends


def _holding(boxes: Iterable[Box], x: float, y: float) -> Iterator[Box]:
    for box in boxes:
        left, top, right, bottom = box.rect
        if left <= x <= right and top <= y <= bottom:
            yield box


def _opaque(box: Box) -> bool:
    return box.colour is not None and box.colour[3] >= 1 - FAINT


def _joined(pieces: Sequence[tuple[str, Rect]]) -> str:
    """Texts as one line; those that touch each other are not separated."""
    line, last = "", None
    for text, rect in pieces:
        near = last is not None and abs(rect[0] - last[2]) < 1 and rect[1] < last[3]
        line += text if near else f" {text}"
        last = rect
    return " ".join(line.split())
