"""Settings of stage 2, the learning of a team."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal, get_args

from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.assigners.normalise import By
from swarm_ui.optim.credit.trust import TrustConfig
from swarm_ui.optim.preferences.pairs import PairConfig
from swarm_ui.optim.update.adapter_groups import AdapterGroups, check_groups
from swarm_ui.optim.update.distributed.spread import Spread
from swarm_ui.optim.update.update_config import UpdateConfig, UpdateDefaults, known

EdgeMode = Literal["redraw", "fixed", "learned"]
EdgeUtility = Literal["decision", "success"]
TrustMode = Literal["full", "learned"]

GUIDE = 0.7
"""Probability of guidance if there is a judge and nothing else is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamConfig:
    """Settings for stage 2 of CollabUIAgents (arXiv 2502.14496).

    The paper publishes none of these numbers; the defaults are those of this library and were
    found on the embedded phone. The paper's method is ``update.method="dpo"``. Its variants are
    settings too: ``update.method="rft"`` ("PO to RFT", the default), no critic ("w/o CR"),
    ``edges="fixed"`` ("w/o Edge Update").

    Without a critic the outcome is the credit. Guidance and the grading of negatives are separate
    settings, which need a judge of single actions.
    """

    iterations: int = 5
    shared_iterations: int = 3
    """The first iterations train *one* adapter on the pairs of all agents and copy it to all. The
    later ones train each agent's own adapter, for which each agent alone has few examples. Adapters
    that were loaded and differ are never overwritten: each is trained as in later iterations, and
    only the adapters that the training adds share their start."""
    episodes: int = 128
    """Rollouts per iteration."""
    concurrency: int = 64
    """Episodes at the same time, of all graphs together."""
    max_steps: int | None = None
    """Maximum number of steps of an episode; ``None``: the limit of the environment."""
    guide: float | None = None
    """Probability of executing a right proposal where the vote was wrong. The judge says what is
    right: the critic, or ``TeamTrainer(critic=Critics(judge=...))``. ``None``: 0.7 with a judge, 0
    without."""
    grade_negatives: bool | None = None
    """Whether the judge grades what the adversary wrote, and only wrong actions are kept. If not,
    all are taken as wrong. ``None``: if there is a judge."""
    critic_trust: TrustMode = "full"
    """``full``: the critic's score is the credit. ``learned``: the credit is a weighted mean of
    the critic's score and the outcome. The weight of each round is learned (see
    :class:`~swarm_ui.optim.credit.trust.CriticTrust`), and guidance is scaled by it. A critic
    whose scores say nothing about outcomes gets weight 0, which is training without a critic. The
    trainer measures the weight in both modes."""
    trust: TrustConfig = field(default_factory=TrustConfig)
    """Settings for learning the critic's weight."""
    edges: EdgeMode = "redraw"
    """``redraw``: new random edges in each iteration, as in the paper. ``fixed``: the graph's own.
    ``learned``: drawn from a distribution, which is updated by the utility of the drawn graphs."""
    density: float = 0.5
    """Probability of an edge between two nodes, for ``redraw`` and at the start of ``learned``."""
    graphs: int = 1
    """Graphs drawn in each iteration. The episodes are divided among them. ``learned`` needs at
    least 2 graphs, which all play the *same* episodes."""
    edge_utility: EdgeUtility = "decision"
    """The utility of a drawn graph: the share of its decisions that the critic found right, or the
    success of its episodes. Guidance hides the effect of a graph on success, so use ``success``
    with ``guide=0``. Without a critic it is always ``success``."""
    edge_credit: bool = False
    """Whether edges also learn from the credit of the messages that they carried (see
    :func:`~swarm_ui.optim.edges.edge_credit.edge_credit`). It needs a critic, because the
    outcome is the same for all messages of an episode."""
    edge_credit_weight: float = 0.1
    """Weight of the credit of messages relative to the utility. The credit of a message is often
    within 0.3 of its baseline, while a utility counts in standard deviations, so a run of few
    iterations needs a weight above 1 to learn from it."""
    edge_update_interval: int = 1
    """The edges are updated once in this many iterations, from the episodes of that iteration
    alone; the weights are updated in each."""
    edge_lr: float = 0.1
    """Change of an edge's probability if its graph is one standard deviation above the others."""
    update: UpdateConfig = field(default_factory=UpdateConfig)
    """The update of one adapter in one iteration."""
    shared_steps: int | None = None
    """Optimiser steps of the shared adapter in each shared iteration. ``None``: 75 for models below
    5 M parameters, else 40."""
    lr_decay: float = 0.5
    """Relative decrease of the learning rate from the first to the last iteration; linear, below
    1."""
    bootstrap: float = 0.5
    """Share of the other agents' pairs that each agent also learns from, drawn for each agent."""
    rehearsal: float = 0.0
    """Share of earlier examples in each update (before equal ones are merged), so that the agents
    do not forget what they could do before. ``TeamTrainer(rehearse=...)`` gives the examples."""
    pairs: PairConfig = field(default_factory=PairConfig)
    advantage: By = "state"
    """The group that the credit of a message is compared with, for ``update.method="pg"``: see
    :func:`~swarm_ui.optim.preferences.advantages.scored_replies`. Not used for credit that defines
    advantages, such as that of ``GiGPO``."""
    adapters: AdapterGroups = "per_node"
    """An adapter for each agent, one for all (``shared``), or one for each group, by the adapter's
    name: ``{"readers": ("agent_0", "agent_1"), "writers": ("agent_2",)}``."""
    rank: int = 16
    alpha: int = 32
    lora_layers: tuple[int, ...] | None = None
    """Numbers of the transformer layers that new adapters change, from 0; ``None``: all. With the
    upper ones only, the backward pass is shorter."""
    staleness: int = 0
    """Maximum number of updates by which the acting weights may lag behind the learning weights. 0:
    an iteration plays when the update before it has ended. 1: it plays while that update runs, with
    the weights before it, where other processes play
    (:class:`~swarm_ui.optim.rollout_actors.RolloutActors`). In one process the results are the
    same, and no time is saved."""
    spread: Spread = "auto"
    """Distribution of the updates over several processes; see
    :data:`~swarm_ui.optim.update.distributed.spread.Spread`. It does not matter for one process."""
    patience: float = 600.0
    """Seconds for which episodes are tried again while a language model cannot be reached. After
    that the run ends with an error and can be resumed."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kind in (("update", UpdateConfig), ("pairs", PairConfig), ("trust", TrustConfig)):
            given = getattr(self, name)
            if not isinstance(given, kind):
                raise ConfigError(
                    f"team training: {name} must be {kind.__name__}(...), got {given!r}"
                )
        wrong = [
            f"{name} must be {rule}, got {getattr(self, name)!r}"
            for name, good, rule in (
                ("iterations", self.iterations >= 0, ">= 0"),
                ("shared_iterations", self.shared_iterations >= 0, ">= 0"),
                ("episodes", self.episodes >= 1, ">= 1"),
                ("concurrency", self.concurrency >= 1, ">= 1"),
                ("guide", self.guide is None or 0 <= self.guide <= 1, "in [0, 1]"),
                ("critic_trust", self.critic_trust in get_args(TrustMode),
                 f"one of {get_args(TrustMode)}"),
                ("edges", self.edges in get_args(EdgeMode), f"one of {get_args(EdgeMode)}"),
                ("edge_utility", self.edge_utility in get_args(EdgeUtility),
                 f"one of {get_args(EdgeUtility)}"),
                ("advantage", self.advantage in get_args(By), f"one of {get_args(By)}"),
                ("density", 0 < self.density < 1, "in (0, 1)"),
                ("graphs", self.graphs >= (2 if self.edges == "learned" else 1), ">= 1, and >= 2 "
                 "to learn edges"),
                ("edge_credit_weight", self.edge_credit_weight >= 0, ">= 0"),
                ("edge_lr", self.edge_lr >= 0, ">= 0"),
                ("rank", self.rank >= 1, ">= 1"),
                ("edge_update_interval", self.edge_update_interval >= 1, ">= 1"),
                ("shared_steps", self.shared_steps is None or self.shared_steps >= 0, ">= 0"),
                ("lr_decay", 0 <= self.lr_decay < 1, "in [0, 1)"),
                ("rehearsal", not (self.rehearsal and self.update.method == "pg"),
                 "0 for method 'pg', which learns from replies, not from pairs"),
                ("rehearsal", 0 <= self.rehearsal < 1, "in [0, 1)"),
                ("bootstrap", 0 <= self.bootstrap <= 1, "in [0, 1]"),
                ("adapters", check_groups(self.adapters) is None, check_groups(self.adapters)),
                ("staleness", self.staleness in (0, 1), "0 or 1"),
                ("spread", self.spread in get_args(Spread), f"one of {get_args(Spread)}"),
                ("patience", self.patience >= 0, ">= 0 seconds"),
            )
            if not good
        ]  # fmt: skip
        if wrong:
            raise ConfigError("team training: " + "; ".join(wrong))

    def filled(self, defaults: UpdateDefaults) -> TeamConfig:
        """A copy of these settings with values for those that depend on the model's size."""
        steps = defaults.shared_steps if self.shared_steps is None else self.shared_steps
        return dataclasses.replace(self, update=self.update.filled(defaults), shared_steps=steps)

    def check_judge(self, judged: bool) -> None:
        """Raise ``ConfigError`` if a setting needs a judge of single actions and there is none."""
        needs = ["guide"] * bool(self.guide) + ["grade_negatives"] * bool(self.grade_negatives)
        if needs and not judged:
            raise ConfigError(
                f"team training: {' and '.join(needs)} need a judge of single actions, and there "
                "is neither a judge nor a critic; give "
                f"TeamTrainer(critic=...), or leave {' and '.join(needs)} out"
            )

    def check_roles(self, *, judged: bool, credited: bool) -> None:
        """Raise ``ConfigError`` if a setting needs a critic or a judge, and there is none."""
        self.check_judge(judged)
        needs = ["critic_trust='learned'"] * (self.critic_trust == "learned")
        needs += ["edge_credit"] * self.edge_credit
        if needs and not credited:
            raise ConfigError(
                f"team training: {' and '.join(needs)} would not be used, because no critic scores "
                "messages while they are played; give TeamTrainer(critic=...), or leave "
                f"{'it' if len(needs) == 1 else 'them'} out"
            )

    def update_at(self, iteration: int, *, shared: bool | None = None) -> UpdateConfig:
        """The adapters' update in an iteration, counted from 0. ``shared``: of one adapter for all;
        ``None``: if it is one of the shared iterations. Raises ``ConfigError`` if rate or steps are
        neither given nor :meth:`filled` in."""
        progress = iteration / max(1, self.iterations - 1)
        shared = iteration < self.shared_iterations if shared is None else shared
        lr = known(self.update.lr, "update.lr") * (1.0 - self.lr_decay * min(1.0, progress))
        if not shared:
            return dataclasses.replace(self.update, lr=lr)
        return dataclasses.replace(
            self.update, lr=lr, steps=known(self.shared_steps, "shared_steps")
        )
