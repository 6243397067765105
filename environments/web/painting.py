"""What of a page is painted so that a person can see it, from the browser's layout.

A text counts as invisible if it is transparent, has the colour of what is behind it, is tiny, is
clipped away, is covered by an opaque box, or is where no scrolling leads. The colours of pictures
are not known: they hide nothing.

The browser's own answers do not tell this (Chromium 156): ``checkVisibility`` takes a text of
opacity 0.02 and one of its background's colour for visible, ``elementsFromPoint`` misses what is
``inert`` or gets no mouse events, and snapshots have no blended colours of texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
_NONE: Reply = {"index": (), "value": ()}


class _Box(NamedTuple):
    """A painted box."""

    order: float  # see Frame._orders
    place: int
    rect: Rect
    colour: Colour | None
    """``None`` for a picture or a gradient."""

    @property
    def opaque(self) -> bool:
        return self.colour is not None and self.colour[3] >= 1 - FAINT


Stripes = Mapping[int, list[_Box]]
"""Boxes by the stripes that they touch: the places above and below the window divided by 64."""


def canvas(height: int) -> Stripes:
    """The white ground of a page. It has the stripes of the window, which is so high, and of half a
    window around it; a text elsewhere is not compared with what is behind and over it."""
    ground = _Box(-1.0, 0, css.EVERYWHERE, (255.0, 255.0, 255.0, 1.0))
    bands = range(int(-height / 2 // _BAND), int(1.5 * height // _BAND) + 1)
    return {band: [ground] for band in bands}


Area = tuple[Rect, Rect]
"""Where something can be seen, if need be by scrolling, and the part that is shown at present."""


class _Inside(NamedTuple):
    """How the content of a node is painted."""

    flow: Area
    absolute: Area
    fixed: Area
    alpha: float
    number: int
    """The browser's number of the layer."""
    order: float


