"""One walk through an environment, and the samples of three levels that come of it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import msgspec

from swarm_ui.action import Action, parse_action
from swarm_ui.environment import Environment, Restorable
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.stage1.corpus.corpus_config import CorpusConfig
from swarm_ui.optim.stage1.corpus.corpus_prompts import question_chat
from swarm_ui.optim.stage1.corpus.held_out import HeldOut
from swarm_ui.optim.stage1.corpus.quality import (
    Dropped,
    answer_fault,
    canonical,
    likeness,
    score_fault,
    size_fault,
)
from swarm_ui.optim.stage1.corpus.roles import Item, Judge, Opponent, Said, Scene, UIAgent, Written
from swarm_ui.optim.stage1.corpus.samples import (
    CORPUS_VERSION,
    Kind,
    Origin,
    Sample,
    Walked,
    sample_id,
)
from swarm_ui.optim.stage1.corpus.step_preferences import Preferences
from swarm_ui.prompts import decision_chat
from swarm_ui.rollout.episodes import SOLVED, WAIT

_MOST = {"complete": 2, "answer": 1}
"""Instructions of one screen that end with these; after the method's released code."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays the three roles."""

    agent: UIAgent
    adversary: Opponent
    critic: Judge | None


@dataclass(frozen=True, slots=True)
class Trodden:
    """A step of a walk."""

    index: int
    scene: Scene
    said: Said
    strayed: bool


