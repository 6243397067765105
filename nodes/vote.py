"""Votes: nodes that close a graph and turn proposals into one decision."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum
from typing import Literal

import msgspec

from swarm_ui.action import Abstain, Action, ActionKey
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.message import Message, abstains
from swarm_ui.model import Request, ScoringModel
from swarm_ui.node import ModelNode, NodeContext, NodeReply, Scope, Source, Ties
from swarm_ui.nodes.voting_rules import best, candidates, exact, hierarchical, nearest_top

NO_PROPOSAL = NodeReply(error="nobody proposed a valid action", ballot={})
ALL_PASSED = NodeReply(content=Abstain().json(), ballot={})
"""The vote passes too, which is no failure; the step is lost."""


def _nothing(inbox: Sequence[Message]) -> NodeReply:
    """What a vote without proposals says."""
    return ALL_PASSED if inbox and all(abstains(message) for message in inbox) else NO_PROPOSAL


@dataclass(frozen=True, slots=True)
class MajorityVote:
    """The act proposed most often.

    Ties are broken by a hash of the run's seed and the act: the paper is silent, its released code
    draws at random among the tied. Who passes has no vote.
    """

    id: str = "vote"
    scope: Scope = "last"
    """Proposals of the last round (the released code), or the whole matrix (the paper's text)."""
    rule: Literal["exact", "hierarchical"] = "exact"
    """``"hierarchical"``: by type, then element, then text, as the paper's released code."""
    ties: Ties = "seed"
    """``"top"``: the act on the element nearest to the top of the screen wins (acts without an
    element last), instead of the hash; only then the hash. For ``rule="exact"``. Neither depends
    on the graph."""

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        proposals = [message.action for message in inbox if message.action is not None]
        if not proposals:
            return _nothing(inbox)
        acts = candidates(proposals)
        counts = dict.fromkeys(acts, 0.0)
        for action in proposals:
            counts[action.key] += 1.0
        if self.rule == "hierarchical":
            return _decided(acts, counts, hierarchical(proposals, context.run_seed))
        if self.ties == "top":
            return _decided(acts, counts, nearest_top(acts, counts, context.run_seed))
        return _decided(acts, counts, exact(proposals, context.run_seed))


@dataclass(frozen=True, slots=True)
class ProbabilityVote:
    """The act with the largest sum, over all agents, of its probability under the agent.

    Each agent is asked in its own context: its view of the screen, what it heard in its last
    round, its adapter. Agents whose own proposal was invalid are asked too; failed ones are not.
    Nothing is asked if all proposals agree.
    """

    id: str = "vote"

    @property
    def scope(self) -> Scope:
        return "last"

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        proposals = [message.action for message in inbox if message.action is not None]
        if not proposals:
            return _nothing(inbox)
        acts = candidates(proposals)
        if len(acts) == 1:
            key = next(iter(acts))
            return _decided(acts, {key: _agreed(inbox)}, key)
        sources = [context.source(message) for message in inbox]
        weights = await _weigh(acts, [s for s in sources if s.call.error is None], context)
        return _decided(acts, weights, best(weights, context.run_seed))


def _agreed(inbox: Sequence[Message]) -> float:
    """Sum of the probabilities that agreeing agents gave their own words; unknown ones count 1."""
    return fsum(
        1.0 if message.logprob is None else exp(message.logprob)
        for message in inbox
        if message.action is not None
    )


class _Questions:
    """What one model is asked: how probable an act is, under each agent that it speaks for."""

    def __init__(self, model: ScoringModel) -> None:
        self.model = model
        self.keys: list[ActionKey] = []
        self.requests: list[Request] = []
        self.replies: list[str] = []

    async def ask(self) -> list[float]:
        scores = await self.model.score(self.requests, self.replies)
        if len(scores) != len(self.keys):
            raise ModelError(
                f"model '{self.model.name}' gave {len(scores)} scores for {len(self.keys)} replies"
            )
        return scores


async def _weigh(
    acts: Mapping[ActionKey, Action], sources: Sequence[Source], context: NodeContext
) -> dict[ActionKey, float]:
    """Summed probability of each act; one scoring call a model, all models at the same time."""
    asked: dict[int, _Questions] = {}
    for source in sources:
        node, model = _scorer(source)
        questions = asked.setdefault(id(model), _Questions(model))
        request = context.pinned(model, node.request(source.decision))
        request = msgspec.structs.replace(request, run=context.run)
        for key, action in acts.items():
            shown = source.view.from_screen(action)
            if shown is not None:
                questions.keys.append(key)
                questions.requests.append(request)
                questions.replies.append(shown.json())
    found: dict[ActionKey, list[float]] = {key: [] for key in acts}
    scores = await _together([questions.ask() for questions in asked.values()])
    for questions, logprobs in zip(asked.values(), scores, strict=True):
        for key, logprob in zip(questions.keys, logprobs, strict=True):
            found[key].append(exp(logprob))
    # fsum is exact, so the weights do not depend on the order of the agents.
    return {key: fsum(probabilities) for key, probabilities in found.items()}


async def _together(questions: Sequence[Coroutine[None, None, list[float]]]) -> list[list[float]]:
    if len(questions) == 1:
        return [await questions[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(question) for question in questions]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def _scorer(source: Source) -> tuple[ModelNode, ScoringModel]:
    node = source.node
    if not isinstance(node, ModelNode):
        raise ConfigError(
            f"a probability vote cannot ask '{source.call.node}': a {type(node).__name__} has no "
            "model. Let only agents vote, or use a majority vote"
        )
    if not isinstance(node.model, ScoringModel):
        raise ConfigError(
            f"a probability vote cannot ask '{source.call.node}': model '{node.model.name}' does "
            "not score replies. Use vote='majority', or a model with score()"
        )
    return node, node.model


def _decided(
    acts: Mapping[ActionKey, Action], weights: Mapping[ActionKey, float], winner: ActionKey
) -> NodeReply:
    action = acts[winner]
    ballot = {acts[key].json(): weights[key] for key in acts}
    return NodeReply(content=action.json(), action=action, ballot=ballot)
