"""Estimates the walks, calls, tokens and time of a synthesis, from a few walks without models."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from swarm_ui.action import Action
from swarm_ui.budget import guess_tokens
from swarm_ui.environment import Environment, Graded
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.optim.adversary import adversary_chat
from swarm_ui.optim.credit.llm import critic_chat
from swarm_ui.optim.stage1.corpus.config import CorpusConfig
from swarm_ui.optim.stage1.corpus.prompts import instructions_chat, judging_chat, questions_chat
from swarm_ui.optim.stage1.corpus.roles import Item, Items, Reply, WalkState
from swarm_ui.optim.stage1.corpus.samples import HeldOut, Job
from swarm_ui.optim.stage1.corpus.scripted_roles import (
    ScriptedAgent,
    ScriptedJudge,
    ScriptedOpponent,
)
from swarm_ui.optim.stage1.corpus.store import Totals, read_corpus
from swarm_ui.optim.stage1.corpus.synthesize import Models, synthesize
from swarm_ui.prompts import decision_chat, transcript
from swarm_ui.rollout import Policy

_WALKS = 8
"""Walks that an estimate makes."""
_STEPS = 8
"""Steps of a walk, assumed for an environment that cannot solve its own tasks."""
_REPLY = 60
"""Tokens of a reply, an item of a list, or a verdict for which there is no example."""


class SynthesisSize(msgspec.Struct, frozen=True, kw_only=True):
    """The estimated size of a synthesis."""

    walks: int
    measured: int
    """Number of walks that were made for the estimate; 0: the number of steps was assumed."""
    steps: int
    samples: dict[str, int]
    """Number of samples by ``"level <n>"``; empty if nothing was measured."""
    tokens: int
    """Tokens of the samples' prompts and responses."""
    calls: int
    """Calls to models."""
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """Seconds of all walks, without the calls to models."""


