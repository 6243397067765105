"""Templates of the stage-2 study: those that the team trains on, and those that no stage sees."""

from __future__ import annotations

from typing import Literal

FORMS = (
    "contacts-add", "messages-send", "messages-reply", "clock-alarm", "calendar-add",
    "notes-create", "expenses-add",
)  # fmt: skip
"""Forms that stage 2 trains on."""
LISTS = ("contacts-delete", "messages-delete", "expenses-delete", "notes-pin", "tasks-check")
"""Long lists that stage 2 trains on."""
WITHHELD = ("tasks-add", "clock-timer", "expenses-add-category", "notes-delete", "tasks-check-two")
"""Training templates that neither stage of a window agent sees. The base agent, from which stage 1
starts, saw two episodes of each on screens of the usual length."""
NEW = (
    "contacts-add-email", "messages-send-two", "clock-alarm-label", "recipes-write", "music-create",
)  # fmt: skip
"""Forms of new templates and new apps, of which no training of any agent here saw an episode."""

TemplateSet = Literal["known", "held_out"]
SETS: dict[TemplateSet, tuple[str, ...]] = {"known": FORMS + LISTS, "held_out": WITHHELD + NEW}
"""Templates of the test sets; all test episodes have test parameters."""
