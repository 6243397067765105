"""What of a page is painted so that a person can see it, from the browser's layout.

A text counts as invisible if it is transparent, has the colour of what is behind it, is tiny, is
clipped away, is covered by an opaque box, or is where no scrolling leads. The colours of pictures
are not known: they hide nothing.

The browser's own answers do not tell this (Chromium 156): ``checkVisibility`` takes a text of
opacity 0.02 and one of its background's colour for visible, ``elementsFromPoint`` misses what is
``inert`` or gets no mouse events, and snapshots have no blended colours of texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from swarm_ui.environments.web import css
from swarm_ui.environments.web.browser import Reply
from swarm_ui.environments.web.css import Colour, Rect, Style

FAINT = 0.1
"""Opacity up to which nothing is seen."""
LEAST_LINE = 4
"""Height of a line of text that can be read, in pixels."""
_BAND = 64
"""Height of the stripes of the window in which boxes are looked up."""
_PICTURES = frozenset({"IMG", "SVG", "CANVAS", "VIDEO", "IFRAME", "OBJECT", "EMBED"})
_FIELDS = frozenset({"INPUT", "SELECT", "TEXTAREA", "METER", "PROGRESS"})
_SVG_TEXTS = frozenset({"TEXT", "TSPAN", "TEXTPATH"})
_ROOTS = ("HTML", "BODY")
_PUSHED = ("submit", "button", "reset")
_VISIBLE = ("visible", "visible")
_NONE: Reply = {"index": (), "value": ()}

Order = tuple[tuple[int, int], ...]
"""Sorts what is painted from the back to the front: the layers around it, from the outside. In a
layer come first its own box, then (-1, n), behind its content, the content (0, 0), then (1, n)."""
_CONTENT = (0, 0)
_TOP: Order = ((2**62, 0),)
_EVERYWHERE: Rect = (-math.inf, -math.inf, math.inf, math.inf)


class _Box(NamedTuple):
    """A painted box. ``colour``: ``None`` for a picture or a gradient."""

    rect: Rect
    order: Order
    place: int
    colour: Colour | None

    @property
    def opaque(self) -> bool:
        return self.colour is not None and self.colour[3] >= 1 - FAINT


class _Inside(NamedTuple):
    """How the content of a node is painted."""

    flow: Rect
    """Where it can be seen, if need be by scrolling."""
    absolute: Rect
    """Where content of ``position: absolute`` can be seen."""
    fixed: Rect
    alpha: float
    context: Order = ()
    """The stacking context."""
    layer: Order = ()
    number: int = 0
    """The browser's number of the layer."""
    hidden: bool = False
    cut_out: bool = False
    """Whether a background shows through the letters."""


