"""One walk through an environment, and its samples: questions about screens, instructions of one
step, and preferences."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.environment import Environment, Restorable
from swarm_ui.errors import EnvironmentFault
from swarm_ui.message import Heard
from swarm_ui.model import ChatModel, Decision
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.adversary import fits
from swarm_ui.optim.preferences import with_label
from swarm_ui.optim.stage1.roles import TEMPERATURE, Item, ModelRole, Read, WalkState
from swarm_ui.optim.stage1.samples import CorpusConfig, Level, Origin, Sample, WalkResult
from swarm_ui.optim.stage1.templates import ScriptedRole
from swarm_ui.prompts import format_named, reason_of, utterance
from swarm_ui.rollout import Job
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


class Dropped(Exception):
    """Why an item is dropped; the reasons are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The model, or the script, for each role.

    One model may play all three: ``Models(agent=model, adversary=model, critic=model)``.
    """

    agent: ChatModel | ScriptedRole
    adversary: ChatModel | ScriptedRole
    critic: ChatModel | ScriptedRole | None
    """``None``: nothing is judged, and nothing is dropped for being wrong."""

    @staticmethod
    def scripted() -> Models:
        """Roles without a language model, for environments that are
        :class:`~swarm_ui.environment.Graded`, such as the embedded phone."""
        role = ScriptedRole()
        return Models(agent=role, adversary=role, critic=role)


class Walk:
    """A walk through one environment for one task and seed, and the samples of it."""

    def __init__(
        self, environment: Environment, models: Models, config: CorpusConfig, job: Job
    ) -> None:
        def role(given: ChatModel | ScriptedRole) -> ModelRole | ScriptedRole:
            return ModelRole(given, config) if isinstance(given, ChatModel) else given

        self.environment, self.config = environment, config
        self.agent, self.adversary = role(models.agent), role(models.adversary)
        self.critic = None if models.critic is None else role(models.critic)
        self.task, self.seed = job
        self.form = format_named(config.prompt_format)
        self.samples, self.dropped = list[Sample](), Counter[str]()

    async def run(self) -> WalkResult:
        """Play the walk and make the samples. Raises ``EnvironmentFault`` or ``ModelError``."""
        steps, success = await self._walk()
        for state in self._distinct_screens([state for state, _ in steps]):
            for level in (1, 2):
                if level in self.config.levels:
                    await self._write(level, state)
        for state, reply in steps if 3 in self.config.levels else ():
            try:
                await self._preference(state, reply, success)
            except Dropped as why:
                self.dropped[f"level 3: {why}"] += 1
        return WalkResult(
            task=self.task, seed=self.seed, success=success, steps=len(steps),
            samples=tuple(self.samples), dropped=dict(self.dropped),
        )  # fmt: skip

    def _seed(self, *purpose: str | int) -> int:
        return derive(self.config.seed, self.task, self.seed, *purpose)

    async def _walk(self) -> tuple[list[tuple[WalkState, str | None]], bool]:
        """The steps, each with the agent's reply, or ``None`` where a random action was executed
        instead; and whether the task was solved."""
        environment, steps = self.environment, list[tuple[WalkState, str | None]]()
        observation = await environment.reset(task=self.task, seed=self.seed)
        while True:
            snapshot = environment.snapshot() if isinstance(environment, Restorable) else None
            state = WalkState(len(steps), environment, observation, snapshot)
            seed = self._seed("act", state.number)
            reply = await self.agent.act(state, seed=seed, temperature=0.0)
            rng, action = random.Random(self._seed("stray", state.number)), parse_action(reply)
            stray = random_action(observation, rng) if rng.random() < self.config.stray else None
            steps.append((state, None if stray else reply))
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

    async def _write(self, level: Level, state: WalkState) -> None:
        """Keep questions or instructions that the critic finds right."""
        config, critic, dropped = self.config, self.critic, list[str]()
        what, most = "questions", config.questions
        if level == 2:
            what, most = "instructions", config.instructions
        items, ends = list[Item](), Counter[str]()
        seed = self._seed(what, state.number)
        for item in await self.agent.write(state, level, seed=seed):
            try:
                items.append(_checked(level, item, state.observation, ends))
            except Dropped as why:
                dropped.append(str(why))
        dropped += ["more than asked for"] * (len(items) - most)
        items = items[:most]
        scores: list[float | None] = [None] * len(items)
        if critic is not None and items:
            scores = await critic.score_answers(state, items)
        for item, score in zip(items, scores, strict=True):
            if critic is not None and score_fault(score):
                dropped.append(score_fault(score))
                continue
            screen = replace(state.observation, goal=item.asked, history=())
            if level == 1:  # a question is a goal that an answer reaches
                screen = replace(screen, actions=screen.actions and (*screen.actions, "answer"))
                response = self.form.write(Action(action_type="answer", text=item.answer), screen)
            else:
                action = parse_action(item.answer)
                assert isinstance(action, Action)  # it is in canonical form
                response = self._written((item.answer, action), screen)
            self._keep(level, state, Decision(observation=screen), response, score=score)
        self.dropped.update(f"level {level}: {why}" for why in dropped)

    def _keep(
        self, level: Level, state: WalkState, decision: Decision, response: str, **others: Any
    ) -> None:
        origin = Origin(
            environment=self.environment.name, task=self.task, seed=self.seed, step=state.number
        )
        self.samples.append(
            Sample(
                level=level, chat=self.form.chat(decision), response=response, origin=origin,
                prompt_format=self.form.name, heard=len(decision.heard), **others,
            )
        )  # fmt: skip

    async def _preference(self, state: WalkState, reply: str | None, success: bool) -> None:
        """Keep the agent's reply against one that the adversary wrote. Raises ``Dropped``."""
        screen = state.observation
        if not success:
            raise Dropped("the walk did not succeed")
        if reply is None:
            raise Dropped("the act was not executed")
        try:
            chosen = canonical(reply, screen)
        except Dropped as why:
            raise Dropped(f"chosen: {why}") from None
        rng = random.Random(self._seed("preference", state.number))
        wrong, scores = await self._rejected(state, chosen, random.Random(rng.getrandbits(31)))
        heard: tuple[Heard, ...] = ()
        if rng.random() < self.config.messages:
            heard = await self._neighbours(state, chosen[1], rng)
        self._keep(
            3, state, Decision(observation=screen, heard=heard), self._written(chosen, screen),
            rejected=self._written(wrong, screen), score=scores[0], rejected_score=scores[1],
        )  # fmt: skip

    async def _rejected(
        self, state: WalkState, chosen: Read, rng: random.Random
    ) -> tuple[Read, list[float | None]]:
        """Rejection sampling: a possible reply with another action that is judged wrong, and the
        scores of the chosen one and of this one. Raises ``Dropped`` if there is none."""
        tried, critic = {chosen[1].key}, self.critic
        reason = "the adversary wrote nothing"
        for _ in range(_ATTEMPTS):
            reply = await self.adversary.oppose(state, chosen[1], seed=rng.getrandbits(31))
            if reply is None:
                continue
            try:
                read = canonical(reply, state.observation)
            except Dropped as why:
                reason = str(why)
                continue
            if read[1].key in tried:
                reason = "always the same act"
                continue
            tried.add(read[1].key)
            if critic is None:
                return read, [None, None]
            seed = rng.getrandbits(31)
            scores = await critic.score_actions(state, [chosen, read], seed=seed)
            if fault := score_fault(scores[0]):
                raise Dropped(f"chosen: {fault}")
            if scores[1] is not None and scores[1] < 0.5:
                return read, scores
            reason = "not judged wrong"
        raise Dropped(f"no negative: {reason}")

    async def _neighbours(
        self, state: WalkState, good: Action, rng: random.Random
    ) -> tuple[Heard, ...]:
        """Messages of other agents about this screen: some are samples of the agent itself, correct
        or wrong; the others are the adversary's. One that cannot be read is left out."""
        heard, form = list[Heard](), self.form.name
        for sender in sorted(rng.sample(NEIGHBOURS, rng.randint(1, _MOST_HEARD))):
            seed = rng.getrandbits(31)
            reply: str | None
            if rng.random() < _WRONG:
                reply = await self.adversary.oppose(state, good, seed=seed)
            else:
                reply = await self.agent.act(state, seed=seed, temperature=TEMPERATURE)
            try:
                read = canonical(reply or "", state.observation)
            except Dropped:
                continue
            said, action = self._written(read, state.observation), read[1]
            heard.append(
                Heard(sender=sender, round=0, content=said, action=action, prompt_format=form)
            )
        return tuple(heard)

    def _written(self, reply: Read, screen: Observation) -> str:
        """A canonical reply as the corpus has it: in its format, with or without reason."""
        text, action = reply
        if self.form.name == "json" and self.config.reasons:
            return text
        return self.form.write(action, screen, reason_of(text) if self.config.reasons else "")


