"""A learnable distribution over DAGs, a random order of the nodes x Bernoulli edges, with its loss.

A sample is an order of the nodes (Plackett-Luce: among the remaining nodes of a part, node i is
next with probability proportional to ``exp(score_i)``), and then each candidate that points forward
in this order, with its own probability. So every sample is acyclic for all parameters, and
log-probabilities are exact. The sampler is that of differentiable DAG sampling (arXiv 2203.08509).

The order decides only about candidates inside a part of
:class:`~swarm_ui.optim.edges.candidates.CandidateGraph`: one between parts always points forward.

With a decision, a sample keeps the edges on a path to it. Given the order, these are again
independent, so their log-probability is exact too: the sum over all pairs of i before j in which j
has a path to the decision.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any, NamedTuple, Self

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from swarm_ui.collab_graph import CollabGraph
from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic
from swarm_ui.optim.edges.candidates import (
    MAX_EXACT,
    CandidateGraph,
    EdgeSample,
    best_order,
    edge_set_log_prob,
)
from swarm_ui.topology import Edge


class Draws(NamedTuple):
    """A batch of DAGs: node indices, first speaker first, ``[B, n]``; the candidates that are
    edges, ``[B, E]`` bool; and those that point forward and into a used node."""

    orders: Tensor
    chosen: Tensor
    counted: Tensor


class EdgeDistribution(nn.Module):
    """Distribution over the DAGs of a team, whose parameters any optimiser of torch can train.

    Attributes:
        names, candidates: the nodes, ``n``, and the edges that may occur, ``E``; sorted.
        graph: the candidate graph.
        scores: Plackett-Luce scores, shape ``[n]``.
        logits: log-odds of each candidate *given that its sender comes first*, shape ``[E]``.
    """

    def __init__(
        self,
        team: CollabGraph | Iterable[str],
        *,
        density: float = 0.5,
        candidates: Iterable[Edge] | None = None,
        decision: str | None = None,
    ) -> None:
        """At first all orders are equally likely and every candidate has probability ``density``.

        Args:
            team: its agents are the nodes; or names.
            density: a number in (0, 1); also the probability that two nodes are joined at all, if
                both directions are candidates.
            candidates: default: every ordered pair, but none from the decision.
            decision: a node that only receives messages. Samples keep the edges that lead to it.

        Raises:
            ConfigError: a repeated or unknown name, a self-loop, a decision that sends, or a
                density outside (0, 1).
        """
        super().__init__()
        if not 0.0 < density < 1.0:
            raise ConfigError(f"edge distribution: density must be in (0, 1), got {density}")
        names = team.agents if isinstance(team, CollabGraph) else team
        self.graph = CandidateGraph(names, candidates, decision)
        self.names, self.candidates = self.graph.names, self.graph.edges
        self.scores = nn.Parameter(torch.zeros(len(self.names)))
        odds = math.log(density / (1.0 - density))
        self.logits = nn.Parameter(torch.full((len(self.candidates),), odds))

    @classmethod
    def from_probabilities(cls, probabilities: Mapping[Edge, float]) -> Self:
        """Each edge with its own probability *given that its sender comes first*. Raises
        ``ConfigError`` for no edges, a self-loop, or a probability outside (0, 1)."""
        bad = [f"{a} -> {b}: {p}" for (a, b), p in probabilities.items() if not 0.0 < p < 1.0]
        if bad or not probabilities:
            raise ConfigError(
                "edge distribution: expected probabilities in (0, 1), got "
                f"{', '.join(bad) or 'no edges'}; put an edge that always occurs into the graph"
            )
        names = {name for edge in probabilities for name in edge}
        made = cls(names, candidates=probabilities)
        # In double precision: a probability close to 1 has infinite log-odds in single precision.
        listed = [probabilities[edge] for edge in made.candidates]
        with torch.no_grad():
            made.logits.copy_(torch.tensor(listed, dtype=torch.double).logit())
        return made

    def extra_repr(self) -> str:
        return f"{len(self.names)} nodes: {', '.join(self.names)}; {len(self.candidates)} edges"

    @torch.no_grad()
    def draw(self, batch: int, generator: torch.Generator | None = None) -> Draws:
        """``batch`` independent DAGs as tensors; equal generator states give equal DAGs."""
        graph = self.graph
        uniform = torch.rand(batch, len(self.names), generator=generator).clamp_min(1e-20)
        # Sorting scores with Gumbel noise gives a Plackett-Luce sample.
        orders = (self.scores - torch.log(-torch.log(uniform))).argsort(1, descending=True)
        if len(graph.parts) > 1:
            orders = orders.gather(1, graph.part_of[orders].argsort(dim=1, stable=True))
        chosen = torch.rand(batch, len(graph.edges), generator=generator) < self.logits.sigmoid()
        return self._draws(orders, chosen)

    def _draws(self, orders: Tensor, chosen: Tensor) -> Draws:
        """The draws without the edges that point backwards or lead into an unused node."""
        graph, (batch, n) = self.graph, orders.shape
        # Ranks as 16-bit integers: the two look-ups below are most of the work on large graphs.
        rank = torch.empty(batch, n, dtype=torch.int16)
        rank.scatter_(1, orders, torch.arange(n, dtype=torch.int16).expand(batch, n))
        counted = rank.index_select(1, graph.senders) < rank.index_select(1, graph.listeners)
        counted = counted & graph.leading(chosen & counted)
        return Draws(orders, chosen & counted, counted)

    def sample(self, batch: int, generator: torch.Generator | None = None) -> list[EdgeSample]:
        """``batch`` independent DAGs of named nodes. ``generator``: default: torch's own stream."""
        return self.records(self.draw(batch, generator))

    @torch.no_grad()
    def records(self, draws: Draws) -> list[EdgeSample]:
        """The drawn DAGs, with names in place of the numbers of nodes and edges."""
        chosen: list[list[Edge]] = [[] for _ in draws.orders]
        for row, edge in draws.chosen.nonzero().tolist():
            chosen[row].append(self.candidates[edge])
        orders = [[self.names[node] for node in order] for order in draws.orders.tolist()]
        log_probs = self.log_prob_draws(draws).tolist()
        return list(map(EdgeSample.of, orders, chosen, log_probs))

    @torch.no_grad()
    def mode(self) -> EdgeSample:
        """The most probable (order, edges), of which those that lead to the decision are kept. In a
        tie, the name that sorts first comes first, and an edge is absent. If more than 12 nodes may
        all reach each other: the most probable order, then the most probable edges given it."""
        best = torch.maximum(logsigmoid(self.logits), logsigmoid(-self.logits))
        (terms,) = self.graph.dense(best[None])
        order: list[int] = []
        for part in self.graph.parts:
            if len(part) <= MAX_EXACT:
                found = best_order(self.scores[part], terms[part][:, part])
                order += [part[i] for i in found]
            else:
                order += sorted(part, key=lambda i: -float(self.scores[i]))
        return self.records(self._draws(torch.tensor([order]), (self.logits > 0)[None]))[0]

    def log_prob_draws(self, draws: Draws) -> Tensor:
        """Joint log-probability (nats) of orders and edges, ``[B]``, with gradient."""
        kind = self.logits.dtype
        total = draws.chosen.to(kind) @ self.logits
        total = total - draws.counted.to(kind) @ softplus(self.logits)
        ranked, start = self.scores[draws.orders], 0
        for size in map(len, self.graph.parts):
            if size > 1:
                part = ranked[:, start : start + size]
                total = total + (part - part.flip(1).logcumsumexp(1).flip(1)).sum(1)
            start += size
        return total

    def log_prob(self, dags: Sequence[EdgeSample | Iterable[Edge]]) -> Tensor:
        """Log-probability (nats) of each DAG, ``[B]``, with gradient.

        The probability of the edges, summed over all orders, which removes the noise of the order;
        ``-inf`` for a cycle. If more than 12 nodes may all reach each other, it is that of order
        *and* edges, and only samples have one.

        Raises:
            ConfigError: an edge is not a candidate, or the edges need an order and have none.
        """
        graph, chosen = self.graph, self.graph.mask(dags)
        if max(map(len, graph.parts), default=0) > MAX_EXACT:
            samples = [dag for dag in dags if isinstance(dag, EdgeSample)]
            if len(samples) < len(dags):
                raise ConfigError(
                    f"log_prob: sums over orders are exact up to {MAX_EXACT} nodes that may all "
                    "reach each other, this distribution has more; give samples, which have an "
                    "order"
                )
            rows = [[graph.node_index[name] for name in s.order] for s in samples]
            draws = self._draws(torch.tensor(rows), chosen)
            possible = (chosen == draws.chosen).all(1)
            return torch.where(possible, self.log_prob_draws(draws), -math.inf)
        leading = graph.leading(chosen)
        terms = torch.where(chosen, logsigmoid(self.logits), logsigmoid(-self.logits))
        terms = torch.where(leading, terms, 0.0)
        total = (terms * graph.between).sum(1)
        dense, present = graph.dense(terms), graph.dense(chosen)
        for part in graph.parts:
            if len(part) > 1:
                total = total + edge_set_log_prob(
                    self.scores[part], dense[:, part][:, :, part], present[:, part][:, :, part]
                )
        return torch.where((chosen & ~leading).any(1), -math.inf, total)

    @torch.no_grad()
    def marginals(self) -> dict[Edge, float]:
        """Probability of each candidate over all orders, before any is dropped (closed form)."""
        graph = self.graph
        first = torch.sigmoid(self.scores[graph.senders] - self.scores[graph.listeners])
        chance = torch.where(graph.between, 1.0, first) * self.logits.sigmoid()
        return dict(zip(self.candidates, chance.tolist(), strict=True))

    def _repr_svg_(self) -> str:
        # Only a notebook needs the drawing code.
        from swarm_ui.viz import edges_svg

        likely = self.mode()
        title = f"{len(self.candidates)} possible edges; the most probable graph is outlined"
        return edges_svg(self.marginals(), likely.order, likely.edges, title)

    def _repr_html_(self) -> str:
        from swarm_ui.viz import scrolling

        return scrolling(self._repr_svg_())

    def save(self, path: Path) -> None:
        """Write parameters and names as safetensors. Raises ``ConfigError`` if it cannot."""
        metadata = {
            "names": json.dumps(self.names),
            "candidates": json.dumps(self.candidates),
            "decision": json.dumps(self.graph.decision),
        }
        tensors = {"scores": self.scores.detach(), "logits": self.logits.detach()}
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(Path(path), save(tensors, metadata))
        except OSError as error:
            raise ConfigError(f"{path}: the edges cannot be written ({error})") from error

    @classmethod
    def load(cls, path: Path) -> Self:
        """The distribution that :meth:`save` wrote. Raises ``ConfigError`` if there is none."""
        try:
            with safe_open(path, framework="pt") as file:
                about = file.metadata() or {}
                made = cls(
                    msgspec.json.decode(about["names"], type=list[str]),
                    candidates=msgspec.json.decode(about["candidates"], type=list[Edge]),
                    decision=msgspec.json.decode(about["decision"], type=str | None),
                )
                made.load_state_dict({k: file.get_tensor(k) for k in ("scores", "logits")})
        except (OSError, KeyError, RuntimeError, SafetensorError, msgspec.DecodeError) as error:
            raise ConfigError(f"{path}: not a readable edge file ({error})") from error
        return made


