"""One iteration's update of all adapters of a team."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import torch

from swarm_ui.node import derive
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.update.adapter_task import AdapterTask, Examples
from swarm_ui.optim.update.adapter_trainer import AdapterTrainer, UpdateStats
from swarm_ui.optim.update.distributed.learners import Check, Learners, NewAdapter
from swarm_ui.optim.update.update_config import defaults_of

Rehearse = Callable[[int, random.Random], Sequence[PreferencePair]]
"""``(count, rng) -> examples`` of what the agents could do before."""


def update_team(
    model: Trainable,
    examples: Examples,
    adapters: Mapping[str, str],
    config: TeamConfig,
    iteration: int,
    *,
    rehearse: Rehearse | None = None,
    done: Callable[[int, int], None] | None = None,
    learners: Learners | None = None,
    check: Check | None = None,
) -> list[UpdateStats]:
    """Train the adapters on the examples of an iteration. Equal arguments give equal weights.

    Args:
        model: the model; it is changed in place.
        examples: pairs of all nodes, or scored replies for ``method="pg"``.
        adapters: the adapter of each node; nodes may share one.
        config, iteration: determine whether one adapter is trained for all agents.
        rehearse: gives examples to repeat, in the share ``config.rehearsal``.
        done: called with (finished updates, all updates).
        learners: processes that share the updates, of which this is the first one; ``None``: this
            process makes them alone. The weights are equal up to rounding.
        check: called before each step of this process; what it raises ends the update.
    """
    config = config.filled(defaults_of(model))
    trainer = AdapterTrainer(model, config.update_at(iteration))
    names = list(dict.fromkeys(adapters.values()))
    shared = iteration < config.shared_iterations
    trained = names[:1] if shared else names

    def tasks() -> Iterator[AdapterTask]:
        for name in trained:
            rng = random.Random(derive(config.seed, "update", iteration, name))
            usable = examples if shared else _own(examples, name, adapters, config.bootstrap, rng)
            if rehearse is not None and config.rehearsal:
                share = config.rehearsal / (1.0 - config.rehearsal)
                usable = [*usable, *rehearse(round(share * len(usable)), rng)]
            yield trainer.prepare(name, usable, rng, None if shared else config.own_layers)

    stats: list[UpdateStats] = []
    if learners is not None:
        shape, todo = new_adapter(config), list(tasks())
        stats = learners.update(
            model, todo, trainer.config, shape, spread=config.spread, done=done, check=check
        )
    else:
        for task in tasks():
            stats.append(trainer.train(task, check))
            if done is not None:
                done(len(stats), len(trained))
    if shared and stats and stats[0].steps:
        for name in names[1:]:
            copy_adapter(model, names[0], name)
    return stats


def new_adapter(config: TeamConfig) -> NewAdapter:
    """The shape of the adapters that a training adds."""
    layers = None if config.lora_layers is None else tuple(config.lora_layers)
    return NewAdapter(rank=config.rank, alpha=config.alpha, layers=layers)


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
    """The examples of the agents with this adapter, and a share of the other agents' examples."""
    kept = [e for e in examples if adapters[e.node] == adapter or rng.random() < bootstrap]
    return cast(Examples, kept)  # of the one kind that they came in
