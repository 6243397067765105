"""Stage 1 for any environment and any models: synthesise a corpus, export it, fine-tune on it.

    held_out = HeldOut.of(tasks=test_tasks, seeds=[TEST_SEEDS])
    models = Models(agent=model, adversary=model, critic=model)
    await synthesize(PhoneEnvironment, models, jobs, Path("corpus"), held_out=held_out)
    export(Path("corpus"), "trl", Path("exported"))
    finetune(Path("my-model"), Path("corpus"), Path("base-agent"))

Three levels after CollabUIAgents (arXiv 2502.14496): questions about the screen, invented
instructions of one step, and preferences from steps of successful walks. The lessons of the small
base agent that ships are another matter: :mod:`swarm_ui.optim.stage1.synthesis`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm_ui.deprecation import renamed_names
from swarm_ui.optim.stage1.corpus.corpus_config import CorpusConfig
from swarm_ui.optim.stage1.corpus.corpus_store import Totals, read_corpus, totals
from swarm_ui.optim.stage1.corpus.exports import FORMATS, export
from swarm_ui.optim.stage1.corpus.held_out import HeldOut
from swarm_ui.optim.stage1.corpus.roles import Models
from swarm_ui.optim.stage1.corpus.samples import Origin, Sample
from swarm_ui.optim.stage1.corpus.synthesize import synthesize
from swarm_ui.optim.stage1.finetune.finetune import finetune
from swarm_ui.optim.stage1.finetune.finetune_config import FinetuneConfig

__all__ = [
    "FORMATS",
    "CorpusConfig",
    "FinetuneConfig",
    "HeldOut",
    "Models",
    "Origin",
    "Sample",
    "Totals",
    "export",
    "finetune",
    "read_corpus",
    "synthesize",
    "totals",
]

if not TYPE_CHECKING:  # type checkers know only the present names
    __getattr__ = renamed_names(__name__)
