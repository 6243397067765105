"""The update of a team's adapters in one iteration, alone or together with other processes."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import msgspec
import torch
from torch import nn

from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.node import derive
from swarm_ui.optim.config import POLICY_GRADIENT, TeamConfig, UpdateConfig
from swarm_ui.optim.distributed import LostProcess, Processes
from swarm_ui.optim.examples import Batch, Example, Trainable, encode, schedule, with_reference
from swarm_ui.optim.losses import Loss, dpo_loss, ipo_loss, policy_gradient_loss, rft_loss
from swarm_ui.optim.preferences import PreferencePair

BOOTSTRAP = 0.5
"""Share of the other agents' examples that each adapter also learns from, drawn for each one."""
WARMUP, FLOOR = 10, 0.05
"""Steps in which the rate grows to its highest value. Then it falls to this share of it."""
Rehearse = Callable[[int, random.Random], Sequence[PreferencePair]]
"""``(count, rng) -> examples`` of what agents could do before, for an update on ``count`` more."""


class UpdateStats(msgspec.Struct, frozen=True, kw_only=True):
    """One update of an adapter: usable examples, and the mean loss of the last quarter of steps."""

    adapter: str
    examples: int
    steps: int
    loss: float | None
    seconds: float


class Task(msgspec.Struct, frozen=True):
    """One update of one adapter, with all random choices made."""

    adapter: str
    examples: tuple[Example, ...]
    batches: tuple[tuple[int, ...], ...]
    """The examples of each optimiser step, by position; empty: there is nothing to learn."""
    seed: int
    """Seed of dropout."""
    settings: UpdateConfig


def loss_of(settings: UpdateConfig) -> Loss:
    """The loss that the settings name."""
    if settings.method == "rft":
        return rft_loss
    if settings.method in POLICY_GRADIENT:
        return partial(
            policy_gradient_loss,
            clip=settings.clip,
            beta=settings.beta,
            ratio="token" if settings.method == "grpo" else "sequence",
        )
    loss = dpo_loss if settings.method == "dpo" else ipo_loss
    return partial(loss, beta=settings.beta, nll_weight=settings.nll_weight)


def update_team(
    model: Trainable,
    pairs: Sequence[PreferencePair],
    adapters: Mapping[str, str],
    config: TeamConfig,
    iteration: int,
    *,
    together: Sequence[str] = (),
    loss: Loss | None = None,
    rehearse: Rehearse | None = None,
    processes: Processes | None = None,
    check: Callable[[int, int], None] = lambda done, total: None,
) -> list[UpdateStats]:
    """Train the adapters in place on the examples of an iteration, reproducibly.

    Args:
        pairs: pairs of all nodes; for a policy gradient, replies with their advantages.
        adapters: the adapter of each node, which learns from the examples of its nodes, and from a
            share of the others.
        together: adapters of one shape that are trained as one, which then overwrites all of them.
        loss: ``None``: that of ``config.update.method``.
        processes: share every batch. The others :func:`follow`.
        check: called with (updates done, all updates) before each optimiser step and at the end of
            an update; what it raises ends the update.
    """
    alone = [name for name in dict.fromkeys(adapters.values()) if name not in together]
    total, stats = len(together[:1]) + len(alone), list[UpdateStats]()
    for name in [*together[:1], *alone]:
        shared = name in together
        settings = config.update_at(model, iteration, shared=shared)
        rng = random.Random(derive(config.seed, "update", iteration, name))
        mine = pairs
        if not shared:
            mine = [e for e in mine if adapters[e.node] == name or rng.random() < BOOTSTRAP]
        if rehearse is not None:
            mine = [*mine, *rehearse(len(mine), rng)]
        task = prepare(model, name, mine, settings, rng, rejected=loss is not None)
        if processes is not None:
            processes.send(msgspec.msgpack.encode(task))
        try:
            stats.append(fit(model, task, loss, processes, partial(check, len(stats), total)))
        except BaseException as error:
            if processes is not None and not isinstance(error, LearningError):
                processes.lost = True  # the others are within this update
            raise
        check(len(stats), total)
    for name in together[1:] if together and stats[0].steps else ():
        with model.activate(name), torch.no_grad():
            for ours, theirs in zip(
                model.adapter_parameters(name), model.adapter_parameters(together[0]), strict=True
            ):
                ours.copy_(theirs)
    return stats


