"""One walk through an environment, and its samples: questions about screens, instructions of one
step, and preferences. Or one episode of a team, and the prompts and replies of its agents."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from swarm_ui.action import Action, parse_action
from swarm_ui.environment import Environment, Restorable
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.message import Heard
from swarm_ui.model import Decision
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.stage1.checks import (
    DropCounts,
    Reason,
    answer_fault,
    canonical,
    likeness,
    score_fault,
    written,
)
from swarm_ui.optim.stage1.roles import (
    Checker,
    Item,
    Items,
    Opponent,
    Reply,
    UIAgent,
    WalkState,
    answer_text,
    question_chat,
)
from swarm_ui.optim.stage1.samples import (
    CorpusConfig,
    HeldOut,
    Kind,
    Level,
    Origin,
    Sample,
    WalkResult,
    sample_id,
    short_hash,
)
from swarm_ui.prompts import chat_of, format_named
from swarm_ui.rollout import Policy, rollout
from swarm_ui.rollout.episode import SOLVED, WAIT
from swarm_ui.trace.records import Call, Episode

NEIGHBOURS = ("agent_0", "agent_1", "agent_2", "agent_3")
_MOST_HEARD, _WRONG = 3, 0.4
"""Maximum number of messages of neighbours, and the share of them that the adversary writes."""
_ATTEMPTS = 4
"""Maximum number of replies of the adversary for one preference."""
_MOST = {"complete": 2, "answer": 1}
"""Maximum number of instructions for one screen that end with these; as in the method's released
code."""


class WalkFault(Exception):
    """The environment failed during a walk, after ``steps`` complete steps."""

    def __init__(self, fault: str, steps: int) -> None:
        super().__init__(fault)
        self.steps = steps


@dataclass(slots=True, eq=False)
class Harvest:
    """The samples of one episode, and the counts of what was dropped of it."""

    config: CorpusConfig
    held_out: HeldOut
    environment: str
    """Its name."""
    task: str
    seed: int
    samples: list[Sample] = field(default_factory=list)
    dropped: DropCounts = field(default_factory=DropCounts)

    def seed_for(self, *purpose: str | int) -> int:
        """A seed for the random choice with this purpose."""
        return derive(self.config.seed, self.task, self.seed, *purpose)

    def keep(self, sample: Sample, fault: Reason | None = None) -> None:
        """Add a sample, unless there is a reason to drop it."""
        if fault is None:
            self.samples.append(sample)
        else:
            self.dropped.note(sample.level, fault)

    def origin(self, step: int, agent: str, prompt: str, **judges: str) -> Origin:
        return Origin(
            environment=self.environment,
            task=self.task,
            seed=self.seed,
            step=step,
            agent=agent,
            prompt=prompt,
            **judges,
        )

    def result(self, success: bool | None, steps: int) -> WalkResult:
        return WalkResult(
            task=self.task,
            seed=self.seed,
            success=success,
            steps=steps,
            samples=tuple(self.samples),
            dropped=dict(sorted(self.dropped.items())),
        )


@dataclass(frozen=True, slots=True)
class Roles:
    """The objects that play the three roles of a synthesis: UI agent, adversary and critic."""

    agent: UIAgent
    adversary: Opponent
    critic: Checker | None

    @property
    def judge(self) -> str:
        return "" if self.critic is None else self.critic.name


class WalkStep(NamedTuple):
    number: int
    state: WalkState
    reply: Reply
    strayed: bool
    """Whether a random action was executed instead of the agent's."""


