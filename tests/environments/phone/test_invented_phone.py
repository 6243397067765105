"""Invented phones: every task can be done, equal numbers give equal apps, no test leaks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import pytest

from swarm_ui.environments.phone import (
    TEST_SEEDS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    PhoneEnvironment,
    draw_jobs,
)
from swarm_ui.environments.phone.apps import APPS
from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.invented import InventedPhone
from swarm_ui.environments.phone.invented.invented_apps import invent
from swarm_ui.environments.phone.invented.wordings import FEW, MANY
from swarm_ui.environments.phone.parameters import owner
from swarm_ui.environments.phone.splits import EXTENDED_TEST_APPS
from swarm_ui.environments.phone.tasks import TEMPLATES
from swarm_ui.environments.phone.word_pools import DISTRACTORS
from swarm_ui.errors import ConfigError


def play(phone: PhoneEnvironment) -> tuple[float, int]:
    """Let the expert finish: the reward, and the number of steps."""
    done = 0
    while True:
        step = phone.act(phone.expert())
        done += 1
        if step.ended:
            return step.reward, done


@pytest.mark.parametrize("wordings", ["few", "many"])
@pytest.mark.parametrize("seeds", [TRAIN_SEEDS, VALIDATION_SEEDS, TEST_SEEDS])
def test_solver_solves_every_task_within_its_steps(wordings: str, seeds: range) -> None:
    phone = InventedPhone(devices=3, wordings=wordings)  # type: ignore[arg-type]
    for task, seed in draw_jobs(tuple(phone.tasks), len(phone.tasks), 1, seeds=seeds):
        phone.begin(task, seed)
        distance, most = phone.distance(), phone.assign(task, seed).template.steps
        reward, done = play(phone)
        assert (reward, done) == (1.0, distance), (task, seed)
        assert done <= most + 1, (task, seed)


def test_equal_numbers_give_equal_devices_and_others_do_not() -> None:
    a, b = InventedPhone(devices=2), InventedPhone(devices=4)
    assert set(a.tasks) < set(b.tasks)
    task = a.tasks[5]
    assert a.begin(task, 7) == b.begin(task, 7)
    names = [tuple(app.name for app in invent(k, 8).apps) for k in range(20)]
    assert len(set(names)) == 20


def test_other_wordings_change_the_text_and_nothing_else() -> None:
    few, many = InventedPhone(devices=1, wordings="few"), InventedPhone(devices=1)
    assert few.tasks == many.tasks
    texts = (
        {many.assign(task, seed).text for task in many.tasks[:1] for seed in range(60)},
        {few.assign(task, seed).text for task in few.tasks[:1] for seed in range(60)},
    )
    assert len(texts[0]) > 10 * len(texts[1])


@pytest.mark.parametrize(
    ("seeds", "split"), [(TRAIN_SEEDS, "train"), (VALIDATION_SEEDS, "validation")]
)
def test_parameters_belong_to_the_split_of_the_seed(seeds: range, split: str) -> None:
    phone = InventedPhone(devices=2)
    for task, seed in draw_jobs(tuple(phone.tasks), 150, 2, seeds=seeds):
        assert {owner(value) for value in phone.assign(task, seed).parameters} <= {split}


@pytest.mark.parametrize(
    "task", ["invented-3-open-x", "contacts-add", "invented-x", "invented-99-open-y"]
)
def test_unknown_tasks_are_named(task: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(repr(task))):
        InventedPhone(devices=2).begin(task, 0)


def test_bad_numbers_are_named() -> None:
    with pytest.raises(ConfigError, match="devices >= 1"):
        InventedPhone(devices=0)
    with pytest.raises(ConfigError, match="expected 'few' or 'many'"):
        InventedPhone(wordings="some")  # type: ignore[arg-type]


def words_of(apps: Iterable[App]) -> set[str]:
    """All words of apps: their names, tables, fields, buttons and settings."""
    texts: list[str] = []
    for app in apps:
        texts += [app.name, *app.settings]
        texts += [choice for place in app.settings.values() for choice in place.choices]
        texts += [screen.of for place in app.settings.values() for screen in place.path]
        for table in app.tables:
            texts += [table.name, table.add, table.save, table.edit, table.delete]
            texts += [screen.of for screen in table.trail]
            texts += [field.name for field in table.fields]
            texts += [choice for field in table.fields for choice in field.choices]
    words = {word for text in texts for word in text.casefold().split()}
    return words | {f"{word}s" for word in words}


def shown_words(app_names: Collection[str], splits: Collection[str]) -> set[str]:
    """The words of all buttons, tabs, switches and fields that the expert passes in these apps."""
    phone, words = PhoneEnvironment(), set[str]()
    for task in (t.name for t in TEMPLATES.values() if t.split in splits):
        observation = phone.begin(task, 0)
        while True:
            if observation.app.split(" ")[0] in app_names:
                for element in observation.elements:
                    if element.role in ("button", "tab", "switch", "radio", "field"):
                        words.update(element.label.casefold().split())
            step = phone.act(phone.expert())
            if step.ended:
                break
            observation = step.observation
    return words


def test_no_word_of_a_test_app_occurs() -> None:
    training_apps = [name for name in APPS if name not in EXTENDED_TEST_APPS]
    test = words_of(APPS[name] for name in EXTENDED_TEST_APPS)
    test |= shown_words(EXTENDED_TEST_APPS, ("new_apps", "extended_apps"))
    assert len(test) > 60
    known = words_of(APPS[name] for name in training_apps)
    known |= shown_words(training_apps, ("train", "extended_train"))
    known |= {*DISTRACTORS, *goal_words(("train",))}
    invented = words_of(app.app for k in range(200) for app in invent(k, 8).apps)
    invented |= {
        word for texts in (*MANY.values(), *FEW.values()) for t in texts for word in bare(t)
    }
    assert invented & (test - known) == set()


def bare(text: str) -> list[str]:
    """The words of a text without placeholders and brackets."""
    return re.sub(r"\{\w+\}|@\w+|[^a-z]+", " ", text.casefold()).split()


def goal_words(splits: Collection[str]) -> set[str]:
    found = (goal for t in TEMPLATES.values() if t.split in splits for goal in t.goals)
    return {word for goal in found for word in bare(goal)}
