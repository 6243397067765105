"""AutoWebBench offline: next-action prediction on recorded English and Chinese web pages.

Get the data yourself; none of it is in this package: ``autowebbench/`` of
https://github.com/THUDM/AutoWebGLM (the repository is Apache-2.0, its data "for research purpose
only"). Do not redistribute the test files, nor traces of episodes on them. It is used like
:mod:`swarm_ui.environments.mind2web`.

The ten functions of the benchmark are mapped to actions:

| function | action |
| --- | --- |
| click, type_string, select | ``click``, ``input_text``, ``select`` |
| hover | ``long_press`` |
| scroll_page, go('backward') | ``scroll``, ``navigate_back`` |
| jump_to | ``open_app`` with the address as ``app_name`` |
| finish | ``status`` "complete", or ``answer`` with the text |
| user_input | ``status`` "infeasible", because only the user can continue |

go('forward') and switch_tab have no action and always count as wrong (4 of the 1451 recorded
steps). :func:`score_predictions` scores the replies of any other model without an environment. For
the formulas see :mod:`swarm_ui.environments.autowebbench.metrics`.
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
    """Folder of a small synthetic data set with four splits of two tasks each.

    None of the tasks is from the benchmark, so a score on them has no meaning for an agent. They
    are for tests and demos.
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
