"""One walk through an environment, and its samples: questions about screens, instructions of one
step, and preferences."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from swarm_ui.action import Action, parse_action
from swarm_ui.environment import Environment, Restorable
from swarm_ui.model import Decision
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.stage1.corpus.config import CorpusConfig
from swarm_ui.optim.stage1.corpus.preferences import preference
from swarm_ui.optim.stage1.corpus.prompts import answer_text, question_chat
from swarm_ui.optim.stage1.corpus.quality import (
    DropCounts,
    Reason,
    answer_fault,
    canonical,
    likeness,
    score_fault,
    size_fault,
    written,
)
from swarm_ui.optim.stage1.corpus.roles import Item, Items, Reply, Roles, WalkState
from swarm_ui.optim.stage1.corpus.samples import (
    CORPUS_VERSION,
    HeldOut,
    Kind,
    Level,
    Origin,
    Sample,
    WalkResult,
    sample_id,
)
from swarm_ui.prompts import format_named
from swarm_ui.rollout.episode import SOLVED, WAIT

_MOST = {"complete": 2, "answer": 1}
"""Maximum number of instructions for one screen that end with these; as in the method's released
code."""


@dataclass(frozen=True, slots=True)
class WalkStep:
    index: int
    state: WalkState
    reply: Reply
    strayed: bool
    """Whether a random action was executed instead of the agent's."""
    agreed: bool
    """Whether a walker's action here is the agent's, or is judged right too."""


class WalkFault(Exception):
    """The environment failed during a walk, after ``steps`` complete steps."""

    def __init__(self, fault: str, steps: int) -> None:
        super().__init__(fault)
        self.steps = steps


@dataclass(slots=True, eq=False)
class SampledEpisode:
    """One episode from which samples are made, and what was dropped of it."""

    environment: Environment
    config: CorpusConfig
    held_out: HeldOut
    task: str
    seed: int
    dropped: DropCounts = field(default_factory=DropCounts, init=False)

    def keep(self, samples: list[Sample], sample: Sample, fault: Reason | None = None) -> None:
        """Add a sample, unless there is a reason to drop it."""
        fault = fault or size_fault(sample, self.config)
        if fault is None:
            samples.append(sample)
        else:
            self.dropped.note(sample.level, fault)

    def result(self, success: bool | None, steps: int, samples: list[Sample]) -> WalkResult:
        """The samples, with the counts of what was dropped."""
        return WalkResult(
            task=self.task,
            seed=self.seed,
            success=success,
            steps=steps,
            samples=tuple(samples),
            dropped=dict(self.dropped),
        )

    def seed_for(self, *purpose: str | int) -> int:
        """A seed for the random choice with this purpose."""
        return derive(self.config.seed, self.task, self.seed, *purpose)