def _checked(level: Level, item: Item | None, screen: Observation, ends: Counter[str]) -> Item:
    """An item in canonical form. ``ends`` counts the actions of the instructions for this screen.
    Raises ``Dropped``."""
    if item is None:
        raise Dropped("malformed")
    asked, answer = item.asked.strip(), item.answer.strip()
    if level == 2:
        answer, action = canonical(answer, screen)
    if not asked or not answer:
        raise Dropped("empty")
    if level == 2:
        end = action.goal_status or action.action_type
        ends[end] += 1
        if ends[end] > _MOST.get(end, ends[end]):
            raise Dropped(f"more than {_MOST[end]} with '{end}' on one screen")
    return Item(asked, answer)


def canonical(reply: str, observation: Observation) -> Read:
    """A reply in canonical form, with its action. Raises ``Dropped``.

    The canonical form is a reason, then the action with the label of its element. Good and bad
    replies get the same form, so that they differ only in content.
    """
    action = parse_action(reply)
    if isinstance(action, Unparsed):
        raise Dropped("no valid action")
    if not observation.offers(action.action_type):
        raise Dropped("an act that means nothing here")
    if not fits(action, observation):
        raise Dropped("impossible on this screen")
    meant = observation.element(action.index)
    label = "" if meant is None else _plain(meant.label)
    if action.target and label not in ("", _plain(action.target)):
        raise Dropped("label and number of different elements")
    action = with_label(action, observation)
    text = utterance(reply, action)
    reason = text.rpartition("\nAction:")[0].removeprefix("Reason:").strip()
    if not reason:
        raise Dropped("no reason given")
    return f"Reason: {' '.join(reason.split())}\nAction: {action.json()}", action


def score_fault(score: float | None) -> str:
    """Why an item with this score is dropped; empty if it is not."""
    if score is None:
        return "the critic did not say"
    return "" if score > 0.5 else "judged wrong" if score < 0.5 else "the critic cannot tell"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def random_action(observation: Observation, rng: random.Random) -> Action | None:
    """A random click, or a step back, so that a walk also visits screens that are not on the way
    to the goal."""
    able = [e for e in observation.elements if e.clickable and e.enabled and not e.editable]
    if observation.offers("navigate_back") and (not able or rng.random() < 0.2):
        return Action(action_type="navigate_back")
    if not able:
        return None
    return with_label(Action(action_type="click", index=rng.choice(able).index), observation)
