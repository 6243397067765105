"""Plays a task on an emulator, by upstream's runner or by our adapter. For upstream's Python.

    python androidworld_emulator_play.py upstream|ours TASK SEED CONSOLE_PORT GRPC_PORT ADB

``upstream`` runs upstream's own loader, suite and T3A agent and writes the agent's acts to the
file named by RESULT; ``ours`` reads them there and gives them to our adapter.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from absl import logging as absl_logging
from android_env.wrappers import a11y_grpc_wrapper
from android_world import registry, suite_utils
from android_world.agents import t3a
from android_world.env import env_launcher
from androidworld_player import Act, ScriptedLlm
from androidworld_scripts import SCRIPTS

from swarm_ui.action import Action
from swarm_ui.environments.androidworld.environment import AndroidWorldEnvironment

_sleep = time.sleep


def upstream(task: str, seed: int, launch: dict[str, Any]) -> dict[str, Any]:
    env = env_launcher.load_and_setup_env(**launch)
    acts: list[Act] = []

    class Recorded(ScriptedLlm):
        def _next(self) -> Act:
            act = super()._next()
            acts.append(act)
            return act

    agent = t3a.T3A(env, Recorded(SCRIPTS))  # type: ignore[arg-type]
    agent.transition_pause = 0
    tasks = registry.TaskRegistry().get_registry("android_world")
    kind = tasks[task]
    one = suite_utils._instantiate_task(kind, seed=seed, env=env)
    suite = suite_utils.Suite({task: [one]})
    suite.suite_family = "android_world"
    (episode,) = suite_utils.run(suite, agent)
    env.close()
    return {"acts": acts, "score": episode["is_successful"], "goal": one.goal}


async def ours(task: str, seed: int, launch: dict[str, Any], acts: list[Act]) -> dict[str, Any]:
    env = AndroidWorldEnvironment(launch=launch, pause=None)
    screen = await env.reset(task=task, seed=seed)
    score = 0.0
    for act in acts:
        fields = dict(act)
        if "index" in fields:
            fields["index"] = env._upstream_index.index(fields["index"])
        step = await env.step(Action(**fields))
        score = step.reward or 0.0
    await env.close()
    return {"score": score, "goal": screen.goal}


def main(who: str, task: str, seed: str, console_port: str, grpc_port: str, adb: str) -> None:
    logging.disable(logging.CRITICAL)
    absl_logging.set_verbosity(absl_logging.FATAL)
    time.sleep = lambda seconds: _sleep(min(seconds, 0.05))
    # The real wrapper downloads this app. The fake emulator does without it.
    a11y_grpc_wrapper._get_accessibility_forwarder_apk = lambda: b"no app"
    launch = {"console_port": int(console_port), "grpc_port": int(grpc_port), "adb_path": adb}
    result = Path(os.environ["RESULT"])
    if who == "upstream":
        result.write_text(json.dumps(upstream(task, int(seed), launch)))
    else:
        acts = json.loads(result.read_text())["acts"]
        result.write_text(json.dumps(asyncio.run(ours(task, int(seed), launch, acts))))


if __name__ == "__main__":
    main(*sys.argv[1:])
