"""The fixed words of the phone: the vocabulary of a word-level model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from swarm_ui.environments.phone.apps import APPS
from swarm_ui.environments.phone.apps.settings import CHOICES, SWITCHES
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.splits import TRAIN_APPS
from swarm_ui.environments.phone.tasks import TEMPLATES
from swarm_ui.environments.phone.word_pools import DISTRACTORS, FIRST, LAST, NOUNS, VERBS

_CHROME = (
    "home list new detail edit confirm remove reply category choice cancel more timers on off "
    "saved sent deleted copied is empty ?"
)


def vocabulary() -> list[str]:
    """All fixed words of training screens and goals, lower-case, sorted, each once.

    Words of the test apps and of held-out templates are left out, except where training uses the
    same word. Parameters (names, nouns, numbers) are left out too: see :func:`parameter_words`.
    """
    words: set[str] = set()
    for text in _texts():
        words.update(text.casefold().split())
    return sorted(words)


def parameter_words() -> list[str]:
    """The words of which random parameters consist, without numbers."""
    return sorted({*FIRST, *LAST, *NOUNS, *VERBS})


def _texts() -> Iterator[str]:
    yield _CHROME
    yield from DISTRACTORS
    yield from TRAIN_APPS
    for name in TRAIN_APPS:
        for table in APPS[name].tables:
            yield from _table(table)
    for category, keys in SWITCHES.items():
        yield category
        yield from keys
    for key, (_, options) in CHOICES.items():
        yield key
        yield from options
    for template in TEMPLATES.values():
        if template.split == "train":
            for goal in template.goals:
                yield re.sub(r"\{\w+\}", " ", goal)


def _table(table: Table) -> Iterator[str]:
    yield from (table.name, table.add, table.save, table.edit, table.delete)
    yield f"{table.name}s"
    for field in table.fields:
        yield field.name
        yield from field.choices
