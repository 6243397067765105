"""The reference solver: the next action towards the goal, from any reachable state."""

from __future__ import annotations

from functools import lru_cache

from swarm_ui.action import Action, ActionType
from swarm_ui.environments.phone.effects import Choose, Copy, Go, Search
from swarm_ui.environments.phone.goal import Difference, Goal, check
from swarm_ui.environments.phone.state import Device, Effect, Path, Widget, same_text
from swarm_ui.environments.phone.view import widgets

_FOUND = ("detail", "missing")
"""Kinds of screens that a search opens."""
UNREACHABLE = 60
"""The distance if the solver does not reach the end."""


BACK, HOME = Action(action_type="navigate_back"), Action(action_type="navigate_home")
COMPLETE = Action(action_type="status", goal_status="complete")
INFEASIBLE = Action(action_type="status", goal_status="infeasible")
DOWN = Action(action_type="scroll", direction="down")
UP = Action(action_type="scroll", direction="up")


def solve(goal: Goal, start: Device, now: Device) -> Action:
    """The next action of the reference solver; its ``index`` is a position in :func:`widgets`.

    It uses only visible information: it looks a value up before it writes it elsewhere, and opens
    the list of a record before it declares that the record does not exist.
    """
    unmet = check(goal, start, now)
    if not unmet:
        if goal.infeasible:
            return _to_evidence(now, goal.look) or INFEASIBLE
        if goal.answered(now):
            return COMPLETE
        evidence = _to_evidence(now, goal.look)
        return evidence or Action(action_type="answer", text=goal.answer or "")
    nearest, *others = (_stage(difference, now) for difference in unmet)
    if others:
        nearest = min(nearest, *others, key=lambda one: _steps_between(now.stack, one.path))
    return _go(now, nearest.path) or _fill_in(nearest, now)


def _stage(difference: Difference, now: Device) -> Difference:
    """The difference, or the next value that must be looked up before it can be settled."""
    source = difference.source
    if source is None or source.value in now.copied or source.row not in now.tables[source.table]:
        return difference
    if any(
        wanted == source.value and same_text(now.draft.get(name, ""), wanted)
        for name, wanted in difference.fields.items()
    ):
        return difference
    path = now.catalogue.tables[source.table].path("detail", source.row)
    return Difference(path=path, tap=Copy(source.field, source.value))


def _to_evidence(now: Device, path: Path) -> Action | None:
    """The next action towards the screen with the evidence; ``None`` if nothing is left to do."""
    if not path:
        return None
    last = path[-1]
    if last.row and last.row not in now.tables[last.of]:
        return None  # the record was deleted on the way and written again from memory
    return _go(now, path)


def _steps_between(stack: Path, path: Path) -> int:
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


def _go(now: Device, path: Path) -> Action | None:
    """The next action towards ``path``; ``None`` if it is the current one."""
    stack = now.stack
    common = _common(stack, path)
    if common == len(stack):
        if common == len(path):
            return None
        return _reach(now, Go(path[common]))
    if common == 0:
        return HOME
    back = len(stack) - common
    return BACK if back + len(path) - common <= 1 + len(path) else HOME


def _fill_in(difference: Difference, now: Device) -> Action:
    """The next action on the screen of the difference: fill a field, or tap."""
    shown = widgets(now)
    for name, wanted in difference.fields.items():
        if same_text(now.draft.get(name, ""), wanted):
            continue
        for position, widget in enumerate(shown):
            if widget.field == name:
                return _on(position, wanted)
            effect = widget.effect
            if isinstance(effect, Choose) and effect.field == name and effect.value == wanted:
                if widget.checked:
                    break  # so by default
                return _on(position)
    if difference.tap is None:
        return COMPLETE
    return _reach(now, difference.tap)


def _reach(now: Device, effect: Effect) -> Action:
    """Tap the widget with this effect, after scrolling to it or searching for it if needed."""
    shown = widgets(now)
    position = _find(shown, effect)
    if position is not None:
        return _on(position)
    if isinstance(effect, Go) and (action := _search(now, shown, effect)) is not None:
        return action
    other = now.clone()
    for page in range(UNREACHABLE):
        other.page = page
        shown = widgets(other)
        if not any(widget.scrollable for widget in shown):
            break
        if _find(shown, effect) is not None:
            return DOWN if page > now.page else UP
    return HOME


@lru_cache(maxsize=4096)  # an action is checked when it is made
def _on(position: int, text: str | None = None) -> Action:
    """A tap on a widget, or a text typed into it."""
    kind: ActionType = "click" if text is None else "input_text"
    return Action(action_type=kind, index=position, text=text)


def _search(now: Device, shown: list[Widget], effect: Go) -> Action | None:
    """The action towards a record that only a search opens."""
    target = effect.screen
    search = next((one.effect for one in shown if isinstance(one.effect, Search)), None)
    if search is None or search.table.app != target.app or target.kind not in _FOUND:
        return None
    table = search.table
    row = now.tables[table.name].get(target.row)
    wanted = row[table.title] if row is not None else target.of
    if same_text(now.draft.get(table.title, ""), wanted):
        return _on(_find(shown, search) or 0)
    return _on([one.field for one in shown].index(table.title), wanted)


def _find(shown: list[Widget], effect: Effect) -> int | None:
    for position, widget in enumerate(shown):
        found = widget.effect
        if found == effect:
            return position
        if isinstance(found, Go) and isinstance(effect, Go) and found.screen == effect.screen:
            return position
    return None
