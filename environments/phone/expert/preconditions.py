"""What the reference solver does first on a whole phone: dialogs, permissions, look-ups."""

from __future__ import annotations

from swarm_ui.environments.phone.apps import PLACES, TABLES
from swarm_ui.environments.phone.apps.files import file_path
from swarm_ui.environments.phone.apps.settings import grant_path
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Copy, FlipSetting
from swarm_ui.environments.phone.device.gestures import Grant, Settle, system
from swarm_ui.environments.phone.goal import Goal, Permit, Repair, Source
from swarm_ui.environments.phone.ui.interruptions import asked, denied, offline
from swarm_ui.environments.phone.ui.screen import Effect, Path


def out_of_the_way(aim: Goal, now: Device) -> Effect | None:
    """The tap that answers the dialog in front; ``None``: there is none."""
    if system(now).interruption(now) is not None:
        return Settle(False)
    key = asked(now)
    if not key:
        return None
    wanted = (w.value for w in aim.wants if isinstance(w, Permit) and w.key == key)
    return Grant(key, "deny" if next(wanted, "allow") == "deny" else "allow")


def clearing(now: Device, path: Path) -> Repair | None:
    """What must be set right before the screens of ``path`` can be used; ``None``: nothing."""
    for screen in path:
        if screen.app == "system":
            continue
        if key := denied(now, screen):
            return Repair(path=grant_path(key), tap=Grant(key, "allow"))
        if offline(now, screen):
            return Repair(path=PLACES["wifi"].path, tap=FlipSetting("wifi"))
    return None


def lookup(source: Source, now: Device) -> Repair:
    """How to copy a value."""
    if source.table == "file":
        path = file_path(source.row, now.tables["file"][source.row])
    else:
        path = TABLES[source.table].path("detail", source.row)
    return Repair(path=path, tap=Copy(source.field, source.value))


def lookups(aim: Goal, now: Device) -> list[Repair]:
    """What is still to be looked up before the answer can be given."""
    return [
        lookup(source, now)
        for source in aim.sources
        if source.value not in now.copied and source.row in now.tables[source.table]
    ]
