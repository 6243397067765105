"""Exit codes, and what ends a command with each."""

from __future__ import annotations

from swarm_ui.errors import (
    BudgetExceeded,
    EnvironmentFault,
    LearningError,
    ModelError,
    NodeError,
    SwarmError,
)

OK = 0
"""The command did what it was asked to, however well the agents did."""
NOT_GOOD = 1
"""It ran to its end and the answer is no: task not solved, below ``--fail-under``, something
that is needed is missing."""
WRONG = 2
"""Usage, configuration or a file of the user's is wrong; nothing was started."""
ENVIRONMENT = 3
"""The environment broke: no episode could be counted."""
MODEL = 4
"""The model could not answer, or its budget is used up."""
LEARNING = 5
"""Training cannot go on."""
INTERNAL = 70
"""A bug of this library, with its traceback."""
INTERRUPTED = 130
"""Ctrl-C; what was done is saved."""

MEANINGS: dict[int, str] = {
    OK: "done",
    NOT_GOOD: "ran to the end, and the answer is no: task not solved, below --fail-under, "
    "something missing",
    WRONG: "wrong usage, configuration or file",
    ENVIRONMENT: "the environment broke",
    MODEL: "the model could not answer, or its budget is used up",
    LEARNING: "training cannot go on",
    INTERNAL: "a bug; the traceback is shown",
    INTERRUPTED: "interrupted; what was done is saved",
}


def code_of(error: SwarmError) -> int:
    """The exit code for an error of the library."""
    if isinstance(error, EnvironmentFault):
        return ENVIRONMENT
    if isinstance(error, ModelError | BudgetExceeded | NodeError):
        return MODEL
    return LEARNING if isinstance(error, LearningError) else WRONG


def code_of_fault(fault: str) -> int:
    """The exit code for the fault of an episode, which tells the error in words."""
    by_model = (
        "ModelError",
        "ModelUnavailable",
        "Refused",
        "RequestRejected",
        "BudgetExceeded",
        "no agent",
    )
    return MODEL if fault.startswith(by_model) else ENVIRONMENT
