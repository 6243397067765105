"""The reference solver: the next right intent from any state a user can reach."""

from __future__ import annotations

from typing import Literal

import msgspec

from swarm_ui.environments.phone.aim import Aim, same
from swarm_ui.environments.phone.apps import TABLES
from swarm_ui.environments.phone.device import Device
from swarm_ui.environments.phone.effects import Choose, Copy, Go, Launch
from swarm_ui.environments.phone.repair import Repair, repairs
from swarm_ui.environments.phone.screen import Effect, Path, Widget
from swarm_ui.environments.phone.widgets import widgets

FAR = 60
"""Distance of a state from which the solver does not get to the end."""


class Intent(msgspec.Struct, frozen=True, gc=False):
    """An act in terms of widgets rather than indices."""

    kind: Literal["tap", "type", "back", "home", "down", "up", "answer", "complete", "infeasible"]
    widget: int = -1
    """Position among the screen's widgets as :func:`widgets` lists them."""
    text: str = ""


BACK = Intent("back")
HOME = Intent("home")
COMPLETE = Intent("complete")
INFEASIBLE = Intent("infeasible")


def solve(aim: Aim, start: Device, now: Device) -> Intent:
    """The next intent of the reference solver.

    It uses nothing that could not have been seen: it looks up a value before it writes it
    elsewhere, and looks where something should be before it says that it is not there.
    """
    open_repairs = repairs(aim, start, now)
    if not open_repairs:
        if aim.infeasible:
            return _look(now, aim.look) or INFEASIBLE
        if aim.answer is None or (now.answer is not None and same(now.answer, aim.answer)):
            return COMPLETE
        return _look(now, aim.look) or Intent("answer", text=aim.answer)
    if len(open_repairs) == 1:
        nearest = _stage(open_repairs[0], now)
    else:
        staged = [_stage(repair, now) for repair in open_repairs]
        nearest = min(staged, key=lambda repair: _far(now.stack, repair.path))
    return _go(now, nearest.path) or _work(nearest, now)


def distance(aim: Aim, start: Device, now: Device, limit: int = FAR) -> int:
    """Actions the solver needs until it ends the episode, that last one included."""
    device = now.clone()
    for done in range(1, limit):
        intent = solve(aim, start, device)
        if intent.kind in ("complete", "infeasible"):
            return done
        perform(device, intent)
    return limit


def perform(device: Device, intent: Intent) -> None:
    """Carry out an intent that does not end the episode."""
    device.toast = ""
    kind = intent.kind
    if kind == "tap":
        effect = widgets(device)[intent.widget].effect
        if effect is not None:
            effect.apply(device)
    elif kind == "type":
        field = widgets(device)[intent.widget].field
        if field is not None:
            device.draft = {**device.draft, field: intent.text}
    elif kind == "back":
        device.back()
    elif kind == "home":
        device.show(())
    elif kind == "answer":
        device.answer = intent.text
    else:
        device.page += 1 if kind == "down" else -1


def _stage(repair: Repair, now: Device) -> Repair:
    """The repair, or the look-up that must come before it."""
    source = repair.source
    if source is None:
        return repair
    known = source.value in now.copied or any(
        wanted == source.value and same(now.draft.get(name, ""), wanted)
        for name, wanted in repair.fields.items()
    )
    if known or source.row not in now.tables[source.table]:
        return repair
    path = TABLES[source.table].path("detail", source.row)
    return Repair(path=path, tap=Copy(source.field, source.value))


def _look(now: Device, path: Path) -> Intent | None:
    """The next intent on the way to where something can be seen; ``None``: no need to go."""
    last = path[-1]
    if last.row and last.row not in now.tables[last.of]:
        return None  # the record was deleted on the way and written again from memory
    return _go(now, path)


def _far(stack: Path, path: Path) -> int:
    """Navigation steps between two places."""
    common = _common(stack, path)
    down = len(path) - common
    if common == 0:
        return down + (1 if stack else 0)
    return min(len(stack) - common + down, 1 + len(path))


def _common(stack: Path, path: Path) -> int:
    common = 0
    for here, there in zip(stack, path, strict=False):
        if here != there:
            break
        common += 1
    return common


def _go(now: Device, path: Path) -> Intent | None:
    """The next intent on the way to ``path``; ``None``: there already."""
    stack = now.stack
    common = _common(stack, path)
    if common == len(stack):
        if common == len(path):
            return None
        target = path[common]
        return _reach(now, Launch(target.app) if common == 0 else Go(target))
    if common == 0:
        return HOME
    back = len(stack) - common
    return BACK if back + len(path) - common <= 1 + len(path) else HOME


def _work(repair: Repair, now: Device) -> Intent:
    """The next intent on the screen where the repair is made."""
    shown = widgets(now)
    for name, wanted in repair.fields.items():
        if same(now.draft.get(name, ""), wanted):
            continue
        for position, widget in enumerate(shown):
            if widget.field == name:
                return Intent("type", position, wanted)
            effect = widget.effect
            if isinstance(effect, Choose) and effect.field == name and effect.value == wanted:
                return Intent("tap", position)
    if repair.tap is None:
        return COMPLETE
    return _reach(now, repair.tap)


def _reach(now: Device, effect: Effect) -> Intent:
    """Tap what has this effect, scrolling to it if need be."""
    position = _find(widgets(now), effect)
    if position is not None:
        return Intent("tap", position)
    other = now.clone()
    for page in range(FAR):
        other.page = page
        shown = widgets(other)
        if not any(widget.scrollable for widget in shown):
            break
        if _find(shown, effect) is not None:
            return Intent("down" if page > now.page else "up")
    return HOME


def _find(shown: list[Widget], effect: Effect) -> int | None:
    for position, widget in enumerate(shown):
        found = widget.effect
        if found is None:
            continue
        if found == effect:
            return position
        if isinstance(found, Go) and isinstance(effect, Go) and found.screen == effect.screen:
            return position
    return None
