"""One walk through an environment, and its samples: questions about screens, instructions of one
step, and preferences."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, NamedTuple

import msgspec

from swarm_ui.action import Action, parse_action
from swarm_ui.environment import Environment, Restorable
from swarm_ui.errors import EnvironmentFault
from swarm_ui.message import Heard
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.stage1.checks import (
    DropCounts,
    Read,
    Reason,
    answer_fault,
    canonical,
    score_fault,
    written,
)
from swarm_ui.optim.stage1.roles import (
    TEMPERATURE,
    Item,
    Items,
    Role,
    WalkState,
    answer_text,
    question_chat,
)
from swarm_ui.optim.stage1.samples import CorpusConfig, Level, Origin, Sample, WalkResult
from swarm_ui.prompts import format_named
from swarm_ui.rollout.episode import SOLVED, WAIT

NEIGHBOURS = ("agent_0", "agent_1", "agent_2", "agent_3")
_MOST_HEARD, _WRONG = 3, 0.4
"""Maximum number of messages of neighbours, and the share of them that the adversary writes."""
_ATTEMPTS = 4
"""Maximum number of replies of the adversary for one preference."""
_LONGEST = 30
"""Maximum number of steps; the environment may end a walk earlier."""
_FIRST_SCREEN = 0.2
"""Probability that the first screen of a walk gets questions. It is low, because the first screens
of all walks are similar. This and the next are the values in the method's released code."""
_MOST = {"complete": 2, "answer": 1}
"""Maximum number of instructions for one screen that end with these."""


class Roles(NamedTuple):
    """Who writes and judges."""

    agent: Role
    adversary: Role
    critic: Role | None


class WalkStep(NamedTuple):
    number: int
    state: WalkState
    reply: str
    strayed: bool
    """Whether a random action was executed instead of the reply's."""


