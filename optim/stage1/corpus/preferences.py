"""Samples of level 3 of stage 1: a step of a successful walk and a plausible wrong one, in one
context.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from swarm_ui.action import Action
from swarm_ui.message import Heard
from swarm_ui.model import Decision
from swarm_ui.optim.stage1.corpus.config import CorpusConfig
from swarm_ui.optim.stage1.corpus.quality import Reason, canonical, score_fault, written
from swarm_ui.optim.stage1.corpus.roles import Reply, Roles, WalkState

NEIGHBOURS = ("agent_0", "agent_1", "agent_2", "agent_3")


class Preference(NamedTuple):
    """A chosen and a rejected reply, and the messages in their context."""

    chosen: str
    rejected: str
    score: float | None
    rejected_score: float | None
    heard: tuple[Heard, ...]


async def preference(
    state: WalkState, reply: Reply, roles: Roles, config: CorpusConfig, seed: int
) -> Preference | Reason:
    """The preference pair of a step, or the reason why there is none.

    Args:
        state: the step.
        reply: the agent's reply at this step.
        roles: the adversary writes the rejected reply, and the critic scores both.
        config: settings.
        seed: the seed of all random choices.
    """
    chosen = canonical(reply.text, state.observation)
    if isinstance(chosen, str):
        return f"chosen: {chosen}"
    rng = random.Random(seed)
    found = await _rejected(state, chosen, roles, config, random.Random(rng.getrandbits(31)))
    if isinstance(found, str):
        return found
    heard: tuple[Heard, ...] = ()
    if rng.random() < config.messages:
        heard = await _neighbours(state, chosen[1], roles, config, rng)
    text = written(*chosen, state.observation, config)
    return Preference(text, *found, heard)


async def _rejected(
    state: WalkState,
    chosen: tuple[str, Action],
    roles: Roles,
    config: CorpusConfig,
    rng: random.Random,
) -> tuple[str, float | None, float | None] | Reason:
    """Rejection sampling: a possible reply with another action that is judged wrong."""
    tried, critic = {chosen[1].key}, roles.critic
    reason = "the adversary wrote nothing"
    for _ in range(config.attempts):
        reply = await roles.adversary.oppose(state, chosen[1], seed=rng.getrandbits(31))
        if reply is None:
            continue
        read = canonical(reply.text, state.observation)
        if isinstance(read, str):
            reason = read
            continue
        text, action = read
        if action.key in tried:
            reason = "always the same act"
            continue
        tried.add(action.key)
        rejected = written(text, action, state.observation, config)
        if critic is None:
            return rejected, None, None
        both = [chosen[0], text]
        good, bad = await critic.score_actions(state, both, seed=rng.getrandbits(31))
        fault = score_fault(good, config)
        if fault is not None:
            return f"chosen: {fault}"
        if bad is not None and bad < config.bad_below:
            return rejected, good, bad
        reason = "not judged wrong"
    return f"no negative: {reason}"


async def _neighbours(
    state: WalkState, good: Action, roles: Roles, config: CorpusConfig, rng: random.Random
) -> tuple[Heard, ...]:
    """Messages of other agents about this screen.

    Some are samples of the agent itself, correct or wrong; the others are the adversary's.
    """
    count = rng.randint(1, min(config.neighbours, len(NEIGHBOURS)))
    decision, heard = Decision(observation=state.observation), []
    for sender in sorted(rng.sample(NEIGHBOURS, count)):
        seed, wrong = rng.getrandbits(31), rng.random() < config.wrong_neighbours
        reply: Reply | None
        if wrong:
            reply = await roles.adversary.oppose(state, good, seed=seed)
        else:
            warm = config.temperature
            reply = await roles.agent.act(state, decision, seed=seed, temperature=warm)
        read = "nothing" if reply is None else canonical(reply.text, state.observation)
        if not isinstance(read, str):
            content, form = written(*read, state.observation, config), config.prompt_format
            message = Heard(
                sender=sender, round=0, content=content, action=read[1], prompt_format=form
            )
            heard.append(message)
    return tuple(heard)
