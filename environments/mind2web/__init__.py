"""Mind2Web offline: next-action prediction on recorded web pages, from your copy of the data.

Get the data yourself; none of it is in this package. https://huggingface.co/datasets/osunlp/Mind2Web
(raw JSON, CC BY 4.0; the test splits come as a password-protected zip, see the data card) or
.../osunlp/Multimodal-Mind2Web (flattened rows as parquet, OpenRAIL; ``pip install
'swarm-ui[mind2web]'``). **Do not redistribute unzipped test files**, nor traces of episodes on
them: the authors ask for it so that they stay out of training data.

    import asyncio
    from swarm_ui import CollabGraph, GraphPolicy, rollout_many
    from swarm_ui.environments.mind2web import Mind2Web, synthetic
    from swarm_ui.nodes import ScriptedModel

    async def main() -> None:
        data = Mind2Web(synthetic(), "test_website", top_k=20)   # or Mind2Web("~/Mind2Web", ...)
        reply = 'Action: {"action_type": "click", "index": 0}'
        team = CollabGraph.collaborative(agents=3, rounds=2, model=ScriptedModel(lambda _: reply))
        episodes = await rollout_many(data.environment, GraphPolicy(team), data.jobs())
        print(data.score(episodes).markdown())

    asyncio.run(main())

Agents answer with ``click``, ``input_text`` or ``select`` on one of the shown candidates, or with
``wait`` for "none of these". Pruning and what it costs: ``ranks`` of :class:`Mind2Web`; formulas
and their quirks: :mod:`swarm_ui.environments.mind2web.metrics`.
"""

from __future__ import annotations

from pathlib import Path

from swarm_ui.environments.mind2web.data import Mind2Web, Mind2WebStep
from swarm_ui.environments.mind2web.files import SPLITS, Split
from swarm_ui.environments.mind2web.metrics import operation, operation_f1, step_score


def synthetic(*, flattened: bool = False) -> Path:
    """Folder of a small made-up data set in the raw format, or as flattened rows.

    It has the test splits, two tasks each; nothing of Mind2Web is in it. For tests and demos:
    a score on it says nothing about an agent.
    """
    return Path(__file__).parent / "synthetic" / ("flattened" if flattened else "raw")


__all__ = [
    "SPLITS",
    "Mind2Web",
    "Mind2WebStep",
    "Split",
    "operation",
    "operation_f1",
    "step_score",
    "synthetic",
]