@dataclass(slots=True, eq=False)
class Walk(SampledEpisode):
    """Makes one walk, then samples of its screens and steps."""

    roles: Roles

    async def run(self) -> WalkResult:
        """Make the walk and its samples.

        Raises:
            WalkFault, EnvironmentFault: the environment failed.
            ModelError: a model failed.
        """
        steps, success = await self._walk()
        samples: list[Sample] = []
        for step in self._distinct_screens(steps):
            if 1 in self.config.levels:
                samples += await self._questions(step)
            if 2 in self.config.levels:
                samples += await self._instructions(step)
        if 3 in self.config.levels:
            # A walker's mistakes are not the agent's, whose replies the critic judges one by one.
            if success or self.roles.walker is not None:
                samples += await self._preferences(steps)
            else:
                self.dropped.note(3, "the walk did not succeed", len(steps))
        return self.result(success, len(steps), samples)

    async def _walk(self) -> tuple[list[WalkStep], bool]:
        """The steps, and whether the environment says that the task was solved."""
        environment, config = self.environment, self.config
        observation = await environment.reset(task=self.task, seed=self.seed)
        steps: list[WalkStep] = []
        walker = None if self.roles.walker is None else _WalkerActions(self.roles, config)
        while True:
            index = len(steps)
            snapshot = environment.snapshot() if isinstance(environment, Restorable) else None
            state = WalkState(environment, observation, snapshot)
            seed = self.seed_for("act", index)
            decision = Decision(observation=observation)
            reply = await self.roles.agent.act(state, decision, seed=seed, temperature=0.0)
            action = parse_action(reply.text)
            rng = random.Random(self.seed_for("stray", index))
            stray = random_click(observation, rng) if rng.random() < config.stray else None
            acted = action if isinstance(action, Action) else WAIT
            agreed = False
            if walker is not None:
                moved = await walker.action(state, acted, seed=self.seed_for("walk", index))
                agreed, acted = moved.agreed, moved.action
            steps.append(WalkStep(index, state, reply, stray is not None, agreed))
            step = await environment.step(stray or acted)
            if step.fault is not None:
                raise WalkFault(step.fault, index)
            if step.ended or len(steps) == config.max_steps:
                return steps, step.reward >= SOLVED
            observation = step.observation

    def _distinct_screens(self, steps: list[WalkStep]) -> list[WalkStep]:
        """At most ``config.screens`` steps with different screens, seldom the first one."""
        rng = random.Random(self.seed_for("screens"))
        different: dict[object, WalkStep] = {}
        for step in steps:
            screen = step.state.observation
            different.setdefault((screen.app, screen.elements), step)
        found = list(different.values())
        if rng.random() >= self.config.first_screen:
            found = [step for step in found if step.index > 0]
        if len(found) > self.config.screens:
            found = sorted(rng.sample(found, self.config.screens), key=lambda step: step.index)
        return found

    async def _questions(self, step: WalkStep) -> list[Sample]:
        seed = self.seed_for("questions", step.index)
        said = await self.roles.agent.questions(step.state, seed=seed)
        self.dropped.note(1, "malformed", said.malformed)
        items = []
        for item in said.items:
            fault = answer_fault(step.state.observation, item.asked, item.answer)
            if fault is None:
                items.append(Item(item.asked.strip(), item.answer.strip(), item.kind))
            else:
                self.dropped.note(1, fault)
        return await self._judged(1, step, said, items, self.config.questions)

    async def _instructions(self, step: WalkStep) -> list[Sample]:
        seed = self.seed_for("instructions", step.index)
        said = await self.roles.agent.instructions(step.state, seed=seed)
        self.dropped.note(2, "malformed", said.malformed)
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
            elif self.held_out.has_goal(item.asked):
                self.dropped.note(2, "goal of a held-out task")
            else:
                items.append(Item(item.asked.strip(), text))
        return await self._judged(2, step, said, items, self.config.instructions)

    async def _judged(
        self, level: Level, step: WalkStep, said: Items, items: list[Item], most: int
    ) -> list[Sample]:
        """The samples of at most ``most`` items that the critic finds right."""
        self.dropped.note(level, "more than asked for", max(0, len(items) - most))
        items = items[:most]
        critic = self.roles.critic
        if not items:
            return []
        scores: list[float | None] = [None] * len(items)
        if critic is not None:
            scores = await critic.score_answers(step.state, items)
        samples: list[Sample] = []
        for item, score in zip(items, scores, strict=True):
            fault = None if critic is None else score_fault(score, self.config)
            sample = self._answered(level, step, item, score, said.prompt)
            self.keep(samples, sample, fault)
        return samples

    def _answered(
        self, level: Level, step: WalkStep, item: Item, score: float | None, prompt: str
    ) -> Sample:
        screen = msgspec.structs.replace(step.state.observation, goal="", history=())
        kind: Kind = "instruction"
        form = self.config.prompt_format
        if level == 1:
            kind = "element" if item.kind == "element" else "screen"
            chat = question_chat(screen, item.asked, form)
            response = answer_text(screen, item.answer, form)
        else:
            screen = msgspec.structs.replace(screen, goal=item.asked)
            chat = format_named(self.config.prompt_format).chat(Decision(observation=screen))
            action = parse_action(item.answer)
            assert isinstance(action, Action)  # items are in canonical form
            response = written(item.answer, action, screen, self.config)
        return Sample(
            version=CORPUS_VERSION,
            id=sample_id(level, chat, response, None),
            level=level,
            kind=kind,
            chat=chat,
            response=response,
            score=score,
            prompt_format=form,
            alike=likeness(level, screen, [item.asked], [response]),
            origin=self._origin(step, prompt),
        )

    async def _preferences(self, steps: list[WalkStep]) -> list[Sample]:
        samples: list[Sample] = []
        for step in steps:
            screen = step.state.observation
            if step.strayed:
                self.dropped.note(3, "the act was not executed")
                continue
            if self.held_out.has_goal(screen.goal):
                self.dropped.note(3, "goal of a held-out task")
                continue
            drawn = random.Random(self.seed_for("agreed", step.index)).random()
            if step.agreed and drawn >= self.config.agreed:
                self.dropped.note(3, "the walker is right")
                continue
            seed = self.seed_for("preference", step.index)
            made = await preference(step.state, step.reply, self.roles, self.config, seed)
            if isinstance(made, str):
                self.dropped.note(3, made)
                continue
            chat = format_named(self.config.prompt_format).chat(
                Decision(observation=screen, heard=made.heard)
            )
            messages = [heard.content for heard in made.heard]
            sample = Sample(
                version=CORPUS_VERSION,
                id=sample_id(3, chat, made.chosen, made.rejected),
                level=3,
                kind="preference",
                chat=chat,
                response=made.chosen,
                rejected=made.rejected,
                score=made.score,
                rejected_score=made.rejected_score,
                prompt_format=self.config.prompt_format,
                heard=len(made.heard),
                alike=likeness(3, screen, messages, [made.chosen, made.rejected]),
                origin=self._origin(step, step.reply.prompt, self.roles.adversary.name),
            )
            self.keep(samples, sample)
        return samples

    def _origin(self, step: WalkStep, prompt: str, adversary: str = "") -> Origin:
        critic = self.roles.critic
        return Origin(
            environment=self.environment.name,
            task=self.task,
            seed=self.seed,
            step=step.index,
            agent=self.roles.agent.name,
            adversary=adversary,
            critic="" if critic is None else critic.name,
            prompt=prompt,
        )


