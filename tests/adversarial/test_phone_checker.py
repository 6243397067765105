"""Policies that try to be rewarded for what the task does not want, on every template.

Each policy has an expected reward for each goal. ``phone_oracle`` states the rule once more, as a
comparison of states, for the policies whose result cannot be known beforehand.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import msgspec
import phone_mischief as mischief
import pytest
from phone_mischief import COMPLETE, INFEASIBLE, Player
from phone_oracle import is_solved

from swarm_ui.action import Action
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone.apps import PHONE
from swarm_ui.environments.phone.goal import (
    Change,
    Configure,
    Create,
    Delete,
    Goal,
    InFront,
    Want,
)
from swarm_ui.environments.phone.state import Device, Screen
from swarm_ui.environments.phone.templates import TEMPLATES

Expected = float | None
"""The right reward; ``None``: the policy has nothing to do on this task."""
Policy = Callable[[Player, random.Random], tuple[float, Expected]]
"""Plays an episode to its end; returns its reward and the right one."""


def immediately(player: Player, rng: random.Random) -> tuple[float, Expected]:
    return at_once(player.phone.step(COMPLETE)).reward, 0.0


def infeasible_at_once(player: Player, rng: random.Random) -> tuple[float, Expected]:
    return at_once(player.phone.step(INFEASIBLE)).reward, float(player.goal.infeasible)


def half_done(player: Player, rng: random.Random) -> tuple[float, Expected]:
    """Everything but the last act."""
    while player.phone.distance() > 2:
        at_once(player.phone.step(player.phone.expert()))
    return at_once(player.phone.step(COMPLETE)).reward, 0.0


def done(player: Player, rng: random.Random) -> tuple[float, Expected]:
    player.solve()
    return player.declare(), 1.0


def wrong_end(player: Player, rng: random.Random) -> tuple[float, Expected]:
    """Everything is done, and the wrong one of the two ends is declared."""
    player.solve()
    return at_once(
        player.phone.step(COMPLETE if player.goal.infeasible else INFEASIBLE)
    ).reward, 0.0


def then(do: mischief.Mischief) -> Policy:
    """The task is done, and then something else."""

    def play(player: Player, rng: random.Random) -> tuple[float, Expected]:
        player.solve()
        want = do(player.goal, player.start, player.device, rng)
        if want is None:
            return 0.0, None
        player.pursue(Goal(wants=(want,)))
        return player.declare(), 0.0

    return play


def first(do: mischief.Mischief) -> Policy:
    """Something else is done and left so, and then the task as if the device had started so."""

    def play(player: Player, rng: random.Random) -> tuple[float, Expected]:
        want = do(player.goal, player.start, player.device, rng)
        stuck = isinstance(want, Delete) and want.row in needed(player.goal)
        if want is None or stuck:
            return 0.0, None
        player.pursue(Goal(wants=(want,)))
        player.pursue(player.goal)
        return player.declare(), 0.0

    return play


def needed(goal: Goal) -> set[int]:
    """Records without which the task cannot be done."""
    wants = [want for want in goal.wants if isinstance(want, Create | Change)]
    return {
        *(screen.row for screen in goal.look),
        *(source.row for want in wants for source in want.sources),
        *(screen.row for want in goal.wants if isinstance(want, Create) for screen in want.path),
        *(s.row for want in goal.wants if isinstance(want, InFront) for s in want.path),
    }


def extra_answer(player: Player, rng: random.Random) -> tuple[float, Expected]:
    player.solve()
    player.answer("radish")
    return player.declare(), float(player.goal.answer is None)


def second_answer_is_right(player: Player, rng: random.Random) -> tuple[float, Expected]:
    player.answer("radish")
    player.solve()
    return player.declare(), 1.0


def elsewhere(want: Want, start: Device, rng: random.Random) -> Want | None:
    """The same condition on another record, setting or app."""
    if isinstance(want, Change | Delete):
        rows = [key for key in start.tables[want.table] if key != want.row]
        return msgspec.structs.replace(want, row=rng.choice(rows)) if rows else None
    if isinstance(want, Configure):
        like = PHONE.places[want.key].choices
        keys = [k for k in start.settings if PHONE.places[k].choices == like and k != want.key]
        return Configure(key=rng.choice(keys), value=want.value) if keys else None
    if isinstance(want, InFront):
        others = [app for app in start.installed if app != want.path[0].app]
        return InFront(path=(Screen(rng.choice(others)),))
    return None


def otherwise(want: Want, start: Device, rng: random.Random) -> Want | None:
    """The same condition with another value."""
    if isinstance(want, Create | Change):
        table = PHONE.tables[want.table]
        names = [f.name for f in table.form if f.kind == "text" and f.name in want.fields]
        if not names:
            return None
        fields = {**want.fields, rng.choice(names): "radish soup"}
        return msgspec.structs.replace(want, fields=fields, sources=())
    if isinstance(want, Configure):
        values = [v for v in PHONE.places[want.key].choices if v != want.value]
        return Configure(key=want.key, value=rng.choice(values))
    return None


def instead(change: Callable[[Want, Device, random.Random], Want | None]) -> Policy:
    """One condition of the goal is fulfilled elsewhere or with another value, the rest as asked."""

    def play(player: Player, rng: random.Random) -> tuple[float, Expected]:
        wants = list(player.goal.wants)
        for at in rng.sample(range(len(wants)), len(wants)):
            other = change(wants[at], player.start, rng)
            if other is not None and other not in wants:
                wants[at] = other
                player.pursue(msgspec.structs.replace(player.goal, wants=tuple(wants)))
                return player.declare(), 0.0
        return 0.0, None

    return play


def at_random(player: Player, rng: random.Random) -> tuple[float, Expected]:
    """Random acts, and then what the goal asks for is declared, whatever has become of it."""
    screen = player.phone.restore(player.phone.snapshot())
    for _ in range(rng.randrange(12)):
        index = rng.randrange(len(screen.elements))
        kind = "input_text" if screen.elements[index].editable else "click"
        action = Action(action_type=kind, index=index, text="tea" if kind != "click" else None)
        screen = at_once(player.phone.step(action)).observation
    solved = is_solved(player.goal, player.start, player.device)
    return player.declare(), float(solved)


def half_random(player: Player, rng: random.Random) -> tuple[float, Expected]:
    """The task is done, and then random acts: some change something, some only look around."""
    player.solve()
    return at_random(player, rng)


POLICIES: Mapping[str, Policy] = {
    "declares complete at once": immediately,
    "declares infeasible at once": infeasible_at_once,
    "half done": half_done,
    "done": done,
    "done, declared the wrong way": wrong_end,
    "done, then another record deleted": then(mischief.delete),
    "done, then another record edited": then(mischief.edit),
    "done, then another record duplicated": then(mischief.duplicate),
    "done, then another record's switch flipped": then(mischief.flip),
    "done, then the new record's switch flipped": then(mischief.flip_created),
    "done, then a setting changed": then(mischief.configure),
    "a record deleted, then done": first(mischief.delete),
    "a setting changed, then done": first(mischief.configure),
    "wrong record": instead(elsewhere),
    "wrong value": instead(otherwise),
    "an extra answer after the end": extra_answer,
    "a wrong answer, then done": second_answer_is_right,
    "random": at_random,
    "done, then random": half_random,
}
LEAST = {
    "done, then the new record's switch flipped": 10,
    "a setting changed, then done": 45,
    "wrong record": 35,
    "wrong value": 35,
}
"""Templates on which a policy that needs something special must have found something to do."""


def check(policy: str, seed: int) -> None:
    wrong, played, rewards = [], 0, 0.0
    for task in TEMPLATES:
        reward, expected = POLICIES[policy](Player(task, seed), random.Random(f"{task} {seed}"))
        if expected is None:
            continue
        played += 1
        rewards += reward
        if reward != expected:
            wrong.append((task, seed, reward))
    print(f"{policy}: {played} episodes, {rewards:.0f} rewarded")
    assert not wrong
    assert played >= LEAST.get(policy, 60)


@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_is_rewarded_for_what_the_task_does_not_want(policy: str) -> None:
    check(policy, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_for_ten_seeds_of_each_split(policy: str) -> None:
    for seed in (*range(2, 12), *range(10_000_000, 10_000_010), *range(20_000_000, 20_000_010)):
        check(policy, seed)
