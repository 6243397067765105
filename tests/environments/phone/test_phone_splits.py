"""What is held out is really new: parameters, templates, apps."""

from __future__ import annotations

from collections import Counter

import pytest

from swarm_ui.environments.phone import (
    EXTENDED_TEST_APPS,
    EXTENDED_TRAIN_APPS,
    TEST_APPS,
    TEST_SEEDS,
    TRAIN_APPS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    PhoneEnvironment,
    draw_jobs,
    jobs,
    parameter_split,
    parameter_words,
    tasks,
    vocabulary,
)
from swarm_ui.environments.phone.assignment import assign
from swarm_ui.environments.phone.parameters import owner
from swarm_ui.environments.phone.tasks import CORE, EXTENDED, TEMPLATES, TWINS
from swarm_ui.environments.phone.tasks.template import TemplateSplit
from swarm_ui.errors import ConfigError

SPLITS: tuple[TemplateSplit, ...] = ("train", "validation", "new_templates", "new_apps")
EXTENDED_SPLITS: tuple[TemplateSplit, ...] = (
    "extended_train",
    "extended_validation",
    "extended_templates",
    "extended_apps",
)
TWIN_SPLITS: tuple[TemplateSplit, ...] = ("twins", "extended_twins")
CLOSED = {"day", "category", "servings", "folder", "kind", "was", "lens", "flash"}
"""Fields whose values are closed choices."""


def test_every_template_is_in_exactly_one_split() -> None:
    both = (*SPLITS, *EXTENDED_SPLITS, *TWIN_SPLITS)
    counts = Counter(name for split in both for name in tasks(split))
    assert set(counts) == set(TEMPLATES) == set(PhoneEnvironment().tasks)
    assert set(counts.values()) == {1}
    for split, least in zip(both, (24, 3, 6, 6, 24, 6, 10, 10, 4, 4), strict=True):
        assert len(tasks(split)) >= least, split
    assert {name for split in SPLITS for name in tasks(split)} == set(CORE)
    assert len(TEMPLATES) >= 80


def test_test_apps_are_nowhere_in_training() -> None:
    for template in TEMPLATES.values():
        opened = set(template.apps)
        held_out = set(EXTENDED_TEST_APPS if template.full_device else TEST_APPS)
        if template.split == "new_apps":
            assert opened <= held_out
        elif template.split == "extended_apps":
            assert opened & held_out
        elif template.split in TWIN_SPLITS:
            assert template.apps == TEMPLATES[template.name.replace("present", "missing")].apps
        else:
            assert opened <= set(EXTENDED_TRAIN_APPS if template.full_device else TRAIN_APPS)
            for seed in range(10):
                assert not set(assign(template.name, seed).start.installed) & held_out


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_values_of_one_split_never_occur_in_another(name: str) -> None:
    seen: dict[str, set[str]] = {}
    for seeds in (TRAIN_SEEDS, VALIDATION_SEEDS, TEST_SEEDS):
        split = parameter_split(seeds[0])
        values = seen.setdefault(split, set())
        for seed in (*seeds[:8], seeds[-1]):
            values |= assign(name, seed).parameters
        assert values
        assert {owner(value) for value in values} == {split}
    assert not seen["train"] & seen["test"]
    assert not seen["train"] & seen["validation"]
    assert not seen["validation"] & seen["test"]


def test_all_texts_on_a_device_are_known_words_or_drawn_values() -> None:
    """What the parameters' disjointness covers is everything but a few closed choices."""
    closed = {"on", "off", ""}
    for name, template in TEMPLATES.items():
        task = assign(name, 77)
        for table, rows in task.start.tables.items():
            for row in rows.values():
                for field, value in row.items():
                    if field in CLOSED or value in closed:
                        continue
                    assert value in task.parameters, (template.name, table, field)


