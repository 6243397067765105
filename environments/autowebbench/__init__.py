"""AutoWebBench offline: next-action prediction on recorded English and Chinese web pages.

Get the data yourself; none of it is in this package: ``autowebbench/`` of
https://github.com/THUDM/AutoWebGLM (the repository is Apache-2.0, its data "for research purpose
only"). Do not redistribute the test files, nor traces of episodes on them.

    import asyncio
    from swarm_ui import CollabGraph, GraphPolicy, rollout_many
    from swarm_ui.environments.autowebbench import AutoWebBench, synthetic
    from swarm_ui.nodes import ScriptedModel

    async def main() -> None:
        data = AutoWebBench(synthetic(), "en/ood")     # or AutoWebBench("~/AutoWebGLM", ...)
        reply = 'Action: {"action_type": "click", "index": 0}'
        team = CollabGraph.collaborative(agents=3, rounds=2, model=ScriptedModel(lambda _: reply))
        episodes = await rollout_many(data.environment, GraphPolicy(team), data.jobs())
        print(data.score(episodes).markdown())

    asyncio.run(main())

The ten functions of the benchmark are told as actions:

| function | action |
| --- | --- |
| click, type_string, select | ``click``, ``input_text``, ``select`` |
| hover | ``long_press`` |
| scroll_page, go('backward') | ``scroll``, ``navigate_back`` |
| jump_to | ``open_app`` with the address as ``app_name`` |
| finish | ``status`` "complete", or ``answer`` with the text |
| user_input | ``status`` "infeasible": only the user can go on |

go('forward') and switch_tab have no action and always count as wrong (4 of the 1451 recorded
steps). Replies of any other model are scored by :func:`score_predictions`, without an environment.
Formulas, official and strict: :mod:`swarm_ui.environments.autowebbench.metrics`.
"""

from __future__ import annotations

from pathlib import Path

from swarm_ui.environments.autowebbench.call_syntax import Call, official_call, strict_call
from swarm_ui.environments.autowebbench.data import SPLITS, AutoWebBench, AutoWebBenchStep, Split
from swarm_ui.environments.autowebbench.metrics import (
    Prediction,
    official_step,
    score_predictions,
    strict_step,
)


def synthetic() -> Path:
    """Folder of a small made-up data set: four splits, two tasks each, none of the benchmark's.

    For tests and demos: a score on it says nothing about an agent.
    """
    return Path(__file__).parent / "synthetic"


__all__ = [
    "SPLITS",
    "AutoWebBench",
    "AutoWebBenchStep",
    "Call",
    "Prediction",
    "Split",
    "official_call",
    "official_step",
    "score_predictions",
    "strict_call",
    "strict_step",
    "synthetic",
]
