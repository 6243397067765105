"""The greedy base agent on real MiniWoB++ pages that it was not trained on.

    python -m benchmarks.studies.miniwob --out runs/miniwob.json            # the 49 reference tasks
    python -m benchmarks.studies.miniwob --out runs/blind.json --blind      # all others: run once
    python -m benchmarks.studies.miniwob --out runs/random.json --random    # the control

Writes the outcomes after every task, so the same command continues after an interruption. Scores
are not comparable with published ones: the observation is ours, there is no clock, and success is a
raw reward above 0.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.miniwob import REFERENCE_TASKS, MiniWobBrowser, blind_tasks
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.demo.demo_run import agent_folder, check_learning
from swarm_ui.experiment.environments import miniwob as web
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import script
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import Arm
from swarm_ui.model import ChatModel, Request
from swarm_ui.nodes.models.scripted.scripted_model import ScriptedModel
from swarm_ui.stats import outcomes, wilson
from swarm_ui.storage.run_directory import write_atomic
from swarm_ui.trace.records import Episode

_RANDOM = "random actions"
ARM = Arm(name="base-greedy", label="base, greedy")


class Outcomes(msgspec.Struct, kw_only=True):
    """The measured outcomes; ``None`` = masked by a fault."""

    policy: str = ARM.label
    environment: str = web.TITLE
    agent: str
    tasks: dict[str, tuple[float | None, ...]] = {}


@script
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--agent", help="base agent (default: the one that ships)")
    parser.add_argument("--each", type=int, default=20, help="episodes of each task (default: 20)")
    parser.add_argument("--pages", type=int, default=web.PAGES, help="at the same time")
    parser.add_argument("--random", action="store_true", help="the control: random actions")
    parser.add_argument("--blind", action="store_true", help="the tasks that nobody looked at")
    given = parser.parse_args()
    settings = Settings(agent=given.agent)
    binary = web.checked_browser()
    check_learning(settings)
    tasks = blind_tasks() if given.blind else REFERENCE_TASKS
    agent = agent_folder(settings)
    measured = asyncio.run(_measure(given, tasks, agent, binary))
    print(markdown(measured))
    return 0


async def _measure(
    given: argparse.Namespace, tasks: Sequence[str], agent: Path, binary: Path
) -> Outcomes:
    from swarm_ui.experiment.progress import counting
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

    measured = _before(given.out, _RANDOM if given.random else str(agent))
    model: ChatModel
    if given.random:
        model = ScriptedModel(random_reply, name=_RANDOM)
        measured.policy = _RANDOM
    else:
        model = local = LocalModel.load(agent)
        local.set_linger(web.LINGER)
    jobs = [job for job in web.test_jobs(tasks, given.each) if job[0] not in measured.tasks]
    with ProgressDisplay().bar("MiniWoB++", len(jobs)) as bar:
        move = counting(bar)

        def done(task: str, episodes: Sequence[Episode]) -> None:
            measured.tasks[task] = tuple(outcomes(episodes))
            raw = msgspec.json.format(msgspec.json.encode(measured))
            write_atomic(given.out, raw + b"\n")
            move(task, episodes)

        async with MiniWobBrowser(pages=given.pages, binary=binary) as browser:
            await web.play_pages(browser, ARM.policy(model), jobs, done)
    return measured


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


def _before(path: Path, agent: str) -> Outcomes:
    """The outcomes that the file already has."""
    if not path.exists():
        return Outcomes(agent=agent)
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Outcomes)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"'{path}' is not a file of this script: {error}") from error
    if found.agent != agent:
        raise ConfigError(f"'{path}' was measured with the agent in '{found.agent}'")
    return found


def markdown(measured: Outcomes) -> str:
    """One line for each task, and the mean over tasks."""
    lines = [
        f"### {measured.policy} on {measured.environment}",
        "",
        "| task | success % [95 %] | episodes | masked |",
        "| --- | --- | --- | --- |",
    ]
    means: list[float] = []
    variance = 0.0
    for task, values in sorted(measured.tasks.items()):
        rate = wilson(values)
        masked = sum(value is None for value in values)
        if rate is not None:
            means.append(rate.mean)
            variance += rate.mean * (1.0 - rate.mean) / rate.n
        shown = "–" if rate is None else rate.percent()
        lines.append(f"| {task} | {shown} | {len(values) - masked} | {masked} |")
    if means:
        mean, half = sum(means) / len(means), 1.96 * math.sqrt(variance) / len(means)
        lines.append("")
        lines.append(
            f"Mean over {len(means)} tasks: {100 * mean:.1f} % "
            f"[{100 * (mean - half):.1f}, {100 * (mean + half):.1f}] "
            "(95 %, over episodes of these tasks)."
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
