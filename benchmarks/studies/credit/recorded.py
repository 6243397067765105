"""All sources of credit on one set of recorded episodes, compared with an independent reference.

The reference is a Monte Carlo estimate: it uses no solver, no critic, and not the value that the
replays use. From the snapshot after an action, the base agent plays to the end several times, at
temperature 0.8. An action is right if the success rate after it is at least the success rate before
it, and wrong if it is lower by at least ``MARGIN``. The rate before an action is the rate after the
action that led to this state, or that of the whole task at the start. Actions in between, and
those in states from which nothing succeeds, are not judged: the difference is not more than the
noise of the estimate. So the reference asks whether an action made success less probable *for this
agent*, which a solver that counts remaining steps does not know.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

import msgspec

from benchmarks.studies.credit.cells import CONCURRENCY, critic_of, team
from benchmarks.studies.credit.plan import Plan, Source
from benchmarks.studies.credit.starts import RepeatedPhone, repeated, training_starts
from benchmarks.studies.struct_files import read_struct, write_struct
from benchmarks.support.critics import Moment, OutcomeJudge
from swarm_ui.action import ActionKey
from swarm_ui.credit import Credit, proposals
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.teams import agent_names
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import random_dag
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.optim.credit.compare import Scored, assess, scored
from swarm_ui.optim.credit.figures import auc_by_bootstrap, inside_auc
from swarm_ui.optim.credit.outcome import Outcome
from swarm_ui.rollout import WAIT, GraphPolicy, rollout_many
from swarm_ui.stats import Interval
from swarm_ui.trace.jsonl import read_jsonl, write_jsonl
from swarm_ui.trace.records import Episode

MARGIN = 0.25
"""At 8 continuations, the standard error of the difference of two rates is at most this."""
NAME = "Monte Carlo, base agent"
_DRAW = 5


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One source on the recorded episodes. Intervals are 95 % and resample task templates."""

    source: str
    scored: float
    """Share of the messages judged by the reference that this source scored, too."""
    auc: Interval | None
    """Probability that a right message has a higher score than a wrong one; ties count half."""
    inside: Interval | None
    """The same for two messages of one decision."""
    calls: int
    """Calls of agents to score the episodes."""
    seconds: float
    """CPU time."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """The recorded episodes and the reference."""

    episodes: int
    solved: int
    messages: int
    right: int
    wrong: int
    """The other messages are not judged."""
    continuations: int


class Recording:
    """The episodes, their snapshots and the reference; read from the folder if they are there."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self.model = LocalModel.load(BASE_AGENT)
        self.graph: CollabGraph = _untrained_team(plan, self.model)
        self.episodes: list[Episode] = []
        self.truth: list[Credit] = []

    async def load(self) -> Recorded:
        """Play the episodes and estimate the reference, unless the folder has them."""
        make = partial(RepeatedPhone, self._plan.attempts)
        episodes, reference = self._folder / "episodes.jsonl", self._folder / "reference.json"
        summary = self._folder / "recorded.json"
        if not summary.exists():
            jobs = repeated(
                training_starts(self._plan.recorded, Random(_DRAW)), self._plan.attempts
            )
            policy = GraphPolicy(self.graph, name="base team")
            played = await rollout_many(make, policy, jobs, concurrency=CONCURRENCY)
            self._folder.mkdir(parents=True, exist_ok=True)
            write_jsonl(episodes, played)
        if not episodes.exists():
            raise ConfigError(
                f"'{self._folder}' lacks the recorded episodes, which a record does not hold: "
                f"delete '{summary.name}' in it and the folder 'judged' beside it, and the same "
                "command plays and judges them again"
            )
        self.episodes = list(read_jsonl(episodes))
        if summary.exists():
            self.truth = read_struct(reference, list[Credit])
            return read_struct(summary, Recorded)
        found = _Reference(self._plan, self.model)
        self.truth = await found.credit(self.episodes)
        write_struct(reference, self.truth)
        rows = [row.right for row in self._rows(await Outcome()(self.episodes))]
        result = Recorded(
            episodes=len(self.episodes),
            solved=sum(episode.success is True for episode in self.episodes),
            messages=len(rows),
            right=rows.count(True),
            wrong=rows.count(False),
            continuations=found.played,
        )
        write_struct(summary, result)
        return result

    async def judge(self, source: Source) -> Judged:
        """Score the episodes with one source, and compare with the reference."""
        began = time.process_time()
        if source == "outcome":
            tables: Sequence[Credit] = await Outcome()(self.episodes)
            calls = 0
        else:
            make = partial(RepeatedPhone, self._plan.attempts)
            one = critic_of(source, make, self.graph, self.model, adapter=None)
            assessed = await assess(one, self.episodes)
            tables, calls = assessed.credit, assessed.calls or 0
        seconds = time.process_time() - began
        rows = [row for row in self._rows(tables) if row.right is not None]
        everything = self._rows(await Outcome()(self.episodes))
        return Judged(
            source=source,
            scored=len(rows) / max(1, sum(row.right is not None for row in everything)),
            auc=auc_by_bootstrap(
                [row.score for row in rows], [bool(row.right) for row in rows], self._tasks(rows)
            ),
            inside=inside(rows, self._tasks(rows)),
            calls=calls,
            seconds=round(seconds, 2),
        )

    def _rows(self, tables: Sequence[Credit]) -> list[Scored]:
        return scored(self.episodes, tables, self.truth)

    def _tasks(self, rows: Sequence[Scored]) -> list[int]:
        """The number of the task template of each row."""
        names = sorted({episode.task for episode in self.episodes})
        return [names.index(self.episodes[row.episode].task) for row in rows]


