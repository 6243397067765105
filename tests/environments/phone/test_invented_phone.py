"""Invented phones: every task can be done, equal numbers give equal apps, and no test leaks into
training, neither those of the phone nor the blind set."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

import pytest

from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import (
    TEST_SEEDS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    PhoneEnvironment,
    vocabulary,
)
from swarm_ui.environments.phone.apps import PHONE, TEST_APPS, TRAIN_APPS
from swarm_ui.environments.phone.invented import (
    BLIND,
    BLIND_DEVICES,
    UNSEEN,
    InventedPhone,
    blind_tasks,
)
from swarm_ui.environments.phone.invented.devices import invent
from swarm_ui.environments.phone.invented.wordings import CLAUSES, draw, with_state
from swarm_ui.environments.phone.sampling import FIRST, LAST, NOUNS, POOLS, VERBS, owner
from swarm_ui.environments.phone.state import App
from swarm_ui.environments.phone.templates import TEMPLATES
from swarm_ui.errors import ConfigError
from swarm_ui.rollout import spread_jobs

# -- playing --------------------------------------------------------------------------------------


def test_equal_numbers_give_equal_devices_whose_tasks_can_be_worded_otherwise() -> None:
    a, b = InventedPhone(devices=2), InventedPhone(devices=4)
    assert set(a.tasks) < set(b.tasks)
    task = a.tasks[5]
    assert at_once(a.reset(task=task, seed=7)) == at_once(b.reset(task=task, seed=7))
    assert len({tuple(invent(k).apps) for k in range(20)}) == 20
    few = InventedPhone(devices=2, wordings="few")
    assert few.tasks == a.tasks
    texts = [len({phone.assign(a.tasks[0], seed).text for seed in range(60)}) for phone in (a, few)]
    assert texts[0] > 10 * texts[1]


def test_parameters_belong_to_the_split_of_the_seed() -> None:
    phone = InventedPhone(devices=2)
    for seeds, split in ((TRAIN_SEEDS, "train"), (VALIDATION_SEEDS, "validation")):
        for task, seed in spread_jobs(tuple(phone.tasks), 100, 2, seeds):
            assert {owner(value) for value in phone.assign(task, seed).parameters} <= {split}


@pytest.mark.parametrize("task", ["invented-3-open-x", "contacts-x", "invented-x", "invented-²-x"])
def test_unknown_tasks_are_named(task: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(repr(task))):
        at_once(InventedPhone(devices=2).reset(task=task, seed=0))


@pytest.mark.parametrize("number", [UNSEEN, BLIND])
def test_held_out_devices_are_refused_with_seeds_of_training(number: int) -> None:
    task = InventedPhone(devices=1, first=number).tasks[0]
    for phone in (InventedPhone(devices=1), InventedPhone(devices=1, first=number)):
        for seed in (0, TRAIN_SEEDS.stop - 1, *([VALIDATION_SEEDS.start] * (number == BLIND))):
            with pytest.raises(ConfigError):
                at_once(phone.reset(task=task, seed=seed))
        at_once(phone.reset(task=task, seed=TEST_SEEDS.start))


# -- words ----------------------------------------------------------------------------------------

SMALL = frozenset("_ a an the in of to and for on off at with from is my new all".split())  # noqa: SIM905


def apps_of(numbers: Iterable[int]) -> list[App]:
    return [app for number in numbers for app in invent(number).apps.values()]


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
    return {word for text in texts for word in text.casefold().split()}


def with_plurals(words: Iterable[str]) -> set[str]:
    return {form for word in words for form in (word, f"{word}s")}


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


def bare(text: str) -> list[str]:
    """The words of a text without placeholders and brackets."""
    return re.sub(r"\{\w+\}|@\w+|[^a-z]+", " ", text.casefold()).split()


def goals(splits: Collection[str]) -> list[str]:
    return [goal for t in TEMPLATES.values() if t.split in splits for goal in t.texts]


def test_no_word_of_a_test_app_occurs_in_training() -> None:
    test = with_plurals(words_of(PHONE.apps[name] for name in TEST_APPS))
    test |= shown_words(TEST_APPS, ("new_apps",))
    assert len(test) > 40
    known = with_plurals(words_of(PHONE.apps[name] for name in TRAIN_APPS))
    known |= shown_words(TRAIN_APPS, ("train",)) | {*POOLS["distractors"]}
    known |= {word for goal in goals(("train",)) for word in bare(goal)}
    invented = with_plurals(words_of(apps_of(range(200))))
    texts = (text for name in ("few", "many") for kind in CLAUSES[name].values() for text in kind)
    invented |= {word for text in texts for word in bare(text)}
    assert invented & (test - known) == set()


def test_no_word_of_the_blind_set_occurs_in_training() -> None:
    blind = apps_of(range(BLIND, BLIND + BLIND_DEVICES))
    assert len({app.name for app in blind}) == 16 and len(blind_tasks()) >= 60
    trained = apps_of((*range(150), *range(UNSEEN, UNSEEN + 50)))
    known = words_of([*trained, *PHONE.apps.values()]) | {
        *vocabulary(),
        *FIRST,
        *LAST,
        *NOUNS,
        *VERBS,
    }
    own = words_of(blind) - SMALL
    assert len(own) > 150 and own & known == set()


# -- wordings -------------------------------------------------------------------------------------


def clauses(texts: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Drawn clauses of the wordings, with one and with two fields."""
    rng = random.Random(0)
    for text in (text.removeprefix("?") for group in texts.values() for text in group):
        for slots in ({"state": "on"}, {"state": "off", "title": ""}):
            for _ in range(60):
                clause = draw(with_state(text, slots), rng)
                yield clause
                yield re.sub(r"\{(fields|titles)\}", "_ and _", clause)


WORDS = with_plurals(words_of(PHONE.apps.values())) - SMALL


def masked(goal: str) -> str:
    """A goal text with parameters and words of apps left out, runs of them as one ``_``."""
    parts = re.sub(r"[^a-z_]+", " ", re.sub(r"\{\w+\}", "_", goal.casefold())).split()
    shown = ["_" if part in WORDS or part == "_" else part for part in parts]
    return re.sub(r"_( _)+", "_", " ".join(shown))


def phrasings(splits: Collection[str]) -> set[str]:
    """The masked goal texts of the phone's own templates."""
    return {text for text in map(masked, goals(splits)) if not set(text.split()) <= SMALL}


def without_app(pattern: str) -> Iterator[str]:
    """A pattern, and what is left of it without the mention of an app before and after it."""
    before, after = r"^(in|in the) _ ", r" (in|in the|from) _$"
    yield from {
        re.sub(one, "", re.sub(two, "", pattern)) for one in (before, "^$") for two in (after, "^$")
    }


def test_no_goal_is_worded_like_one_of_a_test() -> None:
    test = phrasings(("new_templates", "new_apps", "twins", "validation")) - phrasings(("train",))
    assert len(test) > 10
    found = {masked(clause) for name in ("few", "many") for clause in clauses(CLAUSES[name])}
    known = {bare for goal in phrasings(("train",)) for bare in without_app(goal)}
    assert {g for g in test if not found.isdisjoint({*without_app(g)} - known)} == set()