class Frame:
    """A document as the browser laid it out. Nodes are named by their places in the document."""

    def __init__(
        self,
        documents: Sequence[Reply],
        words: Sequence[str],
        painted: Stripes,
        index: int = 0,
        corner: tuple[float, float] = (0.0, 0.0),
        *,
        clip: Rect = css.EVERYWHERE,
        alpha: float = 1.0,
    ) -> None:
        """
        Args:
            documents, words: DevTools' snapshot of the page.
            painted: the boxes of the frames around this one, or a :func:`canvas`.
            index, corner: of the document, and of its window.
            clip: the part of the window that is shown; a page is shown where it is scrolled to.
            alpha: opacity of the frame; 0: it is invisible.
        """
        document, self._words, self._painted = documents[index], words, painted
        nodes, self._layout = document["nodes"], document["layout"]
        self.id, title = words[document["frameId"]], document["title"]
        self.title = words[title] if title >= 0 else ""
        self.parents: Sequence[int] = nodes["parentIndex"]
        self.numbers: Sequence[int] = nodes["backendNodeId"]
        """The browser's numbers of the nodes."""
        self.tags = [words[name].upper() for name in nodes["nodeName"]]
        self.ends = list(range(1, len(self.parents) + 1))
        """For each node, the place after its last descendant."""
        for place in range(len(self.parents) - 1, 0, -1):
            parent = self.parents[place]
            self.ends[parent] = max(self.ends[parent], self.ends[place])
        self._values, self._attributes = nodes["nodeValue"], nodes["attributes"]
        self.inputs = {
            place: words[k]
            for kind in ("inputValue", "textValue")
            for place, k in zip(*nodes.get(kind, _NONE).values(), strict=True)
        }
        """What is in the fields."""
        self.ticked = frozenset(nodes.get("inputChecked", _NONE)["index"])
        """The check boxes and radio buttons that are on."""
        self.listening = frozenset(nodes.get("isClickable", _NONE)["index"])
        """The nodes that listen to clicks."""
        inner = nodes.get("contentDocumentIndex", _NONE)
        self._known = frozenset(inner["index"])
        """The frame elements whose documents are known."""
        self._read_layout(document, corner)
        self._paint(corner, clip, alpha)
        self.inner = {
            place: Frame(
                documents, words, painted, child, self._corner(place),
                clip=self._seen[place][0] if place in self._seen else css.NOWHERE,
                alpha=float(self.shows(place)),
            )
            for place, child in zip(inner["index"], inner["value"], strict=True)
        }  # fmt: skip
        """The frame in each frame element."""

    def _read_layout(self, document: Reply, corner: tuple[float, float]) -> None:
        layout, boxes = self._layout, document["textBoxes"]
        self._scrolled = document.get("scrollOffsetX", 0), document.get("scrollOffsetY", 0)
        self._x, self._y = corner[0] - self._scrolled[0], corner[1] - self._scrolled[1]
        self._styles: dict[tuple[int, ...], Style] = {}
        self._entries: dict[int, int] = {}
        """The layout's entry of each element."""
        self.texts: dict[int, list[int]] = {}
        """Those of texts."""
        for entry, place in enumerate(layout["nodeIndex"]):
            if layout["text"][entry] >= 0:
                if self.tags[place] != "::MARKER":  # the mark of a list is no text
                    self.texts.setdefault(place, []).append(entry)
            elif place > 0:  # the document itself has no styles
                self._entries.setdefault(place, entry)
        self._lines: dict[int, list[tuple[Rect, int, int]]] = {}
        for entry, bounds, start, length in zip(
            boxes["layoutIndex"], boxes["bounds"], boxes["start"], boxes["length"], strict=True
        ):
            self._lines.setdefault(entry, []).append((self._moved(bounds), start, length))
        self._pieces: dict[int, list[tuple[str, Rect, Rect]]] = {}

    def _paint(self, corner: tuple[float, float], clip: Rect, alpha: float) -> None:
        """Find for each node how its content is painted, and the painted boxes."""
        self._behind_content = self._orders()
        self._seen: dict[int, tuple[Rect, float, bool]] = {}
        """What is shown of visible boxes, when it is painted, and whether they are not empty."""
        area, window = self._extent(corner)
        shown = clip if clip == css.EVERYWHERE else css.common(window, clip)
        first = next(iter(self._layout["paintOrders"]), 0)
        flow = area, shown
        self._inside = [_Inside(flow, flow, (window, shown), alpha, first, first)]
        for place in range(1, len(self.parents)):
            outer = self._inside[self.parents[place]]
            self._inside.append(self._entered(place, outer) if place in self._entries else outer)

    def _orders(self) -> dict[int, float]:
        """When the contents of some layers are painted: those over layers of a negative z-index.

        The browser numbers the layers of all frames: each before those inside of it, and there the
        negative ones first. So everything is painted at the number of its layer, except that the
        content of a layer comes after its negative ones.
        """
        numbers, stacks = self._layout["paintOrders"], self._layout["stackingContexts"]["index"]
        behind: dict[int, float] = {}
        for entry in stacks:
            place = self._layout["nodeIndex"][entry]
            if self._entries.get(place) != entry or self.style(place)["z-index"][0] != "-":
                continue
            inside = (self._entries.get(k, entry) for k in range(place, self.ends[place]))
            last = max(map(numbers.__getitem__, inside)) + 0.5
            around = (self._entries.get(k) for k in self.around(self.parents[place]))
            context = next((numbers[k] for k in around if k in stacks), 0)
            behind[context] = max(behind.get(context, 0), last)
        return behind

    def _extent(self, corner: tuple[float, float]) -> tuple[Rect, Rect]:
        """The area to which scrolling leads, and the window of the frame."""
        width, height = next(iter(self._layout["bounds"]), (0, 0, 0, 0))[2:]
        window = *corner, corner[0] + width, corner[1] + height
        roots = [self.style(k) for k in self._entries if self.tags[k] in _ROOTS][:2]
        clips = [flows for flows in map(css.flows, roots) if flows != css.VISIBLE]
        flows = ["auto" if flow == "visible" else flow for flow in (clips or [css.VISIBLE])[0]]
        area = css.reach(flows, roots[0], window, self._scrolled, window) if roots else window
        return area, window

    def _entered(self, place: int, outer: _Inside) -> _Inside:
        """How the content of a node is painted; its own box is added to the painted ones."""
        style, own, entry = self.style(place), self.rect(place), self._entries[place]
        placed = {"fixed": outer.fixed, "absolute": outer.absolute}
        base, now = placed.get(style["position"], outer.flow)
        alpha = outer.alpha * float(style["opacity"]) * css.filtered(style["filter"])
        if css.cut_away(style, own):
            alpha = 0.0
        number, own_order, order = self._layout["paintOrders"][entry], outer.order, outer.order
        if number != outer.number:
            own_order, order = number, self._behind_content.get(number, number)
        flows, reached = css.flows(style), css.large(css.common(own, base))
        if style["visibility"] == "visible" and alpha > FAINT and reached:
            self._add(place, style, css.common(own, now), own_order, alpha)
        if flows == css.VISIBLE or style["display"] == "inline" or self.tags[place] in _ROOTS:
            content = base, now
        elif reached:
            scrolled = self._layout["scrollRects"][entry] or (0, 0)
            content = css.reach(flows, style, own, scrolled, base), css.common(own, now)
        else:
            content = css.NOWHERE, css.NOWHERE
        turned = style["transform"] != "none" or style["filter"] != "none"
        holds = turned or style["position"] != "static"
        absolute, fixed = content if holds else outer.absolute, content if turned else outer.fixed
        return _Inside(content, absolute, fixed, alpha, number, order)

    def _add(self, place: int, style: Style, shown: Rect, order: float, alpha: float) -> None:
        """Record a box that may be visible, and the part of it that is shown."""
        tag, colour = self.tags[place], css.colour(style["background-color"])
        picture = tag in _PICTURES and place not in self._known
        picture = picture or style["background-image"] != "none" or colour is None
        *paint, own_alpha = colour or (0.0, 0.0, 0.0, 0.0)
        framed = (style["border-left-width"], style["border-top-width"]) != ("0px", "0px")
        filled = picture or own_alpha > 0 or framed or tag in _FIELDS or place in self._known
        self._seen[place] = shown, order, filled
        if not picture and (own_alpha == 0 or style["background-clip"] == "text"):
            return
        if tag in _ROOTS:  # it fills the window
            shown, order = self._inside[0].flow[1], self._inside[0].order
        # A clip path may have any shape, so that the box covers nothing.
        alpha *= own_alpha * (1 if style["clip-path"] == "none" else 0.5)
        box = _Box(order, place, shown, None if picture else (paint[0], paint[1], paint[2], alpha))
        for band, boxes in self._painted.items():
            if shown[1] < (band + 1) * _BAND and shown[3] >= band * _BAND:
                boxes.append(box)

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
        for inner in filter(self._seen.__contains__, range(place, self.ends[place])):
            shown, order, full = self._seen[inner]
            if (full or not filled) and not self._covered(shown, order):
                return True
        return False

    def _corner(self, place: int) -> tuple[float, float]:
        """The corner of the page in a frame element, inside of its border and padding."""
        left, top, _, _ = self.rect(place)
        style = self.style(place) if place in self._entries else {}
        for name in ("border-{}-width", "padding-{}"):
            left += css.pixels(style.get(name.format("left"), ""))
            top += css.pixels(style.get(name.format("top"), ""))
        return left, top

    def _at(self, x: float, y: float) -> Iterator[_Box]:
        for box in self._painted.get(int(y // _BAND), ()):
            left, top, right, bottom = box.rect
            if left <= x <= right and top <= y <= bottom:
                yield box

    def _covered(self, rect: Rect, order: float) -> bool:
        """Whether opaque boxes lie over the ends and the middle of an area that is shown."""
        y = (rect[1] + rect[3]) / 2
        return css.large(rect) and all(
            any(box.opaque and box.order > order for box in self._at(x, y))
            for x in (rect[0] + 1, (rect[0] + rect[2]) / 2, rect[2] - 1)
        )

    def _ground(self, rect: Rect, order: float) -> Colour | None:
        """The colour behind the middle of an area; ``None``: it is not known."""
        mixed: Colour | None = None
        middle = (rect[0] + rect[2]) / 2, (rect[1] + rect[3]) / 2
        under = self._at(*middle) if css.large(rect) else ()
        for box in sorted(box for box in under if box.order <= order):
            if box.colour is None or box.opaque:
                mixed = box.colour
            elif mixed is not None:
                mixed = css.mixed(box.colour, mixed)
        return mixed

    def text(self, place: int) -> str:
        """The visible text in a node, on one line; texts that touch are not separated."""
        if self.tags[place] == "INPUT" and self.attribute(place, "type") in _PUSHED:
            return self.inputs.get(place, "") if self.shows(place) else ""
        line, last = "", css.NOWHERE
        for inner in range(place, self.ends[place]):
            if inner in self.texts and inner not in self._pieces:
                self._pieces[inner] = list(self._visible(inner))
            for text, begin, end in self._pieces.get(inner, ()):
                near = abs(begin[0] - last[2]) < 1 and begin[1] < last[3]
                line += text if near else f" {text}"
                last = end
        return " ".join(line.split())

    def written(self, place: int) -> bool:
        """Whether there is text in a node, visible or not."""
        words, texts = self._words, self._layout["text"]
        inside = range(place, self.ends[place])
        return any(words[texts[k]].strip() for one in inside for k in self.texts.get(one, ()))

    def attribute(self, place: int, name: str) -> str:
        """An attribute of an element; empty if it has none."""
        given = iter(self._attributes[place])
        found = (value for key, value in zip(given, given, strict=True) if self._words[key] == name)
        value = next(found, -1)
        return self._words[value] if value >= 0 else ""

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

    def _visible(self, place: int) -> Iterator[tuple[str, Rect, Rect]]:
        """The visible parts of a text, and where each begins and ends."""
        for entry in self.texts[place]:
            text = self._words[self._layout["text"][entry]]
            whole = self._moved(self._layout["bounds"][entry]), 0, len(text) * 2
            lines = self._lines.get(entry, [whole]) if text.strip() else []
            seen = [line for line in lines if self._reads(place, line[0])]
            if seen and len(seen) == len(lines):
                yield text, lines[0][0], lines[-1][0]
                continue
            units = text.encode("utf-16-le", "surrogatepass")
            for line, start, length in seen:
                part = units[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")
                if part.strip():
                    yield part, line, line

    def _reads(self, place: int, line: Rect) -> bool:
        """Whether a line of a text can be read."""
        holder = next(k for k in self.around(place) if k in self._entries)
        inside, style = self._inside[holder], self.style(holder)
        part = css.common(line, inside.flow[1])
        tiny = line[3] - line[1] < LEAST_LINE or not css.large(css.common(line, inside.flow[0]))
        if style["visibility"] != "visible" or inside.alpha <= FAINT or tiny:
            return False
        fill = css.colour(style["-webkit-text-fill-color"])
        if fill is not None and not self._decorated(holder, style):
            fill = (*fill[:3], fill[3] * inside.alpha)
            ground = self._ground(part, inside.order)
            blends = ground is not None and css.alike(css.mixed(fill, ground), ground)
            if fill[3] <= FAINT or blends:
                return False
        return not self._covered(part, inside.order)

    def _decorated(self, holder: int, style: Style) -> bool:
        """Whether more than its fill colour makes a text visible."""
        if style["text-shadow"] != "none" or style["-webkit-text-stroke-width"] != "0px":
            return True
        around = (self.style(k) for k in self.around(holder) if k in self._entries)
        cut_out = any(one["background-clip"] == "text" for one in around)
        return cut_out or self.tags[holder] in _SVG_TEXTS

    def _moved(self, bounds: Sequence[float]) -> Rect:
        x, y = self._x + bounds[0], self._y + bounds[1]
        return x, y, x + bounds[2], y + bounds[3]