class Walk:
    """A walk through one environment for one task and seed, and the samples of it."""

    def __init__(
        self,
        environment: Environment,
        roles: Roles,
        config: CorpusConfig,
        job: tuple[str, int],
    ) -> None:
        self.environment, self.roles, self.config = environment, roles, config
        self.task, self.seed = job
        self.samples, self.dropped = list[Sample](), DropCounts()

    async def run(self) -> WalkResult:
        """Play the walk and make the samples. Raises ``EnvironmentFault`` or ``ModelError``."""
        steps, success = await self._walk()
        levels = self.config.levels
        for step in self._distinct_screens(steps):
            if 1 in levels:
                await self._questions(step)
            if 2 in levels:
                await self._instructions(step)
        if 3 in levels and success:
            for step in steps:
                dropped = await self._preference(step)
                if dropped is not None:
                    self.dropped.note(3, dropped)
        elif 3 in levels:
            self.dropped.note(3, "the walk did not succeed", len(steps))
        return WalkResult(
            task=self.task, seed=self.seed, success=success, steps=len(steps),
            samples=tuple(self.samples), dropped=dict(self.dropped),
        )  # fmt: skip

    def _seed(self, *purpose: str | int) -> int:
        """A seed for the random choice with this purpose."""
        return derive(self.config.seed, self.task, self.seed, *purpose)

    async def _walk(self) -> tuple[list[WalkStep], bool]:
        """The steps, and whether the task was solved."""
        environment, config = self.environment, self.config
        observation = await environment.reset(task=self.task, seed=self.seed)
        steps: list[WalkStep] = []
        while True:
            index = len(steps)
            snapshot = environment.snapshot() if isinstance(environment, Restorable) else None
            state = WalkState(environment, observation, snapshot)
            reply = await self.roles.agent.act(
                state, seed=self._seed("act", index), temperature=0.0
            )
            action = parse_action(reply)
            rng = random.Random(self._seed("stray", index))
            stray = random_action(observation, rng) if rng.random() < config.stray else None
            steps.append(WalkStep(index, state, reply, stray is not None))
            step = await environment.step(stray or (action if isinstance(action, Action) else WAIT))
            if step.fault is not None:
                raise EnvironmentFault(step.fault)
            if step.ended or len(steps) == _LONGEST:
                return steps, step.reward >= SOLVED
            observation = step.observation

    def _distinct_screens(self, steps: list[WalkStep]) -> list[WalkStep]:
        """At most ``config.screens`` steps with different screens, seldom the first one."""
        rng, most = random.Random(self._seed("screens")), self.config.screens
        different: dict[object, WalkStep] = {}
        for step in steps:
            screen = step.state.observation
            different.setdefault((screen.app, screen.elements), step)
        found = list(different.values())
        if rng.random() >= _FIRST_SCREEN:
            found = [step for step in found if step.number > 0]
        if len(found) > most:
            found = sorted(rng.sample(found, most), key=lambda step: step.number)
        return found

    async def _questions(self, step: WalkStep) -> None:
        seed, items = self._seed("questions", step.number), []
        said = await self.roles.agent.questions(step.state, seed=seed)
        for item in said.items:
            fault = answer_fault(step.state.observation, item.asked, item.answer)
            if fault is None:
                items.append(Item(item.asked.strip(), item.answer.strip()))
            else:
                self.dropped.note(1, fault)
        await self._judge(1, step, said, items, self.config.questions)

    async def _instructions(self, step: WalkStep) -> None:
        seed = self._seed("instructions", step.number)
        said = await self.roles.agent.instructions(step.state, seed=seed)
        items, ends = [], Counter[str]()
        for item in said.items:
            read = canonical(item.answer, step.state.observation)
            if isinstance(read, str) or not item.asked.strip():
                self.dropped.note(2, read if isinstance(read, str) else "empty")
                continue
            text, action = read
            end = action.goal_status or action.action_type
            ends[end] += 1
            if ends[end] > _MOST.get(end, ends[end]):
                self.dropped.note(2, f"more than {_MOST[end]} with '{end}' on one screen")
            else:
                items.append(Item(item.asked.strip(), text))
        await self._judge(2, step, said, items, self.config.instructions)

    async def _judge(
        self, level: Level, step: WalkStep, said: Items, items: list[Item], most: int
    ) -> None:
        """Keep at most ``most`` items that the critic finds right."""
        critic = self.roles.critic
        self.dropped.note(level, "malformed", said.malformed)
        self.dropped.note(level, "more than asked for", max(0, len(items) - most))
        items = items[:most]
        scores: list[float | None] = [None] * len(items)
        if critic is not None and items:
            scores = await critic.score_answers(step.state, items)
        for item, score in zip(items, scores, strict=True):
            fault = None if critic is None else score_fault(score)
            if fault is None:
                self._keep_answer(level, step, item, score)
            else:
                self.dropped.note(level, fault)

    def _keep_answer(self, level: Level, step: WalkStep, item: Item, score: float | None) -> None:
        config, form = self.config, self.config.prompt_format
        screen = msgspec.structs.replace(step.state.observation, goal="", history=())
        if level == 1:
            chat = question_chat(screen, item.asked, form)
            response = answer_text(screen, item.answer, form)
        else:
            screen = msgspec.structs.replace(screen, goal=item.asked)
            chat = format_named(form).chat(Decision(observation=screen))
            action = parse_action(item.answer)
            assert isinstance(action, Action)  # items are in canonical form
            response = written(item.answer, action, screen, config)
        self._keep(level, step, chat, response, score=score)

    def _keep(
        self,
        level: Level,
        step: WalkStep,
        chat: tuple[ChatMessage, ...],
        response: str,
        **others: Any,
    ) -> None:
        roles = self.roles
        origin = Origin(
            environment=self.environment.name, task=self.task, seed=self.seed, step=step.number,
            agent=roles.agent.name, adversary=roles.adversary.name if level == 3 else "",
            critic="" if roles.critic is None else roles.critic.name,
        )  # fmt: skip
        self.samples.append(
            Sample(
                level=level, chat=chat, response=response, origin=origin,
                prompt_format=self.config.prompt_format, **others,
            )
        )  # fmt: skip

    async def _preference(self, step: WalkStep) -> Reason | None:
        """Keep a preference pair of a step: the agent's reply, and one that the adversary wrote.
        Returns why there is none."""
        config, screen = self.config, step.state.observation
        if step.strayed:
            return "the act was not executed"
        read = canonical(step.reply, screen)
        if isinstance(read, str):
            return f"chosen: {read}"
        rng = random.Random(self._seed("preference", step.number))
        found = await self._rejected(step.state, read, random.Random(rng.getrandbits(31)))
        if isinstance(found, str):
            return found
        heard: tuple[Heard, ...] = ()
        if rng.random() < config.messages:
            heard = await self._neighbours(step.state, read[1], rng)
        wrong, score, rejected_score = found
        chat = format_named(config.prompt_format).chat(Decision(observation=screen, heard=heard))
        self._keep(
            3, step, chat, written(*read, screen, config), score=score,
            rejected=written(*wrong, screen, config), rejected_score=rejected_score,
            heard=len(heard),
        )  # fmt: skip
        return None

    async def _rejected(
        self, state: WalkState, chosen: Read, rng: random.Random
    ) -> tuple[Read, float | None, float | None] | Reason:
        """Rejection sampling: a possible reply with another action that is judged wrong, with the
        scores of the chosen one and its own; or the reason why there is none."""
        tried, critic = {chosen[1].key}, self.roles.critic
        reason = "the adversary wrote nothing"
        for _ in range(_ATTEMPTS):
            reply = await self.roles.adversary.oppose(state, chosen[1], seed=rng.getrandbits(31))
            if reply is None:
                continue
            read = canonical(reply, state.observation)
            if isinstance(read, str) or read[1].key in tried:
                reason = read if isinstance(read, str) else "always the same act"
                continue
            tried.add(read[1].key)
            if critic is None:
                return read, None, None
            seed = rng.getrandbits(31)
            good, bad = await critic.score_actions(state, [chosen, read], seed=seed)
            fault = score_fault(good)
            if fault is not None:
                return f"chosen: {fault}"
            if bad is not None and bad < 0.5:
                return read, good, bad
            reason = "not judged wrong"
        return f"no negative: {reason}"

    async def _neighbours(
        self, state: WalkState, good: Action, rng: random.Random
    ) -> tuple[Heard, ...]:
        """Messages of other agents about this screen: some are samples of the agent itself, correct
        or wrong; the others are the adversary's."""
        heard: list[Heard] = []
        form, agent = self.config.prompt_format, self.roles.agent
        for sender in sorted(rng.sample(NEIGHBOURS, rng.randint(1, _MOST_HEARD))):
            seed, wrong = rng.getrandbits(31), rng.random() < _WRONG
            reply: str | None
            if wrong:
                reply = await self.roles.adversary.oppose(state, good, seed=seed)
            else:
                reply = await agent.act(state, seed=seed, temperature=TEMPERATURE)
            read = "nothing" if reply is None else canonical(reply, state.observation)
            if not isinstance(read, str):
                said = written(*read, state.observation, self.config)
                heard.append(
                    Heard(sender=sender, round=0, content=said, action=read[1], prompt_format=form)
                )
        return tuple(heard)


def random_action(observation: Observation, rng: random.Random) -> Action | None:
    """A random click, or a step back, so that a walk also visits screens that are not on the way
    to the goal."""
    able = [e for e in observation.elements if e.clickable and e.enabled and not e.editable]
    if observation.offers("navigate_back") and (not able or rng.random() < 0.2):
        return Action(action_type="navigate_back")
    if not able:
        return None
    element = rng.choice(able)
    return Action(action_type="click", index=element.index, target=element.label or None)
