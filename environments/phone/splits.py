"""The tasks and seeds for training, validation and tests, and the words that training shows.

Tests are held out in three ways:

- **parameters**: the range in which a seed lies decides the split of all random values (names,
  titles, numbers, also those of unrelated records); no value of ``TEST_SEEDS`` occurs in
  ``TRAIN_SEEDS`` (:mod:`swarm_ui.environments.phone.sampling`).
- **templates**: every template is in exactly one of ``train``, ``validation``, ``new_templates``
  and ``new_apps``.
- **apps**: only templates of ``new_apps`` use ``TEST_APPS``; in other episodes these apps are not
  installed.

Each task that cannot be done has a twin in which the object exists. The twins are in a split of
their own, ``twins``, so adding them did not change the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from swarm_ui.environments.base import TEST_SEEDS
from swarm_ui.environments.phone.apps import CHOICES, PHONE, SWITCHES, TRAIN_APPS
from swarm_ui.environments.phone.kinds import TemplateSplit
from swarm_ui.environments.phone.sampling import POOLS
from swarm_ui.environments.phone.templates import TEMPLATES
from swarm_ui.errors import ConfigError
from swarm_ui.rollout import spread_jobs

_HELD_OUT: dict[str, TemplateSplit] = {
    "parameters": "train",
    "templates": "new_templates",
    "apps": "new_apps",
}


def tasks(split: TemplateSplit) -> tuple[str, ...]:
    """Names of the templates of a split."""
    return tuple(name for name, template in TEMPLATES.items() if template.split == split)


def jobs(
    split_by: Literal["parameters", "templates", "apps"],
    n: int,
    seed: int,
    *,
    seeds: range = TEST_SEEDS,
) -> list[tuple[str, int]]:
    """Choose ``n`` episodes as (task, seed), evenly spread over the templates.

    Args:
        split_by: what is new to a trained agent: only the ``"parameters"``, or also the
            ``"templates"``, or also the ``"apps"``.
        n: number of episodes.
        seed: seed of the choice; equal arguments give equal lists.
        seeds: range of the episodes' seeds; in the default range all parameters are new.

    Raises:
        ConfigError: the split does not exist.
    """
    if split_by not in _HELD_OUT:
        known = ", ".join(_HELD_OUT)
        raise ConfigError(f"phone: no split by {split_by!r}; expected one of {known}")
    return spread_jobs(tasks(_HELD_OUT[split_by]), n, seed, seeds)


_CHROME = (
    "home list new detail edit confirm remove reply category choice cancel more timers on off "
    "saved sent deleted copied is empty ?"
)


def vocabulary() -> list[str]:
    """All fixed words of training screens and goals, lower-case, sorted, each once.

    Words of the test apps and of held-out templates are left out, except where training uses the
    same word. Parameters (names, nouns, numbers) are left out too.
    """
    words: set[str] = set()
    for text in _texts():
        words.update(text.casefold().split())
    return sorted(words)


def _texts() -> Iterator[str]:
    yield _CHROME
    yield from POOLS["distractors"]
    yield from TRAIN_APPS
    for name in TRAIN_APPS:
        for table in PHONE.apps[name].tables:
            yield from (table.name, f"{table.name}s", table.add, table.save)
            yield from (table.edit, table.delete)
            for field in table.fields:
                yield field.name
                yield from field.choices
    for category, keys in SWITCHES.items():
        yield category
        yield from keys
    for key, (_, options) in CHOICES.items():
        yield key
        yield from options
    for template in TEMPLATES.values():
        if template.split == "train":
            for text in template.texts:
                yield re.sub(r"\{\w+\}", " ", text)
