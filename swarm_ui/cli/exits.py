"""The exit codes of the commands and their meanings."""

from __future__ import annotations

from swarm_ui.errors import Failure, FailureKind, SwarmError

OK = 0
"""The command finished, whatever the result of the agents."""
NOT_GOOD = 1
"""The command finished with a negative result: task not solved, below ``--fail-under``, or
something that is needed is missing."""
WRONG = 2
"""Wrong usage, or an invalid configuration or user file; nothing was started."""
ENVIRONMENT = 3
"""The environment broke: no episode could be counted."""
MODEL = 4
"""The model (or another node of the team) could not answer, or the budget is used up."""
LEARNING = 5
"""Training cannot continue."""
INTERNAL = 70
"""A bug of this library, with its traceback."""
INTERRUPTED = 130
"""Ctrl-C; the finished part is saved."""

MEANINGS: dict[int, str] = {
    OK: "done",
    NOT_GOOD: "finished with a negative result: task not solved, below --fail-under, "
    "or something missing",
    WRONG: "wrong usage, configuration or file",
    ENVIRONMENT: "the environment broke",
    MODEL: "the model (or another node) could not answer, or its budget is used up",
    LEARNING: "training cannot continue",
    INTERNAL: "a bug; the traceback is shown",
    INTERRUPTED: "interrupted; the finished part is saved",
}


_CODES: dict[FailureKind, int] = {
    "budget": MODEL,
    "cancelled": INTERRUPTED,
    "environment": ENVIRONMENT,
    "learning": LEARNING,
    "model": MODEL,
    "node": MODEL,
    "reply": MODEL,
    "timeout": MODEL,
    "unavailable": MODEL,
    "usage": WRONG,
}


def code_of(failure: SwarmError | Failure) -> int:
    """The exit code for an error of the library, or for the fault of an episode."""
    return _CODES[failure.kind]
