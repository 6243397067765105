"""Edge distributions in safetensors files, matched by edge *name* when they are loaded."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.candidate_graph import CandidateGraph
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.trace.records import EdgeName

_FORMAT = "swarm-ui edges 1"


class EdgeLoadReport(msgspec.Struct, frozen=True, kw_only=True):
    """The edges and nodes that a file and a distribution have in common."""

    kept: tuple[EdgeName, ...]
    """Edges in both, with the same delay: their log-odds now come from the file."""
    dropped: tuple[EdgeName, ...]
    """Edges of the file that the distribution does not have."""
    missing: tuple[EdgeName, ...]
    """Edges of the distribution that are not in the file; their log-odds are unchanged."""
    kept_nodes: tuple[str, ...]
    """Nodes whose order score now comes from the file."""

    def __str__(self) -> str:
        """The report as text, for a log."""
        text = f"{len(self.kept)} edges and {len(self.kept_nodes)} nodes loaded"
        if self.dropped:
            text += f"; not in the distribution: {_listed(self.dropped)}"
        if self.missing:
            text += f"; not in the file, unchanged: {_listed(self.missing)}"
        return text


def _listed(edges: tuple[EdgeName, ...]) -> str:
    shown = ", ".join(f"{a} -> {b}" for a, b in edges[:6])
    return shown + (f" and {len(edges) - 6} more" if len(edges) > 6 else "")


def save_edges(distribution: EdgeDistribution, path: Path) -> None:
    """Write scores, log-odds and their names. Missing folders are made.

    Raises:
        ConfigError: the distribution is of another class, or the file cannot be written.
    """
    if not isinstance(distribution, EdgeDistribution):
        raise ConfigError(
            f"save_edges: expected an EdgeDistribution, got a {type(distribution).__name__}, whose "
            "parameters differ; pickle it, or keep its edge probabilities: "
            "EdgeDistribution.from_probabilities(probabilities)"
        )
    metadata = {
        "format": _FORMAT,
        "names": json.dumps(distribution.names),
        "candidates": json.dumps(distribution.candidates),
        "decision": json.dumps(distribution.decision),
        "delays": json.dumps([[a, b, delay] for (a, b), delay in distribution.delays.items()]),
    }
    tensors = {
        "scores": distribution.scores.detach().contiguous(),
        "logits": distribution.logits.detach().contiguous(),
    }
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, path, metadata=metadata)
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"{path}: the edges cannot be written ({error})") from error


def load_edges(distribution: EdgeDistribution, path: Path) -> EdgeLoadReport:
    """Copy the parameters of all edges and nodes that the file and the distribution share.

    Raises ``ConfigError`` as :func:`read_edges` does.
    """
    stored = read_edges(path)
    own, theirs = distribution.graph, stored.graph
    nodes = [name for name in own.names if name in theirs.node_index]
    edges = [edge for edge in own.edges if _same(edge, own, theirs)]
    with torch.no_grad():
        for name in nodes:
            distribution.scores[own.node_index[name]] = stored.scores[theirs.node_index[name]]
        for edge in edges:
            distribution.logits[own.edge_index[edge]] = stored.logits[theirs.edge_index[edge]]
    return EdgeLoadReport(
        kept=tuple(edges),
        dropped=tuple(e for e in theirs.edges if not _same(e, own, theirs)),
        missing=tuple(e for e in own.edges if not _same(e, own, theirs)),
        kept_nodes=tuple(nodes),
    )


def _same(edge: EdgeName, one: CandidateGraph, other: CandidateGraph) -> bool:
    """Whether both distributions have this candidate, with the same delay."""
    both = edge in one.edge_index and edge in other.edge_index
    return both and one.delays.get(edge) == other.delays.get(edge)


def read_edges(path: Path) -> EdgeDistribution:
    """The distribution that :func:`save_edges` wrote.

    Raises:
        ConfigError: there is no such file, or it was not written by :func:`save_edges`.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != _FORMAT:
                raise ConfigError(
                    f"{path}: expected a file of format '{_FORMAT}', got {metadata.get('format')!r}"
                )
            names = msgspec.json.decode(metadata["names"], type=list[str])
            edges = msgspec.json.decode(metadata["candidates"], type=list[tuple[str, str]])
            # Files of early versions have no decision and no delays.
            decision = msgspec.json.decode(metadata.get("decision", "null"), type=str | None)
            late = msgspec.json.decode(
                metadata.get("delays", "[]"), type=list[tuple[str, str, int]]
            )
            scores, logits = file.get_tensor("scores"), file.get_tensor("logits")
    except (OSError, KeyError, SafetensorError, msgspec.DecodeError) as error:
        raise ConfigError(f"{path}: not a readable edge file ({error})") from error
    if scores.shape != (len(names),) or logits.shape != (len(edges),):
        raise ConfigError(
            f"{path}: {len(names)} nodes and {len(edges)} edges do not match tensors of shape "
            f"{tuple(scores.shape)} and {tuple(logits.shape)}"
        )
    delays = {(sender, listener): delay for sender, listener, delay in late}
    made = EdgeDistribution(names, candidates=edges, decision=decision, delays=delays)
    node, edge = made.graph.node_index, made.graph.edge_index
    with torch.no_grad():
        made.scores[[node[name] for name in names]] = scores
        made.logits[[edge[pair] for pair in edges]] = logits
    return made
