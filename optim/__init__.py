"""Learning (with torch): edges, adapters, credit, preferences, stage 1, and the trainer.

Everything is imported when it is first used, because it needs torch.
"""

if __name__ == "optim":  # the folder was imported by its bare name, from a checkout's root
    raise ImportError("import swarm_ui.optim, not optim")

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm_ui.optim.callbacks import Callbacks
    from swarm_ui.optim.config import TeamConfig
    from swarm_ui.optim.credit.assigners.critic import OutcomeCredit, ScriptedCritic
    from swarm_ui.optim.credit.assigners.group_advantages import DrMAS, GiGPO
    from swarm_ui.optim.credit.assigners.llm_critic import LLMCritic
    from swarm_ui.optim.credit.assigners.progress_attribution import ProgressAttribution
    from swarm_ui.optim.credit.assigners.search_tree import SearchTreeCredit
    from swarm_ui.optim.edges.candidates import EdgeSample
    from swarm_ui.optim.edges.distribution import EdgeDistribution
    from swarm_ui.optim.edges.optim import ProbabilitySGD, edge_loss
    from swarm_ui.optim.metrics import success_rate
    from swarm_ui.optim.preferences.advantages import scored_replies
    from swarm_ui.optim.preferences.pairs import PairConfig, PreferencePair
    from swarm_ui.optim.rollout_supervisor import Critics
    from swarm_ui.optim.trainer import TeamTrainer
    from swarm_ui.optim.update.adapter_trainer import AdapterTrainer
    from swarm_ui.optim.update.update_config import UpdateConfig

__all__ = [
    "AdapterTrainer", "Callbacks", "Critics", "DrMAS", "EdgeDistribution", "EdgeSample",
    "GiGPO", "LLMCritic", "OutcomeCredit", "PairConfig", "PreferencePair", "ProbabilitySGD",
    "ProgressAttribution", "ScriptedCritic", "SearchTreeCredit", "TeamConfig", "TeamTrainer",
    "UpdateConfig", "edge_loss", "scored_replies", "success_rate",
]  # fmt: skip

_LAZY = {
    "AdapterTrainer": "update.adapter_trainer",
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
    "UpdateConfig": "update.update_config",
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