async def estimate_synthesis(
    make_environment: Callable[[], Environment | Awaitable[Environment]],
    jobs: Sequence[Job],
    *,
    by_model: frozenset[str],
    critic: bool,
    held_out: HeldOut,
    config: CorpusConfig,
    team: Policy | None = None,
) -> SynthesisSize:
    """Estimate a synthesis; no model is called, nothing is kept.

    In an environment that can solve its own tasks, a few walks are made with scripted roles, and
    the prompts that models would get are counted. In other environments the estimate is made from
    the first screens of tasks, with eight steps assumed for each walk.

    Args:
        make_environment: makes an environment.
        jobs: the walks.
        by_model: which of ``"agent"``, ``"adversary"``, ``"critic"`` and ``"walker"`` are models.
        critic: whether there is a critic.
        held_out, config: as for ``synthesize``.
        team: plays the walks, as in :class:`~.synthesize.Models`.

    Raises:
        ConfigError: a job has a held-out task.
    """
    count = len(set(jobs))
    probe = list(dict.fromkeys(jobs))[:: max(1, count // _WALKS)][:_WALKS]
    calls = _Calls(by_model)
    made = make_environment()
    environment = await made if isinstance(made, Awaitable) else made
    if not isinstance(environment, Graded):
        try:
            held_out.check(environment.name, jobs, "synthesize")
            return await _assumed(environment, probe, count, calls, config, critic)
        finally:
            await environment.close()
    roles = Models(
        agent=_Agent(calls, config),
        adversary=_Opponent(calls),
        critic=_Judge(calls) if critic else None,
        team=team,
    )
    return await _measured(environment, probe, count, calls, config, roles, held_out)


async def _measured(
    environment: Environment,
    probe: Sequence[Job],
    count: int,
    calls: _Calls,
    config: CorpusConfig,
    roles: Models,
    held_out: HeldOut,
) -> SynthesisSize:
    """Estimate from walks with scripted roles."""
    begin = time.monotonic()
    with TemporaryDirectory() as folder:
        place = Path(folder) / "corpus"
        totals: Totals = await synthesize(
            lambda: environment, roles, probe, place, held_out=held_out, config=config
        )
        texts = [
            "\n".join([*(turn.content for turn in sample.chat), sample.response])
            for sample in read_corpus(place)
        ]
    scale = count / max(1, len(probe))
    return SynthesisSize(
        walks=count,
        measured=len(probe),
        steps=round(scale * calls.steps),
        samples={level: round(scale * found) for level, found in totals.samples.items()},
        tokens=round(scale * sum(map(guess_tokens, texts))),
        calls=round(scale * calls.calls),
        prompt_tokens=round(scale * calls.prompt),
        completion_tokens=round(scale * calls.completion),
        seconds=scale * (time.monotonic() - begin),
    )


async def _assumed(
    environment: Environment,
    probe: Sequence[Job],
    count: int,
    calls: _Calls,
    config: CorpusConfig,
    critic: bool,
) -> SynthesisSize:
    """Estimate from the first screens and an assumed number of steps."""
    steps = min(_STEPS, config.max_steps or _STEPS)
    begin = time.monotonic()
    for task, seed in probe:
        screen = await environment.reset(task=task, seed=seed)
        decision, act = Decision(observation=screen), Action(action_type="wait")
        for role in ("agent", "walker"):
            calls.add(role, decision_chat(decision), _REPLY, times=steps)
        screens = min(config.screens, steps)
        for level, chat, items in (
            (1, questions_chat(screen, config.questions), config.questions),
            (2, instructions_chat(screen, config.instructions), config.instructions),
        ):
            if level in config.levels:
                calls.add("agent", chat, items * _REPLY, times=screens)
                listed = judging_chat(screen, [("?", "!" * 4 * _REPLY)] * items, ["i"] * items)
                if critic:
                    calls.add("critic", listed, 2 * _REPLY, times=screens)
        if 3 in config.levels:
            calls.add("adversary", adversary_chat(decision, act), _REPLY, times=steps)
            if critic:
                pair = [(name, "!" * 4 * _REPLY, act) for name in ("a", "b")]
                calls.add("critic", critic_chat(screen, pair), 2 * _REPLY, times=steps)
    scale = count / max(1, len(probe))
    return SynthesisSize(
        walks=count,
        measured=0,
        steps=count * steps,
        samples={},
        tokens=0,
        calls=round(scale * calls.calls),
        prompt_tokens=round(scale * calls.prompt),
        completion_tokens=round(scale * calls.completion),
        seconds=scale * (time.monotonic() - begin),
    )


class _Calls:
    """Counts the calls that models would get."""

    def __init__(self, by_model: frozenset[str]) -> None:
        self._by_model = by_model
        self.calls = self.prompt = self.completion = self.steps = 0

    def add(
        self, role: str, chat: Sequence[ChatMessage], reply: int | str, *, times: int = 1
    ) -> None:
        """Count a call with a reply, or its number of tokens."""
        if role in self._by_model:
            self.calls += times
            self.prompt += times * guess_tokens(transcript(chat))
            self.completion += times * (guess_tokens(reply) if isinstance(reply, str) else reply)


class _Agent(ScriptedAgent):
    def __init__(self, calls: _Calls, config: CorpusConfig) -> None:
        self._calls, self._config = calls, config

    async def act(
        self, state: WalkState, decision: Decision, *, seed: int, temperature: float
    ) -> Reply:
        reply = await super().act(state, decision, seed=seed, temperature=temperature)
        self._calls.steps += temperature == 0.0
        self._calls.add("agent", decision_chat(decision), reply.text)
        if temperature == 0.0:
            self._calls.add("walker", decision_chat(decision), reply.text)
        return reply

    async def questions(self, state: WalkState, *, seed: int) -> Items:
        chat = questions_chat(state.observation, self._config.questions)
        self._calls.add("agent", chat, self._config.questions * _REPLY)
        return await super().questions(state, seed=seed)

    async def instructions(self, state: WalkState, *, seed: int) -> Items:
        chat = instructions_chat(state.observation, self._config.instructions)
        self._calls.add("agent", chat, self._config.instructions * _REPLY)
        return await super().instructions(state, seed=seed)


class _Opponent(ScriptedOpponent):
    def __init__(self, calls: _Calls) -> None:
        self._calls = calls

    async def oppose(self, state: WalkState, good: Action, *, seed: int) -> Reply | None:
        reply = await super().oppose(state, good, seed=seed)
        chat = adversary_chat(Decision(observation=state.observation), good)
        self._calls.add("adversary", chat, "" if reply is None else reply.text)
        return reply


class _Judge(ScriptedJudge):
    def __init__(self, calls: _Calls) -> None:
        self._calls = calls

    async def score_answers(self, state: WalkState, items: Sequence[Item]) -> list[float | None]:
        names = [f"item_{k}" for k in range(len(items))]
        chat = judging_chat(state.observation, [(i.asked, i.answer) for i in items], names)
        self._calls.add("critic", chat, 2 * _REPLY)
        return await super().score_answers(state, items)

    async def score_actions(
        self, state: WalkState, replies: Sequence[str], *, seed: int
    ) -> list[float | None]:
        outputs = [(f"agent_{k}", text, None) for k, text in enumerate(replies)]
        self._calls.add("critic", critic_chat(state.observation, outputs), 2 * _REPLY)
        return await super().score_actions(state, replies, seed=seed)
