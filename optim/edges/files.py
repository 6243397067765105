"""Edge distributions on disk: one safetensors file, matched by edge *name* when read back."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import torch

from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.trace.records import EdgeName

_FORMAT = "swarm-ui edges 1"


class EdgeLoadReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a file had to say about a distribution."""

    kept: tuple[EdgeName, ...]
    """Edges in both: their log-odds now come from the file."""
    dropped: tuple[EdgeName, ...]
    """Edges of the file that the distribution does not have."""
    missing: tuple[EdgeName, ...]
    """Edges of the distribution that the file lacks: left as they were."""
    kept_nodes: tuple[str, ...]
    """Nodes whose order score now comes from the file."""

    def __str__(self) -> str:
        """In words, for a log."""
        said = f"{len(self.kept)} edges and {len(self.kept_nodes)} nodes taken over"
        if self.dropped:
            said += f"; not in the distribution: {_listed(self.dropped)}"
        if self.missing:
            said += f"; not in the file, left as they were: {_listed(self.missing)}"
        return said


def _listed(edges: tuple[EdgeName, ...]) -> str:
    shown = ", ".join(f"{a} -> {b}" for a, b in edges[:6])
    return shown + (f" and {len(edges) - 6} more" if len(edges) > 6 else "")


def save_edges(distribution: EdgeDistribution, path: Path) -> None:
    """Write scores, log-odds and their names."""
    try:
        from safetensors.torch import save_file
    except ImportError as error:
        raise MissingExtra("train", "saving edges", "safetensors") from error
    metadata = {
        "format": _FORMAT,
        "names": json.dumps(distribution.names),
        "candidates": json.dumps(distribution.candidates),
        "decision": json.dumps(distribution.decision),
    }
    tensors = {
        "scores": distribution.scores.detach().contiguous(),
        "logits": distribution.logits.detach().contiguous(),
    }
    save_file(tensors, path, metadata=metadata)


def load_edges(distribution: EdgeDistribution, path: Path) -> EdgeLoadReport:
    """Take over what a file knows about this distribution's edges and nodes, by name.

    Raises:
        ConfigError: no such file, or not a file of :func:`save_edges`.
    """
    names, candidates, _, scores, logits = _read(path)
    place = {name: i for i, name in enumerate(names)}
    slot = {edge: k for k, edge in enumerate(candidates)}
    ours = set(distribution.candidates)
    with torch.no_grad():
        for i, name in enumerate(distribution.names):
            if name in place:
                distribution.scores[i] = scores[place[name]]
        for k, edge in enumerate(distribution.candidates):
            if edge in slot:
                distribution.logits[k] = logits[slot[edge]]
    return EdgeLoadReport(
        kept=tuple(e for e in distribution.candidates if e in slot),
        dropped=tuple(e for e in candidates if e not in ours),
        missing=tuple(e for e in distribution.candidates if e not in slot),
        kept_nodes=tuple(n for n in distribution.names if n in place),
    )


def read_edges(path: Path) -> EdgeDistribution:
    """The distribution that a file of :func:`save_edges` holds, exactly.

    Raises:
        ConfigError: no such file, or not a file of :func:`save_edges`.
    """
    names, candidates, decision, _, _ = _read(path)
    distribution = EdgeDistribution(names, candidates=candidates, decision=decision)
    load_edges(distribution, path)
    return distribution


def _read(
    path: Path,
) -> tuple[list[str], list[EdgeName], str | None, torch.Tensor, torch.Tensor]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise MissingExtra("train", "loading edges", "safetensors") from error
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != _FORMAT:
                raise ConfigError(
                    f"{path}: expected a file of format '{_FORMAT}', got {metadata.get('format')!r}"
                )
            names = msgspec.json.decode(metadata["names"], type=list[str])
            edges = msgspec.json.decode(metadata["candidates"], type=list[tuple[str, str]])
            # Files written before there were decisions have none.
            decision = msgspec.json.decode(metadata.get("decision", "null"), type=str | None)
            scores, logits = file.get_tensor("scores"), file.get_tensor("logits")
    except (OSError, KeyError, SafetensorError, msgspec.DecodeError) as error:
        raise ConfigError(f"{path}: not a readable edge file ({error})") from error
    if scores.shape != (len(names),) or logits.shape != (len(edges),):
        raise ConfigError(
            f"{path}: {len(names)} nodes and {len(edges)} edges do not match tensors of shape "
            f"{tuple(scores.shape)} and {tuple(logits.shape)}"
        )
    return names, edges, decision, scores, logits
