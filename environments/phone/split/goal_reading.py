"""Reads the goal text of a split task back into its template and words, for scripted agents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from swarm_ui.environments.phone.split.facts import computed
from swarm_ui.environments.phone.split.split_templates import NAMES, TEMPLATES, SplitTemplate
from swarm_ui.errors import ConfigError

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class ReadGoal(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed goal text."""

    spec: SplitTemplate
    words: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The titles of the records that hold the facts, in the order of the facts."""
        return tuple(self.words[NAMES[k]] for k in range(len(self.spec.facts)))

    def fields(self, values: list[str]) -> dict[str, str]:
        """The fields of the new record, given the values of all facts."""
        fills = {
            field: computed(fill.rule, [values[k] for k in fill.of])
            for field, fill in self.spec.fills.items()
        }
        return {**{name: self.words[name] for name in self.spec.given}, **fills}


@lru_cache(maxsize=4096)
def read_goal(text: str) -> ReadGoal:
    """Match a goal with the texts of all templates.

    Raises:
        ConfigError: the text is not the goal of a split task.
    """
    for spec, pattern in _patterns():
        found = pattern.fullmatch(text)
        if found is not None:
            return ReadGoal(spec=spec, words=found.groupdict())
    raise ConfigError(f"scripted agents: {text!r} is not the goal of a task of SplitPhone")


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[SplitTemplate, re.Pattern[str]]]:
    """A pattern for each text of a goal, the longest text first.

    A shorter text is tried later, because one of its placeholders could match the rest of a longer
    text.
    """
    found = [(spec, goal) for spec in TEMPLATES.values() for goal in spec.goals]
    found.sort(key=lambda pair: len(pair[1]), reverse=True)
    return [(spec, re.compile(_regex(goal))) for spec, goal in found]


def _regex(goal: str) -> str:
    """A pattern for the text of a goal. A placeholder matches one to three words without commas."""
    parts = _PLACEHOLDER.split(goal)
    word = r"[^\s,]+(?: [^\s,]+){0,2}?"
    return "".join(
        f"(?P<{part}>{word})" if odd % 2 else re.escape(part) for odd, part in enumerate(parts)
    )
