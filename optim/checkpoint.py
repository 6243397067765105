"""Checkpoints of a training, which stay readable when the process is killed at any time.

    checkpoints/iteration-0003/
        state.json           counters, settings and metrics
        edges.safetensors
        edge_optimizer.pt
        adapters/

A checkpoint gets its name when all of it is written; then the one before it is removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import torch

from swarm_ui.errors import ConfigError
from swarm_ui.files import append_line, replacing_folder, write_atomic
from swarm_ui.optim.config import TeamConfig, expect_same
from swarm_ui.optim.credit.trust import Evidence
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.examples import Trainable

_MAY_CHANGE = {"iterations", "concurrency", "micro_batch_tokens", "checkpointing"}
"""Settings that a resumed run may change."""


class TeamState(msgspec.Struct, kw_only=True):
    """The state at the start of an iteration, without weights and edges.

    There are no generator states: every random stream is derived from the seed, the iteration and
    its purpose.
    """

    iteration: int = 0
    """Number of finished iterations."""
    untrained: list[str] = []
    """The adapters that nothing had trained when the training began."""
    trust: list[Evidence] | None = None
    """What :class:`Trust` has learned about the critic; ``None``: its weight is not learned."""
    history: list[dict[str, Any]] = []
    config: dict[str, Any] = {}
    adapters: dict[str, str] = {}
    """The adapter of each agent."""


def save(
    folder: Path,
    state: TeamState,
    model: Trainable,
    edges: EdgeDistribution,
    optimizer: torch.optim.Optimizer,
) -> None:
    """Append the newest metrics to ``metrics.jsonl``, which also holds what a run logs about its
    rollouts, write a checkpoint, and remove the others. Raises ``ConfigError`` if a file cannot be
    written; then the checkpoint before it is whole."""
    path = folder / "checkpoints" / f"iteration-{state.iteration:04d}"
    try:
        append_line(folder / "metrics.jsonl", msgspec.json.encode(state.history[-1]))
        with replacing_folder(path) as part:
            model.save_adapters(part / "adapters")
            edges.save(part / "edges.safetensors")
            torch.save(optimizer.state_dict(), state_of_edges := BytesIO())
            (part / "edge_optimizer.pt").write_bytes(state_of_edges.getvalue())
            text = msgspec.json.format(msgspec.json.encode(state))
            (part / "state.json").write_bytes(text)
        for other in path.parent.glob("*iteration-*"):  # also parts that a kill has left
            if other != path:
                shutil.rmtree(other)
    except OSError as error:
        raise ConfigError(
            f"cannot write the checkpoint of iteration {state.iteration} in '{folder}': {error}; "
            "make room or set the rights, and resume the run"
        ) from error


def load(
    folder: Path,
    model: Trainable,
    edges: EdgeDistribution,
    optimizer: torch.optim.Optimizer,
    config: TeamConfig,
    adapters: Mapping[str, str],
) -> TeamState | None:
    """Restore weights and edges of the last complete iteration, and remove lines of later
    iterations from ``metrics.jsonl``. Returns ``None`` if there is no checkpoint.

    Raises:
        ConfigError: the checkpoint cannot be read, or the run was started with other settings.
    """
    found = sorted((folder / "checkpoints").glob("iteration-*"))
    if not found:
        _forget(folder / "metrics.jsonl", 0)
        return None
    try:
        state = msgspec.json.decode((found[-1] / "state.json").read_bytes(), type=TeamState)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"{found[-1] / 'state.json'}: not a state of a training: {error}; restore it from a "
            "copy, or start a new run in another folder"
        ) from error
    then = {**state.config, "adapters": state.adapters}
    now = {**msgspec.to_builtins(config), "adapters": dict(adapters)}
    advice = "resume with those, or start a new run in another folder"
    expect_same(folder, then, now, advice, free=_MAY_CHANGE)
    saved = EdgeDistribution.load(found[-1] / "edges.safetensors")
    edges.load_state_dict(saved.state_dict())
    optimizer.load_state_dict(torch.load(found[-1] / "edge_optimizer.pt", weights_only=True))
    model.load_adapters(found[-1] / "adapters")
    _forget(folder / "metrics.jsonl", state.iteration)
    return state


def _forget(metrics: Path, iteration: int) -> None:
    """Remove the lines from this iteration on, and one that is incomplete."""
    kept = []
    for line in metrics.read_bytes().splitlines() if metrics.exists() else ():
        with suppress(msgspec.DecodeError):
            record = msgspec.json.decode(line, type=dict[str, Any])
            if record.get("iteration", -1) < iteration:
                kept.append(line + b"\n")
    if metrics.exists():
        write_atomic(metrics, b"".join(kept))
