"""Reads pictures back: what is written in them, what their tooltips say, what is joined."""

from __future__ import annotations

from xml.etree import ElementTree

import msgspec

from swarm_ui import Action, Call, Message, Observation, Trace

SVG = "{http://www.w3.org/2000/svg}"

HOSTILE = (
    "<script>alert(1)</script>",
    "]]></svg><img src=x onerror=alert(1)>",
    '" onload="alert(1)\' & co',
    "&lt;b&gt; \x00\x07 \ud800 \ufffe",
)
"""Names and messages that must come out as words."""


class Picture:
    """A parsed SVG document. Raises if it is not well-formed."""

    def __init__(self, svg: str) -> None:
        self.root = ElementTree.fromstring(svg)
        assert self.root.tag == f"{SVG}svg"
        self.texts = [element.text or "" for element in self.root.iter(f"{SVG}text")]
        self.titles = [element.text or "" for element in self.root.iter(f"{SVG}title")]
        self.arrows = [e for e in self.root.iter(f"{SVG}path") if e.get("marker-end")]

    def arrow(self, told: str) -> ElementTree.Element:
        """The only arrow whose tooltip says that, and maybe more after it."""
        more = tuple(told + mark for mark in (":", ",", " ("))
        lines = [(e, (e[0].text or "").splitlines()[0]) for e in self.arrows]
        (found,) = [e for e, line in lines if line == told or line.startswith(more)]
        return found

    def box(self, start: str) -> ElementTree.Element:
        """The first shape with a tooltip that starts like that."""
        groups = [g for g in self.root.iter(f"{SVG}g") if len(g) and g[0].tag == f"{SVG}title"]
        found = [g for g in groups if (g[0].text or "").startswith(start)]
        return next(e for e in found[0].iter() if e.tag in (f"{SVG}rect", f"{SVG}circle"))

    @property
    def harmless(self) -> bool:
        """Whether it holds nothing that runs or loads."""
        allowed = {"svg", "style", "defs", "marker", "mask", "g", "path", "rect", "circle", "text",
                   "title"}  # fmt: skip
        tags = {element.tag.removeprefix(SVG) for element in self.root.iter()}
        keys = {key for element in self.root.iter() for key in element.attrib}
        return tags <= allowed and not any(key.startswith("on") or "href" in key for key in keys)

    def inside(self) -> bool:
        """Whether no box sticks out of the picture."""
        wide, high = float(self.root.get("width", 0)), float(self.root.get("height", 0))
        return all(
            float(r.get("x", 0)) >= 0
            and float(r.get("y", 0)) >= 0
            and float(r.get("x", 0)) + float(r.get("width", 0)) <= wide + 0.2
            and float(r.get("y", 0)) + float(r.get("height", 0)) <= high + 0.2
            for r in self.root.iter(f"{SVG}rect")
        )


def opens(app: str) -> Action:
    return Action(action_type="open_app", app_name=app)


def recorded(
    calls: list[tuple[Call, Message]],
    agents: tuple[str, ...],
    rounds: int = 1,
    skipped: tuple[str, ...] = (),
    goal: str = "open the clock",
) -> Trace:
    """A trace as a file might hold it."""
    return Trace(
        run="r",
        seed=0,
        observation=Observation(goal=goal, elements=()),
        agents=agents,
        rounds=rounds,
        calls=tuple(msgspec.structs.replace(call, message=said) for call, said in calls),
        skipped=skipped,
    )