class Frame:
    """A document as the browser laid it out. Nodes are named by their places in the document."""

    def __init__(
        self,
        documents: Sequence[Reply],
        words: Sequence[str],
        height: int,
        index: int = 0,
        corner: tuple[float, float] = (0.0, 0.0),
        *,
        shown: bool = True,
        above: Sequence[_Box] | None = None,
    ) -> None:
        """
        Args:
            documents, words: DevTools' snapshot of the page.
            height: that of the window; only what is near it is compared with what is behind and
                over it.
            index, corner: of the document, and of its window.
            shown: whether the frame is visible.
            above: the opaque boxes over the frame; ``None`` for the page itself.
        """
        document, self._words, self._height = documents[index], words, height
        nodes, self._layout, self._inner = document["nodes"], document["layout"], above is not None
        self.id = self._words[document["frameId"]]
        self.title = self._words[document["title"]]
        self.parents: Sequence[int] = nodes["parentIndex"]
        self.numbers: Sequence[int] = nodes["backendNodeId"]
        """The browser's numbers of the nodes."""
        self.tags = [self._words[name].upper() for name in nodes["nodeName"]]
        self.ends = list(range(1, len(self.parents) + 1))
        """For each node, the place after its last descendant."""
        for place in range(len(self.parents) - 1, 0, -1):
            parent = self.parents[place]
            self.ends[parent] = max(self.ends[parent], self.ends[place])
        self._values, self._attributes = nodes["nodeValue"], nodes["attributes"]
        self.inputs = {
            place: self._words[k]
            for kind in ("inputValue", "textValue")
            for place, k in zip(*nodes.get(kind, _NONE).values(), strict=True)
        }
        """What is in the fields."""
        self.ticked = frozenset(nodes.get("inputChecked", _NONE)["index"])
        """The check boxes and radio buttons that are on."""
        self.listening = frozenset(nodes.get("isClickable", _NONE)["index"])
        """The nodes that listen to clicks."""
        self._lay_out(document, corner, shown=shown)
        for box in above or ():
            self._paint(box._replace(order=_TOP))
        inner = nodes.get("contentDocumentIndex", _NONE)
        self.inner = {
            place: Frame(
                documents, words, height, child, self._corner(place),
                shown=self.shows(place), above=self._over(place),
            )
            for place, child in zip(inner["index"], inner["value"], strict=True)
        }  # fmt: skip
        """The frame in each frame element."""

    def _lay_out(self, document: Reply, corner: tuple[float, float], *, shown: bool) -> None:
        """Find for each node how its content is painted, and the painted boxes."""
        layout = self._layout
        scrolled = document.get("scrollOffsetX", 0), document.get("scrollOffsetY", 0)
        self._x, self._y = corner[0] - scrolled[0], corner[1] - scrolled[1]
        self._styles: dict[tuple[int, ...], Style] = {}
        self._stacks = frozenset(layout["stackingContexts"]["index"])
        self._entries: dict[int, int] = {}
        self.texts: dict[int, list[int]] = {}
        for entry, place in enumerate(layout["nodeIndex"]):
            if layout["text"][entry] >= 0:
                self.texts.setdefault(place, []).append(entry)
            elif place > 0:  # the document itself has no styles
                self._entries.setdefault(place, entry)
        self._lines: dict[int, list[tuple[Rect, int, int]]] = {}
        boxes = document["textBoxes"]
        for entry, bounds, start, length in zip(
            boxes["layoutIndex"], boxes["bounds"], boxes["start"], boxes["length"], strict=True
        ):
            self._lines.setdefault(entry, []).append((self._moved(bounds), start, length))
        self._bands: dict[int, list[_Box]] = {}
        self._seen: dict[int, tuple[Rect, Order, bool]] = {}
        """The visible parts of boxes, when they are painted, and whether they are not empty."""
        self._known: dict[int, list[tuple[str, Rect, Rect]]] = {}
        area, window = self._extent(document, (*corner, *scrolled))
        self._inside = [_Inside(area, area, window, float(shown))]
        for place in range(1, len(self.parents)):
            outer = self._inside[self.parents[place]]
            self._inside.append(self._entered(place, outer) if place in self._entries else outer)

    def _extent(self, document: Reply, at: Rect) -> tuple[Rect, Rect]:
        """The area to which scrolling leads, and the window of the frame."""
        width, height = next(iter(self._layout["bounds"]), (0, 0, 0, 0))[2:]
        window = at[0], at[1], at[0] + width, at[1] + height
        roots = [self.style(k) for k in self._entries if self.tags[k] in _ROOTS][:2]
        if not roots:
            return window, window
        flows = next((one for one in map(css.flows, roots) if one != _VISIBLE), ("auto", "auto"))
        flows = ["auto" if one == "visible" else one for one in flows]
        size = document.get("contentWidth", 0), document.get("contentHeight", 0)
        return css.reach(flows, roots[0], window, (*at[2:], *size), window), window

    def _entered(self, place: int, outer: _Inside) -> _Inside:
        """How the content of a node is painted; its own box is added to the painted ones."""
        style, own, entry = self.style(place), self.rect(place), self._entries[place]
        base = {"fixed": outer.fixed, "absolute": outer.absolute}.get(style["position"], outer.flow)
        alpha = outer.alpha * float(style["opacity"]) * css.filtered(style["filter"])
        if css.cut_away(style, own):
            alpha = 0.0
        content = self._content(place, style, own, base)
        turned = style["transform"] != "none" or style["filter"] != "none"
        number, layer, order = self._layout["paintOrders"][entry], outer.layer, outer.layer
        if number != outer.number:
            side = -1 if style["z-index"].startswith("-") else 1
            order = (*outer.context, (side, number))
            layer = (*order, _CONTENT)
        hidden = style["visibility"] != "visible"
        if not hidden and alpha > FAINT:
            self._add(place, style, css.common(own, base), order, alpha)
        return _Inside(
            content,
            content if turned or style["position"] != "static" else outer.absolute,
            content if turned else outer.fixed,
            alpha,
            order if entry in self._stacks else outer.context,
            layer,
            number,
            hidden,
            outer.cut_out or style["background-clip"] == "text",
        )

    def _content(self, place: int, style: Style, own: Rect, base: Rect) -> Rect:
        """Where the content of an element can be seen, if need be by scrolling it."""
        flows = css.flows(style)
        if flows == _VISIBLE or style["display"] == "inline" or self.tags[place] in _ROOTS:
            return base
        if not css.large(css.common(own, base)):
            return css.NOWHERE
        offset = self._layout["scrollRects"][self._entries[place]] or (0, 0, 0, 0)
        return css.reach(flows, style, own, offset, base)

    def _add(self, place: int, style: Style, seen: Rect, order: Order, alpha: float) -> None:
        """Record a box that may be visible."""
        if not css.large(seen):
            return
        colour = css.colour(style["background-color"])
        picture = self.tags[place] in _PICTURES or style["background-image"] != "none"
        picture = picture or colour is None
        red, green, blue, own_alpha = colour or (0, 0, 0, 0)
        framed = (style["border-left-width"], style["border-top-width"]) != ("0px", "0px")
        filled = picture or own_alpha > 0 or framed or self.tags[place] in _FIELDS
        self._seen[place] = seen, order, filled
        if not picture and (own_alpha == 0 or style["background-clip"] == "text"):
            return
        if self.tags[place] in _ROOTS:  # it fills the window
            seen, order = _EVERYWHERE, ()
        # A clip path may have any shape, so that the box covers nothing.
        alpha *= own_alpha * (1 if style["clip-path"] == "none" else 0.5)
        self._paint(_Box(seen, order, place, None if picture else (red, green, blue, alpha)))

    def _paint(self, box: _Box) -> None:
        top, bottom = max(box.rect[1], -self._height / 2), min(box.rect[3], 1.5 * self._height)
        for band in range(int(top // _BAND), int(bottom // _BAND) + 1):
            self._bands.setdefault(band, []).append(box)

    # -- boxes --------------------------------------------------------------------------------

    def rect(self, place: int) -> Rect:
        """The box of a node; without a place if it has none."""
        entry = self._entries.get(place, next(iter(self.texts.get(place, ())), None))
        return css.NOWHERE if entry is None else self._moved(self._layout["bounds"][entry])

    def style(self, place: int) -> Style:
        """The computed styles of a node that has a box."""
        numbers = tuple(self._layout["styles"][self._entries[place]])
        if numbers not in self._styles:  # most nodes share theirs
            given = (self._words[style] for style in numbers)
            self._styles[numbers] = dict(zip(css.STYLES, given, strict=True))
        return self._styles[numbers]

    def shows(self, place: int, *, filled: bool = False) -> bool:
        """Whether something of an element is visible; ``filled``: more than an empty box."""
        for inner in range(place, self.ends[place]):
            seen, order, full = self._seen.get(inner, (css.NOWHERE, (), False))
            if seen != css.NOWHERE and (full or not filled) and not self._covered(seen, order):
                return True
        return False

    def _over(self, place: int) -> tuple[_Box, ...]:
        """The opaque boxes that are painted over a frame element."""
        order = self._seen[place][1] if place in self._seen else ()
        boxes = {box for band in self._bands.values() for box in band}
        return tuple(box for box in boxes if box.order > order and box.opaque)

    def _corner(self, place: int) -> tuple[float, float]:
        """The corner of the page in a frame element, inside of its border and padding."""
        left, top, _, _ = self.rect(place)
        if place not in self._entries:
            return left, top
        edge = {name: css.pixels(length) for name, length in self.style(place).items()}
        left += edge["border-left-width"] + edge["padding-left"]
        return left, top + edge["border-top-width"] + edge["padding-top"]

    def _at(self, x: float, y: float) -> Iterator[_Box]:
        for box in self._bands.get(int(y // _BAND), ()):
            left, top, right, bottom = box.rect
            if left <= x <= right and top <= y <= bottom:
                yield box

    def _covered(self, rect: Rect, order: Order) -> bool:
        """Whether opaque boxes lie over the ends and the middle of an area near the window."""
        if not self._near(rect):
            return False
        y = (rect[1] + rect[3]) / 2
        return all(
            any(box.opaque and box.order > order for box in self._at(x, y))
            for x in (rect[0] + 1, (rect[0] + rect[2]) / 2, rect[2] - 1)
        )

    def _behind(self, x: float, y: float, order: Order) -> Colour | None:
        """The colour behind a point; ``None``: it is not known."""
        mixed: Colour | None = None if self._inner else (255.0, 255.0, 255.0, 1.0)
        under = (box for box in self._at(x, y) if box.order <= order)
        for box in sorted(under, key=lambda box: (box.order, box.place)):
            if box.colour is None or box.opaque:
                mixed = box.colour
            elif mixed is not None:
                mixed = css.mixed(box.colour, mixed)
        return mixed

    # -- texts --------------------------------------------------------------------------------

    def text(self, place: int) -> str:
        """The visible text in a node, on one line; texts that touch are not separated."""
        if self.tags[place] == "INPUT" and self.attribute(place, "type") in _PUSHED:
            return self.inputs.get(place, "") if self.shows(place) else ""
        line, last = "", css.NOWHERE
        for inner in range(place, self.ends[place]):
            for text, begin, end in self._pieces(inner):
                near = abs(begin[0] - last[2]) < 1 and begin[1] < last[3]
                line += text if near else f" {text}"
                last = end
        return " ".join(line.split())

    def written(self, place: int) -> bool:
        """Whether there is text in a node, visible or not."""
        words, texts = self._words, self._layout["text"]
        inside = range(place, self.ends[place])
        return any(words[texts[k]].strip() for one in inside for k in self._texts_of(one))

    def attribute(self, place: int, name: str) -> str:
        """An attribute of an element; empty if it has none."""
        given = iter(self._attributes[place])
        for key, value in zip(given, given, strict=True):
            if self._words[key] == name and value >= 0:
                return str(self._words[value])
        return ""

    def option(self, place: int) -> str:
        """The text of an option of a list of choices, which need not be open."""
        inside = range(place + 1, self.ends[place])
        texts = (self._words[self._values[k]] for k in inside if self.tags[k] == "#TEXT")
        return " ".join((self.attribute(place, "label") or " ".join(texts)).split())

    def around(self, place: int) -> Iterator[int]:
        """A place and those around it, from the inside."""
        while place >= 0:
            yield place
            place = self.parents[place]

    def points(self, place: int) -> bool:
        """Whether the mouse becomes a hand over a node."""
        return place in self._entries and self.style(place)["cursor"] == "pointer"

    def bounds(self, place: int) -> tuple[int, int, int, int] | None:
        """The box of a node in whole pixels; ``None``: it has none."""
        left, top, right, bottom = self.rect(place)
        if place not in self._entries and place not in self.texts:
            return None
        x, y = round(left), round(top)
        return x, y, x + round(right - left), y + round(bottom - top)

    def _texts_of(self, place: int) -> Sequence[int]:
        """The layout's entries of a text; the marks of lists are none."""
        return () if self.tags[place] == "::MARKER" else self.texts.get(place, ())

    def _pieces(self, place: int) -> list[tuple[str, Rect, Rect]]:
        """The visible parts of a text, and where each begins and ends."""
        if place not in self._known:
            found: list[tuple[str, Rect, Rect]] = []
            for entry in self._texts_of(place):
                text = self._words[self._layout["text"][entry]]
                whole = self._moved(self._layout["bounds"][entry]), 0, len(text) * 2
                lines = self._lines.get(entry, [whole]) if text.strip() else []
                seen = [line for line in lines if self._reads(place, line[0])]
                if seen and len(seen) == len(lines):
                    found.append((text, lines[0][0], lines[-1][0]))
                    continue
                units = text.encode("utf-16-le", "surrogatepass")
                for line, start, length in seen:
                    part = units[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")
                    found += [(part, line, line)] if part.strip() else []
            self._known[place] = found
        return self._known[place]

    def _reads(self, place: int, line: Rect) -> bool:
        """Whether a line of a text can be read."""
        holder = place
        while holder not in self._entries:
            holder = self.parents[holder]
        inside = self._inside[holder]
        part = css.common(line, inside.flow)
        tiny = line[3] - line[1] < LEAST_LINE or not css.large(part)
        if inside.hidden or inside.alpha <= FAINT or tiny:
            return False
        style = self.style(holder)
        decorated = style["text-shadow"] != "none" or style["-webkit-text-stroke-width"] != "0px"
        fill = css.colour(style["-webkit-text-fill-color"])
        if fill is not None and not decorated and self.tags[holder] not in _SVG_TEXTS:
            fill = (*fill[:3], fill[3] * inside.alpha)
            if fill[3] <= FAINT:
                return inside.cut_out
            middle = (part[0] + part[2]) / 2, (part[1] + part[3]) / 2
            ground = self._behind(*middle, inside.layer) if self._near(part) else None
            if ground is not None and css.alike(css.mixed(fill, ground), ground):
                return False
        return not self._covered(part, inside.layer)

    def _near(self, rect: Rect) -> bool:
        return rect[3] >= -self._height / 2 and rect[1] <= 1.5 * self._height

    def _moved(self, bounds: Sequence[float]) -> Rect:
        x, y = self._x + bounds[0], self._y + bounds[1]
        return x, y, x + bounds[2], y + bounds[3]
