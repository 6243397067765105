"""Settings of stage 2, the learning of a team.

The paper (arXiv 2502.14496) publishes none of these numbers; the defaults are those of this
library and were found on the embedded phone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from swarm_ui.errors import ConfigError
from swarm_ui.optim.settings import Amount, Count, Natural, Open, Positive, Seed, Share, check

Method = Literal["rft", "dpo", "ipo", "grpo", "gspo"]
POLICY_GRADIENT = ("grpo", "gspo")
"""Methods that learn from the agents' own replies."""
EdgeMode = Literal["redraw", "fixed", "learned"]

DECAY = 0.5
"""Relative decrease of the learning rate from the first to the last iteration; linear."""
GUIDE = 0.7
"""Probability of guidance if there is a judge and nothing else is set."""
_SMALL = 5_000_000
"""Parameters below which a model gets the defaults that were tuned on the embedded agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConfig:
    """Settings for one update of an adapter."""

    method: Method = "rft"
    """``dpo`` and ``ipo`` learn from preference pairs, ``rft`` from the likelihood of chosen
    replies only (the paper's "PO to RFT"), and ``grpo`` and ``gspo`` from the agents' own replies
    with their advantages: with an importance ratio for each token, or for each reply."""
    steps: Natural | None = None
    """Optimiser steps, whatever the number of pairs, so that variants do equal work. ``None``: 35
    for models below 5 M parameters, else 20; of a shared adapter 75, or else 40."""
    batch_size: Count = 32
    """Examples of one optimiser step."""
    lr: Positive | None = None
    """Highest learning rate. ``None``: 3e-3 for models below 5 M parameters, else 2e-4."""
    beta: Positive = 0.05
    """The ``beta`` of DPO and IPO: on the embedded phone 0.05 gained more than 0.2. With ``grpo``
    and ``gspo``: weight of the divergence from the reference."""
    nll_weight: Amount = 1.0
    """Weight of the supervised term of DPO or IPO. It prevents a collapse of the likelihood."""
    clip: Open = 0.2
    """``grpo`` and ``gspo``: the importance ratio is clipped to 1 ± ``clip``. The ratios of GSPO
    are much nearer to 1: its paper clips at 0.0003."""
    micro_batch_tokens: Count | None = None
    """Maximum number of tokens of one forward and backward, padding included, which bounds the
    memory. The gradients of the parts of a larger batch add up to that of the whole. ``None``:
    65,536 for models below 5 M parameters, else 2,048."""
    checkpointing: bool = False
    """Activation checkpointing: less memory, about a third more time, equal gradients."""

    def __post_init__(self) -> None:
        check(self, "update")

    def filled(self, model: Any, *, shared: bool = False) -> UpdateConfig:
        """These settings with values for those that depend on the model's size."""
        small = sum(p.numel() for p in model.module.parameters()) < _SMALL
        default = (75 if small else 40) if shared else (35 if small else 20)
        return replace(
            self,
            lr=self.lr or (3e-3 if small else 2e-4),
            steps=default if self.steps is None else self.steps,
            micro_batch_tokens=self.micro_batch_tokens or (65_536 if small else 2_048),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamConfig:
    """Settings for stage 2 of CollabUIAgents.

    The paper's method is ``update.method="dpo"``. Its variants are settings too:
    ``update.method="rft"`` ("PO to RFT", the default), no critic ("w/o CR"), ``edges="fixed"``
    ("w/o Edge Update"). Without a critic the outcome is the credit.
    """

    iterations: Natural = 5
    episodes: Count = 128
    """Rollouts per iteration."""
    concurrency: Count = 64
    """Episodes at the same time, of all graphs together."""
    guide: Share | None = None
    """Probability of executing a proposal that the judge finds right where the vote was wrong.
    ``None``: 0.7 with a judge, 0 without."""
    grade_negatives: bool = True
    """Whether the judge grades what the adversary wrote, and only wrong actions are kept. If not,
    or without a judge, all are taken as wrong."""
    edges: EdgeMode = "redraw"
    """``redraw``: new edges in each iteration, as in the paper. ``fixed``: the graph's own.
    ``learned``: drawn from a distribution that learns from the utility of the drawn graphs: the
    share of their decisions that the critic found right, or without a critic their success."""
    graphs: Count | None = None
    """Graphs drawn in each iteration. The episodes are divided among them; those of ``learned``
    all play the *same* episodes, so they need at least 2. ``None``: 4 for ``learned``, else 1."""
    edge_credit: Amount = 0.0
    """Weight, relative to the utility, with which edges also learn from the critic's credit for the
    messages that they carried (:func:`~swarm_ui.optim.edges.optim.edge_credit`). It is often
    within 0.3 of its baseline, while a utility counts in standard deviations, so a run of few
    iterations needs a weight above 1."""
    update: UpdateConfig = field(default_factory=UpdateConfig)
    """The update of one adapter in one iteration."""
    shared_iterations: Natural = 0
    """The first iterations train *one* adapter on the pairs of all agents, and copy it to those
    that nothing had trained when the training began. Others are never overwritten."""
    easy_share: Share = 0.35
    """Share of the right messages that are learned from at steps where no agent was wrong."""
    rank: Count = 16
    """Rank of the adapters that the training adds, where the team has none; alpha is twice it."""
    seed: Seed = 0

    def __post_init__(self) -> None:
        check(self, "team training")
        if self.edges == "learned" and self.graphs == 1:
            raise ConfigError("team training: graphs must be >= 2 to learn edges, got 1")

    @property
    def drawn_graphs(self) -> int:
        """Number of graphs of an iteration."""
        return self.graphs or (4 if self.edges == "learned" else 1)

    def update_at(self, model: Any, iteration: int, *, shared: bool = False) -> UpdateConfig:
        """The update of an adapter in an iteration, counted from 0, with values for all settings.
        ``shared``: of one adapter for all."""
        filled = self.update.filled(model, shared=shared)
        progress = min(1.0, iteration / max(1, self.iterations - 1))
        return replace(filled, lr=(filled.lr or 0.0) * (1.0 - DECAY * progress))
