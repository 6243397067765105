"""A learnable distribution over who talks to whom: random order x Bernoulli edges.

The law is that of :class:`~swarm_ui.optim.edges.plackett_luce.PlackettLuceEdges`: every sample is
acyclic, whatever the
parameters, and the log-probability is exact. Parameters belong to *names*: nodes are kept sorted
inside, so the order in which names are listed changes nothing, and files are matched by edge name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.plackett_luce import Draws, PlackettLuceEdges
from swarm_ui.optim.edges.space import EdgeSample, EdgeSpace
from swarm_ui.trace.records import EdgeName

__all__ = ["EdgeDistribution", "EdgeSample"]


class EdgeDistribution(nn.Module):
    """Distribution over DAGs on named nodes.

    Attributes:
        names: the nodes, sorted, length ``n``.
        candidates: edges that may occur, sorted, length ``E``.
        decision: the node everybody who is used must reach; ``None``: no such node.
        scores: Plackett-Luce scores, shape ``[n]``, in the order of ``names``.
        logits: log-odds of each candidate *given that its sender comes first*, shape ``[E]``.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        density: float = 0.5,
        candidates: Iterable[EdgeName] | None = None,
        decision: str | None = None,
    ) -> None:
        """All orders equally likely, every candidate with probability ``density``.

        Args:
            names: nodes; their order does not matter.
            density: in (0, 1); also the chance that two nodes are joined at all, if both
                directions are candidates.
            candidates: edges that may occur; default: every ordered pair, but none from the
                decision. Those that can never close a cycle (into a node that only listens, for
                example) do not depend on the order.
            decision: a node that only listens. Samples keep the edges that lead to it; who
                cannot reach it is not in their ``used``.

        Raises:
            ConfigError: a repeated or unknown name, a self-loop, a decision that speaks, or a
                density outside (0, 1).
        """
        super().__init__()
        if not 0.0 < density < 1.0:
            raise ConfigError(f"edge distribution: density must be in (0, 1), got {density}")
        self.space = EdgeSpace(names, candidates, decision)
        self.names, self.candidates = self.space.names, self.space.edges
        self.decision = decision
        self.scores = nn.Parameter(torch.zeros(len(self.names)))
        log_odds = math.log(density / (1.0 - density))
        self.logits = nn.Parameter(torch.full((len(self.candidates),), log_odds))

    @classmethod
    def from_probabilities(
        cls, probabilities: Mapping[EdgeName, float], *, decision: str | None = None
    ) -> EdgeDistribution:
        """Each edge with its own probability *given that its sender comes first*.

        All orders are equally likely; edges that can never close a cycle, such as those into a
        final decision, have just the probability given.

        Args:
            probabilities: of the edges that may occur, each in (0, 1).
            decision: see above.

        Raises:
            ConfigError: no edges, a self-loop, or a probability outside (0, 1).
        """
        if not probabilities:
            raise ConfigError("edge distribution: no edges given, so there is nothing to learn")
        for (sender, listener), chance in probabilities.items():
            if not 0.0 < chance < 1.0:
                raise ConfigError(
                    f"edge distribution: the probability of {sender} -> {listener} must be in "
                    f"(0, 1), got {chance}; a sure edge belongs to the graph itself"
                )
        names = {name for edge in probabilities for name in edge}
        made = cls(names, candidates=probabilities, decision=decision)
        # In double precision, or a well-trained edge would be sure and its log-odds infinite.
        listed = [probabilities[edge] for edge in made.candidates]
        with torch.no_grad():
            made.logits.copy_(torch.tensor(listed, dtype=torch.double).logit())
        return made

    def law(self, condition: tuple[float, ...] | None = None) -> PlackettLuceEdges:
        """The law as it is now; its tensors are the parameters. The same under any condition."""
        return PlackettLuceEdges(self.space, self.scores, self.logits)

    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """``batch`` independent graphs; equal generator states give equal graphs."""
        return self.law().sample(batch, generator)

    def draw(self, batch: int, generator: torch.Generator) -> Draws:
        """The same as tensors, which is faster; ``law().log_prob(draws)`` has the gradient."""
        return self.law().draw(batch, generator)

    def log_prob(self, order: Sequence[str], edges: Iterable[EdgeName]) -> Tensor:
        """Joint log-probability (nats) of an order and an edge set, a scalar with gradient.

        ``-inf`` if an edge points backwards in ``order``, or does not lead to the decision.

        Raises:
            ConfigError: not an order of ``names``, or an edge that is not a candidate.
        """
        return self.law().names_log_prob(order, edges)

    def log_prob_edges(self, edges: Iterable[EdgeName]) -> Tensor:
        """Log-probability (nats) of an edge set under all orders; ``-inf`` for a cycle.

        Exact by dynamic programming over the 2^n sets of nodes.

        Raises:
            ConfigError: more than :data:`~swarm_ui.optim.edges.permutations.MAX_EXACT` nodes that
                may all hear each other, or an edge that is not a candidate.
        """
        return self.law().log_prob_sets(self.space.chosen([edges]))[0]

    def sample_log_probs(self, samples: Sequence[EdgeSample]) -> Tensor:
        """Log-probability (nats) of each sample, ``[B]``, with gradient.

        That of the edges, the order summed out, where the number of nodes allows it: the order
        explains the edges only weakly, and summing it out removes that noise.
        """
        return self.law().sample_log_probs(samples)

    def edge_logits(self, sample: EdgeSample) -> Tensor:
        """:attr:`logits`, whatever the sample."""
        return self.logits

    def mode(self) -> EdgeSample:
        """The most probable graph, see
        :meth:`~swarm_ui.optim.edges.plackett_luce.PlackettLuceEdges.mode`."""
        return self.law().mode()

    def marginals(self) -> dict[EdgeName, float]:
        """Probability that each candidate is drawn, over all orders (closed form).

        With a decision: before edges that do not lead to it are dropped.
        """
        return self.law().marginals()

    def _repr_svg_(self) -> str:
        # Drawing is imported only where something is drawn.
        from swarm_ui.viz import edges_svg

        likely = self.mode()
        title = f"{len(self.candidates)} possible edges; the most probable graph is blue"
        return edges_svg(self.marginals(), likely.order, likely.edges, title)

    def _repr_html_(self) -> str:
        from swarm_ui.viz import scrolling

        return scrolling(self._repr_svg_())

    def entropy(self) -> Tensor:
        """Entropy (nats) of the joint of order and edges, a scalar with gradient.

        Raises:
            ConfigError: more than :data:`~swarm_ui.optim.edges.permutations.MAX_EXACT` nodes of
                one level.
        """
        return self.law().entropy()

    def edge_entropy(self) -> Tensor:
        """Expected entropy (nats) of the edges once the order is known; any number of nodes."""
        return self.law().edge_entropy()
