"""Learning (with torch): edges, adapters, credit, preferences, stage 1, and the trainer.

Everything is imported when it is first used, because it needs torch.
"""

if __name__ == "optim":  # the folder was imported by its bare name, from a checkout's root
    raise ImportError("import swarm_ui.optim, not optim")

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm_ui.optim.adversary import LLMAdversary, ScriptedAdversary, ScriptedTeacher
    from swarm_ui.optim.config import TeamConfig, UpdateConfig
    from swarm_ui.optim.credit.counterfactual import LeaveOneOut, Shapley
    from swarm_ui.optim.credit.critic import Outcome, ScriptedCritic
    from swarm_ui.optim.credit.groups import MALT, DrMAS, GiGPO, ProgressAttribution
    from swarm_ui.optim.credit.learned import (
        LearnedCritic,
        calibrated,
        labelled_replies,
        learned_critic,
        train_critic,
    )
    from swarm_ui.optim.credit.llm import LLMCritic
    from swarm_ui.optim.credit.trust import Trust
    from swarm_ui.optim.edges.candidates import EdgeSample
    from swarm_ui.optim.edges.distribution import EdgeDistribution, ProbabilitySGD, edge_loss
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
    from swarm_ui.optim.preferences import PreferencePair, preference_pairs, scored_replies
    from swarm_ui.optim.trainer import TeamTrainer

__all__ = [
    "MALT", "Batch", "DrMAS", "EdgeDistribution", "EdgeSample", "Example",
    "GiGPO", "Guidance", "LLMAdversary", "LLMCritic", "LearnedCritic", "LeaveOneOut",
    "Outcome", "PreferencePair", "ProbabilitySGD", "ProgressAttribution", "ScriptedAdversary",
    "ScriptedCritic", "ScriptedTeacher", "Shapley", "TeamConfig", "TeamTrainer", "Trust",
    "UpdateConfig", "calibrated", "dpo_loss", "edge_loss",
    "encode", "ipo_loss", "labelled_replies", "learned_critic", "minibatches",
    "policy_gradient_loss", "preference_pairs", "reply_logprobs", "rft_loss",
    "scored_replies", "success_rate", "token_logprobs", "train_critic", "with_reference",
]  # fmt: skip

_MODULES = [
    "config", "preferences", "examples", "losses", "metrics", "adversary", "guidance",
    "credit.critic", "credit.llm", "credit.trust", "credit.groups",
    "credit.counterfactual", "credit.learned", "edges.candidates", "edges.distribution", "trainer",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for module in _MODULES if name in __all__ else ():
        found = import_module(f"{__name__}.{module}")
        if hasattr(found, name):
            value = globals()[name] = getattr(found, name)
            return value
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
