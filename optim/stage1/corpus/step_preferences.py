"""Level 3: a step of a successful walk against a plausible wrong one, in the same context."""

from __future__ import annotations

import random
from typing import NamedTuple

from swarm_ui.action import Action
from swarm_ui.message import Heard
from swarm_ui.model import Decision
from swarm_ui.optim.stage1.corpus.corpus_config import CorpusConfig
from swarm_ui.optim.stage1.corpus.quality import Reason, canonical, score_fault
from swarm_ui.optim.stage1.corpus.roles import Judge, Opponent, Said, Scene, UIAgent

NEIGHBOURS = ("agent_0", "agent_1", "agent_2", "agent_3")


class Preference(NamedTuple):
    """What is preferred to what, after hearing whom."""

    chosen: str
    rejected: str
    score: float | None
    rejected_score: float | None
    heard: tuple[Heard, ...]


class Preferences:
    """Makes preferences of steps."""

    def __init__(
        self, agent: UIAgent, adversary: Opponent, critic: Judge | None, config: CorpusConfig
    ) -> None:
        self._agent, self._adversary, self._critic = agent, adversary, critic
        self._config = config

    async def make(self, scene: Scene, said: Said, seed: int) -> Preference | Reason:
        """The preference of a step, or why there is none.

        Args:
            scene: the step.
            said: what the agent replied there.
            seed: of everything that is drawn.
        """
        chosen = canonical(said.text, scene.observation)
        if isinstance(chosen, str):
            return f"chosen: {chosen}"
        rng = random.Random(seed)
        found = await self._opposed(scene, chosen, rng.getrandbits(31))
        if isinstance(found, str):
            return found
        rejected, score, against = found
        heard: tuple[Heard, ...] = ()
        if rng.random() < self._config.messages:
            heard = await self._neighbours(scene, chosen[1], rng)
        return Preference(chosen[0], rejected, score, against, heard)

    async def _opposed(
        self, scene: Scene, chosen: tuple[str, Action], seed: int
    ) -> tuple[str, float | None, float | None] | Reason:
        """Rejection sampling: a reply that is possible here, another act, and wrong."""
        rng, config = random.Random(seed), self._config
        tried = {chosen[1].key}
        reason = "no negative: the adversary wrote nothing"
        for _ in range(config.attempts):
            said = await self._adversary.oppose(scene, chosen[1], seed=rng.getrandbits(31))
            if said is None:
                continue
            read = canonical(said.text, scene.observation)
            if isinstance(read, str):
                reason = f"no negative: {read}"
                continue
            text, action = read
            if action.key in tried:
                reason = "no negative: always the same act"
                continue
            tried.add(action.key)
            if self._critic is None:
                return text, None, None
            both = [chosen[0], text]
            good, bad = await self._critic.acts(scene, both, seed=rng.getrandbits(31))
            fault = score_fault(good, config)
            if fault is not None:
                return f"chosen: {fault}"
            if bad is not None and bad < config.bad_below:
                return text, good, bad
            reason = "no negative: not judged wrong"
        return reason

    async def _neighbours(
        self, scene: Scene, good: Action, rng: random.Random
    ) -> tuple[Heard, ...]:
        """Messages of others about this screen: some the agent's own samples, right or wrong as
        they come, and some the adversary's."""
        config = self._config
        count = rng.randint(1, min(config.neighbours, len(NEIGHBOURS)))
        heard = []
        for sender in sorted(rng.sample(NEIGHBOURS, count)):
            seed, wrong = rng.getrandbits(31), rng.random() < config.wrong_neighbours
            said: Said | None
            if wrong:
                said = await self._adversary.oppose(scene, good, seed=seed)
            else:
                decision = Decision(observation=scene.observation)
                said = await self._agent.act(
                    scene, decision, seed=seed, temperature=config.temperature
                )
            read = "nothing" if said is None else canonical(said.text, scene.observation)
            if not isinstance(read, str):
                heard.append(Heard(sender=sender, round=0, content=read[0], action=read[1]))
        return tuple(heard)
