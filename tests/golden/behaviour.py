"""What the library does, as digests: ``python tests/golden/behaviour.py`` records them again.

Each function gives one part of ``behaviour.json``. Only public names are used, so that the records
outlive the code below them. Whoever records again says in the commit why behaviour changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui import (
    Action,
    CollabGraph,
    GraphPolicy,
    Message,
    NodeContext,
    NodeReply,
    Observation,
    rollout_many,
)
from swarm_ui.environments import phone
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone.invented import BLIND, UNSEEN, InventedPhone, blind_tasks
from swarm_ui.environments.phone.split import SplitPhone

FILE = Path(__file__).with_name("behaviour.json")
SPLITS = ("train", "validation", "new_templates", "new_apps", "twins")
SEEDS = (*range(20), *range(10_000_000, 10_000_010), *range(20_000_000, 20_000_010))
SPREAD = {"train": 70, "new_templates": 65, "new_apps": 65}


def digest(parts: Iterable[bytes | str]) -> str:
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part.encode() if isinstance(part, str) else part)
    return hashed.hexdigest()[:16]


def walk(world: Any, task: str, seed: int) -> Iterator[bytes]:
    """Every observation, action and reward from the first screen to the end of the episode."""
    yield msgspec.json.encode(at_once(world.reset(task=task, seed=seed)))
    while True:
        action = world.expert()
        step = at_once(world.step(action))
        yield action.json().encode() + msgspec.json.encode(step)
        if step.ended:
            return


def strayed(draw: random.Random, screen: Observation) -> Action:
    """An action of somebody who presses anything."""
    chance, element = draw.random(), draw.choice(screen.elements)
    if chance < 0.6:
        return Action(action_type="click", index=element.index)
    if chance < 0.8:
        fields = [e.index for e in screen.elements if e.editable] or [element.index]
        text = draw.choice(["garden tea", "", screen.goal.split()[-1]])
        return Action(action_type="input_text", index=draw.choice(fields), text=text)
    if chance < 0.85:
        return Action(action_type="navigate_back")
    if chance < 0.9:
        return Action(action_type="navigate_home")
    if chance < 0.95:
        return Action(action_type="scroll", direction=draw.choice(("up", "down")))
    return Action(action_type="answer", text="tea")


def detour(world: Any, task: str, seed: int) -> Iterator[bytes]:
    """A walk that strays first: what each wrong action is worth, and how the solver comes back."""
    draw = random.Random(f"{task} {seed}")
    screen = at_once(world.reset(task=task, seed=seed))
    yield msgspec.json.encode(screen)
    for _ in range(draw.randrange(8)):
        action = strayed(draw, screen)
        yield f"{action.json()} {world.distance()} {world.grade(action)}".encode()
        step = at_once(world.step(action))
        yield msgspec.json.encode(step)
        if step.ended:
            return
        screen = step.observation
    ended = False
    while not ended:
        action = world.expert()
        step = at_once(world.step(action))
        ended = step.ended
        yield action.json().encode() + msgspec.json.encode(step)


def walks() -> dict[str, str]:
    """The reference solution of each template of the phone, over all seeds."""
    world = phone.PhoneEnvironment()
    return {
        task: digest(part for seed in SEEDS for part in walk(world, task, seed))
        for split in SPLITS
        for task in phone.tasks(split)  # type: ignore[arg-type]
    }


def detours() -> dict[str, str]:
    """Wrong turns in each template of the phone, over some seeds."""
    world = phone.PhoneEnvironment()
    return {
        task: digest(part for seed in SEEDS[::4] for part in detour(world, task, seed))
        for split in SPLITS
        for task in phone.tasks(split)  # type: ignore[arg-type]
    }


_USUAL, _TESTS, _BOTH = range(6), range(20_000_000, 20_000_003), (3, 20_000_009)
_MANY = partial(InventedPhone, devices=8, wordings="many")
_FEW = partial(InventedPhone, devices=8, first=20, wordings="few")
OTHERS: dict[str, tuple[Any, slice | None, Iterable[int], Any]] = {
    "invented": (_MANY, slice(0, None, 7), _USUAL, walk),
    "split": (partial(SplitPhone, agents=6), slice(None), _USUAL, walk),
    "few wordings": (_FEW, slice(0, None, 3), range(2), walk),
    "unseen devices": (partial(InventedPhone, devices=2, first=UNSEEN), slice(None), _TESTS, walk),
    "blind devices": (partial(InventedPhone, devices=1, first=BLIND), None, _TESTS, walk),
    "invented detours": (_MANY, slice(0, None, 4), range(2), detour),
    "split detours": (partial(SplitPhone, agents=6), slice(None), _USUAL, detour),
    "split over 4": (partial(SplitPhone, agents=4), slice(None), _BOTH, walk),
    "split over 7": (partial(SplitPhone, agents=7), slice(None), _BOTH, walk),
    "split over 10": (partial(SplitPhone, agents=10), slice(None), _BOTH, walk),
}  # fmt: skip
"""Invented apps, and facts that are split over the agents' screens: the environment, which of its
tasks (``None``: the blind ones), the seeds, and how they are played."""


def other_walks(name: str) -> str:
    """The same on one of the :data:`OTHERS`."""
    make, chosen, seeds, play = OTHERS[name]
    world = make()
    tasks = blind_tasks() if chosen is None else world.tasks[chosen]
    return digest(part for task in tasks for seed in seeds for part in play(world, task, seed))


class Echo:
    """Says a digest of what it heard; fails in some rounds."""

    def __init__(self, id: str, fails: bool) -> None:
        self.id, self.fails = id, fails

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        heard = "|".join(f"{m.sender}:{'!' if m.error else m.content}" for m in inbox)
        said = digest([context.node, heard, str(context.round), str(context.seed)])[:8]
        if self.fails and said < "6":
            raise RuntimeError(f"no answer to {said}")
        return NodeReply(content=said)


def drawn_graph(draw: random.Random, depth: int = 0) -> CollabGraph:
    """A graph of echoes: edges, conditions, delayed edges, rounds, an early end, nested graphs."""
    names = [f"n{k}" for k in range(draw.randint(2, 6))]
    members: list[Any] = [
        drawn_graph(draw, 1).named(name)
        if not depth and draw.random() < 0.15
        else Echo(name, draw.random() < 0.2)
        for name in names
    ]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    edges = [pair for pair in pairs if draw.random() < 0.5]
    last = names[-1]
    edges += [(name, last) for name in names[:-1] if not any(a == name for a, _ in edges)]
    graph = CollabGraph(members, edges, last, rounds=draw.randint(1, 3), name=f"drawn{depth}")
    if graph.rounds > 1 and draw.random() < 0.3:
        graph = graph.with_edge(last, names[0], delay=1)
    return graph


async def drawn_traces(count: int = 100) -> list[str]:
    """Messages, listeners and failures of runs of drawn graphs."""
    screen = Observation(goal="say something", elements=())
    found = []
    for seed in range(count):
        trace = await drawn_graph(random.Random(seed)).run(screen, seed=seed, run_id=f"run-{seed}")
        errors = {call.id: bool(call.error) for call in trace.calls}
        found.append(
            digest(
                f"{m.id}={m.content};{errors.get(m.id)}\n"
                for m in sorted(trace.messages, key=lambda m: m.id)
            )
        )
    return found


def test_jobs() -> list[tuple[str, int]]:
    draw = phone.PhoneEnvironment.test_jobs
    return [job for s, n in SPREAD.items() for job in draw(n, seed=5, tasks=phone.tasks(s))]  # type: ignore[arg-type]


async def episodes(model: Any, jobs: Sequence[tuple[str, int]], **team: Any) -> list[str]:
    """Outcome and actions of each episode."""
    graph = CollabGraph.collaborative(model=model, **team)
    played = await rollout_many(phone.PhoneEnvironment, GraphPolicy(graph), jobs, concurrency=16)
    return [
        f"{episode.task}/{episode.seed} {episode.success} "
        + digest(step.trace.action.json() if step.trace.action else "-" for step in episode.steps)
        for episode in played
    ]


async def base_agent_episodes(step: int = 1) -> dict[str, list[str]]:
    """``step``: every how many-th episode is played."""
    from swarm_ui.nodes import LocalModel

    model, jobs = LocalModel.load(), test_jobs()
    return {
        "alone": await episodes(model, jobs[::step], agents=1, rounds=1),
        "team": await episodes(model, jobs[:: 7 * step], agents=4, rounds=2, temperature=0.8),
    }


def edge_probabilities() -> dict[str, float]:
    """Twenty updates of edges, towards graphs in which ``a`` sends to ``b`` and ``c`` to nobody."""
    import torch

    from swarm_ui.optim import EdgeDistribution, ProbabilitySGD, edge_loss

    generator = torch.Generator().manual_seed(3)
    distribution = EdgeDistribution(["a", "b", "c", "vote"], density=0.4, decision="vote")
    optimizer = ProbabilitySGD(distribution, lr=0.4)
    for _ in range(20):
        samples = distribution.sample(8, generator)
        utilities = [
            float(("a", "b") in s.edges) - 0.5 * sum(sender == "c" for sender, _ in s.edges)
            for s in samples
        ]
        optimizer.zero_grad()
        edge_loss(distribution, samples, utilities, normalise=False).backward()
        optimizer.step()
    return {"->".join(edge): p for edge, p in sorted(distribution.marginals().items())}


def record() -> dict[str, Any]:
    return {
        "walks": walks(),
        "detours": detours(),
        "other_walks": {name: other_walks(name) for name in OTHERS},
        "traces": asyncio.run(drawn_traces()),
        "episodes": asyncio.run(base_agent_episodes()),
        "edges": edge_probabilities(),
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(record(), indent=1) + "\n", encoding="utf-8")
