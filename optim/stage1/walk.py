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
from swarm_ui.model import Decision
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
    Chat,
    Item,
    Role,
    WalkState,
    answer_text,
    question_chat,
)
from swarm_ui.optim.stage1.samples import CorpusConfig, Job, Level, Origin, Sample, WalkResult
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


class Walk:
    """A walk through one environment for one task and seed, and the samples of it."""

    def __init__(
        self, environment: Environment, roles: Roles, config: CorpusConfig, job: Job
    ) -> None:
        self.environment, self.roles, self.config = environment, roles, config
        self.task, self.seed = job
        self.replies = list[str | None]()
        """``None``: a random action was executed instead."""
        self.samples, self.dropped = list[Sample](), DropCounts()

    async def run(self) -> WalkResult:
        """Play the walk and make the samples. Raises ``EnvironmentFault`` or ``ModelError``."""
        steps, success = await self._walk()
        levels = self.config.levels
        for state in self._distinct_screens(steps):
            if 1 in levels:
                await self._write(1, state, self.config.questions)
            if 2 in levels:
                await self._write(2, state, self.config.instructions)
        for state in steps if 3 in levels else ():
            dropped = await self._preference(state) if success else "the walk did not succeed"
            if dropped is not None:
                self.dropped.note(3, dropped)
        return WalkResult(
            task=self.task, seed=self.seed, success=success, steps=len(steps),
            samples=tuple(self.samples), dropped=dict(self.dropped),
        )  # fmt: skip

    def _seed(self, *purpose: str | int) -> int:
        """A seed for the random choice with this purpose."""
        return derive(self.config.seed, self.task, self.seed, *purpose)

    async def _walk(self) -> tuple[list[WalkState], bool]:
        """The steps, and whether the task was solved."""
        environment, steps = self.environment, list[WalkState]()
        observation = await environment.reset(task=self.task, seed=self.seed)
        while True:
            snapshot = environment.snapshot() if isinstance(environment, Restorable) else None
            state = WalkState(len(steps), environment, observation, snapshot)
            seed = self._seed("act", state.number)
            reply = await self.roles.agent.act(state, seed=seed, temperature=0.0)
            rng, action = random.Random(self._seed("stray", state.number)), parse_action(reply)
            stray = random_action(observation, rng) if rng.random() < self.config.stray else None
            steps.append(state)
            self.replies.append(None if stray else reply)
            step = await environment.step(stray or (action if isinstance(action, Action) else WAIT))
            if step.fault is not None:
                raise EnvironmentFault(step.fault)
            if step.ended or len(steps) == _LONGEST:
                return steps, step.reward >= SOLVED
            observation = step.observation

    def _distinct_screens(self, steps: list[WalkState]) -> list[WalkState]:
        """At most ``config.screens`` steps with different screens, seldom the first one."""
        rng, most = random.Random(self._seed("screens")), self.config.screens
        different: dict[object, WalkState] = {}
        for step in steps:
            different.setdefault((step.observation.app, step.observation.elements), step)
        found = list(different.values())
        if rng.random() >= _FIRST_SCREEN:
            found = [step for step in found if step.number > 0]
        if len(found) > most:
            found = sorted(rng.sample(found, most), key=lambda step: step.number)
        return found

    async def _write(self, level: Level, state: WalkState, most: int) -> None:
        """Keep at most ``most`` questions or instructions that the critic finds right."""
        seed = self._seed("questions" if level == 1 else "instructions", state.number)
        items, ends = list[Item](), Counter[str]()
        for item in await self.roles.agent.write(state, level, seed=seed):
            checked = _checked(level, item, state.observation, ends)
            if isinstance(checked, str):
                self.dropped.note(level, checked)
            else:
                items.append(checked)
        self.dropped.note(level, "more than asked for", max(0, len(items) - most))
        items, critic = items[:most], self.roles.critic
        scores: list[float | None] = [None] * len(items)
        if critic is not None and items:
            scores = await critic.score_answers(state, items)
        for item, score in zip(items, scores, strict=True):
            fault = None if critic is None else score_fault(score)
            if fault is None:
                self._keep_answer(level, state, item, score)
            else:
                self.dropped.note(level, fault)

    def _keep_answer(self, level: Level, state: WalkState, item: Item, score: float | None) -> None:
        config, form = self.config, self.config.prompt_format
        screen = msgspec.structs.replace(state.observation, goal="", history=())
        if level == 1:
            chat = question_chat(screen, item.asked, form)
            response = answer_text(screen, item.answer, form)
        else:
            screen = msgspec.structs.replace(screen, goal=item.asked)
            chat = format_named(form).chat(Decision(observation=screen))
            action = parse_action(item.answer)
            assert isinstance(action, Action)  # items are in canonical form
            response = written(item.answer, action, screen, config)
        self._keep(level, state, chat, response, score=score)

    def _keep(
        self, level: Level, state: WalkState, chat: Chat, response: str, **others: Any
    ) -> None:
        roles = self.roles
        origin = Origin(
            environment=self.environment.name, task=self.task, seed=self.seed, step=state.number,
            agent=roles.agent.name, adversary=roles.adversary.name if level == 3 else "",
            critic="" if roles.critic is None else roles.critic.name,
        )  # fmt: skip
        self.samples.append(
            Sample(
                level=level, chat=chat, response=response, origin=origin,
                prompt_format=self.config.prompt_format, **others,
            )
        )  # fmt: skip

    async def _preference(self, state: WalkState) -> Reason | None:
        """Keep a preference pair of a step: the agent's reply, and one that the adversary wrote.
        Returns why there is none."""
        config, screen = self.config, state.observation
        reply = self.replies[state.number]
        if reply is None:
            return "the act was not executed"
        read = canonical(reply, screen)
        if isinstance(read, str):
            return f"chosen: {read}"
        rng = random.Random(self._seed("preference", state.number))
        found = await self._rejected(state, read, random.Random(rng.getrandbits(31)))
        if isinstance(found, str):
            return found
        heard: tuple[Heard, ...] = ()
        if rng.random() < config.messages:
            heard = await self._neighbours(state, read[1], rng)
        wrong, score, rejected_score = found
        chat = format_named(config.prompt_format).chat(Decision(observation=screen, heard=heard))
        self._keep(
            3, state, chat, written(*read, screen, config), score=score,
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


def _checked(
    level: Level, item: Item | None, screen: Observation, ends: Counter[str]
) -> Item | Reason:
    """An item in canonical form, or why it is dropped. ``ends`` counts the actions of the
    instructions for this screen."""
    if item is None:
        return "malformed"
    asked, answer = item.asked.strip(), item.answer.strip()
    if level == 1:
        return answer_fault(screen, asked, answer) or Item(asked, answer)
    read = canonical(answer, screen)
    if isinstance(read, str) or not asked:
        return read if isinstance(read, str) else "empty"
    text, action = read
    end = action.goal_status or action.action_type
    ends[end] += 1
    if ends[end] > _MOST.get(end, ends[end]):
        return f"more than {_MOST[end]} with '{end}' on one screen"
    return Item(asked, text)


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