@dataclass(slots=True, eq=False)
class Walk:
    """Makes one walk, then samples of its screens and steps."""

    environment: Environment
    roles: Roles
    harvest: Harvest

    async def run(self) -> WalkResult:
        """Make the walk and its samples.

        Raises:
            WalkFault, EnvironmentFault: the environment failed.
            ModelError: a model failed.
        """
        steps, success = await self._walk()
        levels = self.harvest.config.levels
        for step in self._distinct_screens(steps):
            if 1 in levels:
                await self._questions(step)
            if 2 in levels:
                await self._instructions(step)
        if 3 in levels and success:
            for step in steps:
                await self._preference(step)
        elif 3 in levels:
            self.harvest.dropped.note(3, "the walk did not succeed", len(steps))
        return self.harvest.result(success, len(steps))

    async def _walk(self) -> tuple[list[WalkStep], bool]:
        """The steps, and whether the task was solved."""
        environment, harvest = self.environment, self.harvest
        observation = await environment.reset(task=harvest.task, seed=harvest.seed)
        steps: list[WalkStep] = []
        while True:
            index = len(steps)
            snapshot = environment.snapshot() if isinstance(environment, Restorable) else None
            state = WalkState(environment, observation, snapshot)
            seed = harvest.seed_for("act", index)
            reply = await self.roles.agent.act(state, seed=seed, temperature=0.0)
            action = parse_action(reply.text)
            rng = random.Random(harvest.seed_for("stray", index))
            strays = rng.random() < harvest.config.stray
            stray = random_action(observation, rng) if strays else None
            steps.append(WalkStep(index, state, reply, stray is not None))
            step = await environment.step(stray or (action if isinstance(action, Action) else WAIT))
            if step.fault is not None:
                raise WalkFault(step.fault, index)
            if step.ended or len(steps) == harvest.config.max_steps:
                return steps, step.reward >= SOLVED
            observation = step.observation

    def _distinct_screens(self, steps: list[WalkStep]) -> list[WalkStep]:
        """At most ``config.screens`` steps with different screens, seldom the first one."""
        config = self.harvest.config
        rng = random.Random(self.harvest.seed_for("screens"))
        different: dict[object, WalkStep] = {}
        for step in steps:
            screen = step.state.observation
            different.setdefault((screen.app, screen.elements), step)
        found = list(different.values())
        if rng.random() >= config.first_screen:
            found = [step for step in found if step.number > 0]
        if len(found) > config.screens:
            found = sorted(rng.sample(found, config.screens), key=lambda step: step.number)
        return found

    async def _questions(self, step: WalkStep) -> None:
        harvest, screen = self.harvest, step.state.observation
        seed = harvest.seed_for("questions", step.number)
        said = await self.roles.agent.questions(step.state, seed=seed)
        items = []
        for item in said.items:
            fault = answer_fault(screen, item.asked, item.answer)
            if fault is None:
                items.append(Item(item.asked.strip(), item.answer.strip(), item.kind))
            else:
                harvest.dropped.note(1, fault)
        await self._judge(1, step, said, items, harvest.config.questions)

    async def _instructions(self, step: WalkStep) -> None:
        harvest = self.harvest
        seed = harvest.seed_for("instructions", step.number)
        said = await self.roles.agent.instructions(step.state, seed=seed)
        items, ends = [], Counter[str]()
        for item in said.items:
            read = canonical(item.answer, step.state.observation)
            if isinstance(read, str) or not item.asked.strip():
                harvest.dropped.note(2, read if isinstance(read, str) else "empty")
                continue
            text, action = read
            end = action.goal_status or action.action_type
            ends[end] += 1
            if ends[end] > _MOST.get(end, ends[end]):
                harvest.dropped.note(2, f"more than {_MOST[end]} with '{end}' on one screen")
            elif harvest.held_out.has_goal(item.asked):
                harvest.dropped.note(2, "goal of a held-out task")
            else:
                items.append(Item(item.asked.strip(), text))
        await self._judge(2, step, said, items, harvest.config.instructions)

    async def _judge(
        self, level: Level, step: WalkStep, said: Items, items: list[Item], most: int
    ) -> None:
        """Keep at most ``most`` items that the critic finds right."""
        harvest, critic = self.harvest, self.roles.critic
        harvest.dropped.note(level, "malformed", said.malformed)
        harvest.dropped.note(level, "more than asked for", max(0, len(items) - most))
        items = items[:most]
        scores: list[float | None] = [None] * len(items)
        if critic is not None and items:
            scores = await critic.score_answers(step.state, items)
        for item, score in zip(items, scores, strict=True):
            fault = None if critic is None else score_fault(score)
            harvest.keep(self._answered(level, step, item, score, said.prompt), fault)

    def _answered(
        self, level: Level, step: WalkStep, item: Item, score: float | None, prompt: str
    ) -> Sample:
        config = self.harvest.config
        screen = msgspec.structs.replace(step.state.observation, goal="", history=())
        kind: Kind = "instruction"
        if level == 1:
            kind = "element" if item.kind == "element" else "screen"
            chat = question_chat(screen, item.asked, config.prompt_format)
            response = answer_text(screen, item.answer, config.prompt_format)
        else:
            screen = msgspec.structs.replace(screen, goal=item.asked)
            chat = format_named(config.prompt_format).chat(Decision(observation=screen))
            action = parse_action(item.answer)
            assert isinstance(action, Action)  # items are in canonical form
            response = written(item.answer, action, screen, config)
        return Sample(
            id=sample_id(level, chat, response, None),
            level=level,
            kind=kind,
            chat=chat,
            response=response,
            score=score,
            prompt_format=config.prompt_format,
            alike=likeness(level, screen, [item.asked], [response]),
            origin=self.harvest.origin(
                step.number, self.roles.agent.name, prompt, critic=self.roles.judge
            ),
        )

    async def _preference(self, step: WalkStep) -> None:
        """A preference pair of a step: the agent's reply, and one that the adversary wrote."""
        harvest, roles, screen = self.harvest, self.roles, step.state.observation
        if step.strayed:
            return harvest.dropped.note(3, "the act was not executed")
        if harvest.held_out.has_goal(screen.goal):
            return harvest.dropped.note(3, "goal of a held-out task")
        read = canonical(step.reply.text, screen)
        if isinstance(read, str):
            return harvest.dropped.note(3, f"chosen: {read}")
        rng = random.Random(harvest.seed_for("preference", step.number))
        found = await _rejected(step.state, read, roles, random.Random(rng.getrandbits(31)))
        if isinstance(found, str):
            return harvest.dropped.note(3, found)
        heard: tuple[Heard, ...] = ()
        if rng.random() < harvest.config.messages:
            heard = await _neighbours(step.state, read[1], roles, harvest.config, rng)
        config, (wrong, score, rejected_score) = harvest.config, found
        chosen = written(*read, screen, config)
        rejected = written(*wrong, screen, config)
        chat = format_named(config.prompt_format).chat(Decision(observation=screen, heard=heard))
        harvest.keep(
            Sample(
                id=sample_id(3, chat, chosen, rejected),
                level=3,
                kind="preference",
                chat=chat,
                response=chosen,
                rejected=rejected,
                score=score,
                rejected_score=rejected_score,
                prompt_format=config.prompt_format,
                heard=len(heard),
                alike=likeness(3, screen, [h.content for h in heard], [chosen, rejected]),
                origin=harvest.origin(
                    step.number, roles.agent.name, step.reply.prompt, critic=roles.judge,
                    adversary=roles.adversary.name,
                ),
            )
        )  # fmt: skip
        return None


