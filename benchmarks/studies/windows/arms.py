"""Arms of teams in which each agent sees a window of a long screen, and their episodes."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

import msgspec

from benchmarks.studies.windows.agent import MEMORY
from benchmarks.studies.windows.held_out import NEW
from benchmarks.studies.windows.long_phone import LongPhone
from benchmarks.support.delivery import RecordedMessages, shuffled
from benchmarks.support.origin import commit
from benchmarks.support.scroller import SlidingWindowPolicy
from swarm_ui.agent_view import Window, windows
from swarm_ui.environments.phone import (
    TEST_SEEDS,
    VALIDATION_SEEDS,
    draw_jobs,
    tasks,
)
from swarm_ui.environments.phone.templates import TEMPLATES
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge, random_dag
from swarm_ui.model import ChatModel
from swarm_ui.node import Ties, derive
from swarm_ui.rollout import GraphPolicy, Job, Policy, rollout_many
from swarm_ui.stats import outcomes
from swarm_ui.trace.records import Episode

AGENTS = 4
NAMES = tuple(f"agent_{k}" for k in range(AGENTS))
FULL = tuple((a, b) for k, b in enumerate(NAMES) for a in NAMES[:k])
REVERSE = tuple((b, a) for a, b in FULL)
CHAIN = tuple(pairwise(NAMES))
RANDOM_GRAPHS = 20
DENSITY = 0.5
CONCURRENCY = 128
REPLY_TOKENS = 64


Split = Literal["forms", "new", "all"]
"""Tasks: forms, where edges were expected to pay; forms of new templates and new apps, of which no
agent here saw an episode; or all training templates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowArm:
    """One policy on long screens, as plain data."""

    name: str
    label: str
    kind: Literal["team", "window", "scroll", "whole"] = "team"
    edges: tuple[Edge, ...] = ()
    redrawn: bool = False
    """A random graph for each episode instead of ``edges``."""
    copies: int = 1
    ties: Ties = "seed"
    patience: int = 1
    part: int = 0
    """Number of the window, for one agent."""
    shuffled: bool = False
    """Whether every message is replaced by one of another agent from another decision."""

    def policy(self, model: ChatModel) -> Policy:
        """The policy of the arm."""
        if self.kind == "scroll":
            return SlidingWindowPolicy(
                model, parts=AGENTS, max_tokens=REPLY_TOKENS, name=self.label
            )
        if self.kind != "team":
            copies = AGENTS if self.kind == "whole" else self.copies
            view = Window(part=self.part, parts=AGENTS, copies=copies)
            one = CollabGraph.solo(model, view=view, max_tokens=REPLY_TOKENS)
            return GraphPolicy(one, name=self.label)
        graph = self.graph(model)
        return GraphPolicy(redrawn(graph) if self.redrawn else graph, name=self.label)

    def graph(self, model: ChatModel) -> CollabGraph:
        """The team's graph."""
        return team(model, self.edges, copies=self.copies, ties=self.ties, trained=False)


def team(
    model: ChatModel,
    edges: Sequence[Edge],
    *,
    copies: int = 1,
    ties: Ties = "seed",
    temperature: float = 0.0,
    trained: bool = True,
) -> CollabGraph:
    """Four agents with a window each; ``trained``: each with the adapter of its own name."""
    return CollabGraph.collaborative(
        AGENTS,
        1,
        model=model,
        edges=edges,
        adapters=NAMES if trained else None,
        views=windows(AGENTS, copies),
        ties=ties,
        temperature=temperature,
        max_tokens=REPLY_TOKENS,
    )


def redrawn(graph: CollabGraph) -> Callable[[str, int], tuple[CollabGraph, None]]:
    """A team with a random graph for each episode."""

    def draw(task: str, seed: int) -> tuple[CollabGraph, None]:
        rng = random.Random(derive(seed, "redrawn", task))
        return graph.with_edges(random_dag(NAMES, DENSITY, rng)), None

    return draw


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """The results of an arm's episodes."""

    name: str
    label: str
    edges: tuple[Edge, ...]
    outcomes: tuple[float | None, ...]
    decisions: int
    lost: int
    """Decisions in which all agents abstained."""
    calls: int
    tokens: float
    """Mean of an episode, prompts and replies."""
    seconds: float
    """CPU time."""
    commit: str = ""
    """Commit of the source that played the episodes."""


