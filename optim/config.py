"""Settings of learning, with their ranges, and checks of work that is continued.

The paper (arXiv 2502.14496) publishes no numbers; the defaults are those of this library, and
those of stage 2, the learning of a team, were found on the embedded phone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic
from swarm_ui.storage.run_directory import expect_no_links_out

Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Natural = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0.0)]
Positive = Annotated[float, Meta(gt=0.0)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Open = Annotated[float, Meta(gt=0.0, lt=1.0)]


def check(settings: object, where: str) -> None:
    """Raise ``ConfigError`` that names every setting whose value its type does not allow."""
    wrong = []
    for name, kind in get_type_hints(type(settings), include_extras=True).items():
        value = getattr(settings, name)
        try:
            if not is_dataclass(kind):
                msgspec.convert(value, kind)
            elif not isinstance(value, kind):  # type: ignore[arg-type]
                wrong.append(f"{name} must be {kind.__name__}(...), got {value!r}")  # type: ignore[union-attr]
        except msgspec.ValidationError as error:
            wrong.append(f"{name}: {error}, got {value!r}")
    if wrong:
        raise ConfigError(f"{where}: " + "; ".join(wrong))


def begin(folder: Path, file: str, settings: Any, what: str, advice: str) -> None:
    """Write the settings of new work (a record or a mapping) into an empty folder, or check that
    they are those with which it was begun. ``advice``: what to do if not. Raises ``ConfigError``.
    """
    expect_no_links_out(folder)
    path = folder / file
    if path.exists():
        try:
            before = msgspec.json.decode(path.read_bytes(), type=type(settings))
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(f"'{path}' has no settings of a {what}: {error}") from error
        expect_same(folder, before, settings, advice)
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"'{folder}' is not empty and holds no {what}; choose another folder")
    write_atomic(path, msgspec.json.format(msgspec.json.encode(settings), indent=2))


def expect_same(
    folder: Path, then: object, now: object, advice: str, *, free: Collection[str] = ()
) -> None:
    """Raise ``ConfigError`` that names every setting in which the work in a folder was begun
    otherwise, with the ``advice`` what to do. ``free``: last parts of names that may differ."""

    def flat(settings: Any, name: str = "") -> dict[str, Any]:
        if not isinstance(settings, dict) or not settings:
            return {name: settings}
        inner = (flat(value, f"{name}.{key}" if name else key) for key, value in settings.items())
        return {k: v for part in inner for k, v in part.items()}

    ours, theirs = (flat(msgspec.to_builtins(each, order="sorted")) for each in (now, then))
    other = [
        f"{name}: {theirs.get(name)!r:.200} then, {ours.get(name)!r:.200} now"
        for name in {**theirs, **ours}
        if name.rpartition(".")[2] not in free and theirs.get(name) != ours.get(name)
    ]
    if other:
        told = "; ".join(other)
        raise ConfigError(f"'{folder}' was begun with other settings ({told}); {advice}")


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
    """Settings for one update of an adapter. *Small* are models below 5 M parameters."""

    method: Method = "rft"
    """``dpo`` and ``ipo`` learn from preference pairs, ``rft`` from the likelihood of chosen
    replies only (the paper's "PO to RFT"), and ``grpo`` and ``gspo`` from the agents' own replies
    with their advantages: with an importance ratio for each token, or for each reply."""
    steps: Natural | None = None
    """Optimiser steps, whatever the number of pairs, so that variants do equal work. ``None``: 35
    if small, else 20; of a shared adapter 75, or else 40."""
    batch_size: Count = 32
    """Examples of one optimiser step."""
    lr: Positive | None = None
    """Highest learning rate. ``None``: 3e-3 if small, else 2e-4."""
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
    memory. ``None``: 65,536 if small, else 2,048."""
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


class FinetuneConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a training, in all stages. The paper gives none; every default here is ours."""

    rank: Count = 16
    """Rank of a new adapter; alpha is twice it."""
    epochs: Positive = 1.0
    """Number of epochs of each stage."""
    max_steps: int = -1
    """Optimiser steps of each stage; -1: as many as the epochs take."""
    learning_rate: Positive = 1e-4
    """Of the supervised stages; warm-up over a tenth of the steps, then linear to zero."""
    preference_learning_rate: Positive = 1e-5
    """Of DPO."""
    batch_size: Count = 4
    """Samples in a batch of each process."""
    accumulate: Count = 4
    """Batches in one optimiser step."""
    beta: Positive = 0.1
    """The ``beta`` of DPO: strength of the constraint to stay close to the reference."""
    preferences: bool = True
    """Whether DPO on the preferences of level 3 ends the training."""
    max_length: Count = 4096
    """Most tokens of prompt and response. Longer samples are left out and counted, never cut."""
    bf16: bool | None = None
    """Compute in bfloat16; trained weights stay in float32. ``None``: if the processor can."""
    checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time."""
    seed: int = 0
    save_steps: Count = 200
    """Optimiser steps between checkpoints; an interrupted stage continues from the last one."""

    def __post_init__(self) -> None:
        check(self, "finetune")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a stage: the samples, those that were too long, the optimiser steps, the mean
    loss, and the wall time since it began or was continued."""

    stage: str
    samples: int
    skipped: int
    steps: int
    loss: float
    seconds: float
