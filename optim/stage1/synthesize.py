"""Stage 1's data from walks in any environment, with any models: samples of three levels.

After CollabUIAgents (arXiv 2502.14496), the section on agentic fine-tuning.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.environment import Environment, Restorable
from swarm_ui.errors import ConfigError, EnvironmentFault, Failure
from swarm_ui.files import LineFile
from swarm_ui.message import Heard
from swarm_ui.model import ChatModel, Decision
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.adversary import fits
from swarm_ui.optim.config import begin
from swarm_ui.optim.credit.critic import made_by
from swarm_ui.optim.preferences import with_label
from swarm_ui.optim.stage1 import corpus
from swarm_ui.optim.stage1.corpus import (
    CorpusConfig,
    Header,
    HeldOut,
    Origin,
    Sample,
    Totals,
    WalkResult,
)
from swarm_ui.optim.stage1.roles import (
    TEMPERATURE,
    Item,
    ModelRole,
    Read,
    ScriptedRole,
    WalkState,
)
from swarm_ui.prompts import format_named, utterance
from swarm_ui.rollout import Attempt, Job, LocalWorker, Rollouts
from swarm_ui.rollout.episode import SOLVED, WAIT
from swarm_ui.trace.records import Episode

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
    critic: ChatModel | ScriptedRole

    @staticmethod
    def scripted() -> Models:
        """Roles without a language model, for environments that are
        :class:`~swarm_ui.environment.Graded`, such as the embedded phone."""
        role = ScriptedRole()
        return Models(agent=role, adversary=role, critic=role)


async def synthesize(
    make_environment: Callable[[], Environment | Awaitable[Environment]],
    models: Models,
    jobs: Sequence[Job],
    folder: Path,
    *,
    held_out: HeldOut,
    config: CorpusConfig | None = None,
    parallel: int = 1,
    report: Callable[[int, int, WalkResult], None] = lambda done, total, walk: None,
) -> Totals:
    """Make a corpus, or continue an interrupted one; returns counts of all that it holds.

    Args:
        make_environment: makes an environment: one to look at, and one for each parallel walk.
        models: the models, or scripts, that write and judge.
        jobs: (task, seed) of the walks, stored in this order; finished ones are not repeated.
        held_out: test and validation splits; ``HeldOut()`` if there are none.
        parallel: number of walks at the same time.
        report: called after each walk with the number of walks done, that of all, and the walk.

    Raises:
        ConfigError: a job has a held-out task, or the folder was made with other settings.
        TraceError: a file of the folder cannot be read.
        BudgetExceeded, ModelError, OSError: no budget, no reply, or no room on the disk. Finished
            walks are kept.
    """
    environment = await made_by(make_environment)
    try:
        for task in {task for task, _ in jobs} - set(environment.tasks):
            raise ConfigError(f"synthesize: {environment.name} has no task {task!r}")
    finally:
        await environment.close()
    held_out.check(environment.name, jobs, "synthesize")
    settings = config or CorpusConfig()
    header = Header(
        environment=environment.name, agent=models.agent.name, adversary=models.adversary.name,
        critic=models.critic.name, config=settings, held_out=held_out,
    )  # fmt: skip
    advice = "use the same, or choose another folder: export and fine-tuning accept several"
    begin(folder, corpus.HEADER, header, "corpus", advice)
    finished = {(w.task, w.seed) for w in corpus.read_walks(folder) if w.success is not None}
    todo, total = [job for job in dict.fromkeys(jobs) if job not in finished], len(set(jobs))
    ended, stored = dict[int, WalkResult](), 0
    with closing(LineFile(folder / corpus.WALKS)) as lines:
        async with (
            Rollouts([LocalWorker(make_environment, slots=parallel)]) as rollouts,
            aclosing(rollouts.play(_attempt(models, settings), todo)) as episodes,
        ):
            async for number, played in episodes:
                failed = WalkResult(task=played.task, seed=played.seed, fault=str(played.fault))
                ended[number] = played.notes[0] if played.notes else failed
                while stored in ended:  # in the order of the jobs, whichever ends first
                    made = ended.pop(stored)
                    lines.append(msgspec.json.encode(made))
                    stored += 1
                    report(total - len(todo) + stored, total, made)
    return corpus.totals(folder)


def _attempt(models: Models, config: CorpusConfig) -> Attempt:
    async def walk(environment: Environment, /, *, task: str, seed: int) -> Episode:
        played = Episode(environment=environment.name, task=task, seed=seed)
        try:
            made = await Walk(environment, models, config, (task, seed)).run()
        except EnvironmentFault as error:
            return replace(played, fault=Failure.of(error))
        return replace(played, success=made.success, notes=(made,))

    return walk


class Walk:
    """A walk through one environment for one task and seed, and the samples of it."""

    def __init__(
        self, environment: Environment, models: Models, config: CorpusConfig, job: Job
    ) -> None:
        def role(given: ChatModel | ScriptedRole) -> ModelRole | ScriptedRole:
            return ModelRole(given, config) if isinstance(given, ChatModel) else given

        self.environment, self.config = environment, config
        self.agent, self.adversary = role(models.agent), role(models.adversary)
        self.critic = role(models.critic)
        self.task, self.seed = job
        self.form = format_named(config.prompt_format)
        self.samples, self.dropped = list[Sample](), Counter[str]()

    async def run(self) -> WalkResult:
        """Play the walk and make the samples. Raises ``EnvironmentFault`` or ``ModelError``."""
        steps, success = await self._walk()
        for state in self._distinct_screens([state for state, _ in steps]):
            for level in {1, 2}.intersection(self.config.levels):
                await self._write(level, state)
        for state, reply in steps if 3 in self.config.levels else ():
            with self._counted(3):
                await self._preference(state, reply, success)
        return WalkResult(
            task=self.task, seed=self.seed, success=success, steps=len(steps),
            samples=tuple(self.samples), dropped=dict(sorted(self.dropped.items())),
        )  # fmt: skip

    def _seed(self, *purpose: str | int) -> int:
        return derive(self.config.seed, self.task, self.seed, *purpose)

    @contextmanager
    def _counted(self, level: int) -> Iterator[None]:
        try:
            yield
        except Dropped as why:
            self.dropped[f"level {level}: {why}"] += 1

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
        chosen = rng.sample(found, most) if len(found) > most else found
        return sorted(chosen, key=lambda step: step.number)

    async def _write(self, level: int, state: WalkState) -> None:
        screen, most, what = state.observation, self.config.questions, "questions"
        if level == 2:
            most, what = self.config.instructions, "instructions"
        items, ends = list[Item](), Counter[str]()
        for item in await self.agent.write(state, level, seed=self._seed(what, state.number)):
            with self._counted(level):
                if item is None:
                    raise Dropped("malformed")
                asked, answer = item.asked.strip(), item.answer.strip()
                if not asked or not answer:
                    raise Dropped("empty")
                if level == 2:
                    read = canonical(answer, screen)
                    end, answer = read.action.goal_status or read.action.action_type, read.text
                    ends[end] += 1
                    if ends[end] > _MOST.get(end, ends[end]):
                        raise Dropped(f"more than {_MOST[end]} with '{end}' on one screen")
                items.append(Item(asked, answer))
        if len(items) > most:
            self.dropped[f"level {level}: more than asked for"] += len(items) - most
            items = items[:most]
        scores = await self.critic.score_answers(state, items) if items else []
        for item, score in zip(items, scores, strict=True):
            goal = replace(screen, goal=item.asked, history=())
            with self._counted(level):
                _expect_right(score)
                if level == 2:
                    response = self._written(canonical(item.answer, screen), goal)
                else:  # a question is a goal that an answer reaches
                    goal = replace(goal, actions=goal.actions and (*goal.actions, "answer"))
                    response = self.form.write(Action(action_type="answer", text=item.answer), goal)
                self._keep(level, state, Decision(observation=goal), response, score=score)

    def _keep(
        self, level: int, state: WalkState, decision: Decision, response: str, **others: Any
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
        screen = state.observation
        if not success:
            raise Dropped("the walk did not succeed")
        if reply is None:
            raise Dropped("the act was not executed")
        chosen = canonical(reply, screen)
        rng = random.Random(self._seed("preference", state.number))
        wrong, scores = await self._rejected(state, chosen, random.Random(rng.getrandbits(31)))
        heard: tuple[Heard, ...] = ()
        if rng.random() < self.config.messages:
            heard = await self._neighbours(state, chosen.action, rng)
        self._keep(
            3, state, Decision(observation=screen, heard=heard), self._written(chosen, screen),
            rejected=self._written(wrong, screen), score=scores[0], rejected_score=scores[1],
        )  # fmt: skip

    async def _rejected(
        self, state: WalkState, chosen: Read, rng: random.Random
    ) -> tuple[Read, list[float | None]]:
        """Rejection sampling: a possible reply with another action that is judged wrong, and the
        scores of the chosen one and of this one. Raises ``Dropped`` if there is none."""
        tried, reason = {chosen.action.key}, "the adversary wrote nothing"
        for _ in range(_ATTEMPTS):
            reply = await self.adversary.oppose(state, chosen.action, seed=rng.getrandbits(31))
            if reply is None:
                continue
            try:
                read = canonical(reply, state.observation)
            except Dropped as why:
                reason = str(why)
                continue
            if read.action.key in tried:
                reason = "always the same act"
                continue
            tried.add(read.action.key)
            seed = rng.getrandbits(31)
            scores = await self.critic.score_actions(state, [chosen, read], seed=seed)
            _expect_right(scores[0])
            if scores[1] is not None and scores[1] < 0.5:
                return read, scores
            reason = "not judged wrong"
        raise Dropped(f"no negative: {reason}")

    async def _neighbours(
        self, state: WalkState, good: Action, rng: random.Random
    ) -> tuple[Heard, ...]:
        """Messages of other agents about this screen: some are samples of the agent itself, correct
        or wrong; the others are the adversary's. One that cannot be read is left out."""
        heard = list[Heard]()
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
            content, form = self._written(read, state.observation), self.form.name
            heard.append(
                Heard(
                    sender=sender, round=0, content=content, action=read.action, prompt_format=form
                )
            )
        return tuple(heard)

    def _written(self, read: Read, screen: Observation) -> str:
        return self.form.write(read.action, screen, read.reason if self.config.reasons else "")