def arrows(edges: Sequence[Edge]) -> str:
    """Edges in short form: ``0→1 0→2``."""
    place = {name: k for k, name in enumerate(NAMES)}
    return " ".join(f"{place[a]}→{place[b]}" for a, b in sorted(edges)) or "none"


def control_arms() -> list[WindowArm]:
    """All compared arms, except random and learned graphs."""
    return [
        WindowArm(name="no-edges", label="vote without edges"),
        WindowArm(name="no-edges-top", label="vote without edges, top wins ties", ties="top"),
        WindowArm(name="full", label="full, page order", edges=FULL),
        WindowArm(
            name="full-shuffled",
            label="full, page order, messages shuffled",
            edges=FULL,
            shuffled=True,
        ),
        WindowArm(name="reverse", label="full, reverse order", edges=REVERSE),
        WindowArm(name="chain", label="chain, page order", edges=CHAIN),
        WindowArm(name="redrawn", label="random, redrawn each episode", redrawn=True),
        WindowArm(name="window-0", label="one agent, top window", kind="window"),
        WindowArm(name="scroll", label="one agent scrolling", kind="scroll"),
        WindowArm(
            name="scroll-4", label="one agent scrolling, 4 x the steps", kind="scroll", patience=4
        ),
        WindowArm(name="half-no-edges", label="half windows, no edges", copies=2),
        WindowArm(name="half-full", label="half windows, full, page order", edges=FULL, copies=2),
        WindowArm(name="whole", label="one agent, whole screen", kind="whole"),
    ]


def random_arms() -> list[WindowArm]:
    """Fixed random graphs, the same in every run of the study."""
    arms = []
    for k in range(RANDOM_GRAPHS):
        edges = random_dag(NAMES, DENSITY, random.Random(derive(k, "window study")))
        arms.append(WindowArm(name=f"random-{k:02d}", label=f"random graph {k}", edges=edges))
    return arms


def forms() -> tuple[str, ...]:
    """The training templates that fill in a form. The agent that sees the button must wait until
    the fields above it are filled, and they are outside of its window.
    """
    return tuple(task for task in tasks("train") if TEMPLATES[task].kind in ("create", "reply"))


def test_jobs(split: Split, count: int) -> list[Job]:
    """Episodes with parameters that occur in no training or tuning episode."""
    names = {"forms": forms(), "new": NEW, "all": tasks("train")}[split]
    return draw_jobs(names, count, 1, seeds=TEST_SEEDS)


def tuning_jobs(count: int, seed: int) -> list[Job]:
    """Episodes on forms, on which graphs are chosen."""
    return draw_jobs(forms(), count, derive(seed, "tuning"), seeds=VALIDATION_SEEDS)


def play(
    policy: Policy,
    jobs: Sequence[Job],
    *,
    patience: int = 1,
    progress: Callable[[int, int, Episode], None] | None = None,
) -> list[Episode]:
    """Play episodes on long screens."""
    make = partial(LongPhone, memory=MEMORY, patience=patience)
    return asyncio.run(rollout_many(make, policy, jobs, concurrency=CONCURRENCY, progress=progress))


def measure(
    model: ChatModel,
    arm: WindowArm,
    jobs: Sequence[Job],
    progress: Callable[[int, int, Episode], None] | None = None,
) -> Played:
    """Measure one arm on these episodes.

    For shuffled messages, the team plays them twice: first with its own messages, which are then
    drawn from.
    """
    began, policy = time.process_time(), arm.policy(model)
    if arm.shuffled:
        messages = RecordedMessages.of(play(policy, jobs))
        policy = GraphPolicy(shuffled(arm.graph(model), messages), name=arm.label)
    episodes = play(policy, jobs, patience=arm.patience, progress=progress)
    traces = [record.trace for episode in episodes for record in episode.steps]
    used = [call.usage for trace in traces for call in trace.calls]
    return Played(
        name=arm.name,
        label=arm.label,
        edges=arm.edges,
        outcomes=tuple(o.value for o in outcomes(episodes)),
        decisions=len(traces),
        lost=sum(t.action is None and len(t.passed) == len(t.agents) for t in traces),
        calls=sum(len(t.agents) for t in traces),
        tokens=sum(u.prompt_tokens + u.completion_tokens for u in used) / len(jobs),
        seconds=time.process_time() - began,
        commit=commit(),
    )
