"""Policies that try to be rewarded for what the task does not want, on every template."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.apps import PHONE
from swarm_ui.environments.phone.goal import Goal, Want
from swarm_ui.environments.phone.kinds import Assignment
from swarm_ui.environments.phone.state import Device
from swarm_ui.environments.phone.templates import TEMPLATES

COMPLETE = Action(action_type="status", goal_status="complete")
INFEASIBLE = Action(action_type="status", goal_status="infeasible")


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
        self.goal = assignment.goal
        self.rng = random.Random(f"{task} {seed}")
        self.end = INFEASIBLE if self.goal.infeasible else COMPLETE

    @property
    def device(self) -> Device:
        return self.phone.state.device

    def act(self, action: Action) -> float:
        return at_once(self.phone.step(action)).reward

    def solve(self) -> None:
        """Do the task, without the declaration."""
        while (action := self.phone.expert()).action_type != "status":
            assert not at_once(self.phone.step(action)).ended

    def pursue(self, goal: Goal) -> None:
        """Do what the goal says as if it were the task of the episode."""
        task = self.phone.state.assignment
        self._turn_to(replace(task, goal=goal, start=self.device.clone()))
        self.solve()
        self._turn_to(task)

    def _turn_to(self, task: Assignment) -> None:
        self.phone.state = replace(self.phone.state, assignment=task)
        self.phone.restore(self.phone.snapshot())  # the solver's distance is another one now


Played = tuple[float, float] | None
"""The reward and the right one; ``None``: the policy has nothing to do on this task."""
Policy = Callable[[Player], Played]


def immediately(player: Player) -> Played:
    return player.act(COMPLETE), 0.0


def infeasible_at_once(player: Player) -> Played:
    return player.act(INFEASIBLE), float(player.goal.infeasible)


def half_done(player: Player) -> Played:
    """Everything but the last act."""
    while player.phone.distance() > 2:
        player.act(player.phone.expert())
    return player.act(COMPLETE), 0.0


def done(player: Player) -> Played:
    player.solve()
    return player.act(player.end), 1.0


def wrong_end(player: Player) -> Played:
    """Everything is done, and the wrong one of the two ends is declared."""
    player.solve()
    return player.act(COMPLETE if player.goal.infeasible else INFEASIBLE), 0.0


def extra_answer(player: Player) -> Played:
    player.solve()
    player.act(Action(action_type="answer", text="radish"))
    return player.act(player.end), float(player.goal.answer is None)


def second_answer_is_right(player: Player) -> Played:
    player.act(Action(action_type="answer", text="radish"))
    player.solve()
    return player.act(player.end), 1.0


# -- something else besides the task ------------------------------------------------------------


def needed(goal: Goal) -> set[int]:
    """Records without which the task cannot be done."""
    paths = [goal.look, goal.front, *(want.path for want in goal.records)]
    return {
        *(screen.row for path in paths for screen in path),
        *(want.source.row for want in goal.records if want.source),
        *(want.row for want in goal.records),
    }


def mischief(kind: str, player: Player) -> Goal | None:
    """A change of some record or setting, whatever the goal says of it."""
    now, rng = player.device, player.rng
    if kind == "configure":
        if not now.settings:
            return None
        key = rng.choice([key for key in now.settings if key not in player.goal.settings])
        other = [v for v in PHONE.places[key].choices if v != now.settings[key]]
        return Goal(settings={key: rng.choice(other)})
    rows = [
        (PHONE.tables[name], name, row, record)
        for name, records in now.tables.items()
        for row, record in records.items()
        if (kind != "flip" or PHONE.tables[name].switches)
        and (kind != "edit" or PHONE.tables[name].edit)
        and row not in needed(player.goal)
    ]
    if not rows:
        return None
    table, name, row, record = rng.choice(rows)
    switch = next((field.name for field in table.switches), "")
    want = {
        "delete": Want(table=name, row=row, gone=True),
        "duplicate": Want(table=name, fields={f.name: record[f.name] for f in table.form}),
        "edit": Want(table=name, row=row, fields={table.title: "something else"}),
        "flip": Want(
            table=name,
            row=row,
            fields={switch: "off" if record.get(switch) == "on" else "on"},
        ),
    }[kind]
    return Goal(records=(want,))


def then(kind: str) -> Policy:
    """The task is done, and then something else."""

    def play(player: Player) -> Played:
        player.solve()
        other = mischief(kind, player)
        if other is None:
            return None
        player.pursue(other)
        return player.act(player.end), 0.0

    return play


def first(kind: str) -> Policy:
    """Something else is done and left so, and then the task as if the device had started so."""

    def play(player: Player) -> Played:
        other = mischief(kind, player)
        if other is None:
            return None
        player.pursue(other)
        player.pursue(player.goal)
        return player.act(player.end), 0.0

    return play


KINDS = ("delete", "edit", "duplicate", "flip", "configure")
POLICIES: dict[str, tuple[Policy, int]] = {
    "declares complete at once": (immediately, 60),
    "declares infeasible at once": (infeasible_at_once, 60),
    "half done": (half_done, 60),
    "done": (done, 60),
    "done, declared the wrong way": (wrong_end, 60),
    "an extra answer after the end": (extra_answer, 60),
    "a wrong answer, then done": (second_answer_is_right, 60),
    **{f"done, then {kind}": (then(kind), 55) for kind in KINDS},
    **{f"{kind}, then done": (first(kind), 45) for kind in ("delete", "edit", "configure")},
}
"""With the number of templates on which it must have found something to do."""


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param([1], id="1"),
        pytest.param(
            [s + k for s in (2, 10_000_000, 20_000_000) for k in range(10)],
            id="soak",
            marks=pytest.mark.soak,
        ),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_is_rewarded_for_what_the_task_does_not_want(
    policy: str, seeds: list[int]
) -> None:
    play, least = POLICIES[policy]
    for seed in seeds:
        played = {task: play(Player(task, seed)) for task in TEMPLATES}
        found = {task: each for task, each in played.items() if each is not None}
        wrong = {task: (seed, *each) for task, each in found.items() if each[0] != each[1]}
        assert wrong == {} and len(found) >= least