def canonical(reply: str, observation: Observation) -> Read:
    """A reply as its reason, and its action with the label of its element. Raises ``Dropped``.

    Good and bad replies get the same form, so that they differ only in content.
    """
    action = parse_action(reply)
    if isinstance(action, Unparsed):
        raise Dropped("no valid action")
    if not observation.offers(action.action_type):
        raise Dropped("an act that means nothing here")
    if not fits(action, observation):
        raise Dropped("impossible on this screen")
    meant = observation.element(action.index)
    named, label = (
        " ".join((text or "").casefold().split()) for text in (action.target, meant and meant.label)
    )
    if named and label not in ("", named):
        raise Dropped("label and number of different elements")
    text = utterance(reply, action)
    reason = text.rpartition("\nAction:")[0].removeprefix("Reason:").strip()
    if not reason:
        raise Dropped("no reason given")
    return Read(" ".join(reason.split()), with_label(action, observation))


def _expect_right(score: float | None) -> None:
    if score is None:
        raise Dropped("the critic did not say")
    if score <= 0.5:
        raise Dropped("judged wrong" if score < 0.5 else "the critic cannot tell")


def random_action(observation: Observation, rng: random.Random) -> Action | None:
    """A random click, or a step back, so that a walk leaves the way to the goal."""
    able = [e for e in observation.elements if e.clickable and e.enabled and not e.editable]
    if observation.offers("navigate_back") and (not able or rng.random() < 0.2):
        return Action(action_type="navigate_back")
    if not able:
        return None
    return with_label(Action(action_type="click", index=rng.choice(able).index), observation)
