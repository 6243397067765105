"""Invented phones: every task can be done, equal numbers give equal apps, no test leaks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

import pytest

from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import (
    TEST_SEEDS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    PhoneEnvironment,
    draw_jobs,
)
from swarm_ui.environments.phone.apps import PHONE, TEST_APPS, TRAIN_APPS
from swarm_ui.environments.phone.invented import UNSEEN, InventedPhone, MixedPhone, Wordings
from swarm_ui.environments.phone.invented.devices import invent
from swarm_ui.environments.phone.invented.wordings import CLAUSES, expansions, with_state
from swarm_ui.environments.phone.sampling import POOLS, owner
from swarm_ui.environments.phone.state import App
from swarm_ui.environments.phone.templates import TEMPLATES
from swarm_ui.errors import ConfigError


def play(phone: PhoneEnvironment) -> tuple[float, int]:
    """Let the expert finish: the reward, and the number of steps."""
    done = 0
    while True:
        step = at_once(phone.step(phone.expert()))
        done += 1
        if step.ended:
            return step.reward, done


SOLVED = [("many", TRAIN_SEEDS, 60), ("few", VALIDATION_SEEDS, 61), ("many", TEST_SEEDS, UNSEEN)]
"""Wordings, seeds and first device: all tasks of one device for each."""


@pytest.mark.parametrize(("wordings", "seeds", "first"), SOLVED)
def test_solver_solves_every_task_within_its_steps(
    wordings: Wordings, seeds: range, first: int
) -> None:
    phone = InventedPhone(devices=1, first=first, wordings=wordings)
    solve_all(phone, draw_jobs(tuple(phone.tasks), len(phone.tasks), 1, seeds=seeds))


@pytest.mark.soak
@pytest.mark.parametrize("wordings", ["few", "many"])
def test_solver_solves_20_000_episodes_of_64_devices(wordings: Wordings) -> None:
    phone = InventedPhone(devices=64, wordings=wordings)
    solve_all(phone, draw_jobs(tuple(phone.tasks), 20_000, 1, seeds=TRAIN_SEEDS))


def solve_all(phone: InventedPhone, jobs: Iterable[tuple[str, int]]) -> None:
    for task, seed in jobs:
        at_once(phone.reset(task=task, seed=seed))
        distance, most = phone.distance(), phone.assign(task, seed).template.steps
        reward, done = play(phone)
        assert (reward, done) == (1.0, distance), (task, seed)
        assert done <= most + 1, (task, seed)


def test_equal_numbers_give_equal_devices_and_others_do_not() -> None:
    a, b = InventedPhone(devices=2), InventedPhone(devices=4)
    assert set(a.tasks) < set(b.tasks)
    task = a.tasks[5]
    assert at_once(a.reset(task=task, seed=7)) == at_once(b.reset(task=task, seed=7))
    names = [tuple(app.name for app in invent(k, 8).apps) for k in range(20)]
    assert len(set(names)) == 20


def test_a_device_without_an_unused_switch_still_lacks_one() -> None:
    phone = InventedPhone(devices=1, apps=40)
    absent = [task for task in phone.tasks if "-absent-" in task]
    assert len(absent) > 5
    for task in absent:
        at_once(phone.reset(task=task, seed=3))
        assert play(phone)[0] == 1.0


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


async def test_a_mixed_phone_has_the_tasks_of_the_phone_too() -> None:
    mixed, invented, phone = MixedPhone(devices=2), InventedPhone(devices=2), PhoneEnvironment()
    assert set(mixed.tasks) == {*invented.tasks, *phone.tasks}
    assert len(set(mixed.tasks)) == len(mixed.tasks)
    for task in (invented.tasks[0], phone.tasks[0]):
        assert mixed.has(task) and (await mixed.reset(task=task, seed=1)).goal
    assert not mixed.has("contacts-unknown") and not invented.has(phone.tasks[0])


@pytest.mark.parametrize(
    "task",
    ["invented-3-open-x", "contacts-add", "invented-x", "invented-99-open-y", "invented-²-open-x"],
)
def test_unknown_tasks_are_named(task: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(repr(task))):
        at_once(InventedPhone(devices=2).reset(task=task, seed=0))


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
        observation = at_once(phone.reset(task=task, seed=0))
        while True:
            if observation.app.split(" ")[0] in app_names:
                for element in observation.elements:
                    if element.role in ("button", "tab", "switch", "radio", "field"):
                        words.update(element.label.casefold().split())
            step = at_once(phone.step(phone.expert()))
            if step.ended:
                break
            observation = step.observation
    return words


def test_no_word_of_a_test_app_occurs() -> None:
    test = words_of(PHONE.apps[name] for name in TEST_APPS)
    test |= shown_words(TEST_APPS, ("new_apps",))
    assert len(test) > 40
    known = words_of(PHONE.apps[name] for name in TRAIN_APPS)
    known |= shown_words(TRAIN_APPS, ("train",))
    known |= {*POOLS["distractors"], *goal_words(("train",))}
    invented = words_of(app.app for k in range(200) for app in invent(k, 8).apps)
    invented |= {word for texts in TRAINING.values() for text in texts for word in bare(text)}
    assert invented & (test - known) == set()


def bare(text: str) -> list[str]:
    """The words of a text without placeholders and brackets."""
    return re.sub(r"\{\w+\}|@\w+|[^a-z]+", " ", text.casefold()).split()


def goal_words(splits: Collection[str]) -> set[str]:
    found = (goal for t in TEMPLATES.values() if t.split in splits for goal in t.texts)
    return {word for goal in found for word in bare(goal)}


def masked(goal: str, words: Collection[str]) -> str:
    """A goal text with parameters and words of apps left out, runs of them as one ``_``."""
    text = re.sub(r"\{\w+\}", "_", goal.casefold())
    parts = re.sub(r"[^a-z_]+", " ", text).split()
    shown = ["_" if part in words or part == "_" else part for part in parts]
    return re.sub(r"_( _)+", "_", " ".join(shown))


SMALL = frozenset("_ a an the in of to and for on off at with from is".split())  # noqa: SIM905
WORDS = words_of(PHONE.apps.values()) - SMALL


def says(pattern: str) -> bool:
    """Whether anything but small words is left."""
    return not set(pattern.split()) <= SMALL


def phrasings(splits: Collection[str]) -> set[str]:
    """The masked goal texts of the phone's own templates."""
    goals = (goal for t in TEMPLATES.values() if t.split in splits for goal in t.texts)
    return set(filter(says, (masked(goal, WORDS) for goal in goals)))


