"""Every error this library raises on purpose; all are subclasses of :class:`SwarmError`.

A message states what happened and where, the expected and actual values, and the remedy.
A reply that cannot be parsed is not an error: see :class:`swarm_ui.action.Unparsed`.
"""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any, Literal

import msgspec

from swarm_ui.json_text import encodable

FailureKind = Literal[
    "budget", "cancelled", "environment", "learning", "model", "node", "reply", "timeout",
    "unavailable", "usage",
]  # fmt: skip
"""What failed. ``unavailable``: a model that may answer later; ``node``: a node raised an exception
that this library does not define; ``reply``: a model gave an unusable reply; ``usage``: an argument
or a file of the user is wrong. Only ``reply`` is the policy's own failure and counts against it.
Every other kind *masks* an episode, which leaves the episode out of all statistics."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The reason why a call or an episode failed."""

    kind: FailureKind
    message: str
    node: str = ""
    """Name of the node that failed; empty: not a node."""
    error: str = ""
    """Name of the exception's class; empty: no exception was raised, as at a time limit."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "message", encodable(self.message))

    def __str__(self) -> str:
        return f"{self.error}: {self.message}" if self.error else self.message

    @property
    def by_model(self) -> bool:
        """Whether the content of a reply caused it, so that it counts as the model's failure."""
        return self.kind == "reply"

    @classmethod
    def of(cls, error: BaseException, *, node: str = "") -> Failure:
        """The failure that describes an exception; its kind is ``node`` if it is not ours."""
        if isinstance(error, CancelledError):
            return cls(kind="cancelled", message="cancelled", node=node)
        kind: FailureKind = error.kind if isinstance(error, SwarmError) else "node"
        return cls(kind=kind, message=str(error), node=node, error=type(error).__name__)


class SwarmError(Exception):
    """The base class of all errors that the library raises on purpose."""

    kind: FailureKind = "usage"
    """The kind of failure."""
    partial: Any = None
    """The :class:`~swarm_ui.trace.records.Trace` of the run up to this error;
    ``None`` if the error did not occur in a run."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the text alone, but some classes take other arguments.
        return _rebuilt, (type(self), self.args, self.__dict__)


class ConfigError(SwarmError):
    """An argument, a setting or a file given by the user is wrong."""


class MissingExtra(ConfigError):
    """An optional dependency is not installed; the message names the extra to install."""

    def __init__(self, extra: str, needed_for: str, module: str) -> None:
        super().__init__(
            f"{needed_for} needs the module '{module}', which is not installed. "
            f"Install it with: pip install 'swarm-ui[{extra}]'"
        )
        self.extra = extra


class GraphError(SwarmError):
    """A graph cannot be composed in this way."""


class RunPaused(SwarmError):
    """A run cannot continue before a person has answered; all other calls have been made."""

    def __init__(self, run: str, questions: tuple[Any, ...]) -> None:
        told = "; ".join(f"'{q.id}': {q.text[:200]}" for q in questions)
        first = questions[0].id
        super().__init__(
            f"the run '{run}' waits for an answer to {told}. Continue with "
            f"graph.resume(run, {{'{first}': answer}})"
        )
        self.run = run
        self.questions = questions
        """The open questions, as :class:`~swarm_ui.message.Question`, by round and id."""


class NodeError(SwarmError):
    """A node failed."""

    def __init__(
        self, message: str, *, node: str, round: int, run: str, kind: FailureKind = "node"
    ) -> None:
        where = f"node '{node}', round {round}" + (f", run {run}" if run else "")
        super().__init__(f"{where}: {message}")
        self.node, self.round, self.run, self.kind = node, round, run, kind


class RunFailed(NodeError):
    """No node of a run succeeded. The error describes the first failure and has its kind;
    ``partial`` is the trace of the whole run."""


class ModelError(SwarmError):
    """A language model could not answer: the endpoint, the weights or the request."""

    kind: FailureKind = "model"


class BudgetExceeded(ModelError):
    """The calls, tokens or money the user allowed are used up."""

    kind: FailureKind = "budget"
    episodes: tuple[Any, ...] = ()
    """The :class:`~swarm_ui.trace.records.Episode` records that were finished before this error.
    The last may be incomplete, and then has this error as its fault."""


class ModelUnavailable(ModelError):
    """A model could not be reached or was overloaded; the same request may succeed later."""

    kind: FailureKind = "unavailable"


class ReplyError(ModelError):
    """A model answered, but its reply cannot be used: the model's own failure, which counts."""

    kind: FailureKind = "reply"


class EnvironmentFault(SwarmError):
    """The environment failed. The episode is left out of all statistics."""

    kind: FailureKind = "environment"


class LearningError(SwarmError):
    """Training cannot continue: a loss or a gradient is not a number, or a critic returned no
    credit. No weight was changed."""

    kind: FailureKind = "learning"


class TraceError(SwarmError):
    """A trace cannot be read: truncated, of another version, or not a trace."""


FOR_THE_USER = (ConfigError, BudgetExceeded)
"""Errors that require an action of the user. They end a run regardless of ``Limits.on_failure``."""
UNREADABLE = (ValueError, RecursionError)
"""Errors of decoding JSON: not JSON, not UTF-8, wrong fields, or nested too deeply."""


def _rebuilt(kind: type[SwarmError], args: tuple[Any, ...], state: dict[str, Any]) -> SwarmError:
    """The copy of an error in another process."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def brief(error: BaseException, most: int = 400) -> str:
    """The text of an error, shortened in the middle, because it may quote long values."""
    text = str(error)
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"
