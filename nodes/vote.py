"""Votes: nodes that close a graph and turn proposals into one decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import exp, fsum
from typing import TypeVar

import msgspec

from swarm_ui.action import Abstain, Action, ActionKey
from swarm_ui.engine.tasks import together
from swarm_ui.errors import ConfigError
from swarm_ui.message import Message
from swarm_ui.model import ScoringModel
from swarm_ui.node import ModelNode, NodeContext, NodeReply, Scope, Source

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class MajorityVote:
    """A closing node that chooses the action proposed most often.

    Ties are broken by a hash of the run's seed and the action. The paper does not define a tie
    rule; its released code draws at random. Agents that abstain are not counted. Raises
    ``ConfigError`` for an unknown ``scope``.
    """

    id: str = "vote"
    scope: Scope = "last"
    """Proposals of the last round (the released code), or the whole matrix (the paper's text)."""

    def __post_init__(self) -> None:
        if self.scope not in ("last", "all"):
            raise ConfigError(
                f"vote '{self.id}': scope must be 'last' or 'all', got {self.scope!r}"
            )

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        proposals = [message.action for message in inbox if message.action is not None]
        acts, counts = candidates(proposals), Counter(action.key for action in proposals)
        return _decided(inbox, acts, {key: float(counts[key]) for key in acts}, context)


@dataclass(frozen=True, slots=True)
class ProbabilityVote:
    """A closing node that chooses the most probable action.

    The weight of an action is the sum of its probabilities under all agents. Each agent scores
    the actions in its own context: its view of the screen, the messages of its last round, and its
    adapter. Agents whose own proposal was invalid score too; agents that failed do not. Nothing is
    scored if all proposals agree.
    """

    id: str = "vote"

    @property
    def scope(self) -> Scope:
        return "last"

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        proposing = [message for message in inbox if message.action is not None]
        acts = candidates([message.action for message in proposing if message.action is not None])
        if len(acts) < 2:
            made = [context.source(message).call.completion for message in proposing]
            # An unknown probability counts 1.
            chances = fsum(exp(each.logprob or 0.0) if each else 1.0 for each in made)
            return _decided(inbox, acts, dict.fromkeys(acts, chances), context)
        sources = [context.source(message) for message in inbox]
        weights = await _weigh(acts, [s for s in sources if s.call.error is None], context)
        return _decided(inbox, acts, weights, context)


async def _weigh(
    acts: Mapping[ActionKey, Action], sources: Sequence[Source], context: NodeContext
) -> dict[ActionKey, float]:
    """Summed probability of each act; one scoring call per agent, all concurrently."""

    async def scored(source: Source) -> dict[ActionKey, float]:
        node = source.node
        if not isinstance(node, ModelNode) or not isinstance(node.model, ScoringModel):
            raise ConfigError(
                f"a probability vote cannot ask '{source.call.node}', which has no model that "
                "scores replies; expected a model with score(). Or use vote='majority'"
            )
        request = context.pinned(node.model, node.request(source.decision))
        seen = {key: source.view.from_screen(action) for key, action in acts.items()}
        replies = {key: shown.json() for key, shown in seen.items() if shown is not None}
        scores = await node.model.score([request] * len(replies), [*replies.values()])
        return dict(zip(replies, scores, strict=True))

    found = await together([scored(source) for source in sources])
    # fsum is exact, so the weights do not depend on the order of the agents.
    return {key: fsum(exp(each[key]) for each in found if key in each) for key in acts}


def _decided(
    inbox: Sequence[Message],
    acts: Mapping[ActionKey, Action],
    weights: Mapping[ActionKey, float],
    context: NodeContext,
) -> NodeReply:
    """The reply of a vote. If all agents abstained, the vote abstains: that is not a failure, and
    the step has no effect."""
    if acts:
        action = acts[winner(weights, context.run_seed)]
        ballot = {acts[key].json(): weights[key] for key in acts}
        return NodeReply(content=action.json(), action=action, ballot=ballot)
    if inbox and all(message.abstains for message in inbox):
        return NodeReply(content=Abstain().json(), abstains=True, ballot={})
    return NodeReply(error="nobody proposed a valid action", ballot={})


# -- counting, which does not depend on the order of the proposals ------------------------------


def winner(weights: Mapping[K, float], seed: int) -> K:
    """The candidate with the largest weight; of equal ones that with the smallest hash of seed and
    candidate. So it does not depend on the graph, on the order of the nodes, or on who made a
    proposal first."""
    top = max(weights.values())
    tied = [key for key, weight in weights.items() if weight == top]
    return min(
        tied, key=lambda key: blake2b(msgspec.json.encode((seed, key)), digest_size=8).digest()
    )


def candidates(proposals: Sequence[Action]) -> dict[ActionKey, Action]:
    """The distinct actions, each with its most frequent ``target``; among equally frequent ones,
    with the alphabetically first."""
    wordings: dict[ActionKey, Counter[Action]] = {}
    for action in proposals:
        wordings.setdefault(action.key, Counter())[action] += 1
    chosen = {
        key: min(counts, key=lambda action: (-counts[action], action.json()))
        for key, counts in wordings.items()
    }
    return dict(sorted(chosen.items(), key=lambda item: item[1].json()))
