"""The reference solver: the next action towards the goal, from any reachable state."""

from __future__ import annotations

from typing import Literal

import msgspec

from swarm_ui.environments.phone.apps import PLACES, catalogue_of
from swarm_ui.environments.phone.apps.files import file_path
from swarm_ui.environments.phone.apps.settings import grant_path
from swarm_ui.environments.phone.device.device import DRAWER, HISTORY, SHADE, Device
from swarm_ui.environments.phone.device.effects import (
    AnswerInterruption,
    Choose,
    Copy,
    Go,
    Grant,
    Launch,
    PullShade,
    Search,
    SetSetting,
)
from swarm_ui.environments.phone.device.schema import same_text
from swarm_ui.environments.phone.device.screen import Path
from swarm_ui.environments.phone.device.widget import Effect, Widget
from swarm_ui.environments.phone.expert.subgoals import Subgoal, subgoals
from swarm_ui.environments.phone.tasks.goal import Goal, Permit, Source
from swarm_ui.environments.phone.ui.actions import back, enter, write
from swarm_ui.environments.phone.ui.interruptions import (
    current_interruption,
    denied_permission,
    offline,
    requested_permission,
)
from swarm_ui.environments.phone.ui.widgets import widgets

UNREACHABLE = 60
"""The distance if the solver does not reach the end."""


class Intent(msgspec.Struct, frozen=True, gc=False):
    """What the solver does next: an action that refers to a widget, not to the index of an
    element."""

    kind: Literal[
        "tap", "type", "enter", "back", "home", "shade", "down", "up", "answer", "complete",
        "infeasible",
    ]  # fmt: skip
    widget: int = -1
    """Position in the list of :func:`widgets`."""
    text: str = ""


BACK = Intent("back")
HOME = Intent("home")
COMPLETE = Intent("complete")
INFEASIBLE = Intent("infeasible")


def solve(goal: Goal, start: Device, now: Device) -> Intent:
    """The next intent of the reference solver.

    It uses only visible information: it looks a value up before it writes it elsewhere, and opens
    the list of a record before it declares that the record does not exist.
    """
    unmet = subgoals(goal, start, now)
    told = goal.answer is None or (now.answer is not None and same_text(now.answer, goal.answer))
    if not unmet and told and not goal.infeasible:
        return COMPLETE
    if now.system is not None:
        if (dismissal := _dismiss_dialog(goal, now)) is not None:
            return Intent("tap", _find(widgets(now), dismissal) or 0)
        unmet = unmet or _lookups(goal, now)
    if not unmet:
        if goal.infeasible:
            return _to_evidence(now, goal.look) or INFEASIBLE
        return _to_evidence(now, goal.look) or Intent("answer", text=goal.answer or "")
    if len(unmet) == 1:
        nearest = _stage(unmet[0], now)
    else:
        staged = [_stage(subgoal, now) for subgoal in unmet]
        nearest = min(staged, key=lambda subgoal: _steps_between(now.stack, subgoal.path))
    return _go(now, nearest.path) or _fill_in(nearest, now)


def perform(device: Device, intent: Intent) -> None:
    """Apply an intent that does not end the episode."""
    device.toast = ""
    kind = intent.kind
    if kind == "tap":
        widget = widgets(device)[intent.widget]
        if widget.effect is not None:
            widget.effect.apply(device)
        elif widget.field is not None and device.system is not None:
            device.focus = widget.field
    elif kind == "type":
        field = widgets(device)[intent.widget].field
        if field is not None:
            write(device, field, intent.text)
    elif kind == "enter":
        enter(device, widgets(device))
    elif kind == "back":
        back(device)
    elif kind == "shade":
        PullShade().apply(device)
    elif kind == "home":
        device.show(())
    elif kind == "answer":
        device.answer = intent.text
    else:
        device.page += 1 if kind == "down" else -1


def _stage(subgoal: Subgoal, now: Device) -> Subgoal:
    """The subgoal, or what must be done before it: look up a value, answer a request for a
    permission, or turn Wi-Fi on."""
    source = subgoal.source
    if source is not None and source.row in now.tables[source.table]:
        known = source.value in now.copied or any(
            wanted == source.value and same_text(now.draft.get(name, ""), wanted)
            for name, wanted in subgoal.fields.items()
        )
        subgoal = subgoal if known else _lookup(source, now)
    return subgoal if now.system is None else _unblock(now, subgoal.path) or subgoal


def _to_evidence(now: Device, path: Path) -> Intent | None:
    """The next intent towards the screen with the evidence; ``None`` if nothing is left to do."""
    if not path:
        return None
    last = path[-1]
    if last.row and last.row not in now.tables[last.of]:
        return None  # the record was deleted on the way and written again from memory
    if now.system is not None and (first := _unblock(now, path)) is not None:
        return _go(now, first.path) or _fill_in(first, now)
    return _go(now, path)


