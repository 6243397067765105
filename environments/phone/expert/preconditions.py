"""Steps that come first on the full device: close dialogs, get permissions, look values up."""

from __future__ import annotations

from swarm_ui.environments.phone.apps import PLACES, TABLES
from swarm_ui.environments.phone.apps.files import file_path
from swarm_ui.environments.phone.apps.settings import grant_path
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import AnswerInterruption, Copy, Grant, SetSetting
from swarm_ui.environments.phone.device.screen import Path
from swarm_ui.environments.phone.device.widget import Effect
from swarm_ui.environments.phone.expert.subgoals import Subgoal
from swarm_ui.environments.phone.tasks.goal import Goal, Permit, Source
from swarm_ui.environments.phone.ui.interruptions import (
    current_interruption,
    denied_permission,
    offline,
    requested_permission,
)


def dismiss_dialog(goal: Goal, now: Device) -> Effect | None:
    """The tap that answers the dialog in front; ``None`` without a dialog."""
    if current_interruption(now) is not None:
        return AnswerInterruption(False)
    key = requested_permission(now)
    if not key:
        return None
    wanted = (w.value for w in goal.wants if isinstance(w, Permit) and w.key == key)
    return Grant(key, "deny" if next(wanted, "allow") == "deny" else "allow")


def unblock(now: Device, path: Path) -> Subgoal | None:
    """The subgoal that makes the screens of ``path`` usable; ``None`` if they are."""
    for screen in path:
        if screen.app == "system":
            continue
        if key := denied_permission(now, screen):
            return Subgoal(path=grant_path(key), tap=Grant(key, "allow"))
        if offline(now, screen):
            return Subgoal(path=PLACES["wifi"].path, tap=SetSetting("wifi", "on"))
    return None


def lookup(source: Source, now: Device) -> Subgoal:
    """The subgoal to copy a value."""
    if source.table == "file":
        path = file_path(source.row, now.tables["file"][source.row])
    else:
        path = TABLES[source.table].path("detail", source.row)
    return Subgoal(path=path, tap=Copy(source.field, source.value))


def lookups(goal: Goal, now: Device) -> list[Subgoal]:
    """Subgoals for the values that must be looked up before the answer."""
    return [
        lookup(source, now)
        for source in goal.sources
        if source.value not in now.copied and source.row in now.tables[source.table]
    ]