def inside(rows: Sequence[Scored], tasks: Sequence[int]) -> Interval | None:
    """AUC among the messages of one decision, over all pairs of a right and a wrong one."""
    return inside_auc(
        [
            (task, (row.episode, row.step), bool(row.right), row.score)
            for row, task in zip(rows, tasks, strict=True)
        ]
    )


def verdict(before: float | None, after: float | None) -> float | None:
    """1.0 right, 0.0 wrong, ``None`` not judged; see the module."""
    if before is None or after is None:
        return None
    if after >= before:
        return 1.0 if after > 0.0 else None
    return 0.0 if before - after >= MARGIN else None


class _Reference:
    """Success rates of the base agent after each proposed action."""

    def __init__(self, plan: Plan, model: LocalModel) -> None:
        self._plan = plan
        alone = GraphPolicy(CollabGraph.solo(model, temperature=0.8), name="base, sampled")
        self._policy = alone
        make = partial(RepeatedPhone, plan.attempts)
        self._judge = OutcomeJudge(make, alone, samples=plan.continuations, seed=7)

    @property
    def played(self) -> int:
        """Continuations so far, without those of whole tasks."""
        return self._judge.played

    async def credit(self, episodes: Sequence[Episode]) -> list[Credit]:
        at_start = await self._starts(episodes)
        gate = asyncio.Semaphore(8)

        async def one(episode: Episode) -> Credit:
            async with gate:
                return await self._of(episode, at_start[self._start(episode)])

        return list(await asyncio.gather(*map(one, episodes)))

    def _start(self, episode: Episode) -> tuple[str, int]:
        return episode.task, episode.seed // self._plan.attempts

    async def _starts(self, episodes: Sequence[Episode]) -> Mapping[tuple[str, int], float]:
        """The success rate of whole tasks, by start."""
        count = self._plan.continuations
        starts = list(dict.fromkeys(map(self._start, episodes)))
        make = partial(RepeatedPhone, count)
        jobs = repeated(starts, count)
        played = await rollout_many(make, self._policy, jobs, concurrency=CONCURRENCY)
        won = [float(bool(episode.success)) for episode in played]
        return {s: sum(won[k * count : (k + 1) * count]) / count for k, s in enumerate(starts)}

    async def _of(self, episode: Episode, start: float) -> Credit:
        before: float | None = start
        path: tuple[ActionKey, ...] = ()
        found: list[dict[str, float | None]] = []
        states = await self._judge.states(episode)
        for record, state in zip(episode.steps, states, strict=True):
            executed = record.executed or WAIT
            said = {m.id: m.action for m in proposals(record.trace) if m.action is not None}
            actions = {action.key: action for action in (*said.values(), executed)}
            # Attempts that did the same so far are in the same state, and share continuations.
            task, seed = self._start(episode)
            place = hashlib.blake2b(repr(path).encode(), digest_size=16).hexdigest()
            moment = Moment(f"{task}/{seed}/{place}", state.snapshot)
            screen = record.trace.observation
            rates = dict(
                zip(
                    actions,
                    await self._judge.grade(screen, list(actions.values()), moment),
                    strict=True,
                )
            )
            found.append({id: verdict(before, rates[a.key]) for id, a in said.items()})
            before, path = rates[executed.key], (*path, executed.key)
        return Credit.of(episode, found, source=NAME)


def _untrained_team(plan: Plan, model: LocalModel) -> CollabGraph:
    edges = random_dag(agent_names(plan.agents), 0.5, Random(1))
    return dataclasses.replace(team(plan), edges=edges, trained=False).graph(model)
