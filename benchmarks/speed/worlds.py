"""Speed of the environments: the phone, coordination on networks, and MiniWoB++ in a browser.

    python -m benchmarks.speed.worlds [--quick] [--peers] [--only phone coordination miniwob]

*phone*, in CPU time: ``steps_per_s`` (replays of the solver over all templates, resets included),
``fork_us`` (snapshot and restore into another phone) and ``screenshot_ms``.

*coordination*: ``decision_cpu_s``, CPU seconds of a decision of 4 to 100 scripted agents that run a
distributed algorithm, and ``decision_cpu_s_constant``, of nodes that reply with a constant and see
no screen: the cost of the engine alone. No language model is involved.

*miniwob*: resets and clicks per second of wall time on real pages (``steps_per_s``), 8 pages
concurrently: a reset, then four clicks by reference, after each of which the screen is read. With
``--peers``, ``playwright_steps_per_s``: Playwright on as many pages of the same browser, with the
same scripts in the page and one ``evaluate`` for a reset or a click with the reading of the screen;
``vs_playwright``: ours divided by it. ``cpu_ms_per_step`` includes the browser. Rounds of both are
interleaved.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from benchmarks.speed.report import Figures, Rows, Section, command, number
from benchmarks.speed.usage import own_cpu
from benchmarks.support.coordination_agents import distributed
from swarm_ui.action import Action
from swarm_ui.agent_view import AgentView
from swarm_ui.environments.base import at_once
from swarm_ui.environments.coordination import (
    FAMILIES,
    KINDS,
    TEST_SEEDS,
    CoordinationEnvironment,
    CoordinationPolicy,
)
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment
from swarm_ui.environments.phone.picture import draw_screen
from swarm_ui.environments.phone.templates import TEMPLATES
from swarm_ui.message import Message
from swarm_ui.node import Node, NodeContext, NodeReply
from swarm_ui.nodes import AgentNode
from swarm_ui.rollout import rollout, spread_jobs

# ---- the phone ---------------------------------------------------------------------------------

Script = tuple[str, int, list[Action]]


def scripts(episodes: int) -> list[Script]:
    """Episodes with the solver's actions, evenly spread over the templates."""
    phone, written = PhoneEnvironment(), []
    for task, seed in spread_jobs(tuple(TEMPLATES), episodes, 0, TRAIN_SEEDS):
        at_once(phone.reset(task=task, seed=seed))
        actions = [phone.expert()]
        while not at_once(phone.step(actions[-1])).ended:
            actions.append(phone.expert())
        written.append((task, seed, actions))
    return written


def fastest(work: Callable[[], object], repeats: int) -> float:
    """CPU seconds of the least disturbed of several runs."""
    took = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def measure_phone(given: argparse.Namespace) -> Figures:
    """The figures of the phone."""
    each, repeats = (1, 3) if given.quick else (20, 5)
    written, phone, other = scripts(len(TEMPLATES) * each), PhoneEnvironment(), PhoneEnvironment()
    at_once(other.reset(task="phone-message-task", seed=1))

    def replay() -> None:
        for task, seed, actions in written:
            at_once(phone.reset(task=task, seed=seed))
            for action in actions:
                at_once(phone.step(action))

    def fork() -> None:
        for _ in range(1000):
            other.restore(phone.snapshot())

    steps = sum(len(actions) for _, _, actions in written)
    rate = steps / fastest(replay, repeats)
    at_once(phone.reset(task="phone-message-task", seed=1))
    draw = partial(draw_screen, phone.state.view)
    draw()  # loads the font
    return {
        "steps_per_s": round(rate),
        "fork_us": round(fastest(fork, repeats) * 1000, 2),
        "screenshot_ms": round(fastest(draw, 10 * repeats) * 1000, 2),
    }


def phone_tables(found: Figures) -> Iterator[Rows]:
    """The figures of the phone."""
    names = ("steps_per_s", "fork_us", "screenshot_ms")
    yield Rows("phone", ("", "value"), [(name, number(found[name])) for name in names])


# ---- coordination ------------------------------------------------------------------------------


class Constant(NamedTuple):
    """A node that says nothing."""

    id: str

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        return NodeReply()


def decision_seconds(kind: str, size: int, *, constant: bool, networks: int) -> float:
    """Mean CPU seconds of a decision of the whole team, with drawing the network, building the
    graph and scoring the answers."""
    model = distributed()

    def make(agent: str, view: AgentView) -> Node:
        return Constant(agent) if constant else AgentNode(agent, model, view=view)

    policy, took = CoordinationPolicy(make), list[float]()
    for family in FAMILIES:
        for seed in TEST_SEEDS[:networks]:
            began, task = time.process_time(), f"{kind}-{family}-{size}"
            episode = asyncio.run(rollout(CoordinationEnvironment(), policy, task=task, seed=seed))
            took.append(time.process_time() - began)
            if episode.success is not (not constant):
                raise SystemExit(f"{task}, seed {seed}: success is {episode.success}")
    return fmean(took)


def measure_coordination(given: argparse.Namespace) -> Figures:
    """CPU seconds of a decision, by the number of agents."""
    sizes, networks = ((4, 16), 1) if given.quick else ((4, 16, 100), 5)
    return {
        f"decision_cpu_s{end}": {
            str(size): round(
                fmean(
                    decision_seconds(kind, size, constant=constant, networks=networks)
                    for kind in KINDS
                ),
                4,
            )
            for size in sizes
        }
        for end, constant in (("", False), ("_constant", True))
    }


def coordination_tables(found: Figures) -> Iterator[Rows]:
    """By number of agents."""
    bare = found["decision_cpu_s_constant"]
    cells = [
        (size, number(cpu), number(bare[size])) for size, cpu in found["decision_cpu_s"].items()
    ]
    yield Rows("coordination, CPU s of a decision", ("agents", "distributed", "constant"), cells)