def test_seed_ranges_are_disjoint_and_nothing_else_is_a_seed() -> None:
    assert TRAIN_SEEDS.stop <= VALIDATION_SEEDS.start
    assert VALIDATION_SEEDS.stop <= TEST_SEEDS.start
    for seed in (-1, TEST_SEEDS.stop):
        with pytest.raises(ConfigError, match="belongs to no split"):
            parameter_split(seed)


def test_jobs_are_balanced_repeatable_and_from_the_right_ranges() -> None:
    chosen = jobs("templates", 40, seed=3)
    assert chosen == jobs("templates", 40, seed=3)
    assert chosen != jobs("templates", 40, seed=4)
    assert {name for name, _ in chosen} == set(tasks("new_templates"))
    assert all(seed in TEST_SEEDS for _, seed in chosen)
    counts = Counter(name for name, _ in chosen).values()
    assert max(counts) - min(counts) <= 1
    assert {name for name, _ in jobs("parameters", 99, seed=0)} == set(tasks("train"))
    assert {name for name, _ in jobs("apps", 99, seed=0)} == set(tasks("new_apps"))
    assert all(seed in TRAIN_SEEDS for _, seed in draw_jobs(tasks("train"), 10, seed=0))
    with pytest.raises(ConfigError, match="no split by 'days'"):
        jobs("days", 1, seed=0)  # type: ignore[arg-type]


def test_extended_jobs_are_drawn_only_when_asked_for() -> None:
    for way, split in (
        ("parameters", "extended_train"),
        ("templates", "extended_templates"),
        ("apps", "extended_apps"),
    ):
        chosen = jobs(way, 99, seed=0, suite="extended")  # type: ignore[arg-type]
        assert {name for name, _ in chosen} == set(tasks(split))  # type: ignore[arg-type]
        assert {name for name, _ in jobs(way, 99, seed=0)} <= set(CORE)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no suite 'hard'"):
        jobs("apps", 1, seed=0, suite="hard")  # type: ignore[arg-type]


def test_unknown_task_is_named_in_the_error() -> None:
    with pytest.raises(ConfigError, match="'fly'"):
        PhoneEnvironment().begin("fly", 0)


def test_vocabulary_covers_training_screens_and_leaves_held_out_words_out() -> None:
    known = set(vocabulary())
    assert {"recipes", "discard", "playlist", "shuffle"}.isdisjoint(known)
    phone = PhoneEnvironment()
    for name in tasks("train"):
        screen = phone.begin(name, 4)
        values = {w for value in assign(name, 4).parameters for w in value.split()}
        others = values | set(parameter_words()) | {*"12345678", "gps", "radar", "infrared"}
        others |= {"ethernet", "flashlight", "nfc"}
        while True:
            words = f"{screen.goal} {screen.app}".split()
            for element in screen.elements:
                words += f"{element.label} {element.value or ''}".split()
            assert not set(words) - known - others, (name, set(words) - known - others)
            step = phone.act(phone.expert())
            if step.ended:
                break
            screen = step.observation


def test_every_template_has_two_or_three_phrasings_that_name_its_parameters() -> None:
    for template in (*CORE.values(), *EXTENDED.values()):
        assert 2 <= len(template.goals) <= 3, template.name
        words = assign(template.name, 1).goal.words
        for goal in template.goals:
            text = goal.format_map(words)
            assert all(value in text for value in words.values()), (template.name, goal)


def test_twins_have_the_goal_texts_of_the_tasks_that_cannot_be_done() -> None:
    missing = [t for t in TEMPLATES.values() if "infeasible" in t.tags]
    assert {t.name.replace("missing", "present") for t in missing} == set(TWINS)
    for template in missing:
        twin = TWINS[template.name.replace("missing", "present")]
        assert twin.full_device == template.full_device
        for seed in range(20):
            task = assign(twin.name, seed)
            assert not task.goal.infeasible
            texts = {goal.format_map(task.goal.words) for goal in template.goals}
            assert task.text in texts
