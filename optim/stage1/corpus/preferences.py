"""Level 3: a step of a successful walk against a plausible wrong one, in the same context."""

from __future__ import annotations

import random
from typing import NamedTuple

from swarm_ui.action import Action
from swarm_ui.message import Heard
from swarm_ui.model import Decision
from swarm_ui.optim.stage1.corpus.config import CorpusConfig
from swarm_ui.optim.stage1.corpus.quality import Reason, canonical, score_fault
from swarm_ui.optim.stage1.corpus.roles import Reply, Roles, WalkState

NEIGHBOURS = ("agent_0", "agent_1", "agent_2", "agent_3")


class Preference(NamedTuple):
    """A chosen and a rejected reply, and the messages in their context."""

    chosen: str
    rejected: str
    score: float | None
    rejected_score: float | None
    heard: tuple[Heard, ...]


class PreferenceMaker:
    """Makes preferences from steps."""

    def __init__(self, roles: Roles, config: CorpusConfig) -> None:
        self._roles, self._config = roles, config

    async def make(self, state: WalkState, reply: Reply, seed: int) -> Preference | Reason:
        """The preference of a step, or the reason why there is none.

        Args:
            state: the step.
            reply: the agent's reply at this step.
            seed: of all random choices.
        """
        chosen = canonical(reply.text, state.observation)
        if isinstance(chosen, str):
            return f"chosen: {chosen}"
        rng = random.Random(seed)
        found = await self._rejected(state, chosen, rng.getrandbits(31))
        if isinstance(found, str):
            return found
        rejected, score, rejected_score = found
        heard: tuple[Heard, ...] = ()
        if rng.random() < self._config.messages:
            heard = await self._neighbours(state, chosen[1], rng)
        return Preference(chosen[0], rejected, score, rejected_score, heard)

    async def _rejected(
        self, state: WalkState, chosen: tuple[str, Action], seed: int
    ) -> tuple[str, float | None, float | None] | Reason:
        """Rejection sampling: a possible reply with another action that is judged wrong."""
        rng, config, critic = random.Random(seed), self._config, self._roles.critic
        tried = {chosen[1].key}
        reason = "no negative: the adversary wrote nothing"
        for _ in range(config.attempts):
            seed = rng.getrandbits(31)
            reply = await self._roles.adversary.oppose(state, chosen[1], seed=seed)
            if reply is None:
                continue
            read = canonical(reply.text, state.observation)
            if isinstance(read, str):
                reason = f"no negative: {read}"
                continue
            text, action = read
            if action.key in tried:
                reason = "no negative: always the same act"
                continue
            tried.add(action.key)
            if critic is None:
                return text, None, None
            both = [chosen[0], text]
            good, bad = await critic.score_actions(state, both, seed=rng.getrandbits(31))
            fault = score_fault(good, config)
            if fault is not None:
                return f"chosen: {fault}"
            if bad is not None and bad < config.bad_below:
                return text, good, bad
            reason = "no negative: not judged wrong"
        return reason

    async def _neighbours(
        self, state: WalkState, good: Action, rng: random.Random
    ) -> tuple[Heard, ...]:
        """Messages of other agents about this screen.

        Some are samples of the agent itself, correct or wrong; the others are the adversary's.
        """
        config = self._config
        count = rng.randint(1, min(config.neighbours, len(NEIGHBOURS)))
        heard = []
        for sender in sorted(rng.sample(NEIGHBOURS, count)):
            seed, wrong = rng.getrandbits(31), rng.random() < config.wrong_neighbours
            reply: Reply | None
            if wrong:
                reply = await self._roles.adversary.oppose(state, good, seed=seed)
            else:
                decision = Decision(observation=state.observation)
                reply = await self._roles.agent.act(
                    state, decision, seed=seed, temperature=config.temperature
                )
            read = "nothing" if reply is None else canonical(reply.text, state.observation)
            if not isinstance(read, str):
                heard.append(Heard(sender=sender, round=0, content=read[0], action=read[1]))
        return tuple(heard)
