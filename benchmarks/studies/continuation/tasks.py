"""The MiniWoB++ pages for training and for tests, which were fixed before any run.

The list comes from a feasibility test, with two changes. The base agent solves many of the pages
that were proposed for training, so more candidates were added. Held-out pages that were not used
in development were added to those that were. Candidates that are nearly always solved or failed
on training seeds are dropped. Held-out pages with a trained page in their family are *near*, the
others *far*.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from swarm_ui.node import derive
from swarm_ui.rollout import Job

CANDIDATES: dict[str, str] = {
    "choose-list": "list", "click-button": "button", "click-button-sequence": "button",
    "click-checkboxes": "checkboxes", "click-checkboxes-soft": "checkboxes",
    "click-checkboxes-transfer": "checkboxes", "click-collapsible-nodelay": "collapsible",
    "click-color": "color", "click-dialog": "dialog", "click-menu": "menu",
    "click-menu-2": "menu", "click-pie-nodelay": "pie", "click-shape": "shape",
    "click-tab": "tab", "click-tab-2-easy": "tab", "click-widget": "widget",
    "email-inbox-delete": "email", "email-inbox-noscroll": "email",
    "email-inbox-star-reply": "email", "form-sequence-3": "form", "identify-shape": "shape",
    "login-user": "login", "multi-layouts": "multi", "navigate-tree": "tree",
    "read-table": "table", "social-media": "social", "use-autocomplete-nodelay": "autocomplete",
}  # fmt: skip
"""Pages that may be trained on, with their family."""

HELD_OUT: dict[str, str] = {
    "buy-ticket": "ticket", "click-checkboxes-large": "checkboxes",
    "click-collapsible-2": "collapsible", "click-collapsible-2-nodelay": "collapsible",
    "click-dialog-2": "dialog", "click-pie": "pie", "click-scroll-list": "scroll",
    "click-tab-2": "tab", "click-tab-2-hard": "tab", "click-tab-2-medium": "tab",
    "count-shape": "shape", "email-inbox": "email", "email-inbox-nl-turk": "email",
    "enter-time": "time", "form-sequence-2": "form", "hot-cold": "hot", "login-user-popup": "login",
    "multi-orderings": "multi", "phone-book": "book", "read-table-2": "table",
    "scroll-text-2": "scroll", "search-engine": "search", "sign-agreement": "agreement",
    "social-media-all": "social", "social-media-some": "social", "stock-market": "stock",
    "tic-tac-toe": "board", "use-autocomplete": "autocomplete",
}  # fmt: skip
"""Pages that are never trained on, with their family."""

EASY: tuple[str, ...] = (
    "click-link", "click-option", "click-test-2", "enter-password", "enter-text",
    "enter-text-dynamic", "focus-text-2", "unicode-test",
)  # fmt: skip
"""Pages that the base agent solves: what may be forgotten."""


def kept(look: Mapping[str, Sequence[float | None]], *, share: float = 0.05) -> tuple[str, ...]:
    """The candidates that are neither solved nor failed (nearly) always.

    Args:
        look: outcomes of each candidate on training seeds; ``None``: masked.
        share: a page is dropped if its success rate is closer than this to 0 or 1.
    """
    rates = {
        task: sum(seen) / len(seen)
        for task, values in look.items()
        if (seen := [v for v in values if v is not None])
    }
    return tuple(task for task in look if share <= rates.get(task, 0.0) <= 1.0 - share)


def splits(trained: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Pages of each web split, given those that are trained on."""
    families = {CANDIDATES[task] for task in trained}
    near = tuple(task for task, family in HELD_OUT.items() if family in families)
    far = tuple(task for task in HELD_OUT if task not in near)
    return {"web": tuple(trained), "web_near": near, "web_far": far, "web_easy": EASY}


def drawn(what: str, tasks: Sequence[str], each: int, seeds: range) -> list[Job]:
    """``each`` episodes of every page. Equal arguments give equal episodes."""
    return [
        (task, random.Random(derive(6, "continuation", what, task, k)).choice(seeds))
        for task in tasks
        for k in range(each)
    ]
