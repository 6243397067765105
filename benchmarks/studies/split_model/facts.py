"""What the tables of the study need of an episode; a record holds it in place of the traces."""

from __future__ import annotations

import msgspec

from benchmarks.studies.split_model.controls import Answers, answers
from swarm_ui.experiment.split_facts import tokens
from swarm_ui.stats import outcomes
from swarm_ui.trace.records import Episode


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """One test episode."""

    task: str
    seed: int
    value: float | None
    """Success; ``None``: masked by a fault."""
    said: tuple[bool, ...]
    """For each needed value whose holder was asked: whether the holder's first message has the
    value."""
    written: bool
    """Whether every computed field was typed rightly at some step."""
    written_twin: bool
    """The same for the values of the twin episode."""
    gave_up: bool
    """Whether the team declared the task infeasible."""
    tokens: int
    """Of all prompts and replies."""
    calls: int
    decisions: int


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """The episodes of one arm on one set of templates, and the CPU time that they took."""

    cpu_s: float
    episodes: list[Facts]


def facts_of(episode: Episode, apps: int) -> Facts:
    """The facts of an episode with ``apps`` open apps."""
    right = answers(apps, episode.task, episode.seed)
    twin = answers(apps, episode.task, episode.seed ^ 1)
    steps, done = episode.steps, [step.executed for step in episode.steps]
    (outcome,) = outcomes([episode], 0)
    return Facts(
        task=episode.task, seed=episode.seed, value=outcome.value, said=_said(episode, right),
        written=_written(episode, right), written_twin=_written(episode, twin),
        gave_up=any(a is not None and a.goal_status == "infeasible" for a in done[-1:]),
        tokens=tokens(episode), calls=sum(len(step.trace.calls) for step in steps),
        decisions=len(steps),
    )  # fmt: skip


def _said(episode: Episode, right: Answers) -> tuple[bool, ...]:
    first = {call.node: call.reply for call in episode.steps[0].trace.calls}
    return tuple(value in first[app] for app, value in right.facts if app in first)


def _written(episode: Episode, right: Answers) -> bool:
    typed = {step.executed.text for step in episode.steps if step.executed is not None}
    return typed.issuperset(right.written)
