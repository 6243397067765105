"""What is held out is really new: parameters, templates, apps."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

import pytest

from swarm_ui.environments.base import at_once, split_of
from swarm_ui.environments.phone import (
    TEST_APPS,
    TEST_SEEDS,
    TRAIN_APPS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    PhoneEnvironment,
    tasks,
    vocabulary,
)
from swarm_ui.environments.phone.invented import UNSEEN, InventedPhone
from swarm_ui.environments.phone.kinds import TemplateSplit
from swarm_ui.environments.phone.sampling import FIRST, LAST, NOUNS, VERBS, owner
from swarm_ui.environments.phone.split import SplitPhone
from swarm_ui.environments.phone.templates import CORE, TEMPLATES, TWINS

SPLITS: tuple[TemplateSplit, ...] = ("train", "validation", "new_templates", "new_apps", "twins")
CLOSED = {"day", "category", "servings"}
"""Fields whose values are closed choices."""
PHONE = PhoneEnvironment()
WORDS = {*FIRST, *LAST, *NOUNS, *VERBS}
WORDS_AND_JOBS = "da7bfb92ee5a3ef34d5fd655e28eed1a7b779049f0bc044643a4eef4d521daf6"


def test_words_and_jobs_are_what_they_were() -> None:
    held_out = map(tasks, ("train", "new_templates", "new_apps"))
    drawn = [PHONE.test_jobs(50, seed=1, tasks=names) for names in held_out]
    text = repr((vocabulary(), sorted(WORDS), drawn))
    assert hashlib.sha256(text.encode()).hexdigest() == WORDS_AND_JOBS


def test_every_template_is_in_exactly_one_split() -> None:
    counts = Counter(name for split in SPLITS for name in tasks(split))
    assert set(counts) == set(TEMPLATES) == set(PHONE.tasks)
    assert set(counts.values()) == {1}
    assert [len(tasks(split)) for split in SPLITS] == [38, 6, 13, 9, 4]


def test_test_apps_are_nowhere_in_training() -> None:
    for template in TEMPLATES.values():
        opened = set(template.apps)
        if template.split == "new_apps":
            assert opened <= set(TEST_APPS)
        elif template.split == "twins":
            assert template.apps == TEMPLATES[template.name.replace("present", "missing")].apps
        else:
            assert opened <= set(TRAIN_APPS)
            for seed in range(10):
                installed = PHONE.assign(template.name, seed).start.installed
                assert not set(installed) & set(TEST_APPS)


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_values_of_one_split_never_occur_in_another(name: str) -> None:
    for seeds in (TRAIN_SEEDS, VALIDATION_SEEDS, TEST_SEEDS):
        split = split_of(seeds[0])
        values: set[str] = set()
        for seed in (*seeds[:8], seeds[-1]):
            values |= PHONE.assign(name, seed).parameters
        assert {owner(value) for value in values} == {split}
    # All texts on a device are drawn values, but for closed choices.
    task = PHONE.assign(name, 77)
    stored = [row for rows in task.start.tables.values() for row in rows.values()]
    texts = {text for row in stored for field, text in row.items() if field not in CLOSED}
    assert texts <= {*task.parameters, "on", "off", ""}


@pytest.mark.parametrize("kind", [PhoneEnvironment, InventedPhone, SplitPhone])
def test_jobs_of_a_phone_can_be_played_and_those_of_tests_are_new(
    kind: type[PhoneEnvironment],
) -> None:
    training, test = kind.training_jobs(40, seed=1), kind.test_jobs(40, seed=1)
    assert training == kind.training_jobs(40, seed=1)
    assert {name for name, _ in training}.isdisjoint(name for name, _ in test)
    for seeds, drawn in ((TRAIN_SEEDS, training), (TEST_SEEDS, test)):
        for task, seed in drawn:
            phone = kind(first=UNSEEN) if kind is InventedPhone else kind()  # type: ignore[call-arg]
            assert seed in seeds and at_once(phone.reset(task=task, seed=seed)).goal


def test_twins_have_the_texts_of_the_tasks_that_cannot_be_done() -> None:
    missing = [t for t in CORE.values() if PHONE.assign(t.name, 0).goal.infeasible]
    assert {t.name.replace("missing", "present") for t in missing} == set(TWINS)
    for template in missing:
        twin = TWINS[template.name.replace("missing", "present")]
        for seed in range(20):
            task = PHONE.assign(twin.name, seed)
            assert not task.goal.infeasible
            patterns = [re.sub(r"\{\w+\}", ".+", text) for text in template.texts]
            assert any(re.fullmatch(pattern, task.text) for pattern in patterns)
