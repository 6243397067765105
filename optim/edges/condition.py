"""Edges that depend on the task: a small head turns features into every edge's probability."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.plackett_luce import PlackettLuceEdges
from swarm_ui.optim.edges.space import EdgeSample, EdgeSpace
from swarm_ui.trace.records import EdgeName

Features = Sequence[float] | Tensor


class ConditionalEdges(nn.Module):
    """A distribution over DAGs for every vector of features (an embedding, or counts).

    The law is that of :class:`~swarm_ui.optim.edges.plackett_luce.PlackettLuceEdges` with
    ``logits = bias + head(features)`` and, likewise, the scores of the order. The head starts at 0,
    so at first the features change nothing. Learn it with
    ``EdgeOptimizer(distribution, space="adam")``: samples carry the features they were drawn for.

    Attributes:
        names, candidates, decision: as of
        :class:`~swarm_ui.optim.edges.distribution.EdgeDistribution`. features: how many.
    """

    def __init__(
        self,
        names: Iterable[str],
        features: int,
        *,
        hidden: int = 0,
        density: float = 0.5,
        candidates: Iterable[EdgeName] | None = None,
        decision: str | None = None,
        seed: int = 0,
    ) -> None:
        """
        Args:
            names, density, candidates, decision: as of
                :class:`~swarm_ui.optim.edges.distribution.EdgeDistribution`.
            features: length of a feature vector, at least 1.
            hidden: units of one hidden layer; 0: a linear head.
            seed: of the hidden layer's first weights.
        """
        super().__init__()
        if features < 1 or hidden < 0:
            raise ConfigError(
                f"conditional edges: {features} features and {hidden} hidden units make no head"
            )
        if not 0.0 < density < 1.0:
            raise ConfigError(f"edge distribution: density must be in (0, 1), got {density}")
        self.space = EdgeSpace(names, candidates, decision)
        self.names, self.candidates = self.space.names, self.space.edges
        self.decision, self.features = decision, features
        log_odds = math.log(density / (1.0 - density))
        self.logits = nn.Parameter(torch.full((len(self.candidates),), log_odds))
        self.scores = nn.Parameter(torch.zeros(len(self.names)))
        out = nn.Linear(hidden or features, len(self.candidates) + len(self.names), bias=False)
        nn.init.zeros_(out.weight)
        self.head: nn.Module = out
        if hidden:
            first = nn.Linear(features, hidden)
            draw = torch.Generator().manual_seed(seed)
            with torch.no_grad():
                first.weight.normal_(0.0, features**-0.5, generator=draw)
                first.bias.zero_()
            self.head = nn.Sequential(first, nn.Tanh(), out)

    def law(self, condition: Features) -> PlackettLuceEdges:
        """The law for these features; its tensors lead back to the parameters.

        Raises:
            ConfigError: another number of features, or one that is not finite.
        """
        given = torch.as_tensor(condition, dtype=self.logits.dtype)
        if given.shape != (self.features,) or not bool(given.isfinite().all()):
            raise ConfigError(
                f"conditional edges: expected {self.features} finite features, got shape "
                f"{tuple(given.shape)}: {given.tolist()}"
            )
        shift = self.head(given)
        size = len(self.candidates)
        return PlackettLuceEdges(self.space, self.scores + shift[size:], self.logits + shift[:size])

    def sample(
        self, batch: int, generator: torch.Generator, condition: Features
    ) -> list[EdgeSample]:
        """``batch`` graphs for these features, which are noted on them."""
        noted = tuple(torch.as_tensor(condition, dtype=torch.double).tolist())
        return self.law(condition).sample(batch, generator, noted)

    def mode(self, condition: Features) -> EdgeSample:
        """The most probable graph for these features."""
        noted = tuple(torch.as_tensor(condition, dtype=torch.double).tolist())
        return self.law(condition).mode(noted)

    def marginals(self, condition: Features) -> dict[EdgeName, float]:
        """Probability of each candidate for these features (closed form)."""
        return self.law(condition).marginals()

    def sample_log_probs(self, samples: Sequence[EdgeSample]) -> Tensor:
        """Log-probability of each sample under its own features, ``[B]``, with gradient."""
        groups: dict[tuple[float, ...], list[int]] = {}
        for k, sample in enumerate(samples):
            groups.setdefault(_noted(sample), []).append(k)
        parts = [
            self.law(condition).sample_log_probs([samples[k] for k in places])
            for condition, places in groups.items()
        ]
        places = torch.tensor([k for group in groups.values() for k in group])
        return torch.cat(parts)[places.argsort()]

    def edge_logits(self, sample: EdgeSample) -> Tensor:
        """Log-odds of each candidate under the sample's features, ``[E]``, with gradient."""
        return self.law(_noted(sample)).logits

    def edge_entropy(self) -> Tensor:
        """Expected entropy (nats) of the edges where all features are 0."""
        return self.law([0.0] * self.features).edge_entropy()


def _noted(sample: EdgeSample) -> tuple[float, ...]:
    if sample.condition is None:
        raise ConfigError("conditional edges: a sample without features was drawn elsewhere")
    return sample.condition