def _steps_between(stack: Path, path: Path) -> int:
    """Navigation steps between two places."""
    if path[0] == SHADE:
        return len(path) - int(stack[-1:] == path[:1])
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
    """The next intent towards ``path``; ``None`` if it is the current one."""
    stack = now.stack
    if path[0] == SHADE:
        return _to_shade(now, path)
    common = _common(stack, path)
    if stack == (DRAWER,) and path[0] != DRAWER:
        return _reach(now, Launch(path[0].app))
    if common == len(stack):
        if common == len(path):
            return None
        target = path[common]
        if target == DRAWER or common > 0:
            return _reach(now, Go(target))
        return _reach(now, Launch(target.app))
    if common == 0:
        return HOME
    back = len(stack) - common
    return BACK if back + len(path) - common <= 1 + len(path) else HOME


def _to_shade(now: Device, path: Path) -> Intent | None:
    """The next intent towards the notifications, which open over any screen."""
    if now.stack[-1:] == path[-1:]:
        return None
    if now.screen == SHADE:
        return _reach(now, Go(path[-1]))
    return BACK if now.screen == HISTORY else Intent("shade")


def _fill_in(subgoal: Subgoal, now: Device) -> Intent:
    """The next intent on the screen of the subgoal: fill a field, or tap."""
    shown = widgets(now)
    for name, wanted in subgoal.fields.items():
        if same_text(now.draft.get(name, ""), wanted):
            continue
        for position, widget in enumerate(shown):
            if widget.field == name:
                return Intent("type", position, wanted)
            effect = widget.effect
            if isinstance(effect, Choose) and effect.field == name and effect.value == wanted:
                if widget.checked:
                    break  # so by default
                return Intent("tap", position)
    if subgoal.tap is None:
        return COMPLETE
    return _reach(now, subgoal.tap)


def _reach(now: Device, effect: Effect) -> Intent:
    """Tap the widget with this effect, after scrolling to it if needed."""
    shown = widgets(now)
    position = _find(shown, effect)
    if position is not None:
        return Intent("tap", position)
    if (intent := _detour(now, shown, effect)) is not None:
        return intent
    other = now.clone()
    for page in range(UNREACHABLE):
        other.page = page
        shown = widgets(other)
        if not any(widget.scrollable for widget in shown):
            break
        if _find(shown, effect) is not None:
            return Intent("down" if page > now.page else "up")
    return HOME


def _detour(now: Device, shown: list[Widget], effect: Effect) -> Intent | None:
    """The intent towards a screen that only the drawer or a search opens."""
    if now.system is not None and isinstance(effect, Launch) and not now.stack:
        return Intent("tap", _find(shown, Go(DRAWER)) or 0)
    if not isinstance(effect, Go) or effect.screen.kind not in ("detail", "missing"):
        return None
    target = effect.screen
    for position, widget in enumerate(shown):
        search = widget.submit
        if isinstance(search, Search) and search.app == target.app:
            row = now.tables[search.table].get(target.row)
            wanted = row[search.field] if row is not None else target.of
            if not same_text(now.draft.get(search.field, ""), wanted):
                return Intent("type", position, wanted)
            if now.system is None:  # without a keyboard, a button starts the search
                return Intent("tap", _find(shown, search) or 0)
            return Intent("enter") if now.focus == search.field else Intent("tap", position)
    return None


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


def _dismiss_dialog(goal: Goal, now: Device) -> Effect | None:
    """The tap that answers the current dialog; ``None`` without a dialog."""
    if current_interruption(now) is not None:
        return AnswerInterruption(False)
    key = requested_permission(now)
    if not key:
        return None
    wanted = (w.value for w in goal.wants if isinstance(w, Permit) and w.key == key)
    return Grant(key, "deny" if next(wanted, "allow") == "deny" else "allow")


def _unblock(now: Device, path: Path) -> Subgoal | None:
    """The subgoal that makes the screens of ``path`` usable; ``None`` if they are."""
    for screen in path:
        if screen.app == "system":
            continue
        if key := denied_permission(now, screen):
            return Subgoal(path=grant_path(key), tap=Grant(key, "allow"))
        if offline(now, screen):
            return Subgoal(path=PLACES["wifi"].path, tap=SetSetting("wifi", "on"))
    return None


def _lookup(source: Source, now: Device) -> Subgoal:
    """The subgoal to copy a value."""
    if source.table == "file":
        path = file_path(source.row, now.tables["file"][source.row])
    else:
        path = catalogue_of(now).tables[source.table].path("detail", source.row)
    return Subgoal(path=path, tap=Copy(source.field, source.value))


def _lookups(goal: Goal, now: Device) -> list[Subgoal]:
    """Subgoals for the values that must be looked up before answering."""
    return [
        _lookup(source, now)
        for source in goal.sources
        if source.value not in now.copied and source.row in now.tables[source.table]
    ]
