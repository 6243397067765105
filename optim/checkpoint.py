"""Checkpoints of a training, which stay readable when the process is killed at any time.

    checkpoints/iteration-0003/
        state.json           counters, settings and metrics
        edges.safetensors
        adapters/

A checkpoint gets its name when all of it is written; then the one before it is removed.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.files import append_line, replacing_folder, whole_lines, write_atomic
from swarm_ui.optim.config import expect_same
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
    settings: dict[str, Any] = {}
    """Those of the training, and the adapter of each agent."""
    untrained: list[str]
    """The adapters that nothing had trained when the training began."""
    trust: list[Evidence] | None = None
    """What :class:`Trust` has learned about the critic; ``None``: its weight is not learned."""
    history: list[dict[str, Any]] = []


def save(folder: Path, state: TeamState, model: Trainable, edges: EdgeDistribution) -> None:
    """Append the newest metrics to ``metrics.jsonl``, which also holds what a run logs about its
    rollouts, write a checkpoint, and remove the others. Raises ``ConfigError`` if a file cannot be
    written; then the checkpoint before it is whole."""
    path = folder / "checkpoints" / f"iteration-{state.iteration:04d}"
    try:
        append_line(folder / "metrics.jsonl", msgspec.json.encode(state.history[-1]))
        with replacing_folder(path) as part:
            model.save_adapters(part / "adapters")
            edges.save(part / "edges.safetensors")
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
    folder: Path, model: Trainable, edges: EdgeDistribution, settings: dict[str, Any]
) -> TeamState | None:
    """Restore weights and edges of the last complete iteration, and remove lines of later
    iterations from ``metrics.jsonl``. Returns ``None`` if there is no checkpoint. Raises
    ``ConfigError`` if it cannot be read, or the run was started with other settings."""
    found = max((folder / "checkpoints").glob("iteration-*"), default=None)
    if found is None:
        _forget(folder / "metrics.jsonl", 0)
        return None
    try:
        state = msgspec.json.decode((found / "state.json").read_bytes(), type=TeamState)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"{found / 'state.json'}: not a state of a training: {error}; restore it from a copy, "
            "or start a new run in another folder"
        ) from error
    advice = "resume with those, or start a new run in another folder"
    expect_same(folder, state.settings, settings, advice, free=_MAY_CHANGE)
    edges.load_state_dict(EdgeDistribution.load(found / "edges.safetensors").state_dict())
    model.load_adapters(found / "adapters")
    _forget(folder / "metrics.jsonl", state.iteration)
    return state


def _forget(metrics: Path, iteration: int) -> None:
    """Remove the lines from this iteration on, and one that is incomplete."""
    kept = []
    for line in whole_lines(metrics):
        with suppress(msgspec.DecodeError):
            record = msgspec.json.decode(line, type=dict[str, Any])
            if record.get("iteration", -1) < iteration:
                kept.append(line + b"\n")
    if metrics.exists():
        write_atomic(metrics, b"".join(kept))
