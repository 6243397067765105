"""Twins of the tasks that cannot be done: the same goal texts on a device where the object exists.

A policy that always declares such a task infeasible solves it but fails its twin. So the scores of
both together show whether an agent searches. The twin of ``x-missing`` is ``x-present``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from swarm_ui.environments.phone.apps.record_apps import CONTACT, EVENT, RECIPE
from swarm_ui.environments.phone.apps.settings import SWITCHES
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks import (
    camera_browser,
    files_gallery,
    recorder_maps,
    records,
    settings,
    system_ui,
)
from swarm_ui.environments.phone.tasks.goal import Goal
from swarm_ui.environments.phone.tasks.task_kinds import add_record, deleted, switch
from swarm_ui.environments.phone.tasks.template import Make, Template

_MISSING: Mapping[str, Template] = {
    template.name: template
    for module in (records, settings, system_ui, files_gallery, camera_browser, recorder_maps)
    for template in module.TEMPLATES
    if "infeasible" in template.tags
}


def _twin(missing: str, steps: int, *makes: Make) -> Template:
    """The twin of an infeasible template. ``makes``: one function for all goal texts, or one for
    each."""
    base = _MISSING[missing]

    def make(sampler: Sampler, device: Device) -> Goal:
        at = int(sampler.rng.random() * len(base.goals))
        goal = makes[at % len(makes)](sampler, device)
        text = base.goals[at].format_map(goal.words)
        return msgspec.structs.replace(goal, words={**goal.words, "text": text})

    return msgspec.structs.replace(
        base,
        name=missing.replace("missing", "present"),
        split="extended_twins" if base.full_device else "twins",
        make=make,
        steps=steps,
        tags=(*(tag for tag in base.tags if tag != "infeasible"), "twin"),
        goals=("{text}",),
    )


# The values of a record are drawn in the same way as those in the goal of the ``-missing`` task.
TEMPLATES = (
    _twin("contacts-delete-missing", 4, deleted(CONTACT, add_record)),
    _twin("calendar-delete-missing", 4, deleted(EVENT, add_record)),
    _twin("recipes-discard-missing", 4, deleted(RECIPE, add_record)),
    _twin("settings-missing", 3, switch("", "twins", SWITCHES["network"]).make),
    _twin("drawer-missing", 2, system_ui.open_hidden),
    _twin("files-trash-missing", 6, files_gallery.trash("files", "downloads", "name", "folder")),
    _twin("browser-missing", 5, camera_browser.bookmark("on"), camera_browser.save_file),
    _twin("maps-missing", 6, recorder_maps.save_place, recorder_maps.directions),
)
