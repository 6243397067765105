"""One iteration's update of all adapters of a team."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
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
    sharing: Collection[str] | None = None,
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
        sharing: the adapters that a shared iteration trains as one; see :func:`split_adapters`.
        rehearse: gives examples to repeat, in the share ``config.rehearsal``.
        done: called with (finished updates, all updates).
        learners: processes that share the updates; their weights are equal up to rounding.
        check: called before each step of this process; what it raises ends the update.
    """
    config = config.filled(defaults_of(model))
    together, alone = split_adapters(adapters, config, iteration, sharing)
    stats: list[UpdateStats] = []

    def count(before: int, finished: int, _: int) -> None:
        if done is not None:
            done(before + finished, len(together[:1]) + len(alone))

    def task(trainer: AdapterTrainer, name: str, shared: bool) -> AdapterTask:
        rng = random.Random(derive(config.seed, "update", iteration, name))
        usable = examples if shared else _own(examples, name, adapters, config.bootstrap, rng)
        if rehearse is not None and config.rehearsal:
            share = config.rehearsal / (1.0 - config.rehearsal)
            usable = [*usable, *rehearse(round(share * len(usable)), rng)]
        return trainer.prepare(name, usable, rng)

    for trained, shared in ((together[:1], True), (alone, False)):
        if not trained:
            continue
        trainer = AdapterTrainer(model, config.update_at(iteration, shared=shared))
        if learners is not None:
            stats += learners.update(
                model, [task(trainer, name, shared) for name in trained], trainer.config,
                new_adapter(config), spread=config.spread, done=partial(count, len(stats)),
                check=check,
            )  # fmt: skip
            continue
        for name in trained:
            stats.append(trainer.train(task(trainer, name, shared), check))
            count(len(stats), 0, 0)
    if together and stats[0].steps:
        for name in together[1:]:
            copy_adapter(model, together[0], name)
    return stats


def shared_start(model: Trainable, adapters: Collection[str]) -> list[str]:
    """The adapters that the shared iterations of a new training train as one.

    These are the ones that the training adds, which are not in the model yet; or all, if all are in
    the model and hold equal weights, as copies of one adapter do. Others are never overwritten.
    """
    added = [name for name in adapters if name not in model.adapters]
    if added:
        return added
    first, *others = (list(model.adapter_parameters(name)) for name in adapters)
    same = all(len(first) == len(other) and all(map(torch.equal, first, other)) for other in others)
    return list(adapters) if same else []


def split_adapters(
    adapters: Mapping[str, str],
    config: TeamConfig,
    iteration: int,
    sharing: Collection[str] | None,
) -> tuple[list[str], list[str]]:
    """The adapters that an iteration trains as one, and those that it trains one by one.

    ``sharing``: the adapters that shared iterations train as one (:func:`shared_start`); the others
    are trained as in every iteration. ``None``: all.
    """
    names = list(dict.fromkeys(adapters.values()))
    if iteration >= config.shared_iterations:
        return [], names
    together = [name for name in names if sharing is None or name in sharing]
    return together, [name for name in names if name not in together]


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