TEST_SPLITS = ("new_templates", "new_apps", "twins", "validation")
TRAINING = {
    (name, kind): texts for name in ("few", "many") for kind, texts in CLAUSES[name].items()
}
"""The wordings of training."""


def clauses() -> Iterator[str]:
    """All clauses of the wordings, with one to three fields."""
    for text in (text for texts in TRAINING.values() for text in texts):
        plain = text.removeprefix("?")
        slots: list[dict[str, str]] = [{"title": "", "state": "on"}]
        if "@" in plain:
            slots = [{**about, "state": s} for about in ({}, {"title": ""}) for s in ("on", "off")]
        lists = ("_", "_ and _") if "{fields}" in plain or "{titles}" in plain else ("_",)
        for about in slots:
            for clause in expansions(with_state(plain, about)):
                for fields in lists:
                    yield clause.replace("{fields}", fields).replace("{titles}", fields)


def without_app(pattern: str) -> Iterator[str]:
    """A pattern, and what is left of it without the mention of an app before and after it."""
    before, after = r"^(in|in the) _ ", r" (in|in the|from) _$"
    yield from {
        re.sub(one, "", re.sub(two, "", pattern)) for one in (before, "^$") for two in (after, "^$")
    }


def test_no_goal_is_worded_like_one_of_a_test() -> None:
    test = phrasings(TEST_SPLITS) - phrasings(("train",))
    assert len(test) > 10
    found = {masked(clause, WORDS) for clause in clauses()}
    known = {bare for goal in phrasings(("train",)) for bare in without_app(goal)}
    same = {goal for goal in test if not found.isdisjoint({*without_app(goal)} - known)}
    assert same == set()