class Walk:
    """Walks once, then writes about where it was."""

    def __init__(
        self,
        environment: Environment,
        cast: Cast,
        config: CorpusConfig,
        held_out: HeldOut,
        task: str,
        seed: int,
    ) -> None:
        self.environment, self.cast, self.config = environment, cast, config
        self.held_out = held_out
        self.task, self.seed = task, seed
        self.dropped = Dropped()

    async def run(self) -> Walked:
        """All of it. Raises ``EnvironmentFault`` and ``ModelError`` as those it asks do."""
        steps, success = await self._tread()
        samples: list[Sample] = []
        for step in self._shown(steps):
            if 1 in self.config.levels:
                samples += await self._questions(step)
            if 2 in self.config.levels:
                samples += await self._instructions(step)
        if 3 in self.config.levels:
            if success:
                samples += await self._preferences(steps)
            else:
                self.dropped.note(3, "the walk did not succeed", len(steps))
        return Walked(
            task=self.task,
            seed=self.seed,
            success=success,
            steps=len(steps),
            samples=tuple(samples),
            dropped=dict(self.dropped),
        )

    # -- walking ------------------------------------------------------------------------------

    async def _tread(self) -> tuple[list[Trodden], bool]:
        """The steps, and whether the world says that the task was done."""
        world, config = self.environment, self.config
        observation = await world.reset(task=self.task, seed=self.seed)
        steps: list[Trodden] = []
        while True:
            index = len(steps)
            state = world.snapshot() if isinstance(world, Restorable) else None
            scene = Scene(world, observation, state)
            seed = self._seed("act", index)
            decision = Decision(observation=observation)
            said = await self.cast.agent.act(scene, decision, seed=seed, temperature=0.0)
            action = parse_action(said.text)
            rng = random.Random(self._seed("stray", index))
            astray = random_act(observation, rng) if rng.random() < config.stray else None
            steps.append(Trodden(index, scene, said, astray is not None))
            chosen = astray or (action if isinstance(action, Action) else WAIT)
            step = await world.step(chosen)
            if step.fault is not None:
                raise Broken(step.fault, index)
            if step.ended or len(steps) == config.max_steps:
                return steps, step.reward >= SOLVED
            observation = step.observation

    def _shown(self, steps: list[Trodden]) -> list[Trodden]:
        """Steps with a screen of their own, the first one seldom, as many as are asked about."""
        rng = random.Random(self._seed("screens"))
        different: dict[object, Trodden] = {}
        for step in steps:
            screen = step.scene.observation
            different.setdefault((screen.app, screen.elements), step)
        found = list(different.values())
        if rng.random() >= self.config.first_screen:
            found = [step for step in found if step.index > 0]
        if len(found) > self.config.screens:
            found = sorted(rng.sample(found, self.config.screens), key=lambda step: step.index)
        return found

    # -- levels -------------------------------------------------------------------------------

    async def _questions(self, step: Trodden) -> list[Sample]:
        screen = step.scene.observation
        seed = self._seed("questions", step.index)
        written = await self.cast.agent.questions(step.scene, seed=seed)
        self.dropped.note(1, "malformed", written.malformed)
        items = []
        for item in written.items:
            fault = answer_fault(screen, item.asked, item.answer)
            if fault is None:
                items.append(Item(item.asked.strip(), item.answer.strip(), item.kind))
            else:
                self.dropped.note(1, fault)
        self.dropped.note(1, "more than asked for", max(0, len(items) - self.config.questions))
        return await self._judged(1, step, written, items[: self.config.questions])

    async def _instructions(self, step: Trodden) -> list[Sample]:
        screen = step.scene.observation
        seed = self._seed("instructions", step.index)
        written = await self.cast.agent.instructions(step.scene, seed=seed)
        self.dropped.note(2, "malformed", written.malformed)
        items, ends = [], Counter[str]()
        for item in written.items:
            read = canonical(item.answer, screen)
            if isinstance(read, str) or not item.asked.strip():
                self.dropped.note(2, read if isinstance(read, str) else "empty")
                continue
            text, action = read
            end = action.goal_status or action.action_type
            ends[end] += 1
            if ends[end] > _MOST.get(end, ends[end]):
                self.dropped.note(2, f"more than {_MOST[end]} with '{end}' on one screen")
            elif self.held_out.has_goal(item.asked):
                self.dropped.note(2, "goal of a held-out task")
            else:
                items.append(Item(item.asked.strip(), text))
        self.dropped.note(2, "more than asked for", max(0, len(items) - self.config.instructions))
        return await self._judged(2, step, written, items[: self.config.instructions])

    async def _judged(
        self, level: int, step: Trodden, written: Written, items: list[Item]
    ) -> list[Sample]:
        critic = self.cast.critic
        if not items:
            return []
        none: list[float | None] = [None] * len(items)
        scores = none if critic is None else await critic.answers(step.scene, items)
        samples = []
        for item, score in zip(items, scores, strict=True):
            fault = None if critic is None else score_fault(score, self.config)
            if fault is not None:
                self.dropped.note(level, fault)
                continue
            sample = self._answered(level, step, item, score, written.prompt)
            fault = size_fault(sample, self.config)
            if fault is None:
                samples.append(sample)
            else:
                self.dropped.note(level, fault)
        return samples

    def _answered(
        self, level: int, step: Trodden, item: Item, score: float | None, prompt: str
    ) -> Sample:
        screen = msgspec.structs.replace(step.scene.observation, goal="", history=())
        kind: Kind = "instruction" if level == 2 else "element"
        if level == 1:
            chat = question_chat(screen, item.asked)
            kind = "element" if item.kind == "element" else "screen"
        else:
            given = msgspec.structs.replace(screen, goal=item.asked)
            chat = decision_chat(Decision(observation=given))
        alike = likeness(level, screen, [item.asked], [item.answer])
        return self._sample(
            level, kind, chat, item.answer, alike, self._origin(step, prompt), score=score
        )

    async def _preferences(self, steps: list[Trodden]) -> list[Sample]:
        maker = Preferences(self.cast.agent, self.cast.adversary, self.cast.critic, self.config)
        samples = []
        for step in steps:
            if step.strayed:
                self.dropped.note(3, "the act was not executed")
                continue
            if self.held_out.has_goal(step.scene.observation.goal):
                self.dropped.note(3, "goal of a held-out task")
                continue
            made = await maker.make(step.scene, step.said, self._seed("preference", step.index))
            if isinstance(made, str):
                self.dropped.note(3, made)
                continue
            screen = step.scene.observation
            words = [heard.content for heard in made.heard]
            sample = self._sample(
                3,
                "preference",
                decision_chat(Decision(observation=screen, heard=made.heard)),
                made.chosen,
                likeness(3, screen, words, [made.chosen, made.rejected]),
                self._origin(step, step.said.prompt, adversary=self.cast.adversary.name),
                rejected=made.rejected,
                score=made.score,
                rejected_score=made.rejected_score,
                heard=len(made.heard),
            )
            fault = size_fault(sample, self.config)
            if fault is None:
                samples.append(sample)
            else:
                self.dropped.note(3, fault)
        return samples

    # -- records ------------------------------------------------------------------------------

    def _origin(self, step: Trodden, prompt: str, adversary: str = "") -> Origin:
        critic = self.cast.critic
        return Origin(
            environment=self.environment.name,
            task=self.task,
            seed=self.seed,
            step=step.index,
            agent=self.cast.agent.name,
            adversary=adversary,
            critic="" if critic is None else critic.name,
            prompt=prompt,
        )

    def _sample(
        self,
        level: int,
        kind: Kind,
        chat: tuple[ChatMessage, ...],
        response: str,
        alike: str,
        origin: Origin,
        *,
        rejected: str | None = None,
        score: float | None = None,
        rejected_score: float | None = None,
        heard: int = 0,
    ) -> Sample:
        return Sample(
            version=CORPUS_VERSION,
            id=sample_id(level, chat, response, rejected),
            level=level,  # type: ignore[arg-type]
            kind=kind,
            chat=chat,
            response=response,
            rejected=rejected,
            score=score,
            rejected_score=rejected_score,
            heard=heard,
            alike=alike,
            origin=origin,
        )

    def _seed(self, *purpose: str | int) -> int:
        return derive(self.config.seed, self.task, self.seed, *purpose)


class Broken(Exception):
    """The environment broke during a walk; carries why, and after how many whole steps."""

    def __init__(self, fault: str, steps: int) -> None:
        super().__init__(fault)
        self.fault, self.steps = fault, steps


def random_act(observation: Observation, rng: random.Random) -> Action | None:
    """A click on something, or a step back, to see more of the world than the way to the goal."""
    able = [e for e in observation.elements if e.clickable and e.enabled and not e.editable]
    back = not observation.actions or "navigate_back" in observation.actions
    if back and (not able or rng.random() < 0.2):
        return Action(action_type="navigate_back")
    if not able:
        return None
    element = rng.choice(able)
    return Action(action_type="click", index=element.index, target=element.label or None)
