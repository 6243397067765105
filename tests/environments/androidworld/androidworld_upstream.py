"""Upstream android_world on a handset, as a program for the Python that has it.

    python androidworld_upstream.py MODE SEED [TASK ...]

It writes one JSON object to the file named by the variable RESULT.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from absl import logging as absl_logging
from android_world import registry, suite_utils
from android_world.agents import t3a
from androidworld_player import Sabotage, ScriptedLlm, misspelt
from androidworld_scripts import SCRIPTS

from swarm_ui.environments import contract_report
from swarm_ui.environments.androidworld.environment import AndroidWorldEnvironment
from swarm_ui.environments.androidworld.handset import (
    APPS,
    Handset,
    android_world_env,
    connect,
    no_waiting,
)
from swarm_ui.environments.androidworld.suite import suite

IDLE = [(".*", lambda me, found: iter(()))]
"""Declares every task done at once."""


def tasks() -> dict[str, Any]:
    return dict(registry.TaskRegistry().get_registry("android_world"))


def run(mode: str, seed: int, names: list[str]) -> dict[str, Any]:
    """T3A under upstream's own runner, each task on a handset of its own."""
    found: dict[str, Any] = {}
    for name in names:
        elements = "uiautomator" if mode == "uiautomator" else "forest"
        env = android_world_env(Handset(APPS), elements)  # type: ignore[arg-type]
        llm = ScriptedLlm(IDLE if mode == "idle" else SCRIPTS)  # type: ignore[arg-type]
        agent = t3a.T3A(env, llm)
        agent.transition_pause = 0
        made = suite_utils.create_suite(tasks(), seed=seed, tasks=[name], env=env)
        made.suite_family = "android_world"
        (episode,) = suite_utils.run(made, agent)
        found[name] = {
            "score": episode["is_successful"],
            "steps": episode["episode_length"],
            "error": episode["exception_info"],
            "stuck": list(llm.stuck.values()),
        }
        env.close()
    return found


def sabotage(seed: int, names: list[str]) -> dict[str, Any]:
    """The verdicts on scripts of which the last act is missing, or the last text is wrong."""
    found: dict[str, Any] = {}
    for name in names:
        plain = Sabotage()
        verdicts: dict[str, float | None] = {"right": play(name, seed, plain)}
        verdicts["early"] = play(name, seed, Sabotage(stop=plain.acts))
        hows = {"letter": misspelt, "text": lambda text: "nothing of the kind"}
        for what, how in hows.items() if plain.texts else ():
            verdicts[what] = play(name, seed, Sabotage(spoil=plain.texts, how=how))
        found[name] = verdicts
    return found


def play(name: str, seed: int, spoilt: Sabotage) -> float:
    """Upstream's verdict on a script."""
    env = android_world_env(Handset(APPS))
    agent = t3a.T3A(env, ScriptedLlm(SCRIPTS, spoilt))  # type: ignore[arg-type]
    agent.transition_pause = 0
    made = suite_utils.create_suite(tasks(), seed=seed, tasks=[name], env=env)
    made.suite_family = "android_world"
    (episode,) = suite_utils.run(made, agent)
    env.close()
    return float(episode["is_successful"])


def seeds(seed: int, names: list[str]) -> dict[str, Any]:
    """The seeds upstream gives instances, and those that we do."""
    env = connect()
    theirs = suite_utils.create_suite(
        tasks(), n_task_combinations=2, seed=seed, tasks=names, env=env
    )
    upstream = [[name, one.params["seed"]] for name, all_ in theirs.items() for one in all_]
    goals = [one.goal for all_ in theirs.values() for one in all_]

    async def ours() -> list[str]:
        world = AndroidWorldEnvironment(connect=connect, pause=0.0)
        screens = [
            await world.reset(task=task, seed=number)
            for task, number in suite(names, combinations=2, seed=seed)
        ]
        await world.close()
        return [screen.goal for screen in screens]

    jobs = [list(job) for job in suite(names, combinations=2, seed=seed)]
    return {"theirs": upstream, "ours": jobs, "goals": goals, "our goals": asyncio.run(ours())}


def contract(names: list[str]) -> dict[str, Any]:
    """The environment contract, checked on upstream's code."""
    made = lambda: AndroidWorldEnvironment(connect=connect, pause=0.0)  # noqa: E731
    report = asyncio.run(contract_report(made, tasks=names))
    return {"ok": report.ok, "report": str(report)}


def main(mode: str, seed: str, *names: str) -> None:
    logging.disable(logging.CRITICAL)
    absl_logging.set_verbosity(absl_logging.FATAL)
    chosen = list(names) or sorted(tasks())
    with no_waiting():
        if mode == "seeds":
            result = seeds(int(seed), chosen)
        elif mode == "sabotage":
            result = sabotage(int(seed), chosen)
        elif mode == "contract":
            result = contract(chosen)
        else:
            result = run(mode, int(seed), chosen)
    Path(os.environ["RESULT"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
