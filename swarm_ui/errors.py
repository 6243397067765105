"""Every error this library raises on purpose.

SwarmError
├── ConfigError        an argument or a file of yours is wrong
│   └── MissingExtra   an optional dependency is not installed
├── GraphError         a graph cannot be composed that way
├── NodeError          a node failed while a graph ran
│   └── NodeTimeout    it, or the whole run, took longer than it was given
├── ModelError         a language model could not answer
│   ├── BudgetExceeded the calls or tokens you allowed are used up
│   └── ModelUnavailable nobody answers now; the same request may be answered later
├── EnvironmentFault   the world around the agent broke (never a reward of 0)
├── LearningError      training cannot go on: a loss is not a number
└── TraceError         a trace file cannot be read

A message says what happened, where, what was expected, what came, and what to do.
A reply that cannot be parsed is not an error: see :class:`swarm_ui.action.Unparsed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm_ui.trace.records import Episode, Trace


class SwarmError(Exception):
    """Root of the tree: catch this to catch everything raised on purpose."""

    partial: Trace | None = None
    """What the run had said when this error ended it; ``None`` if no run was under way."""


class ConfigError(SwarmError):
    """An argument, a setting or a file given by the user is wrong."""


class MissingExtra(ConfigError):
    """An optional part is not installed; the message names the extra to install."""

    def __init__(self, extra: str, needed_for: str, module: str) -> None:
        super().__init__(
            f"{needed_for} needs the module '{module}', which is not installed. "
            f"Install it with: pip install 'swarm-ui[{extra}]'"
        )
        self.extra = extra


class GraphError(SwarmError):
    """A graph cannot be composed that way: a name, an edge or a cycle."""


class NodeError(SwarmError):
    """A node failed; carries where, so that the failure keeps its identity."""

    def __init__(self, message: str, *, node: str, round: int, run: str) -> None:
        super().__init__(f"node '{node}', round {round}, run {run}: {message}")
        self.node = node
        self.round = round
        self.run = run


class NodeTimeout(NodeError):
    """A node took longer than its own time limit, or than what was left of the run's."""


class ModelError(SwarmError):
    """A language model could not answer: the endpoint, the weights or the request."""


class BudgetExceeded(ModelError):
    """The calls, tokens or money the user allowed are used up."""

    episodes: tuple[Episode, ...] = ()
    """What rollouts had done when this error ended them; the last may be cut off by it, and then
    has this error as its fault."""


class ModelUnavailable(ModelError):
    """A model could not be reached, or had no time: the same request may be answered later."""


class EnvironmentFault(SwarmError):
    """The infrastructure around the agent broke. The episode is masked, never scored 0."""


class LearningError(SwarmError):
    """Training cannot go on: a loss or a gradient is not a number. No weight was changed by it."""


class TraceError(SwarmError):
    """A trace cannot be read: truncated, of another version, or not a trace."""