Read = tuple[str, Action]
"""A reply in canonical form, and its action."""


async def _rejected(
    state: WalkState, chosen: Read, roles: Roles, rng: random.Random
) -> tuple[Read, float | None, float | None] | Reason:
    """Rejection sampling: a possible reply with another action that is judged wrong, with the
    scores of the chosen one and its own; or the reason why there is none."""
    tried, critic = {chosen[1].key}, roles.critic
    reason = "the adversary wrote nothing"
    for _ in range(_ATTEMPTS):
        reply = await roles.adversary.oppose(state, chosen[1], seed=rng.getrandbits(31))
        if reply is None:
            continue
        read = canonical(reply.text, state.observation)
        if isinstance(read, str) or read[1].key in tried:
            reason = read if isinstance(read, str) else "always the same act"
            continue
        tried.add(read[1].key)
        if critic is None:
            return read, None, None
        both = [chosen[0], read[0]]
        good, bad = await critic.score_actions(state, both, seed=rng.getrandbits(31))
        fault = score_fault(good)
        if fault is not None:
            return f"chosen: {fault}"
        if bad is not None and bad < 0.5:
            return read, good, bad
        reason = "not judged wrong"
    return f"no negative: {reason}"


async def _neighbours(
    state: WalkState, good: Action, roles: Roles, config: CorpusConfig, rng: random.Random
) -> tuple[Heard, ...]:
    """Messages of other agents about this screen.

    Some are samples of the agent itself, correct or wrong; the others are the adversary's.
    """
    heard: list[Heard] = []
    for sender in sorted(rng.sample(NEIGHBOURS, rng.randint(1, _MOST_HEARD))):
        seed, wrong = rng.getrandbits(31), rng.random() < _WRONG
        reply: Reply | None
        if wrong:
            reply = await roles.adversary.oppose(state, good, seed=seed)
        else:
            reply = await roles.agent.act(state, seed=seed, temperature=config.temperature)
        read = "nothing" if reply is None else canonical(reply.text, state.observation)
        if not isinstance(read, str):
            content, form = written(*read, state.observation, config), config.prompt_format
            heard.append(
                Heard(sender=sender, round=0, content=content, action=read[1], prompt_format=form)
            )
    return tuple(heard)


