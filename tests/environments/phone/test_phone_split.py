"""Split facts: no agent has all that a task needs, and the check accepts only the right record."""

from __future__ import annotations

import re

import pytest

from swarm_ui.action import Action
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import TEST_SEEDS, TRAIN_SEEDS, VALIDATION_SEEDS
from swarm_ui.environments.phone.goal import Want
from swarm_ui.environments.phone.sampling import owner
from swarm_ui.environments.phone.split import (
    NAMES,
    RULES,
    SPLIT_TEMPLATES,
    SplitPhone,
    split_tasks,
)
from swarm_ui.environments.phone.split_agents import read_goal
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation

SEEDS = (TRAIN_SEEDS[0], TRAIN_SEEDS[5], VALIDATION_SEEDS[8], TEST_SEEDS[3])


def panes(screen: Observation) -> dict[str, list[Element]]:
    found: dict[str, list[Element]] = {}
    for element in screen.elements:
        found.setdefault(element.pane, []).append(element)
    return found


def texts(elements: list[Element]) -> str:
    return " | ".join(f"{e.text} | {e.value}" for e in elements)


def says(text: str, value: str) -> bool:
    """Whether a text contains a value, between other characters than those of words."""
    return re.search(rf"(?<![\w.-]){re.escape(value)}(?![\w.-])", text) is not None


def wanted(phone: SplitPhone, task: str, seed: int) -> Want:
    (want,) = phone.assign(task, seed).goal.records
    return want


def facts(phone: SplitPhone, task: str, seed: int) -> list[str]:
    """The values of the facts, as the panes show them."""
    screen = at_once(phone.reset(task=task, seed=seed))
    spec, words = read_goal(screen.goal)
    found = []
    for name, fact in zip(NAMES, spec.facts, strict=False):
        record = next(e for e in panes(screen)[fact.app] if e.text == words[name])
        said = re.search(rf"\b{fact.field} ([^,]*)", record.value or "")
        assert said is not None
        found.append(said[1])
    return found


@pytest.mark.parametrize("agents", (4, 7, 10))
def test_no_agent_has_all_that_a_task_needs(agents: int) -> None:
    phone = SplitPhone(agents=agents)
    for number, task in enumerate(SPLIT_TEMPLATES):
        seed = SEEDS[(number + agents) % len(SEEDS)]
        values = facts(phone, task, seed)
        spec, screen = phone.spec(task), at_once(phone.reset(task=task, seed=seed))
        shown, goal = panes(screen), phone.progress.goal
        assert set(shown) == set(phone.team(task, seed)) and len(shown) == agents
        # A value is on the screen of one agent only.
        for k, value in enumerate(values):
            holders = [app for app, elements in shown.items() if says(texts(elements), value)]
            assert holders == [spec.facts[k].app] != [spec.acting]
        # The goal and the view of the acting agent have nothing of what is computed.
        want, twin = wanted(phone, task, seed), wanted(phone, task, seed ^ 1)
        for field in spec.fills:
            assert not says(f"{goal} | {texts(shown[spec.acting])}", want.fields[field])
            assert want.fields[field] != twin.fields[field]
        # An app without a fact has a wrong value under the same name.
        _, words = read_goal(goal)
        names = [words[key] for key in NAMES if key in words]
        for app in set(shown) - {spec.acting, *spec.sources, "settings"}:
            assert any(says(texts(shown[app]), name) for name in names)
        # To the acting agent, twins look equal.
        other = at_once(phone.reset(task=task, seed=seed ^ 1))
        assert (screen.goal, screen.app) == (other.goal, other.app)
        assert shown[spec.acting] == panes(other)[spec.acting]


@pytest.mark.parametrize("task", SPLIT_TEMPLATES)
def test_near_misses_are_refused(task: str) -> None:
    """A value of the twin, a missing field, and a surplus record."""
    phone = SplitPhone(agents=6)
    want, twin = wanted(phone, task, 4), wanted(phone, task, 5)
    field = next(iter(phone.spec(task).fills))
    assert solved(phone, task, dict(want.fields)) == 1.0
    assert solved(phone, task, {**want.fields, field: twin.fields[field]}) == 0.0
    assert solved(phone, task, {k: v for k, v in want.fields.items() if k != field}) == 0.0
    assert solved(phone, task, dict(want.fields), times=2) == 0.0


def solved(phone: SplitPhone, task: str, fields: dict[str, str], times: int = 1) -> float:
    """The reward after records with these fields are saved, and the task is declared done."""
    at_once(phone.reset(task=task, seed=4))
    table = phone.spec(task).into
    for _ in range(times):
        click(phone, table.add)
        for name, text in fields.items():
            click(phone, name, text)
        screen = click(phone, table.save)
    assert screen.app.split()[0] == phone.spec(task).acting
    return at_once(phone.step(Action(action_type="status", goal_status="complete"))).reward


def click(phone: SplitPhone, label: str, text: str | None = None) -> Observation:
    screen = phone.restore(phone.snapshot())
    acting = phone.spec(phone.progress.task).acting
    index = next(e.index for e in screen.elements if e.text == label and e.pane == acting)
    action = Action(
        action_type="click" if text is None else "input_text", index=index, text=text
    )  # fmt: skip
    return at_once(phone.step(action)).observation


def test_only_the_acting_app_can_be_operated_and_it_stays_open() -> None:
    phone = SplitPhone(agents=5)
    screen = at_once(phone.reset(task="split-phone-message", seed=3))
    assert screen.app == "messages" and screen.elements[0].pane == "messages"
    index = next(e.index for e in screen.elements if e.pane == "contacts")
    step = at_once(phone.step(Action(action_type="click", index=index)))
    assert step.note == "only messages can be operated"
    step = at_once(phone.step(Action(action_type="open_app", app_name="contacts")))
    assert step.note == "only messages is open"
    for kind in ("navigate_home", "navigate_back"):
        step = at_once(phone.step(Action(action_type=kind)))  # type: ignore[arg-type]
        assert step.observation.app == "messages"
        assert step.observation.elements == screen.elements


def test_splits_share_neither_templates_nor_values() -> None:
    named = [split_tasks(split) for split in ("train", "validation", "new_templates")]
    assert sorted(name for names in named for name in names) == sorted(SPLIT_TEMPLATES)
    assert [len(names) for names in named] == [13, 2, 6]
    for agents in (3, 11):
        with pytest.raises(ConfigError, match="expected 4 to 10 agents"):
            SplitPhone(agents=agents)
    for task in SPLIT_TEMPLATES:
        for seed, split in ((0, "train"), (10_000_000, "validation"), (20_000_000, "test")):
            assert {owner(value) for value in facts(SplitPhone(agents=8), task, seed)} == {split}


@pytest.mark.parametrize(
    ("rule", "values", "text"),
    [
        ("join", ["a b", "c"], "a b c"),
        ("sum", ["0.10", "0.20"], "0.30"),
        ("sum", ["99.99", "0.01", "3.00"], "103.00"),
        ("least", ["9.50", "10.00"], "9.50"),
        ("most", ["9.50", "10.00"], "10.00"),
        ("first", ["09:05", "10:00"], "09:05"),
        ("last", ["09:05", "10:00"], "10:00"),
    ],
)
def test_rules(rule: str, values: list[str], text: str) -> None:
    assert RULES[rule](values) == text  # type: ignore[index]
