"""Do messages help if each agent sees a part of a long screen?"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Literal

import msgspec
import torch

from benchmarks.arms import CONCURRENCY, TEST_DRAW, Jobs, calls_of, names_of, shortened
from benchmarks.cell import Cell, origin_here
from benchmarks.study import Arm, Pair, Study
from benchmarks.support.long_phone import LongPhone
from benchmarks.support.thompson_edges import ThompsonEdges
from benchmarks.support.window_agent import (
    MEMORY,
    NEW,
    WindowAgentConfig,
    window_agent,
)
from benchmarks.support.window_policies import RecordedMessages, SlidingWindowPolicy, shuffled
from swarm_ui import CollabGraph
from swarm_ui.agent_view import Window, windows
from swarm_ui.environments.phone import (
    TEST_SEEDS,
    VALIDATION_SEEDS,
    draw_jobs,
    tasks,
)
from swarm_ui.environments.phone.templates import TEMPLATES
from swarm_ui.graph.topology import Edge, random_dag
from swarm_ui.node import Ties, derive
from swarm_ui.nodes import LocalModel
from swarm_ui.optim import (
    EdgeDistribution,
    EdgeSample,
    ProbabilitySGD,
    edge_loss,
)
from swarm_ui.rollout import GraphPolicy, Job, Policy, rollout_many
from swarm_ui.stats import outcomes
from swarm_ui.trace.records import Episode

FORMS = "forms of known templates"
NONE, TOP, FULL = "vote without edges", "vote without edges, top wins ties", "full, page order"
SHUFFLED, WHOLE = f"{FULL}, messages shuffled", "one agent, whole screen"
REDRAWN, SCROLL = "random, redrawn each episode", "one agent scrolling, 4 x the steps"
THOMPSON, RANDOM, BEST = (
    "learned edges, Thompson",
    "20 random graphs",
    "the best of them, cross-fitted",
)
CONTROLS = (
    NONE, TOP, FULL, SHUFFLED, "full, reverse order", "chain, page order", REDRAWN,
    "one agent, top window", "one agent scrolling", SCROLL, "half windows, no edges",
    "half windows, full, page order", WHOLE,
)  # fmt: skip
FIRST = (
    *((arm, NONE) for arm in CONTROLS[1:]), (THOMPSON, NONE),
    ("learned edges, score function", NONE), (RANDOM, NONE), (BEST, NONE), (THOMPSON, TOP),
    (THOMPSON, BEST), (THOMPSON, REDRAWN), (THOMPSON, SCROLL), (FULL, SHUFFLED), (FULL, TOP),
    (FULL, WHOLE),
)  # fmt: skip
"""Differences of the first agent, with which the question was explored."""


def other(*pairs: Pair) -> tuple[Pair, ...]:
    """Differences of the three agents that were trained after the named ones had been named."""
    return tuple((f"other agents: {a}", f"other agents: {b}") for a, b in pairs)


LEARNED, OUTCOME = "learned edges, critic", "learned edges, outcome; own edges"
UNTRAINED, SILENT = "before stage 2; no edges", "no edges, critic; own edges"


# -- playing --------------------------------------------------------------------------------------

AGENTS = names_of(4)
FORWARD = tuple((a, b) for k, b in enumerate(AGENTS) for a in AGENTS[:k])
DENSITY = 0.5
STEPS = 4_000
"""Training steps of a window agent."""
BUDGET, GRAPHS = 480, 4
"""Episodes of a run of edge learning; graphs that are tried on each, so that its difficulty
cancels."""


def team(
    model: LocalModel, edges: Sequence[Edge] = (), *, copies: int = 1, ties: Ties = "seed",
) -> CollabGraph:  # fmt: skip
    """Four agents with a window each; ``copies``: how many windows have an element."""
    return CollabGraph.collaborative(
        4, 1, model=model, edges=edges, ties=ties,
        views=windows(4, copies), max_tokens=64,
    )  # fmt: skip


def redrawn(graph: CollabGraph) -> Policy:
    """A team with a random graph for each episode."""

    def draw(task: str, seed: int) -> tuple[CollabGraph, None]:
        rng = random.Random(derive(seed, "redrawn", task))
        return graph.with_edges(random_dag(AGENTS, DENSITY, rng)), None

    return GraphPolicy(draw)


def one_window(model: LocalModel, copies: int) -> Policy:
    """One agent that sees the top window; with four copies, the whole screen."""
    view = Window(part=0, parts=4, copies=copies)
    return GraphPolicy(CollabGraph.solo(model, view=view, max_tokens=64))


def forms() -> tuple[str, ...]:
    """The training templates that fill in a form."""
    return tuple(task for task in tasks("train") if TEMPLATES[task].kind in ("create", "reply"))


def tests() -> Jobs:
    """Test episodes of agents that were trained with messages."""
    draw = partial(draw_jobs, seeds=TEST_SEEDS)
    return {
        FORMS: draw(forms(), 200, TEST_DRAW),
        "forms of new templates and apps": draw(NEW, 100, TEST_DRAW),
        "all known templates": draw(tasks("train"), 120, TEST_DRAW),
    }


def episodes_of(policy: Policy, jobs: Sequence[Job], patience: int = 1) -> list[Episode]:
    """Episodes on long screens; ``patience``: a factor on their steps."""
    make = partial(LongPhone, memory=MEMORY, patience=patience)
    return asyncio.run(rollout_many(make, policy, jobs, concurrency=CONCURRENCY))


def played(
    arm: str, policy: Policy, tests: Jobs, *, seed: int | None, patience: int = 1,
    mixed: CollabGraph | None = None, edges: Sequence[Edge] = (),
) -> Cell:  # fmt: skip
    """The cell of a policy. ``mixed``: the team whose messages are replaced by those of other
    decisions, which ``policy`` plays before."""
    found, work = {}, dict[str, Mapping[str, float]]()
    for split, jobs in tests.items():
        episodes = episodes_of(policy, jobs, patience)
        if mixed is not None:
            other = RecordedMessages.of(episodes, seed=seed or 0)
            episodes = episodes_of(GraphPolicy(shuffled(mixed, other)), jobs)
        used = [c.usage for e in episodes for step in e.steps for c in step.trace.calls]
        found[split] = outcomes(episodes, seed or 0)
        work[split] = {
            "calls": calls_of(episodes),
            "tokens": sum(u.prompt_tokens + u.completion_tokens for u in used) / len(jobs),
        }
    return Cell(arm=arm, seed=seed, outcomes=found, work=work, notes={"edges": list(edges)},
                origin=origin_here())  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """A policy of agents that were trained with messages, without stage 2."""

    kind: Literal["team", "window", "whole", "scroll"] = "team"
    edges: tuple[Edge, ...] = ()
    redrawn: bool = False
    copies: int = 1
    ties: Ties = "seed"
    patience: int = 1
    shuffled: bool = False
    learned: Literal["", "Thompson", "score function"] = ""
    """Whether the edges are learned from success on validation episodes, and how."""
    random: bool = False
    """Whether the seed is that of a random graph, which plays fewer episodes."""
    other: bool = False
    """Whether the seed is that of an agent's training; if not, the agent is the first one."""

    @property
    def seeded(self) -> bool:
        """Whether the arm has seeds, of an agent or of a graph."""
        return self.other or self.random or bool(self.learned)

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> Iterable[Cell]:
        """See :class:`benchmarks.study.Arm`."""
        own = (seed or 0) if self.other else 0
        config = WindowAgentConfig.of(2 if quick else STEPS, own)
        if quick:
            config = replace(config, episodes=1)
        model = window_agent(config, folder.parent / f"agent-{own}")
        edges, chosen = self.edges, shortened(tests(), quick=quick)
        if self.learned:
            budget = 16 if quick else BUDGET
            edges = learned(model, self.learned, 0 if self.other else seed or 0, budget)
        elif self.random:
            edges = random_dag(AGENTS, DENSITY, random.Random(derive(seed or 0, "window study")))
        if self.other or self.random:
            chosen = {FORMS: chosen[FORMS][: 100 if self.random else None]}
        graph = team(model, edges, copies=self.copies, ties=self.ties)
        policies: dict[str, Callable[[], Policy]] = {
            "team": lambda: redrawn(graph) if self.redrawn else GraphPolicy(graph),
            "window": lambda: one_window(model, 1),
            "whole": lambda: one_window(model, 4),
            "scroll": lambda: SlidingWindowPolicy(model, max_tokens=64),
        }
        yield played(
            name, policies[self.kind](), chosen, seed=seed, patience=self.patience, edges=edges,
            mixed=graph if self.shuffled else None,
        )  # fmt: skip


