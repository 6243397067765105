"""Mind2Web offline: next-action prediction on recorded web pages, from your copy of the data.

Get the data yourself; none of it is in this package. https://huggingface.co/datasets/osunlp/Mind2Web
(raw JSON, CC BY 4.0; the test splits come as a password-protected zip, see the data card) or
.../osunlp/Multimodal-Mind2Web (flattened rows as parquet, OpenRAIL; ``pip install
'swarm-ui[mind2web]'``). **Do not redistribute unzipped test files**, nor traces of episodes on
them: the authors want to keep them out of training data. docs/howto/mind2web.md has an
example.

Agents answer with ``click``, ``input_text`` or ``select`` on one of the shown candidates, or with
``wait`` for "none of these". For the pruning see ``ranks`` of :class:`Mind2Web`, and for the
formulas :mod:`swarm_ui.environments.mind2web.metrics`.
"""

from __future__ import annotations

from pathlib import Path

from swarm_ui.environments.mind2web.data import SPLITS, Mind2Web, Mind2WebStep, Split
from swarm_ui.environments.mind2web.metrics import operation, operation_f1, step_score


def synthetic(*, flattened: bool = False) -> Path:
    """Folder of a small synthetic data set in the raw format, or as flattened rows.

    Each of its test splits has two tasks. None of them is from Mind2Web, so a score on them says
    nothing about an agent. They are for tests and demos.
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
