"""Tasks with the device itself: switches, choices, opening apps."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.settings import SWITCHES
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import AppInFront, Goal
from swarm_ui.environments.phone.tasks.task_kinds import choice, switch
from swarm_ui.environments.phone.tasks.template import template

_CATEGORIES = ("network", "display", "sound")
_MANY = tuple(key for category in _CATEGORIES for key in SWITCHES[category])
_NO_SUCH = ("gps", "radar", "infrared", "ethernet", "flashlight", "nfc")


def _open(sampler: Sampler, device: Device) -> Goal:
    app = sampler.pick(device.installed)
    return Goal(words={"app": app}, wants=(AppInFront(app=app),))


def _no_such_switch(sampler: Sampler, device: Device) -> Goal:
    words = {"switch": sampler.pick(_NO_SUCH), "state": sampler.pick(("on", "off"))}
    look = (Screen("settings"), Screen("settings", "category", "network"))
    return Goal(words=words, look=look, infeasible=True)


TEMPLATES = (
    template("train", "open-app", _open, 1, "", "open").phrased(
        "open the {app} app", "go to {app}", "start {app}"
    ),
    *(
        switch(f"settings-{category}", "train", SWITCHES[category]).phrased(
            f"turn {{state}} {{switch}} in the {category} settings",
            "switch {switch} {state} in settings",
            "turn {switch} {state}",
        )
        for category in _CATEGORIES
    ),
    switch("settings-privacy", "new_templates", SWITCHES["privacy"]).phrased(
        "turn {state} {switch} in the privacy settings",
        "in settings under privacy turn {switch} {state}",
    ),
    switch("settings-two", "train", _MANY, 2).phrased(
        "in settings turn {state} {switch} and turn {state2} {switch2}",
        "switch {switch} {state} and {switch2} {state2} in settings",
    ),
    switch("settings-three", "validation", _MANY, 3).phrased(
        "in settings turn {state} {switch} , turn {state2} {switch2} and turn {state3} {switch3}",
        "switch {switch} {state} , {switch2} {state2} and {switch3} {state3} in settings",
    ),
    choice("settings-text-size", "train", "text size").phrased(
        "set the text size to {option} in the display settings",
        "make the text size {option} in settings",
    ),
    choice("settings-ringtone", "new_templates", "ringtone").phrased(
        "set the ringtone to {option} in the sound settings",
        "change the ringtone to {option} in settings",
    ),
    template("train", "settings-missing", _no_such_switch, 2, "settings", "infeasible").phrased(
        "turn {state} {switch} in the network settings",
        "switch {switch} {state} in the network settings",
    ),
)
