"""Tests of window teams after stage 2: conditions of the messages, and other policies as controls.

Every condition plays the same test episodes of known and of held-out templates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from benchmarks.studies.windows.arms import AGENTS, NAMES, REPLY_TOKENS, play, redrawn, team
from benchmarks.studies.windows.cells import Spent
from benchmarks.studies.windows.held_out import SETS, TemplateSet
from benchmarks.support.delivery import RecordedMessages, muted, shuffled
from benchmarks.support.origin import commit
from benchmarks.support.scroller import SlidingWindowPolicy
from swarm_ui.agent_view import Window
from swarm_ui.environments.phone import TEST_SEEDS, draw_jobs
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge
from swarm_ui.model import ChatModel
from swarm_ui.node import Ties
from swarm_ui.rollout import GraphPolicy, Job, Policy
from swarm_ui.stats import Outcome, outcomes
from swarm_ui.trace.records import Episode

Condition = Literal[
    "own edges", "muted", "shuffled", "transplanted", "top ties", "half windows",
    "scroller", "scroller with notes", "whole screen",
]  # fmt: skip
"""How a team is played: with the edges of its arm, or as a control.

``muted``: without edges; ``shuffled``: messages of other agents from other decisions;
``transplanted``: the graph of another seed; ``top ties``: without edges, and the topmost action
wins ties; ``half windows``: without edges, each element in two windows; ``scroller``: one agent
that moves from window to window, in four times the steps, so that it may make as many calls as a
team; ``whole screen``: one agent that sees everything.
"""
_PATIENCE = 4


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """One team, or the untrained agent, under one condition."""

    arm: str
    """``untrained``, or the arm of a cell."""
    seed: int
    condition: Condition
    outcomes: dict[TemplateSet, tuple[Outcome, ...]]
    calls: dict[TemplateSet, float]
    """Mean of an episode."""
    tokens: dict[TemplateSet, float]
    """Mean of an episode, prompts and replies."""
    commit: str = ""
    """Commit of the source that played the episodes."""


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """What a test needs of a team."""

    arm: str
    seed: int
    model: ChatModel
    graph: tuple[Edge, ...] = ()
    redrawn: bool = False
    """A random graph for each episode instead of ``graph``."""
    trained: bool = True


def test_episodes(each: int) -> dict[TemplateSet, list[Job]]:
    """The test episodes: ``each`` of every template, with test parameters."""
    return {
        name: draw_jobs(templates, each * len(templates), 1, seeds=TEST_SEEDS)
        for name, templates in SETS.items()
    }


class Tests:
    """The tests of one team, on the same episodes for every condition."""

    def __init__(self, who: Contestant, each: int, other: Sequence[Edge] = ()) -> None:
        """
        Args:
            who: the team.
            each: episodes of each template.
            other: the graph of another seed, for ``"transplanted"``.
        """
        self._who, self._other = who, other
        self._jobs = test_episodes(each)
        self._own: list[Episode] = []

    def test(self, condition: Condition) -> Tested:
        """Play all test episodes under one condition."""
        found: dict[TemplateSet, tuple[Outcome, ...]] = {}
        calls: dict[TemplateSet, float] = {}
        tokens: dict[TemplateSet, float] = {}
        played = iter(self._episodes(condition))
        for name, jobs in self._jobs.items():
            episodes = [next(played) for _ in jobs]
            found[name] = tuple(outcomes(episodes, self._who.seed))
            spent = Spent()
            spent.add(episodes)
            calls[name] = round(spent.calls / len(jobs), 2)
            tokens[name] = round(spent.tokens / len(jobs), 1)
        return Tested(
            arm=self._who.arm, seed=self._who.seed, condition=condition, outcomes=found,
            calls=calls, tokens=tokens, commit=commit(),
        )  # fmt: skip

    def _episodes(self, condition: Condition) -> list[Episode]:
        """The episodes of all sets, in order; they are played together."""
        jobs = [job for some in self._jobs.values() for job in some]
        if condition == "own edges":
            self._own = self._own or play(self._as_trained(), jobs)
            return self._own
        if condition == "shuffled":
            messages = RecordedMessages.of(self._episodes("own edges"), seed=self._who.seed)
            policy: Policy = GraphPolicy(shuffled(self._team(self._who.graph), messages))
        else:
            policy = self._policy(condition)
        return play(policy, jobs, patience=_PATIENCE if condition.startswith("scroller") else 1)

    def _team(self, edges: Sequence[Edge], *, copies: int = 1, ties: Ties = "seed") -> CollabGraph:
        trained = self._who.trained
        return team(self._who.model, edges, copies=copies, ties=ties, trained=trained)

    def _as_trained(self) -> Policy:
        graph = self._team(self._who.graph)
        return GraphPolicy(redrawn(graph) if self._who.redrawn else graph, name="own edges")

    def _policy(self, condition: Condition) -> Policy:
        graphs: dict[Condition, Callable[[], CollabGraph]] = {
            "muted": lambda: muted(self._team(self._who.graph)),
            "transplanted": lambda: self._team(self._other),
            "top ties": lambda: self._team((), ties="top"),
            "half windows": lambda: self._team((), copies=2),
        }
        if condition in graphs:
            return GraphPolicy(graphs[condition](), name=condition)
        return _one_agent(self._who, condition)


def _one_agent(who: Contestant, condition: Condition) -> Policy:
    """Controls with one agent. A scroller acts in each window with the adapter of its agent."""
    if condition == "whole screen":
        view = Window(part=0, parts=AGENTS, copies=AGENTS)
        adapter = NAMES[0] if who.trained else None
        one = CollabGraph.solo(who.model, adapter=adapter, view=view, max_tokens=REPLY_TOKENS)
        return GraphPolicy(one, name=condition)
    return SlidingWindowPolicy(
        who.model,
        parts=AGENTS,
        notes=AGENTS - 1 if condition == "scroller with notes" else 0,
        adapter=NAMES if who.trained else None,
        max_tokens=REPLY_TOKENS,
        name=condition,
    )
