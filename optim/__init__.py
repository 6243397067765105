"""Learning (with torch): edges, adapters, credit, preferences, stage 1, and the trainer.

Everything is imported when it is first used, because it needs torch.
"""

if __name__ == "optim":  # the folder was imported by its bare name, from a checkout's root
    raise ImportError("import swarm_ui.optim, not optim")

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm_ui.optim.adversary import (
        LLMAdversary,
        LLMTeacher,
        ScriptedAdversary,
        ScriptedTeacher,
    )
    from swarm_ui.optim.config import TeamConfig, UpdateConfig
    from swarm_ui.optim.credit.counterfactual import LeaveOneOut, Shapley
    from swarm_ui.optim.credit.groups import MALT, DrMAS, GiGPO, ProgressAttribution
    from swarm_ui.optim.credit.learned import (
        LearnedCritic,
        calibrated,
        labelled_replies,
        learned_critic,
        train_critic,
    )
    from swarm_ui.optim.credit.llm import LLMCritic
    from swarm_ui.optim.credit.outcome import Outcome
    from swarm_ui.optim.credit.scripted import ScriptedCritic
    from swarm_ui.optim.credit.trust import Trust
    from swarm_ui.optim.edges.candidates import EdgeSample
    from swarm_ui.optim.edges.credit import edge_credit
    from swarm_ui.optim.edges.distribution import EdgeDistribution
    from swarm_ui.optim.edges.optim import ProbabilitySGD, edge_loss
    from swarm_ui.optim.examples import (
        Batch,
        Example,
        encode,
        minibatches,
        reply_logprobs,
        token_logprobs,
        with_reference,
    )
    from swarm_ui.optim.guidance import Guidance
    from swarm_ui.optim.losses import dpo_loss, ipo_loss, policy_gradient_loss, rft_loss
    from swarm_ui.optim.metrics import success_rate
    from swarm_ui.optim.preferences import (
        PreferencePair,
        preference_pairs,
        scored_replies,
    )
    from swarm_ui.optim.trainer import TeamTrainer

__all__ = [
    "MALT", "Batch", "DrMAS", "EdgeDistribution", "EdgeSample", "Example",
    "GiGPO", "Guidance", "LLMAdversary", "LLMCritic", "LLMTeacher", "LearnedCritic", "LeaveOneOut",
    "Outcome", "PreferencePair", "ProbabilitySGD", "ProgressAttribution", "ScriptedAdversary",
    "ScriptedCritic", "ScriptedTeacher", "Shapley", "TeamConfig", "TeamTrainer", "Trust",
    "UpdateConfig", "calibrated", "dpo_loss", "edge_credit", "edge_loss",
    "encode", "ipo_loss", "labelled_replies", "learned_critic", "minibatches",
    "policy_gradient_loss", "preference_pairs", "reply_logprobs", "rft_loss",
    "scored_replies", "success_rate", "token_logprobs", "train_critic", "with_reference",
]  # fmt: skip

_MODULES = {
    "adversary": "LLMAdversary LLMTeacher ScriptedAdversary ScriptedTeacher",
    "config": "TeamConfig UpdateConfig",
    "credit.counterfactual": "LeaveOneOut Shapley",
    "credit.groups": "DrMAS GiGPO MALT ProgressAttribution",
    "credit.learned": "LearnedCritic calibrated labelled_replies learned_critic train_critic",
    "credit.llm": "LLMCritic",
    "credit.outcome": "Outcome",
    "credit.scripted": "ScriptedCritic",
    "credit.trust": "Trust",
    "edges.candidates": "EdgeSample",
    "edges.credit": "edge_credit",
    "edges.distribution": "EdgeDistribution",
    "edges.optim": "ProbabilitySGD edge_loss",
    "examples": "Batch Example encode minibatches reply_logprobs token_logprobs with_reference",
    "guidance": "Guidance",
    "losses": "dpo_loss ipo_loss policy_gradient_loss rft_loss",
    "metrics": "success_rate",
    "preferences": "PreferencePair preference_pairs scored_replies",
    "trainer": "TeamTrainer",
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
