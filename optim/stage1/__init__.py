"""Stage 1: from samples of screens to a base agent, before any team is formed.

Walks in an environment give samples at three *levels*, after CollabUIAgents (arXiv 2502.14496):
questions about a screen, instructions of one step, and steps of successful walks against wrong
ones. Language models or scripts write and judge them. A corpus on disk holds them, and a model is
trained on one level after the other with trl: SFT, SFT, then SFT and DPO.

:class:`HeldOut` is checked whenever a corpus is made, read, exported or trained on. The small
agents of this package were made in another way: see ``demos/base_agent``.
"""

from __future__ import annotations

from swarm_ui.optim.config import FinetuneConfig
from swarm_ui.optim.stage1.corpus import (
    CorpusConfig,
    HeldOut,
    Origin,
    Sample,
    Totals,
    export,
    read_corpus,
)
from swarm_ui.optim.stage1.finetune import finetune
from swarm_ui.optim.stage1.roles import expert_of
from swarm_ui.optim.stage1.synthesize import Models, synthesize

__all__ = [
    "CorpusConfig", "FinetuneConfig", "HeldOut", "Models", "Origin", "Sample", "Totals",
    "expert_of", "export", "finetune", "read_corpus", "synthesize",
]  # fmt: skip
