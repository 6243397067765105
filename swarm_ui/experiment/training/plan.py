"""The updates and the memory of a training run, for ``swarm-ui train --dry-run``."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from swarm_ui.adapter_metadata import read_metadata
from swarm_ui.experiment.config import Config, ModelSection
from swarm_ui.experiment.models import kind_of, learned_adapters, on_hub, starts_apart
from swarm_ui.nodes.models.pretrained.catalogue import model_folder
from swarm_ui.nodes.models.pretrained.shipped_adapters import adapter_folder
from swarm_ui.nodes.models.tiny_agent.shipped_agents import agent_folder
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.update.distributed.sharded_base import sharding_wanted
from swarm_ui.optim.update.distributed.spread import assigned, spread_of
from swarm_ui.optim.update.memory_estimate import ModelShape, Workload, estimate_memory
from swarm_ui.optim.update.update_config import defaults_for

_SCREEN_TOKENS = {"": 110, "compact": 160, "json": 1000}
"""Tokens of a prompt on the phone, by the prompt format; ``""``: the embedded agent's own."""
_ROWS = 64
"""Maximum number of requests that a model of this process decodes at the same time."""


def training_facts(config: Config, settings: TeamConfig, processes: int = 1) -> dict[str, str]:
    """The update and its memory, for ``train --dry-run``; nothing is loaded.

    Args:
        config: all settings.
        settings: those of the trainer.
        processes: the number of processes that share the updates; the memory is that of each.

    Raises:
        ConfigError: the model's folder does not describe a transformer.
    """
    if starts_apart(config):
        settings = dataclasses.replace(settings, shared_iterations=0)
    shape = _shape(config.model)
    if shape is None:
        update = f"{settings.update.method}; rate and steps depend on the size of the model"
        facts = {"update": update, "memory": "not known before the model is downloaded"}
        if processes > 1:
            facts["processes"] = _spread(config, settings, processes)
        return facts
    defaults = defaults_for(shape.parameters)
    settings = settings.filled(defaults)
    tokens = settings.update.micro_batch_tokens or defaults.micro_batch_tokens
    shared = f"{settings.shared_steps} while one is shared, " * (settings.shared_iterations > 0)
    update = (
        f"{settings.update.method}, {settings.update.steps} steps an adapter, {shared}"
        f"rate {settings.update.lr:g}, at most {tokens:,} tokens a forward"
    )
    memory = estimate_memory(shape, _workload(config, settings, shape, tokens))
    if processes == 1:
        return {"update": update, "memory": str(memory)}
    if sharding_wanted():  # a server acts
        memory = dataclasses.replace(memory, weights=memory.weights // processes, cache=0)
    spread = _spread(config, settings, processes)
    return {"update": update, "processes": spread, "memory": f"in each process {memory}"}


def _spread(config: Config, settings: TeamConfig, processes: int) -> str:
    """How several processes share the updates of an iteration."""
    adapters = learned_adapters(config)
    shared = min(settings.shared_iterations, settings.iterations)
    told = [_spread_of(settings, adapters[:1], processes)] if shared else []
    if shared < settings.iterations:
        told.append(_spread_of(settings, adapters, processes))
    if len(told) == 2:
        told = [f"iterations 1 to {shared}: {told[0]}", f"then: {told[1]}"]
    return f"{processes}; the first one plays. " + "; ".join(told)


def _spread_of(settings: TeamConfig, adapters: Sequence[str], processes: int) -> str:
    sharded = sharding_wanted()
    if spread_of(settings.spread, len(adapters), processes, sharded=sharded) == "batches":
        size = settings.update.batch_size
        most = -(-size // processes)
        return f"all train {', '.join(adapters)}, at most {most} of {size} examples of a batch each"
    owners = assigned([1.0] * len(adapters), processes)
    return ", ".join(
        f"process {rank + 1} "
        + ("none" if rank not in owners else
           "+".join(name for name, owner in zip(adapters, owners, strict=True) if owner == rank))
        for rank in range(processes)
    )  # fmt: skip


def _shape(section: ModelSection) -> ModelShape | None:
    """The sizes of the model, or ``None`` for a model on the Hugging Face Hub."""
    kind = kind_of(section)
    if kind in ("base", "agent"):
        return ModelShape.of_folder(agent_folder(section.name))
    return None if on_hub(section) else ModelShape.of_folder(model_folder(section.name))


def _workload(config: Config, settings: TeamConfig, shape: ModelShape, tokens: int) -> Workload:
    model, update = config.model, settings.update
    quantized = model.quantize == "4bit"
    cast = shape.bfloat16 or quantized if update.autocast is None else update.autocast
    eager = update.eager_attention
    return Workload(
        adapters=len(learned_adapters(config)),
        rank=settings.rank,
        layers=None if settings.lora_layers is None else len(settings.lora_layers),
        micro_batch_tokens=tokens,
        batch_rows=update.batch_size * (2 if update.method in ("dpo", "ipo") else 1),
        checkpointing=update.checkpointing,
        autocast=cast,
        eager_attention=cast and model.device == "cpu" if eager is None else eager,
        precision="4bit" if quantized else "bfloat16" if shape.bfloat16 else "float32",
        prompt_tokens=_SCREEN_TOKENS[_prompt_format(model)],
        rows=min(_ROWS, settings.concurrency * config.team.agents),
    )


def _prompt_format(section: ModelSection) -> str:
    """The prompt format; empty: the embedded agent's own."""
    if kind_of(section) != "local":
        return ""
    folder = adapter_folder(section.adapters) if section.adapters else None
    places = [] if folder is None else [folder, *sorted(folder.glob("*"))]
    places.append(model_folder(section.name))
    known = [read_metadata(place).prompt_format for place in places if os.path.isdir(place)]
    return next(filter(None, (section.prompt_format, *known)), "json")
