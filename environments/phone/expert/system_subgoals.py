"""What a task wants of the phone around its apps: a screen in front, permissions, notifications."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.environments.phone.apps.settings import grant_path
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.gestures import DismissNotice, Grant, PutBack, system
from swarm_ui.environments.phone.device.system import HISTORY, SHADE
from swarm_ui.environments.phone.goal import At, Dismiss, Permit, Repair
from swarm_ui.environments.phone.ui.interruptions import free


def around_repairs(
    wants: Sequence[At | Permit | Dismiss], start: Device, now: Device, others: Sequence[Repair]
) -> list[Repair]:
    """What separates ``now`` from these wants; ``others`` come before a screen in front."""
    found: list[Repair] = []
    here, before = system(now), system(start)
    gone = {want.notice for want in wants if isinstance(want, Dismiss)}
    for want in wants:
        if isinstance(want, Permit) and here.grants.get(want.key, "ask") != want.value:
            tap = Grant(want.key, want.value)
            found.append(Repair(path=grant_path(want.key), tap=tap))
    if gone:
        found.extend(
            Repair(path=(SHADE,), tap=DismissNotice(key)) for key in gone if key in here.notices
        )
        found.extend(
            Repair(path=(SHADE, HISTORY), tap=PutBack(key))
            for key in before.notices
            if key not in gone and key not in here.notices
        )
    for want in wants:
        if not isinstance(want, At) or others or found:
            continue
        if now.stack[-1:] != want.path[-1:] or not free(now):
            found.append(Repair(path=want.path))
    return found