# ---- MiniWoB++ ---------------------------------------------------------------------------------

CLICKS_ON = {  # what to click on; no click ends an episode
    "click-checkboxes": "checkbox", "click-checkboxes-large": "checkbox", "click-option": "radio",
    "click-tab-2": "link", "enter-password": "field", "form-sequence-2": "radio",
    "multi-layouts": "field", "read-table-2": "field",
}  # fmt: skip
CLICKS, PAGES = 4, 8
Click = Callable[[int], Awaitable[object]]
Reset = Callable[[int], Awaitable[Sequence[int]]]
Player = tuple[Reset, Click]
"""``reset(seed)`` gives the indices of the elements to click on."""


@asynccontextmanager
async def ours() -> AsyncIterator[list[Player]]:
    """The pages of one browser."""
    from swarm_ui.environments.miniwob import MiniWobBrowser, MiniWobEnvironment

    def player(env: MiniWobEnvironment, task: str) -> Player:
        async def reset(seed: int) -> list[int]:
            screen = await env.reset(task=task, seed=seed)
            return [e.index for e in screen.elements if e.role == CLICKS_ON[task]]

        return reset, lambda index: env.step(Action(action_type="click", index=index))

    async with MiniWobBrowser(pages=PAGES) as browser:
        yield [player(*pair) for pair in zip(browser.environments, CLICKS_ON, strict=True)]


@asynccontextmanager
async def playwright() -> AsyncIterator[list[Player]]:
    """Playwright with the same scripts in the page, and nothing around them."""
    from playwright.async_api import async_playwright

    import swarm_ui.environments.miniwob as own
    from swarm_ui.environments.web import find_browser

    spec = importlib.util.find_spec("miniwob")
    assert spec is not None and spec.origin is not None
    html = Path(spec.origin).parent / "html" / "miniwob"
    names = ("page_names.js", "page_screen.js", "page_acts.js")
    folder = Path(own.__file__).parent
    script = "\n".join(["(() => {", *((folder / name).read_text() for name in names), "})();"])

    def player(page: Any, role: str) -> Player:
        async def reset(seed: int) -> list[int]:
            screen = json.loads(await page.evaluate("(seed) => swarmUi.reset(seed)", seed))
            return [e["index"] for e in screen["elements"] if e["role"] == role]

        async def click(index: int) -> object:
            told = {"action_type": "click", "index": index}
            return json.loads(await page.evaluate("(action) => swarmUi.act(action)", told))

        return reset, click

    async with async_playwright() as tool:
        browser = await tool.chromium.launch(
            executable_path=str(find_browser()), args=["--no-sandbox"]
        )
        players = []
        for task, role in CLICKS_ON.items():
            page = await (await browser.new_context()).new_page()
            await page.add_init_script(script)
            await page.goto((html / f"{task}.html").as_uri())
            players.append(player(page, role))
        yield players
        await browser.close()


async def web_sample(
    system: Callable[[], AbstractAsyncContextManager[list[Player]]], seconds: float
) -> tuple[float, float]:
    """Steps per second of all pages together, and CPU milliseconds of a step."""
    steps, end = 0, 0.0

    async def episodes(reset: Reset, click: Click) -> None:
        nonlocal steps
        for seed in range(1_000_000):
            shown = await reset(seed)
            steps += 1
            for turn in range(CLICKS):
                if time.monotonic() > end:
                    return
                await click(shown[turn % len(shown)])
                steps += 1

    async with system() as players:
        for length in (1.0, seconds):  # the first is the warm-up
            steps, cpu, began = 0, own_cpu(), time.monotonic()
            end = began + length
            await asyncio.gather(*(episodes(*player) for player in players))
        took = time.monotonic() - began
        return steps / took, (own_cpu() - cpu) / steps * 1000


def measure_miniwob(given: argparse.Namespace) -> Figures:
    """The figures of MiniWoB++; the rounds of both systems are interleaved."""
    rounds, seconds = (1, 2.0) if given.quick else (5, 6.0)
    systems = {"ours": ours, "playwright": playwright} if given.peers else {"ours": ours}
    rates: dict[str, list[float]] = {name: [] for name in systems}
    costs: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, system in systems.items():
            rate, cost = asyncio.run(web_sample(system, seconds))
            rates[name].append(rate)
            costs[name].append(cost)
    own = median(rates["ours"])
    theirs = median(rates["playwright"]) if given.peers else None
    return {
        "miniwob": {
            "steps_per_s": own,
            "playwright_steps_per_s": theirs,
            "vs_playwright": None if theirs is None else own / theirs,
            "cpu_ms_per_step": {name: median(each) for name, each in costs.items()},
            "tasks": len(CLICKS_ON), "pages": PAGES, "rounds": rounds,
        }
    }  # fmt: skip


def miniwob_tables(found: Figures) -> Iterator[Rows]:
    """Steps per second and CPU time of both systems."""
    told = found["miniwob"]
    rates = {"ours": told["steps_per_s"], "playwright": told["playwright_steps_per_s"]}
    cells = [(n, number(rates[n]), number(ms)) for n, ms in told["cpu_ms_per_step"].items()]
    title = f"MiniWoB++, {told['pages']} pages; ours ÷ Playwright: {number(told['vs_playwright'])}"
    yield Rows(title, ("", "steps per s", "CPU ms a step"), cells)


SECTIONS = {
    "phone": Section(measure_phone, phone_tables),
    "coordination": Section(measure_coordination, coordination_tables),
    "miniwob": Section(measure_miniwob, miniwob_tables),
}

if __name__ == "__main__":
    sys.exit(command("worlds", __doc__, SECTIONS))