# -- learning ---------------------------------------------------------------------------------

MIN_PROBABILITY, MAX_SCORE = 0.03, 3.0


def edge_loss(
    edges: EdgeDistribution,
    dags: Sequence[EdgeSample],
    utilities: Sequence[float | None],
    *,
    groups: Sequence[object] | None = None,
    normalise: bool = True,
) -> Tensor:
    """The REINFORCE loss of drawn DAGs, a scalar: its descent makes DAGs of high utility likely.

    The baseline of a DAG is the mean utility of the *other* DAGs of its group (leave one out,
    unbiased). A DAG that is alone in its group adds nothing.

    Args:
        edges: the distribution, with the parameters that ``dags`` were drawn with.
        dags: samples.
        utilities: one for each DAG; ``None`` masks it, as if it had not been drawn.
        groups: for each DAG, an identifier of the task and seed it was tried on. Default: all are
            one group.
        normalise: divide advantages by the standard deviation of the utilities in their group.

    Raises:
        ConfigError: the arguments differ in length, or a number is not finite.
    """
    grouped = groups or [None for _ in dags]
    scored = [(k, u) for k, u in enumerate(utilities) if u is not None]
    finite = all(math.isfinite(utility) for _, utility in scored)
    if not len(dags) == len(utilities) == len(grouped) or not finite:
        raise ConfigError(
            f"edge_loss: expected finite utilities and groups of {len(dags)} DAGs, got "
            f"{len(utilities)} and {len(grouped)}; give None for a DAG that failed"
        )
    members: dict[object, list[float]] = {}
    for k, utility in scored:
        members.setdefault(grouped[k], []).append(utility)
    advantages = []
    for k, utility in scored:
        values = members[grouped[k]]
        spread = stdev(values) if len(values) > 1 else 0.0
        advantage = 0.0
        if spread > 1e-9:  # else all are equal, but for rounding
            baseline = (sum(values) - utility) / (len(values) - 1)
            advantage = (utility - baseline) / (spread if normalise else 1.0)
        advantages.append(advantage)
    if not any(advantages):
        return (edges.logits.sum() + edges.scores.sum()) * 0.0
    log_probs = edges.log_prob([dags[k] for k, _ in scored])
    return -(torch.tensor(advantages) * log_probs).sum() / len(scored)