def learned(model: LocalModel, method: str, seed: int, budget: int) -> tuple[Edge, ...]:
    """The most probable graph after this number of episodes."""
    thompson, scored = ThompsonEdges(AGENTS, noise=0.5), EdgeDistribution(AGENTS)
    edges: ThompsonEdges | EdgeDistribution = thompson if method == "Thompson" else scored
    optimizer, generator = ProbabilitySGD(scored, lr=0.4), torch.Generator().manual_seed(seed)
    graph, each = team(model), min(20, budget // GRAPHS)
    drawn = derive(seed + 1, "tuning")
    jobs = draw_jobs(forms(), budget // GRAPHS, drawn, seeds=VALIDATION_SEEDS)
    for at in range(0, len(jobs), each):
        batch = jobs[at : at + each]
        samples = edges.sample(len(batch) * GRAPHS, generator)
        sets = [samples[g * len(batch) : (g + 1) * len(batch)] for g in range(GRAPHS)]
        utilities = [value for own in sets for value in _tried(graph, batch, own)]
        groups = [job for _ in range(GRAPHS) for job in batch]
        if method == "Thompson":
            thompson.step(samples, utilities, groups=groups)
        else:
            optimizer.zero_grad()
            edge_loss(scored, samples, utilities, normalise=True, groups=groups).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return tuple(edges.mode().edges)


def _tried(
    graph: CollabGraph, batch: Sequence[Job], samples: Sequence[EdgeSample]
) -> list[float | None]:
    """The success of each graph on its episode."""
    own = {job: graph.with_edges(s.edges) for job, s in zip(batch, samples, strict=True)}
    policy = GraphPolicy(lambda task, seed: (own[task, seed], None))
    return [o.value for o in outcomes(episodes_of(policy, batch))]


POLICIES = {
    NONE: Fixed(),
    TOP: Fixed(ties="top"),
    FULL: Fixed(edges=FORWARD),
    SHUFFLED: Fixed(edges=FORWARD, shuffled=True),
    "full, reverse order": Fixed(edges=tuple((b, a) for a, b in FORWARD)),
    "chain, page order": Fixed(edges=tuple(pairwise(AGENTS))),
    REDRAWN: Fixed(redrawn=True),
    "one agent, top window": Fixed(kind="window"),
    "one agent scrolling": Fixed(kind="scroll"),
    SCROLL: Fixed(kind="scroll", patience=4),
    "half windows, no edges": Fixed(copies=2),
    "half windows, full, page order": Fixed(edges=FORWARD, copies=2),
    WHOLE: Fixed(kind="whole"),
    THOMPSON: Fixed(learned="Thompson"),
}
AGAIN = (
    NONE, TOP, FULL, SHUFFLED, "full, reverse order", "chain, page order", REDRAWN, SCROLL,
    "half windows, no edges", WHOLE, THOMPSON,
)  # fmt: skip
"""The policies of the other agents."""
ARMS: Mapping[str, Arm] = {
    **POLICIES,
    "learned edges, score function": Fixed(learned="score function"),
    RANDOM: Fixed(random=True),
    **{f"other agents: {name}": replace(POLICIES[name], other=True) for name in AGAIN},
}


def best_graph(cells: Sequence[Cell]) -> Iterable[Cell]:
    """The best random graph: each half of the episodes takes the one that was best on the other
    half, so that the choice is unbiased."""
    graphs = [cell for cell in cells if cell.arm == RANDOM]
    if not graphs:
        return
    played = [cell.outcomes[FORMS] for cell in graphs]
    chosen = list(played[0])
    halves = [range(start, len(chosen), 2) for start in (0, 1)]
    for here, there in (halves, halves[::-1]):
        best = max(played, key=lambda own: _rate([own[k].value for k in there]))
        for k in here:
            chosen[k] = msgspec.structs.replace(best[k], run=0)
    yield Cell(arm=BEST, outcomes={FORMS: chosen}, work=graphs[0].work, origin=graphs[0].origin)


def _rate(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return fmean(known) if known else 0.0


STUDY = Study(
    arms=ARMS,
    trial=(FULL, THOMPSON),
    own_seeds={
        THOMPSON: (0, 1, 2), "learned edges, score function": (0, 1, 2), RANDOM: range(20),
        **{f"other agents: {name}": (1, 2, 3) for name in AGAIN},
    },
    named=(
        *other((FULL, NONE), (THOMPSON, NONE), (THOMPSON, REDRAWN)),
        (f"{LEARNED}; own edges", SILENT),
        (f"{LEARNED}; own edges", "no edges, critic; top ties"),
        (f"{LEARNED}; own edges", OUTCOME),
    ),
    explored=(
        *other(
            (FULL, SHUFFLED), (FULL, TOP), (FULL, WHOLE), (THOMPSON, TOP), (THOMPSON, SCROLL),
            (THOMPSON, FULL),
        ),
        *((f"{LEARNED}; own edges", f"{LEARNED}; {how}")
          for how in ("shuffled", "muted", "transplanted", "scroller with notes")),
        (f"{LEARNED}; own edges", "redrawn edges, critic; own edges"),
        (SILENT, UNTRAINED), (f"{LEARNED}; own edges", UNTRAINED),
        (f"{LEARNED}; own edges", "before stage 2; top ties"),
        *FIRST,
    ),
    derived=best_graph,
    seeds=(0, 1, 2, 3, 4),
    note="The phone is simulated: these are not AndroidWorld scores. The rows of stage 2 (splits "
    "'known templates' and 'held-out templates') need credit for abstentions, which the library no "
    "longer has: commit 71d2855d made them.",
    shown=tuple(
        f"other agents: {arm}"
        for arm in (NONE, TOP, FULL, THOMPSON, WHOLE)
    ),
    shown_on=(FORMS,),
)  # fmt: skip
