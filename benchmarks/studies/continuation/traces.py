"""Generated recordings of web tasks in invented shops and offices, in Mind2Web's raw format.

**Synthetic and small**: a few kinds of steps on invented pages. They have the structure of
Mind2Web's data (pages as candidates, one recorded action for each step, held-out sites and tasks)
but none of its contents. A score on them shows the effect of a training stage, and says nothing
about Mind2Web.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic
from swarm_ui.node import derive

_CITIES = ("Oakley", "Milford", "Ashton", "Bexley", "Corby", "Dover", "Ely", "Frome", "Hythe",
           "Leeds", "Ripon", "Wells")  # fmt: skip
_NAMES = ("Ames", "Brandt", "Costa", "Dietz", "Egan", "Fabre", "Grau", "Huber", "Ivanov", "Jansen",
          "Kovac", "Lund")  # fmt: skip
_THINGS = ("lamp", "kettle", "tent", "violin", "camera", "scarf", "blender", "easel", "anchor",
           "saddle", "drone", "globe")  # fmt: skip
_COLOURS = ("red", "blue", "green", "black", "white", "yellow")
_TRIES = 1000
_NOISE = ("Home", "Help", "Sign in", "Careers", "About us", "Contact", "Newsletter", "Privacy",
          "Gift cards", "Stores", "Blog", "Terms")  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Part:
    """An element of a made-up page."""

    tag: str
    label: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Act:
    """A step: an action on one part, and the other parts of the page."""

    op: str
    part: _Part
    value: str = ""
    others: tuple[_Part, ...] = ()


Recipe = Callable[[random.Random], tuple[str, list[_Act]]]


def _click(label: str, others: Sequence[str], tag: str = "button") -> _Act:
    return _Act("CLICK", _Part(tag, label), others=tuple(_Part(tag, o) for o in others))


def _type(label: str, value: str, others: Sequence[str]) -> _Act:
    parts = (*(_Part("input", o) for o in others), _Part("button", "Continue"))
    return _Act("TYPE", _Part("input", label), value, parts)


def _select(label: str, value: str, options: Sequence[str], other: str) -> _Act:
    part = _Part("select", label, tuple(options))
    return _Act("SELECT", part, value, (_Part("select", other, ("One", "Two")),))


def _some(rng: random.Random, words: Sequence[str], but: str, count: int = 3) -> list[str]:
    return rng.sample([word for word in words if word != but], count)


def _train(rng: random.Random) -> tuple[str, list[_Act]]:
    start, end = rng.sample(_CITIES, 2)
    return f'Enter "{start}" into From and "{end}" into To, then press Find trains.', [
        _type("From", start, ("To", "Via")),
        _type("To", end, ("From", "Via")),
        _click("Find trains", ("Clear", "Timetable")),
    ]


def _departures(rng: random.Random) -> tuple[str, list[_Act]]:
    start, end = rng.sample(_CITIES, 2)
    return f"Show departures at {start} and then trains to {end}.", [
        _click("Departures", ("Arrivals", "Tickets"), "a"),
        _click(start, _some(rng, _CITIES, start), "a"),
        _click(f"to {end}", [f"to {city}" for city in _some(rng, _CITIES, end)], "a"),
    ]


def _shop(rng: random.Random) -> tuple[str, list[_Act]]:
    thing, colour = rng.choice(_THINGS), rng.choice(_COLOURS)
    return f'Search for "{thing}" and add the {colour} one to the basket.', [
        _type("Search", thing, ("Postcode",)),
        _click(f"{colour} {thing}", [f"{c} {thing}" for c in _some(rng, _COLOURS, colour)], "a"),
        _click("Add to basket", ("Add to wish list", "Compare")),
    ]


def _gift(rng: random.Random) -> tuple[str, list[_Act]]:
    thing, name = rng.choice(_THINGS), rng.choice(_NAMES)
    return f'Open {thing}, write "{name}" on the card and buy it as a gift.', [
        _click(thing, _some(rng, _THINGS, thing), "a"),
        _type("Card", name, ("Voucher", "Quantity")),
        _click("Buy as gift", ("Buy", "Compare")),
    ]


def _doctor(rng: random.Random) -> tuple[str, list[_Act]]:
    name, city = rng.choice(_NAMES), rng.choice(_CITIES)
    return f"Book an appointment with Dr {name} at the branch in {city}.", [
        _click("Book an appointment", ("Order a prescription", "Opening hours")),
        _select("Branch", city, _towns(rng, city), "Reason"),
        _click(f"Dr {name}", [f"Dr {n}" for n in _some(rng, _NAMES, name)]),
    ]


def _patient(rng: random.Random) -> tuple[str, list[_Act]]:
    name, city = rng.choice(_NAMES), rng.choice(_CITIES)
    return f'Register with surname "{name}" and town "{city}".', [
        _click("Register", ("Log in", "Lost password"), "a"),
        _type("Surname", name, ("Town", "Email")),
        _type("Town", city, ("Surname", "Email")),
        _click("Save", ("Cancel", "Reset")),
    ]


def _library(rng: random.Random) -> tuple[str, list[_Act]]:
    name, city = rng.choice(_NAMES), rng.choice(_CITIES)
    return f'Look up books by "{name}" and reserve one at {city}.', [
        _type("Author", name, ("Title", "Year")),
        _click("Look up", ("Clear form", "Advanced")),
        _select("Pick up at", city, _towns(rng, city), "Language"),
        _click("Reserve", ("Share", "Cite")),
    ]


def _jobs(rng: random.Random) -> tuple[str, list[_Act]]:
    thing, city = rng.choice(_THINGS), rng.choice(_CITIES)
    return f"Show jobs in {city} and apply at the {thing} factory.", [
        _click(city, _some(rng, _CITIES, city), "a"),
        _click(f"{thing} factory", [f"{t} factory" for t in _some(rng, _THINGS, thing)], "a"),
        _click("Apply", ("Save job", "Report")),
    ]


def _towns(rng: random.Random, city: str) -> list[str]:
    return sorted([*_some(rng, _CITIES, city, 5), city])


KNOWN: dict[str, tuple[Recipe, ...]] = {
    "eastrail": (_train, _departures),
    "tinwares": (_shop, _gift),
    "meadowclinic": (_doctor, _patient),
}
"""Recipes of the sites that are trained on."""
NEW: dict[str, tuple[Recipe, ...]] = {"shelfmark": (_library,), "workfinder": (_jobs,)}
"""Sites that are only in the test."""


def make_traces(folder: Path, *, train: int, test: int) -> Path:
    """Write the splits ``train``, ``test_task`` (known sites, other tasks) and ``test_website``
    (other sites); always the same, no task twice.

    Args:
        train: tasks of the training split.
        test: tasks of each test split.
    """
    goals: set[str] = set()
    for split, sites, count in (
        ("test_task", KNOWN, test), ("test_website", NEW, test), ("train", KNOWN, train)
    ):  # fmt: skip
        rng = random.Random(derive(6, "traces", split))
        tasks = [_task(split, k, sites, goals, rng) for k in range(count)]
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / f"{split}_0.json", json.dumps(tasks))
    return folder


def _task(
    split: str, number: int, sites: dict[str, tuple[Recipe, ...]], goals: set[str],
    rng: random.Random,
) -> dict[str, Any]:  # fmt: skip
    pairs = [(site, recipe) for site, recipes in sites.items() for recipe in recipes]
    site, recipe = pairs[number % len(pairs)]
    goal, acts = recipe(rng)
    for _ in range(_TRIES):
        if goal not in goals:
            break
        goal, acts = recipe(rng)
    else:
        raise ConfigError(f"traces: there are only {len(goals)} different tasks; request fewer")
    goals.add(goal)
    name = f"made-{split}-{number}"
    return {
        "annotation_id": name, "website": site, "domain": "made up", "subdomain": "made up",
        "confirmed_task": goal, "action_reprs": [_told(act) for act in acts],
        "actions": [_recorded(act, f"{name}-{k}", rng) for k, act in enumerate(acts)],
    }  # fmt: skip


def _told(act: _Act) -> str:
    value = "" if act.op == "CLICK" else f": {act.value}"
    return f"[{act.part.tag}]  {act.part.label} -> {act.op}{value}"


def _recorded(act: _Act, uid: str, rng: random.Random) -> dict[str, Any]:
    noise = [_Part("a", label) for label in rng.sample(_NOISE, rng.randint(3, 6))]
    parts = [act.part, *act.others]
    rng.shuffle(parts)
    cut = rng.randint(0, len(noise))
    nodes = {str(10 + k): part for k, part in enumerate([*noise[:cut], *parts, *noise[cut:]])}
    body = "".join(_html(node, part) for node, part in nodes.items())
    return {
        "action_uid": uid,
        "raw_html": "<html/>",
        "cleaned_html": f'<html backend_node_id="1"><body backend_node_id="2">{body}</body></html>',
        "operation": {"op": act.op, "original_op": act.op, "value": act.value},
        "pos_candidates": [_candidate(n, p) for n, p in nodes.items() if p is act.part],
        "neg_candidates": [_candidate(n, p) for n, p in nodes.items() if p is not act.part],
    }


def _html(node: str, part: _Part) -> str:
    text = " ".join(part.options) if part.options else "" if part.tag == "input" else part.label
    return f'<{part.tag} backend_node_id="{node}"><text backend_node_id="9{node}">{text}</text></{part.tag}>'  # noqa: E501


def _candidate(node: str, part: _Part) -> dict[str, Any]:
    seen = {"backend_node_id": node}
    if part.tag in ("input", "select"):
        seen["aria_label"] = part.label
    return {"tag": part.tag, "attributes": json.dumps(seen), "backend_node_id": node}