class ProbabilitySGD(torch.optim.Optimizer):
    """Steps in probability space: ``p -= lr * dLoss/dlogit``.

    This is the natural gradient of a Bernoulli up to a constant. Near 0 or 1 it neither vanishes
    nor diverges, as steps on log-odds do. A step without gradient changes nothing.
    """

    def __init__(self, edges: EdgeDistribution, lr: float = 0.1) -> None:
        """
        Args:
            edges: updated in place. Probabilities stay in ``[0.03, 0.97]``, so that the entropy
                never becomes 0 and every edge can come back, and order scores in ``[-3, 3]``.
            lr: the change of a probability, or of an order score, for a gradient of 1.
        """
        groups: list[dict[str, Any]] = [
            {"params": [edges.logits], "kind": "logits"},
            {"params": [edges.scores], "kind": "scores"},
        ]
        super().__init__(groups, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one step with the gradients that the parameters have."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            (parameter,) = group["params"]
            if parameter.grad is None or not parameter.grad.any() or not group["lr"]:
                continue
            if group["kind"] == "logits":
                p = parameter.sigmoid() - group["lr"] * parameter.grad
                bounded = p.clamp(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
                parameter.copy_(bounded.logit())
            else:
                moved = parameter - group["lr"] * parameter.grad
                # Only differences of scores matter; centring keeps the bound symmetric.
                parameter.copy_((moved - moved.mean()).clamp(-MAX_SCORE, MAX_SCORE))
        return loss
