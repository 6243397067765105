"""Tasks with the device itself: switches, choices, opening apps."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.settings import SWITCHES
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import AppInFront, Goal
from swarm_ui.environments.phone.tasks.task_kinds import choice, switch
from swarm_ui.environments.phone.tasks.template import Template

_MANY = tuple(key for category in ("network", "display", "sound") for key in SWITCHES[category])
_NO_SUCH = ("gps", "radar", "infrared", "ethernet", "flashlight", "nfc")


def _open(sampler: Sampler, device: Device) -> Goal:
    app = sampler.pick(device.installed)
    return Goal(words={"app": app}, wants=(AppInFront(app=app),))


def _no_such_switch(sampler: Sampler, device: Device) -> Goal:
    words = {"switch": sampler.pick(_NO_SUCH), "state": sampler.pick(("on", "off"))}
    look = (Screen("settings"), Screen("settings", "category", "network"))
    return Goal(words=words, look=look, infeasible=True)


_SETTINGS = ("settings",)
TEMPLATES = (
    Template(
        name="open-app",
        apps=(),
        split="train",
        steps=1,
        goals=("open the {app} app", "go to {app}", "start {app}"),
        make=_open,
        tags=("open",),
    ),
    Template(
        name="settings-network",
        apps=_SETTINGS,
        split="train",
        steps=3,
        goals=(
            "turn {state} {switch} in the network settings",
            "switch {switch} {state} in settings",
            "turn {switch} {state}",
        ),
        make=switch(SWITCHES["network"]),
        tags=("toggle",),
    ),
    Template(
        name="settings-display",
        apps=_SETTINGS,
        split="train",
        steps=3,
        goals=(
            "turn {state} {switch} in the display settings",
            "switch {switch} {state} in settings",
            "turn {switch} {state}",
        ),
        make=switch(SWITCHES["display"]),
        tags=("toggle",),
    ),
    Template(
        name="settings-sound",
        apps=_SETTINGS,
        split="train",
        steps=3,
        goals=(
            "turn {state} {switch} in the sound settings",
            "switch {switch} {state} in settings",
            "turn {switch} {state}",
        ),
        make=switch(SWITCHES["sound"]),
        tags=("toggle",),
    ),
    Template(
        name="settings-privacy",
        apps=_SETTINGS,
        split="new_templates",
        steps=3,
        goals=(
            "turn {state} {switch} in the privacy settings",
            "in settings under privacy turn {switch} {state}",
        ),
        make=switch(SWITCHES["privacy"]),
        tags=("toggle",),
    ),
    Template(
        name="settings-two",
        apps=_SETTINGS,
        split="train",
        steps=6,
        goals=(
            "in settings turn {state} {switch} and turn {state2} {switch2}",
            "switch {switch} {state} and {switch2} {state2} in settings",
        ),
        make=switch(_MANY, 2),
        tags=("toggle", "several"),
    ),
    Template(
        name="settings-three",
        apps=_SETTINGS,
        split="validation",
        steps=9,
        goals=(
            "in settings turn {state} {switch} , turn {state2} {switch2} and turn {state3} "
            "{switch3}",
            "switch {switch} {state} , {switch2} {state2} and {switch3} {state3} in settings",
        ),
        make=switch(_MANY, 3),
        tags=("toggle", "several"),
    ),
    Template(
        name="settings-text-size",
        apps=_SETTINGS,
        split="train",
        steps=4,
        goals=(
            "set the text size to {option} in the display settings",
            "make the text size {option} in settings",
        ),
        make=choice("text size"),
        tags=("choice",),
    ),
    Template(
        name="settings-ringtone",
        apps=_SETTINGS,
        split="new_templates",
        steps=4,
        goals=(
            "set the ringtone to {option} in the sound settings",
            "change the ringtone to {option} in settings",
        ),
        make=choice("ringtone"),
        tags=("choice",),
    ),
    Template(
        name="settings-missing",
        apps=_SETTINGS,
        split="train",
        steps=2,
        goals=(
            "turn {state} {switch} in the network settings",
            "switch {switch} {state} in the network settings",
        ),
        make=_no_such_switch,
        tags=("infeasible",),
    ),
)
