"""Learning (with torch): edges, adapters, credit, preferences, stage 1, and the trainer.

Everything is imported when it is first used, because it needs torch.
"""

if __name__ == "optim":  # the folder was imported by its bare name, from a checkout's root
    raise ImportError("import swarm_ui.optim, not optim")

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm_ui.optim.callbacks import Callbacks
    from swarm_ui.optim.config import TeamConfig, UpdateConfig
    from swarm_ui.optim.credit.assigners.critic import OutcomeCredit, ScriptedCritic
    from swarm_ui.optim.credit.assigners.group_advantages import DrMAS, GiGPO
    from swarm_ui.optim.credit.assigners.llm_critic import LLMCritic
    from swarm_ui.optim.credit.assigners.progress_attribution import ProgressAttribution
    from swarm_ui.optim.credit.assigners.search_tree import SearchTreeCredit
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
    from swarm_ui.optim.losses import dpo_loss, ipo_loss, policy_gradient_loss, rft_loss
    from swarm_ui.optim.metrics import success_rate
    from swarm_ui.optim.preferences.advantages import scored_replies
    from swarm_ui.optim.preferences.pairs import PairConfig, PreferencePair
    from swarm_ui.optim.rollout_supervisor import Critics
    from swarm_ui.optim.trainer import TeamTrainer

__all__ = [
    "Batch",
    "Callbacks",
    "Critics",
    "DrMAS",
    "EdgeDistribution",
    "EdgeSample",
    "Example",
    "GiGPO",
    "LLMCritic",
    "OutcomeCredit",
    "PairConfig",
    "PreferencePair",
    "ProbabilitySGD",
    "ProgressAttribution",
    "ScriptedCritic",
    "SearchTreeCredit",
    "TeamConfig",
    "TeamTrainer",
    "UpdateConfig",
    "dpo_loss",
    "edge_loss",
    "encode",
    "ipo_loss",
    "minibatches",
    "policy_gradient_loss",
    "reply_logprobs",
    "rft_loss",
    "scored_replies",
    "success_rate",
    "with_reference",
]  # fmt: skip

_LAZY = {
    "Callbacks": "callbacks",
    "Critics": "rollout_supervisor",
    "DrMAS": "credit.assigners.group_advantages",
    "EdgeDistribution": "edges.distribution",
    "EdgeSample": "edges.candidates",
    "GiGPO": "credit.assigners.group_advantages",
    "LLMCritic": "credit.assigners.llm_critic",
    "OutcomeCredit": "credit.assigners.critic",
    "PairConfig": "preferences.pairs",
    "PreferencePair": "preferences.pairs",
    "ProbabilitySGD": "edges.optim",
    "ProgressAttribution": "credit.assigners.progress_attribution",
    "ScriptedCritic": "credit.assigners.critic",
    "SearchTreeCredit": "credit.assigners.search_tree",
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
    "edge_loss": "edges.optim",
    "scored_replies": "preferences.advantages",
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