def untrained(model: Trainable, adapters: Iterable[str]) -> list[str]:
    """The adapters of one shape that nothing has trained yet, which the first iterations may train
    as one. Fewer than two are none."""
    weights = {name: [p.detach() for p in model.adapter_parameters(name)] for name in adapters}
    fresh = [name for name, parts in weights.items() if not any(bool(p.any()) for p in parts[1::2])]
    shapes = {name: [p.shape for p in weights[name]] for name in fresh}
    found = [name for name in fresh if shapes[name] == shapes[fresh[0]]]
    return found if len(found) > 1 else []


def prepare(
    model: Trainable,
    adapter: str,
    pairs: Sequence[PreferencePair],
    settings: UpdateConfig,
    rng: random.Random,
    *,
    rejected: bool = False,
) -> Task:
    """Encode the examples of an update, and draw its batches and the seed of dropout. ``rejected``:
    use rejected replies also with ``rft``."""
    found = encode(model, pairs, adapter, rejected=rejected or settings.method != "rft")
    seed = rng.getrandbits(63)
    batches = schedule(found, settings.batch_size, settings.steps or 0, rng)
    return Task(adapter, tuple(found), tuple(map(tuple, batches)), seed, settings)


def fit(
    model: Trainable,
    task: Task,
    loss: Loss | None = None,
    processes: Processes | None = None,
    check: Callable[[], None] = lambda: None,
) -> UpdateStats:
    """Make an update of one adapter in place; see :func:`update_team`. Raises ``LearningError`` if
    a loss or a gradient was not a number. After any exception the adapter is restored."""
    began, losses = time.perf_counter(), list[float]()
    stats = partial(UpdateStats, adapter=task.adapter, examples=len(task.examples))
    if not task.batches:
        return stats(steps=0, loss=None, seconds=time.perf_counter() - began)
    settings, of, seed = task.settings, loss or loss_of(task.settings), task.seed
    lr, tokens = settings.lr, settings.micro_batch_tokens
    assert lr is not None and tokens is not None
    if processes is not None and processes.rank:
        seed = derive(seed, "process", processes.rank)
    parameters = model.adapter_parameters(task.adapter)
    with training_mode(model.module, settings):
        batches = _own_batches(model, task, loss, processes)
        with (
            torch.random.fork_rng(devices=[]),  # dropout draws from torch's global stream
            model.activate(task.adapter),
            _restored_on_error(parameters),
        ):
            torch.manual_seed(seed)
            optimizer = torch.optim.AdamW(parameters, lr=lr, betas=(0.9, 0.98), weight_decay=0.0)
            for step, batch in enumerate(batches):
                check()
                optimizer.zero_grad()
                value = 0.0
                for part in batch.parts(tokens):
                    share = of(model, part)
                    share.backward()  # type: ignore[no-untyped-call]
                    value += float(share.detach())
                if processes is not None:
                    value = processes.sum_gradients(parameters, value)
                norm = float(nn.utils.clip_grad_norm_(parameters, 1.0))
                rate = lr * min(1.0, (step + 1) / WARMUP) * max(FLOOR, 1.0 - step / len(batches))
                if not math.isfinite(value) or not math.isfinite(norm):
                    raise LearningError(
                        f"adapter '{task.adapter}', step {step + 1} of {len(batches)}, method "
                        f"'{settings.method}': the loss is {value}, the gradient's norm {norm}. "
                        "The adapter was restored to the weights before this update. Lower lr (it "
                        f"was {rate:g}), and look for inputs that are not numbers"
                    )
                optimizer.param_groups[0]["lr"] = rate
                optimizer.step()
                losses.append(value)
    quarter = losses[-max(1, len(losses) // 4) :]
    mean = sum(quarter) / len(quarter)
    return stats(steps=len(losses), loss=mean, seconds=time.perf_counter() - began)


def _own_batches(
    model: Trainable, task: Task, loss: Loss | None, processes: Processes | None
) -> list[Batch]:
    """This process's part of each batch, with reference log-probabilities if the loss uses them."""
    part = slice(None) if processes is None else processes.part()
    if processes is not None:  # its reference is the adapter of the first one
        with model.activate(task.adapter):
            processes.copy(model.adapter_parameters(task.adapter))
    mine, examples = [rows[part] for rows in task.batches], list(task.examples)
    if loss is not None or task.settings.method != "rft":
        used, tokens = sorted({k for rows in mine for k in rows}), task.settings.micro_batch_tokens
        assert tokens is not None
        compared = with_reference(model, [examples[k] for k in used], tokens=tokens)
        for k, example in zip(used, compared, strict=True):
            examples[k] = example
    return [
        Batch([examples[k] for k in rows], [examples[k] for k in whole])
        for rows, whole in zip(mine, task.batches, strict=True)
    ]


def follow(model: Trainable, processes: Processes, loss: Loss | None = None) -> None:
    """Take part in the updates of the first process. Raises ``LostProcess`` if another ended."""
    while told := processes.send(None):
        try:
            fit(model, msgspec.msgpack.decode(told, type=Task), loss, processes)
        except LostProcess:
            raise
        except LearningError:
            continue  # the first process has the same error, and reports it


@contextmanager
def _restored_on_error(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    before = [p.detach().clone() for p in parameters]
    try:
        yield
    except BaseException:
        with torch.no_grad():
            for parameter, value in zip(parameters, before, strict=True):
                parameter.copy_(value)
        raise


# -- the network in training ------------------------------------------------------------------


@contextmanager
def training_mode(module: Any, settings: UpdateConfig) -> Iterator[None]:
    """Prepare a network for updates, and restore it at the end. Raises ``ConfigError`` if it does
    not support activation checkpointing.

    A network with bfloat16 weights computes in bfloat16; its adapters train in float32. Converting
    the weights of normalisations each time would cost a quarter of the speed on a CPU, where plain
    attention is faster for prompts of a few hundred tokens.
    """
    kind = next(module.parameters()).device.type
    cast = any(p.dtype == torch.bfloat16 for p in module.parameters() if not p.requires_grad)
    with ExitStack() as prepared:
        if cast:
            # The cache keeps the converted weights of adapters until the block ends, so every step
            # after the first would compute with the weights of before the first.
            prepared.enter_context(torch.autocast(kind, torch.bfloat16, cache_enabled=False))
            norms = [p for p in module.parameters() if p.dtype == torch.bfloat16 and p.dim() == 1]
            for parameter in norms:
                prepared.callback(setattr, parameter, "data", parameter.data)
                parameter.data = parameter.data.float()
        if cast and kind == "cpu" and hasattr(module, "set_attn_implementation"):
            network = module.get_base_model() if hasattr(module, "get_base_model") else module
            before = network.config._attn_implementation
            network.set_attn_implementation("eager")
            prepared.callback(network.set_attn_implementation, before)
        if settings.checkpointing:
            if not getattr(module, "supports_gradient_checkpointing", False):
                raise ConfigError(
                    f"checkpointing: {type(module).__name__} does not support activation "
                    "checkpointing; lower micro_batch_tokens instead"
                )
            # Without `use_reentrant=False` a layer whose input needs no gradient would get none.
            options = {"use_reentrant": False}
            module.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
            prepared.callback(module.gradient_checkpointing_disable)
        yield