async def team_walk(environment: Environment, team: Policy, harvest: Harvest) -> WalkResult:
    """Play one episode of a team, and make samples of what its agents saw, heard and replied.

    For environments in which no agent sees enough, such as split facts on the phone: what a sender
    says and what a listener does with it are learned together. The team's replies are taken to be
    right for what each agent sees and hears. So the samples of an episode that fails are kept too:
    for example, it is right that an agent gives up if nobody told it a value. A reply that an agent
    repeats in an episode is one sample, at a random one of its steps.

    Raises:
        WalkFault: the environment failed.
        ModelError: a model of the team failed.
        ConfigError: the prompt formats of the team and the corpus differ.
    """
    task, seed, config = harvest.task, harvest.seed, harvest.config
    episode = await rollout(environment, team, task=task, seed=seed, max_steps=config.max_steps)
    fault = episode.fault
    if fault is not None and fault.kind in ("model", "unavailable"):
        kind = ModelUnavailable if fault.kind == "unavailable" else ModelError
        raise kind(f"{team.name}, task '{task}', seed {seed}: {fault}")
    if fault is not None:
        raise WalkFault(str(fault), len(episode.steps))
    for step, call in _different_calls(episode, harvest, team.name):
        chat = chat_of(call.prompt)
        alike = short_hash("\x1e".join(["3", *(turn.content for turn in chat), call.reply]))
        harvest.keep(
            Sample(
                id=sample_id(3, chat, call.reply, None),
                level=3,
                kind="team",
                chat=chat,
                response=call.reply,
                prompt_format=config.prompt_format,
                heard=len(call.heard),
                alike=alike,
                origin=harvest.origin(step, f"{call.node} of {team.name}", short_hash(call.prompt)),
            )
        )
    return harvest.result(episode.success, len(episode.steps))


def _different_calls(episode: Episode, harvest: Harvest, team: str) -> Iterator[tuple[int, Call]]:
    """One call for each agent and reply, in the order of the episode."""
    rng = random.Random(harvest.seed_for("team"))
    wanted = harvest.config.prompt_format
    alike: dict[tuple[str, str], list[tuple[int, Call]]] = {}
    for number, step in enumerate(episode.steps):
        if harvest.held_out.has_goal(step.trace.observation.goal):
            harvest.dropped.note(3, "goal of a held-out task", len(step.trace.calls))
            continue
        for call in step.trace.calls:
            if not call.prompt or call.error is not None:
                continue
            found = call.message.prompt_format
            if found != wanted:
                raise ConfigError(
                    f"synthesize: {team} writes prompts in the format '{found}', and the corpus "
                    f"has '{wanted}'; set prompt_format='{found}'"
                )
            alike.setdefault((call.node, call.reply), []).append((number, call))
    chosen = [rng.choice(calls) for calls in alike.values()]
    harvest.dropped.note(3, "repeated by the agent", sum(map(len, alike.values())) - len(chosen))
    yield from sorted(chosen, key=lambda pair: pair[0])


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
