"""The exit codes of the commands and their meanings."""

from __future__ import annotations

from swarm_ui.errors import Failure, FailureKind, SwarmError
from swarm_ui.experiment.learner_processes import EndedByLauncher

OK, NOT_GOOD, WRONG, ENVIRONMENT, MODEL, LEARNING, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 4, 5, 70, 130

MEANINGS: dict[int, str] = {
    OK: "done",
    NOT_GOOD: "finished with a negative result: task not solved, below --fail-under, "
    "or something missing",
    WRONG: "wrong usage, configuration or file",
    ENVIRONMENT: "the environment broke",
    MODEL: "the model (or another node) could not answer, or its budget is used up",
    LEARNING: "training cannot continue, or has learned nothing",
    INTERNAL: "a bug; the traceback is shown",
    INTERRUPTED: "interrupted; the finished part is saved",
}
_CODES: dict[FailureKind, int] = {
    "budget": MODEL, "cancelled": INTERRUPTED, "environment": ENVIRONMENT, "learning": LEARNING,
    "model": MODEL, "node": MODEL, "reply": MODEL, "timeout": MODEL, "unavailable": MODEL,
    "usage": WRONG,
}  # fmt: skip


def code_of(failure: SwarmError | Failure | EndedByLauncher) -> int:
    """The exit code for an error of the library, or for the fault of an episode."""
    return _CODES[failure.kind]