class _WalkerAction(NamedTuple):
    action: Action
    agreed: bool
    """Whether a walker's action is the agent's, or is judged right too."""


class _WalkerActions:
    """The actions of a walker in one walk."""

    def __init__(self, roles: Roles, config: CorpusConfig) -> None:
        self._roles, self._config = roles, config
        self._done: set[tuple[object, ...]] = set()

    async def action(self, state: WalkState, agents: Action, *, seed: int) -> _WalkerAction:
        """The walker's action, or the agent's where the walker's cannot be read, would end the
        task, or was executed on this screen before."""
        walker, critic = self._roles.walker, self._roles.critic
        assert walker is not None and critic is not None  # a walker needs a critic
        screen = state.observation
        own = await walker.walk(Decision(observation=screen), seed=seed)
        if own is None:
            return _WalkerAction(agents, agreed=False)
        agreed = own.key == agents.key
        if not agreed:
            (score,) = await critic.score_actions(state, [own.json()], seed=seed)
            agreed = score is not None and score > self._config.good_above
        place = (screen.app, screen.elements, own.key)
        if own.action_type == "status" or place in self._done:
            return _WalkerAction(agents, agreed)
        self._done.add(place)
        return _WalkerAction(own, agreed)


def random_click(observation: Observation, rng: random.Random) -> Action | None:
    """A random click, or a step back, so that a walk also visits screens that are not on the way
    to the goal."""
    able = [e for e in observation.elements if e.clickable and e.enabled and not e.editable]
    if observation.offers("navigate_back") and (not able or rng.random() < 0.2):
        return Action(action_type="navigate_back")
    if not able:
        return None
    element = rng.choice(able)
    return Action(action_type="click", index=element.index, target=element.label or None)
