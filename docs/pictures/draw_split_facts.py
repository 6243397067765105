"""The picture at the head of the README: ``python docs/pictures/draw_split_facts.py [FOLDER]``.

A step of a real episode of split facts, with scripted agents on the simulated phone: what each
agent sees, the message that carries the value, and the action. Equal versions draw equal pictures.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.studies.split import SplitTeams
from swarm_ui import GraphPolicy, StepRecord
from swarm_ui.environments.phone.split import SplitPhone
from swarm_ui.observation import Element
from swarm_ui.rollout import rollout
from swarm_ui.viz.svg import BLUE, GREY, Box, Canvas, arrow, rect, text

TASK, SEED, APPS = "split-time-message", 3, 5
SENDER, VALUE = "calendar", "01:09"
WIDE, HIGH = 900.0, 396.0
_PANE, _SCREEN = 330.0, 320.0
"""Widths of the panes of the senders, and of the app that is operated."""
_LINE = 17.0
_NAME = "canyon magnet"
_NOTE = (
    "Every other app holds a wrong value of the same name.",
    "Without the edge the team cannot know the time.",
)
_SHOWN = 2
"""Records of a pane."""


async def telling_step() -> StepRecord:
    """The step in which the value is written."""
    phone = SplitPhone(agents=APPS)
    teams = SplitTeams(phone)
    team = teams.team(TASK, SEED, teams.oracle(TASK, SEED))
    episode = await rollout(phone, GraphPolicy(team), task=TASK, seed=SEED)
    return next(step for step in episode.steps if step.executed.text == VALUE)


def picture(step: StepRecord) -> str:
    """The step as an SVG document."""
    screen = step.trace.observation
    panes: dict[str, list[Element]] = {}
    for element in screen.elements:
        panes.setdefault(element.pane, []).append(element)
    acting, *senders = panes
    canvas = Canvas()
    canvas.over.append(text(20, 30, f"Goal: {screen.goal}", size=15, bold=True))
    high = 26 + _SHOWN * _LINE + 8
    boxes = {app: Box(20, 52 + k * (high + 14), _PANE, high) for k, app in enumerate(senders)}
    for app, box in boxes.items():
        _records(canvas, app, box, panes[app])
    right = Box(WIDE - 20 - _SCREEN, 52, _SCREEN, 150)
    _operated(canvas, acting, right, panes[acting], step)
    said = step.trace.message(f"{SENDER}:0").content.splitlines()[0]
    _message(canvas, boxes[SENDER], right, said)
    action = Box(right.x, right.bottom + 62, right.width, 44)
    canvas.lines.append(
        arrow(f"M{right.centre} {right.bottom + 4}V{action.y - 4}", "the action", thick=1.6)
    )
    canvas.over.append(rect(action, BLUE, alpha=0.28, stroke=BLUE, thick=1.6, radius=10))
    words = str(step.executed)
    canvas.over.append(text(action.centre, action.middle + 5, words, size=14, anchor="middle"))
    for k, words in enumerate(_NOTE):
        at = action.bottom + 26 + 16 * k
        canvas.over.append(text(action.x, at, words, size=11, opacity=0.8))
    label = f"{screen.goal}: the agent of {SENDER} sends the value to the agent of {acting}"
    return canvas.document(WIDE, HIGH, label)


def _records(canvas: Canvas, app: str, box: Box, elements: Sequence[Element]) -> None:
    """The pane of a sender; the record that counts comes first."""
    talks = app == SENDER
    colour = BLUE if talks else GREY
    canvas.below.append(rect(box, colour, alpha=0.14 if talks else 0.08, stroke=colour))
    canvas.over.append(text(box.x + 12, box.y + 19, f"agent of {app}", size=13, bold=True))
    if not talks:
        silent = text(box.right - 12, box.y + 19, "not asked", size=11, anchor="end", opacity=0.65)
        canvas.over.append(silent)
    rows = [element for element in elements if element.value is not None]
    rows.sort(key=lambda element: _NAME not in f"{element.text} {element.value}")
    for k, element in enumerate(rows[:_SHOWN]):
        words = f"{element.text}: {element.value}"
        strong = talks and k == 0
        room = box.width - (64 if strong else 24)  # bold text is wider than its estimate
        line = text(box.x + 12, box.y + 38 + k * _LINE, words, size=12, room=room,
                    bold=strong, opacity=None if strong else 0.75)  # fmt: skip
        canvas.over.append(line)


def _operated(
    canvas: Canvas, app: str, box: Box, elements: Sequence[Element], step: StepRecord
) -> None:
    """The app that is operated, with the field that the action fills."""
    canvas.below.append(rect(box, GREY, alpha=0.1, thick=1.8))
    head = f"agent of {app}, which acts"
    canvas.over.append(text(box.x + 14, box.y + 22, head, size=13, bold=True))
    fields = [element for element in elements if element.editable]
    for k, element in enumerate(fields):
        filled = element.index == step.executed.index
        field = Box(box.x + 14, box.y + 38 + k * 38, box.width - 28, 28)
        canvas.over.append(rect(field, BLUE if filled else GREY, alpha=0.2 if filled else 0.1,
                                stroke=BLUE if filled else GREY))  # fmt: skip
        words = f"{element.text}: {element.value or ''}"
        canvas.over.append(text(field.x + 10, field.y + 19, words, size=13))
    others = [e.text for e in elements if e.clickable and not e.editable][:4]
    buttons = text(box.x + 14, box.bottom - 14, " · ".join(others), size=12, opacity=0.75)
    canvas.over.append(buttons)


def _message(canvas: Canvas, sender: Box, listener: Box, said: str) -> None:
    """The edge with its message: where it begins, what it says, where it ends."""
    x0, y0, x1, y1 = sender.right, sender.middle, listener.x, listener.y + 90
    curve = f"M{x0 + 3} {y0}C{x0 + 90} {y0} {x1 - 90} {y1} {x1 - 5} {y1}"
    canvas.lines.append(arrow(curve, said, colour=BLUE, thick=2.4, opacity=1.0))
    head, _, values = said.partition(" has ")
    place = (x0 + x1) / 2
    lines = ("“" + head, f"has {values.partition(',')[0]}, …”")
    for k, words in enumerate(lines):
        at = y0 - 50 + k * 16
        canvas.over.append(text(place, at, words, size=12.5, anchor="middle", bold=k == 1))


async def write(folder: Path) -> None:
    """Draw it."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = picture(await telling_step())
    (folder / "split_facts_team.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    asyncio.run(write(Path(sys.argv[1]) if len(sys.argv) > 1 else here))
