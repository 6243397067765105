"""Subgoals for the system UI: the screen in front, permissions, notifications."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.environments.phone.apps.settings import grant_path
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.full_effects import (
    DismissNotice,
    Grant,
    RestoreNotice,
    system_of,
)
from swarm_ui.environments.phone.device.system import HISTORY, SHADE
from swarm_ui.environments.phone.expert.subgoal import Subgoal
from swarm_ui.environments.phone.tasks.goal import Dismiss, Permit, ScreenInFront
from swarm_ui.environments.phone.ui.interruptions import is_visible


def system_subgoals(
    wants: Sequence[ScreenInFront | Permit | Dismiss],
    start: Device,
    now: Device,
    others: Sequence[Subgoal],
) -> list[Subgoal]:
    """The subgoals for these conditions; ``others`` come before the screen in front."""
    found: list[Subgoal] = []
    here, before = system_of(now), system_of(start)
    gone = {want.notice for want in wants if isinstance(want, Dismiss)}
    for want in wants:
        if isinstance(want, Permit) and here.grants.get(want.key, "ask") != want.value:
            tap = Grant(want.key, want.value)
            found.append(Subgoal(path=grant_path(want.key), tap=tap))
    if gone:
        found.extend(
            Subgoal(path=(SHADE,), tap=DismissNotice(key)) for key in gone if key in here.notices
        )
        found.extend(
            Subgoal(path=(SHADE, HISTORY), tap=RestoreNotice(key))
            for key in before.notices
            if key not in gone and key not in here.notices
        )
    for want in wants:
        if not isinstance(want, ScreenInFront) or others or found:
            continue
        if now.stack[-1:] != want.path[-1:] or not is_visible(now):
            found.append(Subgoal(path=want.path))
    return found
