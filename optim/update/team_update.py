"""One iteration's update of all adapters of a team."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import torch

from swarm_ui.node import derive
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.preferences.advantages import ScoredReply
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.update.adapter_trainer import AdapterTrainer, UpdateStats
from swarm_ui.optim.update.update_config import defaults_of

Rehearse = Callable[[int, random.Random], Sequence[PreferencePair]]
"""``(count, rng) -> examples`` of what the agents could do before."""
Examples = Sequence[PreferencePair] | Sequence[ScoredReply]


def update_team(
    model: Trainable,
    examples: Examples,
    adapters: Mapping[str, str],
    config: TeamConfig,
    iteration: int,
    *,
    rehearse: Rehearse | None = None,
    done: Callable[[int, int], None] | None = None,
) -> list[UpdateStats]:
    """Train the adapters on the examples of an iteration. Equal arguments give equal weights.

    Args:
        model: the model; it is changed in place.
        examples: pairs of all nodes, or scored replies for ``method="pg"``.
        adapters: the adapter of each node; nodes may share one.
        config, iteration: decide whether one adapter is trained for all.
        rehearse: gives the share ``config.rehearsal`` of examples to repeat.
        done: called with (finished updates, all updates).
    """
    config = config.filled(defaults_of(model))
    trainer = AdapterTrainer(model, config.update_at(iteration))
    names = list(dict.fromkeys(adapters.values()))
    shared = iteration < config.shared_iterations
    stats: list[UpdateStats] = []
    for name in names[:1] if shared else names:
        rng = random.Random(derive(config.seed, "update", iteration, name))
        usable = examples if shared else _own(examples, name, adapters, config.bootstrap, rng)
        if rehearse is not None and config.rehearsal:
            share = config.rehearsal / (1.0 - config.rehearsal)
            usable = [*usable, *rehearse(round(share * len(usable)), rng)]
        stats.append(trainer.fit(name, usable, rng))
        if done is not None:
            done(len(stats), 1 if shared else len(names))
    if shared and stats and stats[0].steps:
        for name in names[1:]:
            copy_adapter(model, names[0], name)
    return stats


def copy_adapter(model: Trainable, source: str, target: str) -> None:
    """Give one adapter the weights of another, and a new version."""
    # Weights may change inside `activate`; runs that use the old ones keep a copy.
    with model.activate(target), torch.no_grad():
        for have, want in zip(
            model.adapter_parameters(source), model.adapter_parameters(target), strict=True
        ):
            want.copy_(have)
    model.bump(target)


def _own(
    examples: Examples,
    adapter: str,
    adapters: Mapping[str, str],
    bootstrap: float,
    rng: random.Random,
) -> Examples:
    """The examples of an adapter's agents, and a share of those of the others."""
    kept = [e for e in examples if adapters[e.node] == adapter or rng.random() < bootstrap]
    return cast(Examples, kept)  # of the one kind that they came in
