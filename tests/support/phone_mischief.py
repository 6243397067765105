"""What a policy can do to the phone besides its task, through the screen as any agent would."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.apps import PHONE
from swarm_ui.environments.phone.goal import (
    Change,
    Configure,
    Create,
    Delete,
    Goal,
    Want,
)
from swarm_ui.environments.phone.kinds import Assignment
from swarm_ui.environments.phone.state import Device

COMPLETE = Action(action_type="status", goal_status="complete")
INFEASIBLE = Action(action_type="status", goal_status="infeasible")
Mischief = Callable[[Goal, Device, Device, random.Random], Want | None]
"""From the goal, the start, the present device and a generator: what to do; ``None``: nothing."""


class Patient(PhoneEnvironment):
    """A phone whose episodes are not cut short."""

    def begin(self, task: str, rng: random.Random) -> str:
        goal = super().begin(task, rng)
        self.budget = 1000
        return goal


class Player:
    """Plays one episode with the reference solver, and turns it to other ends on the way."""

    def __init__(self, task: str, seed: int) -> None:
        self.phone = Patient()
        at_once(self.phone.reset(task=task, seed=seed))
        assignment = self.phone.state.assignment
        self.goal, self.start = assignment.goal, assignment.start

    @property
    def device(self) -> Device:
        return self.phone.state.device

    def solve(self) -> None:
        """Do the task, without the declaration."""
        while (action := self.phone.expert()).action_type != "status":
            assert not at_once(self.phone.step(action)).ended

    def pursue(self, goal: Goal) -> None:
        """Do what ``goal`` says as if it were the task of the episode."""
        task = self.phone.state.assignment
        self._turn_to(msgspec.structs.replace(task, goal=goal, start=self.device.clone()))
        self.solve()
        self._turn_to(task)

    def _turn_to(self, task: Assignment) -> None:
        self.phone.state = msgspec.structs.replace(self.phone.state, assignment=task)
        self.phone.restore(self.phone.snapshot())  # the solver's distance is another one now

    def answer(self, text: str) -> None:
        at_once(self.phone.step(Action(action_type="answer", text=text)))

    def declare(self) -> float:
        return at_once(self.phone.step(INFEASIBLE if self.goal.infeasible else COMPLETE)).reward


def touched(goal: Goal) -> set[tuple[str, int]]:
    """The existing records that the goal is about."""
    return {(w.table, w.row) for w in goal.wants if isinstance(w, Change | Delete)}


def others(goal: Goal, start: Device, now: Device) -> Iterator[tuple[str, int]]:
    """Records of the start that the goal says nothing about and that are still there."""
    for table, rows in start.tables.items():
        for row in rows:
            if (table, row) not in touched(goal):
                yield table, row


def _pick(
    goal: Goal, start: Device, now: Device, rng: random.Random, fits: Callable[[str], bool]
) -> tuple[str, int] | None:
    found = [(table, row) for table, row in others(goal, start, now) if fits(table)]
    return rng.choice(found) if found else None


def delete(goal: Goal, start: Device, now: Device, rng: random.Random) -> Want | None:
    found = _pick(goal, start, now, rng, lambda table: True)
    return None if found is None else Delete(table=found[0], row=found[1])


def edit(goal: Goal, start: Device, now: Device, rng: random.Random) -> Want | None:
    found = _pick(goal, start, now, rng, lambda t: bool(PHONE.tables[t].edit))
    if found is None:
        return None
    table, row = found
    return Change(table=table, row=row, fields={PHONE.tables[table].title: "something else"})


def duplicate(goal: Goal, start: Device, now: Device, rng: random.Random) -> Want | None:
    found = _pick(goal, start, now, rng, lambda table: True)
    if found is None:
        return None
    table, row = found
    record = now.tables[table][row]
    return Create(table=table, fields={f.name: record[f.name] for f in PHONE.tables[table].form})


def flip(goal: Goal, start: Device, now: Device, rng: random.Random) -> Want | None:
    found = _pick(goal, start, now, rng, lambda table: bool(PHONE.tables[table].switches))
    return None if found is None else _flipped(now, *found)


def flip_created(goal: Goal, start: Device, now: Device, rng: random.Random) -> Want | None:
    """The switch of a record that the task created, unless the goal names it."""
    named = {name for want in goal.wants if isinstance(want, Create) for name in want.fields}
    created = [
        (table, row)
        for table, rows in now.tables.items()
        for row in rows
        if row not in start.tables[table] and PHONE.tables[table].switches
        and PHONE.tables[table].switches[0].name not in named
    ]  # fmt: skip
    return _flipped(now, *rng.choice(created)) if created else None


def _flipped(now: Device, table: str, row: int) -> Change:
    name = PHONE.tables[table].switches[0].name
    value = "off" if now.tables[table][row][name] == "on" else "on"
    return Change(table=table, row=row, fields={name: value})


def configure(goal: Goal, start: Device, now: Device, rng: random.Random) -> Want | None:
    wanted = {want.key for want in goal.wants if isinstance(want, Configure)}
    keys = [key for key in now.settings if key not in wanted]
    if not keys:
        return None
    key = rng.choice(keys)
    value = rng.choice([v for v in PHONE.places[key].choices if v != now.settings[key]])
    return Configure(key=key, value=value)
