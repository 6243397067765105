"""Cells of the study: the episodes of one policy on one set of tasks."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.studies.different_bases.agents import digest
from benchmarks.studies.miniwob.plan import RANDOM, Plan, Tasks
from benchmarks.studies.struct_files import read_struct, write_struct
from benchmarks.support.origin import commit
from swarm_ui.action import Action
from swarm_ui.environments.miniwob import MiniWobBrowser
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.environments import miniwob as web
from swarm_ui.experiment.progress import ProgressDisplay, counting
from swarm_ui.experiment.teams import Arm
from swarm_ui.model import ChatModel, Request
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.stats import Outcome, outcomes
from swarm_ui.trace.records import Episode

ARM = Arm(name="base-greedy", label="base, greedy")


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One policy on one set of tasks. The file is written after every task."""

    tasks: Tasks
    policy: str
    agent: str
    """SHA-256 of the agent's weights; empty for random actions."""
    commits: list[str]
    outcomes: list[Outcome]
    seconds: float
    """CPU time of this process, without the browser."""


def play(path: Path, tasks: Tasks, policy: str, plan: Plan, display: ProgressDisplay) -> None:
    """Play the tasks that the cell's file does not have yet."""
    agent = "" if policy == RANDOM else digest(BASE_AGENT)
    cell = _begun(path, tasks, policy, agent)
    have = {outcome.template for outcome in cell.outcomes}
    if set(plan.of(tasks)) - have:
        asyncio.run(_play(path, cell, plan, display))


def _begun(path: Path, tasks: Tasks, policy: str, agent: str) -> Cell:
    """What the file has, or an empty cell."""
    if not path.exists():
        return Cell(tasks=tasks, policy=policy, agent=agent, commits=[], outcomes=[], seconds=0.0)
    cell = read_struct(path, Cell)
    if cell.agent != agent:
        raise ConfigError(
            f"'{path}' was measured with another base agent ({cell.agent[:10]}, now {agent[:10]}). "
            "Give another --out"
        )
    return cell


async def _play(path: Path, cell: Cell, plan: Plan, display: ProgressDisplay) -> None:
    began, before = time.process_time(), cell.seconds
    model: ChatModel
    if cell.policy == RANDOM:
        model = ScriptedModel(random_reply, name=RANDOM)
    else:
        model = local = LocalModel.load(BASE_AGENT)
        local.set_linger(web.LINGER)
    have = {outcome.template for outcome in cell.outcomes}
    jobs = web.test_jobs([name for name in plan.of(cell.tasks) if name not in have], plan.each)
    with display.bar(f"{cell.policy}, {cell.tasks} tasks", len(jobs)) as bar:
        move = counting(bar)

        def done(task: str, episodes: Sequence[Episode]) -> None:
            nonlocal cell
            cell = msgspec.structs.replace(
                cell,
                commits=sorted({*cell.commits, commit()}),
                outcomes=sorted([*cell.outcomes, *outcomes(episodes)], key=lambda o: o.template),
                seconds=round(before + time.process_time() - began, 1),
            )
            write_struct(path, cell)
            move(task, episodes)

        async with MiniWobBrowser(pages=web.PAGES, binary=web.checked_browser()) as browser:
            await web.play_pages(browser, ARM.policy(model), jobs, done)


def random_reply(request: Request) -> str:
    """Click something, or type a word of the goal into a field: the control without an agent."""
    assert request.decision is not None  # an agent on a screen always sends one
    screen, rng = request.decision.observation, random.Random(request.seed)
    if not screen.elements:
        return Action(action_type="scroll", direction="down").json()
    element = rng.choice(screen.elements)
    if not element.editable:
        return Action(action_type="click", index=element.index).json()
    text = rng.choice(screen.goal.split() or [""])
    return Action(action_type="input_text", index=element.index, text=text).json()
