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
    from swarm_ui.optim.credit.learned import LearnedCritic
    from swarm_ui.optim.credit.llm import LLMCritic
    from swarm_ui.optim.credit.outcome import Outcome
    from swarm_ui.optim.credit.scripted import ScriptedCritic
    from swarm_ui.optim.credit.trust import Trust
    from swarm_ui.optim.edges.candidates import EdgeSample
    from swarm_ui.optim.edges.distribution import EdgeDistribution
    from swarm_ui.optim.edges.optim import ProbabilitySGD, edge_loss
    from swarm_ui.optim.examples import (
        Batch,
        Example,
        encode,
        minibatches,
        reply_logprobs,
        with_reference,
    )
    from swarm_ui.optim.guidance import Guidance
    from swarm_ui.optim.losses import dpo_loss, ipo_loss, policy_gradient_loss, rft_loss
    from swarm_ui.optim.metrics import success_rate
    from swarm_ui.optim.preferences import (
        PairConfig,
        PreferencePair,
        preference_pairs,
        scored_replies,
    )
    from swarm_ui.optim.trainer import TeamTrainer

__all__ = [
    "MALT", "Batch", "DrMAS", "EdgeDistribution", "EdgeSample", "Example", "GiGPO", "Guidance",
    "LLMAdversary", "LLMCritic", "LLMTeacher", "LearnedCritic", "LeaveOneOut", "Outcome",
    "PairConfig", "PreferencePair", "ProbabilitySGD", "ProgressAttribution",
    "ScriptedAdversary", "ScriptedCritic", "ScriptedTeacher", "Shapley", "TeamConfig",
    "TeamTrainer", "Trust", "UpdateConfig", "dpo_loss", "edge_loss", "encode", "ipo_loss",
    "minibatches", "policy_gradient_loss", "preference_pairs", "reply_logprobs", "rft_loss",
    "scored_replies",
    "success_rate", "with_reference",
]  # fmt: skip

_LAZY = {
    "Guidance": "guidance",
    "DrMAS": "credit.groups",
    "EdgeDistribution": "edges.distribution",
    "EdgeSample": "edges.candidates",
    "GiGPO": "credit.groups",
    "LLMAdversary": "adversary",
    "LLMCritic": "credit.llm",
    "LLMTeacher": "adversary",
    "LearnedCritic": "credit.learned",
    "LeaveOneOut": "credit.counterfactual",
    "MALT": "credit.groups",
    "Outcome": "credit.outcome",
    "PairConfig": "preferences",
    "PreferencePair": "preferences",
    "ProbabilitySGD": "edges.optim",
    "ProgressAttribution": "credit.groups",
    "ScriptedAdversary": "adversary",
    "ScriptedCritic": "credit.scripted",
    "ScriptedTeacher": "adversary",
    "Shapley": "credit.counterfactual",
    "TeamConfig": "config",
    "TeamTrainer": "trainer",
    "UpdateConfig": "config",
    "Batch": "examples",
    "Example": "examples",
    "encode": "examples",
    "minibatches": "examples",
    "reply_logprobs": "examples",
    "with_reference": "examples",
    "dpo_loss": "losses",
    "ipo_loss": "losses",
    "policy_gradient_loss": "losses",
    "rft_loss": "losses",
    "Trust": "credit.trust",
    "edge_loss": "edges.optim",
    "preference_pairs": "preferences",
    "scored_replies": "preferences",
    "success_rate": "metrics",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
