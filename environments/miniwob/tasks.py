"""The list of MiniWoB++ tasks, read from the installed wheel without importing it."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from swarm_ui.errors import MissingExtra

TRAIN_SEEDS = range(1_000_000)
VALIDATION_SEEDS = range(1_000_000, 2_000_000)
TEST_SEEDS = range(5_000_000, 6_000_000)
REFERENCE_TASKS: tuple[str, ...] = (
    "click-test", "click-test-2", "click-button", "click-button-sequence", "click-link",
    "click-checkboxes", "click-option", "click-dialog", "click-tab", "click-tab-2-easy",
    "click-widget", "click-collapsible-nodelay", "enter-text", "enter-password", "focus-text",
    "choose-list", "read-table", "click-menu", "social-media", "email-inbox-delete",
    "multi-layouts", "click-test-transfer", "click-checkboxes-transfer",
    "click-checkboxes-large", "click-dialog-2", "click-tab-2", "click-collapsible-2-nodelay",
    "enter-text-dynamic", "login-user", "login-user-popup", "focus-text-2", "click-scroll-list",
    "click-menu-2", "navigate-tree", "social-media-all", "email-inbox-important",
    "email-inbox-star-reply", "multi-orderings", "read-table-2", "search-engine",
    "unicode-test", "sign-agreement", "phone-book", "form-sequence-2", "form-sequence-3",
    "use-autocomplete-nodelay", "find-word", "click-color", "copy-paste",
)  # fmt: skip
"""The 49 tasks whose pages were used in development."""
PRACTICE_TASKS: tuple[str, ...] = (
    "click-button-sequence", "click-checkboxes-soft", "click-scroll-list", "click-tab",
    "click-tab-2", "click-widget", "email-inbox", "email-inbox-delete", "email-inbox-important",
    "focus-text-2", "identify-shape", "login-user", "search-engine", "unicode-test",
)  # fmt: skip
"""The 14 tasks, some of them blind, on which SmolLM2 was trained from outcomes: those that it
solved in 1 to 3 of 4 episodes on validation seeds after stage 1, at temperature 0.9."""


def html_folder() -> Path:
    """The folder of the wheel with one ``<task>.html`` for each task."""
    return _wheel() / "html" / "miniwob"


def all_html_tasks() -> tuple[str, ...]:
    """Every registered task that is one HTML page (125 in miniwob 1.1.0, without flight tasks)."""
    return tuple(sorted(_registered()))


def blind_tasks() -> tuple[str, ...]:
    """All HTML tasks except the reference tasks; their pages were not used in development."""
    return tuple(name for name in all_html_tasks() if name not in REFERENCE_TASKS)


def split_of(tasks: Iterable[str]) -> str:
    """The split that holds all of these tasks: ``reference``, ``blind``, or else ``all``."""
    known = {task in REFERENCE_TASKS for task in tasks}
    return "all" if len(known) != 1 else "reference" if known == {True} else "blind"


@cache
def keeps_state() -> frozenset[str]:
    """Tasks that the miniwob package registers as nondeterministic.

    Their pages may keep state between episodes, so they are loaded again for each episode.
    """
    return frozenset(task for task, said in _registered().items() if "nondeterministic" in said)


@cache
def _registered() -> Mapping[str, str]:
    """The tasks that are one HTML page, and the further arguments of their registration."""
    told = (_wheel() / "registration.py").read_text(encoding="utf-8")
    place = r'entry_point="miniwob\.envs\.miniwob_envs:\w+",'
    return dict(re.findall(rf'(?s)id="miniwob/([\w-]+)-v1",\s*{place}(.*?)\n    \)', told))


def _wheel() -> Path:
    spec = importlib.util.find_spec("miniwob")
    if spec is None or spec.origin is None:
        raise MissingExtra("web", "MiniWoB++", "miniwob")
    return Path(spec.origin).parent
