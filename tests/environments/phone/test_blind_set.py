"""The blind set of invented apps: nothing of training is in it, and training cannot get at it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
import pytest

from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import (
    TEST_SEEDS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    draw_jobs,
    parameter_words,
    vocabulary,
)
from swarm_ui.environments.phone.apps import PHONE
from swarm_ui.environments.phone.invented import (
    APPS,
    BLIND,
    BLIND_DEVICES,
    UNSEEN,
    InventedPhone,
    blind_tasks,
)
from swarm_ui.environments.phone.invented.devices import BLIND_WORDS, WORDS, WordLists, invent
from swarm_ui.environments.phone.invented.wordings import CLAUSES, expansions, with_state
from swarm_ui.environments.phone.state import App
from swarm_ui.environments.phone.templates import TEMPLATES
from swarm_ui.errors import ConfigError

SHARED = {"on", "off", "", "a", "my", "new", "all"}
"""States, and the small words of labels such as "my canoes"."""


def labels(apps: Iterable[App]) -> set[str]:
    """Names of apps, records, fields, options, menus and settings, and labels of buttons."""
    found: set[str] = set()
    for app in apps:
        found |= {app.name, *app.settings}
        for place in app.settings.values():
            found |= {*place.choices, *(str(screen.of) for screen in place.path)}
        for table in app.tables:
            found |= {table.name, table.add, table.save, table.edit, table.delete, table.cancel}
            found |= {str(screen.of) for screen in table.trail}
            for field in table.fields:
                found |= {field.name, *field.choices}
    return found - SHARED


def words_of(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in text.casefold().split()} - SHARED


BLIND_APPS = [app.app for k in range(BLIND, BLIND + BLIND_DEVICES) for app in invent(k, APPS).apps]


def test_it_has_sixteen_apps_and_its_solver_solves_every_template() -> None:
    assert len({app.name for app in BLIND_APPS}) == 16 and len(blind_tasks()) >= 60
    assert BLIND > UNSEEN + 500_000
    phone = InventedPhone(devices=BLIND_DEVICES, first=BLIND)
    assert phone.tasks == blind_tasks()
    for task, seed in draw_jobs(blind_tasks(), 2 * len(blind_tasks()), 1, seeds=TEST_SEEDS):
        at_once(phone.reset(task=task, seed=seed))
        distance = phone.distance()
        for _ in range(distance):
            step = at_once(phone.step(phone.expert()))
        assert step.ended and step.reward == 1.0, (task, seed)


def test_no_label_and_no_word_of_its_apps_is_one_of_training() -> None:
    trained = [app.app for k in (*range(150), *range(UNSEEN, UNSEEN + 50))
               for app in invent(k, APPS).apps]  # fmt: skip
    known = labels([*trained, *PHONE.apps.values()])
    assert len(labels(BLIND_APPS)) > 150
    assert labels(BLIND_APPS) & known == set()
    others = words_of(known) | {*vocabulary(), *parameter_words()}
    assert words_of(labels(BLIND_APPS)) & others == set()


def contents(lists: WordLists) -> set[str]:
    """All words of the lists, without the kinds of values that fields and titles are sorted by."""
    texts: list[str] = []
    for value in (*msgspec.structs.astuple(lists), *lists.fields.values(), *lists.titles.values()):
        if isinstance(value, Mapping):
            for options in () if value in (lists.fields, lists.titles) else value.items():
                texts += [options[0], *options[1]]
        else:
            texts += value
    return words_of(texts)


def test_the_word_lists_have_no_word_in_common() -> None:
    assert len(contents(BLIND_WORDS)) > 300 and len(contents(WORDS)) > 500
    assert contents(BLIND_WORDS) & contents(WORDS) == set()
    assert set(BLIND_WORDS.fields) == set(WORDS.fields) and set(BLIND_WORDS.titles) == set(
        WORDS.titles
    )


def clauses(texts: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """All clauses that the notation stands for."""
    for text in (text for group in texts.values() for text in group):
        for slots in ({"state": "on"}, {"state": "off", "title": ""}):
            yield from expansions(with_state(text.removeprefix("?"), slots))


def test_no_wording_is_one_of_training_or_of_the_phone() -> None:
    own = {" ".join(text.split()) for text in clauses(CLAUSES["blind"])}
    assert set(CLAUSES["blind"]) == set(CLAUSES["few"])
    known = {" ".join(text.split()) for name in ("many", "few") for text in clauses(CLAUSES[name])}
    phone = {goal for template in TEMPLATES.values() for goal in template.texts}
    assert len(own) > 20 and not own & known and not own & phone


@pytest.mark.parametrize("seeds", [TRAIN_SEEDS, VALIDATION_SEEDS])
def test_it_cannot_be_played_with_seeds_of_training_or_tuning(seeds: range) -> None:
    task = blind_tasks()[0]
    with pytest.raises(ConfigError):
        at_once(InventedPhone(devices=1).reset(task=task, seed=seeds.start))


@pytest.mark.parametrize("number", [UNSEEN, BLIND])
def test_held_out_devices_cannot_be_played_with_seeds_of_training(number: int) -> None:
    task = InventedPhone(devices=1, first=number).tasks[0]
    for phone in (InventedPhone(devices=1), InventedPhone(devices=1, first=number)):
        for seed in (TRAIN_SEEDS.start, TRAIN_SEEDS.stop - 1):
            with pytest.raises(ConfigError):
                at_once(phone.reset(task=task, seed=seed))
        at_once(phone.reset(task=task, seed=TEST_SEEDS.start))
