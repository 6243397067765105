"""Stage 1: from samples of screens to a base agent, before any team is formed.

A *source* produces samples at three *levels*, on which the agent is *trained*, after CollabUIAgents
(arXiv 2502.14496). There are two sources, each with its own way of training:

===============  ================================  ==========================================
reading order    the small shipped base agent      any language model in any environment
===============  ================================  ==========================================
source           invented screens, and an          walks in an environment, described by
                 environment's expert              language models or scripted roles
                 (:mod:`.synthesis`)               (:mod:`.corpus`)
level 1          questions about a screen          questions about a screen
level 2          instructions of one step          instructions of one step
level 3          steps of the expert               steps of successful walks against wrong ones
samples          an endless seeded stream          a corpus on disk, exported to other formats
training         :mod:`.supervised`                :mod:`.finetune`: SFT, SFT, then SFT and DPO
                                                   with trl
held-out tasks   only training templates are       :class:`HeldOut`, checked by every reader
                 demonstrated
===============  ================================  ==========================================

Training of a language model:

    held_out = HeldOut.of(tasks=test_tasks, seeds=[TEST_SEEDS])
    models = Models(agent=model, adversary=model, critic=model)
    await synthesize(PhoneEnvironment, models, jobs, Path("corpus"), held_out=held_out)
    export(Path("corpus"), "trl", Path("exported"))
    finetune(Path("my-model"), Path("corpus"), Path("base-agent"))

Training of the small base agent:

    stream = Stream(seed, words, Mix(), demonstrations)
    train(learner, stream, Stage1Config())
"""

from __future__ import annotations

from swarm_ui.optim.stage1.corpus.config import CorpusConfig
from swarm_ui.optim.stage1.corpus.exports import FORMATS, export
from swarm_ui.optim.stage1.corpus.samples import HeldOut, Origin, Sample
from swarm_ui.optim.stage1.corpus.store import Totals, read_corpus, totals
from swarm_ui.optim.stage1.corpus.synthesize import Models, synthesize
from swarm_ui.optim.stage1.finetune.config import FinetuneConfig
from swarm_ui.optim.stage1.finetune.finetune import finetune

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
