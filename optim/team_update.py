"""One iteration's update of all adapters of a team."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import torch

from swarm_ui.node import derive
from swarm_ui.optim.adapters import AdapterTrainer, UpdateStats
from swarm_ui.optim.pairs import PreferencePair
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.team_config import TeamConfig


def update_team(
    model: Trainable,
    pairs: Sequence[PreferencePair],
    adapters: Mapping[str, str],
    config: TeamConfig,
    iteration: int,
    *,
    done: Callable[[int, int], None] | None = None,
) -> list[UpdateStats]:
    """Train the adapters on an iteration's pairs; equal arguments give equal weights.

    Args:
        model: changed in place.
        pairs: of all nodes.
        adapters: by node; nodes may share one.
        config: decides whether this is a shared iteration.
        iteration: counted from 0.
        done: called with (updates done, updates in all).
    """
    trainer = AdapterTrainer(model, config.update_at(iteration))
    names = list(dict.fromkeys(adapters.values()))
    shared = iteration < config.shared_iterations
    stats: list[UpdateStats] = []
    for name in names[:1] if shared else names:
        rng = random.Random(derive(config.seed, "update", iteration, name))
        usable = pairs if shared else _own(pairs, name, adapters, config.bootstrap, rng)
        stats.append(trainer.fit(name, usable, rng))
        if done is not None:
            done(len(stats), 1 if shared else len(names))
    if shared and stats and stats[0].steps:
        for name in names[1:]:
            copy_adapter(model, names[0], name)
    return stats


def copy_adapter(model: Trainable, source: str, target: str) -> None:
    """Give one adapter the weights of another, and a new version."""
    # Inside `activate`, where weights may change: runs that still use the old ones keep them.
    with model.activate(target), torch.no_grad():
        for have, want in zip(
            model.adapter_parameters(source), model.adapter_parameters(target), strict=True
        ):
            want.copy_(have)
    model.bump(target)


def _own(
    pairs: Sequence[PreferencePair],
    adapter: str,
    adapters: Mapping[str, str],
    bootstrap: float,
    rng: random.Random,
) -> list[PreferencePair]:
    """An adapter's own pairs and a share of the others'."""
    return [p for p in pairs if adapters[p.node] == adapter or rng.random() < bootstrap]
