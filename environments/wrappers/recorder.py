"""A wrapper that writes episodes to a file, for a person or an agent without a trace."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.wrappers.wrapper import Wrapper
from swarm_ui.errors import ConfigError, EnvironmentFault, Failure, TraceError
from swarm_ui.message import Message
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.trace.jsonl import Anywhere, append_jsonl
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace


class _Running(NamedTuple):
    task: str
    seed: int
    began: float
    steps: tuple[StepRecord, ...] = ()


class Recorder(Wrapper):
    """Adds every episode to a JSON lines file, read back with :func:`swarm_ui.read_jsonl`.

    An episode is written when it ends, and is on disk before ``step`` returns. An episode that is
    left before its end (by ``reset`` or ``close``) or that ended with a fault has the reason in
    ``fault`` and ``success=None``. An episode that continues after ``restore`` is a second record.
    The recorder does not see the traces of a policy; rollouts record them.

    Args:
        env: the environment.
        path: file to append to; its folder must exist. ``None``: only :attr:`last` is kept.
        actor: name of the person or agent: the episodes' ``policy``, and the sender of messages.

    Raises:
        TraceError: the file cannot be written. The methods that end an episode raise it too; the
            episode is then in :attr:`last` only.
    """

    state: _Running | None

    def __init__(self, env: Environment, path: Anywhere | None, *, actor: str = "recorded") -> None:
        super().__init__(env)
        self._path, self._actor = None if path is None else Path(path), actor
        self.last: Episode | None = None
        """The last finished episode."""
        if self._path is not None and not self._path.parent.is_dir():
            raise ConfigError(f"Recorder: the folder of {path} does not exist; create it first")
        self._append()

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.leave("reset")
        running = _Running(task, seed, time.monotonic())
        try:
            screen = await super().reset(task=task, seed=seed)
        except EnvironmentFault as error:
            self._end(running, str(error))
            raise
        self.state = running
        return screen

    async def step(self, action: Action) -> Step:
        screen = self.running()
        assert self.state is not None
        running = self.state
        record = StepRecord(trace=self._trace(running, screen, action), executed=action)
        try:
            step = await super().step(action)
        except EnvironmentFault as error:
            self._end(running._replace(steps=(*running.steps, record)), str(error))
            raise
        ends = {"terminated": step.terminated, "truncated": step.truncated}
        record = replace(record, reward=step.reward, note=step.note, **ends)
        running = running._replace(steps=(*running.steps, record))
        self.state = running
        if step.ended:
            self._end(running, step.fault)
        return step

    async def close(self) -> None:
        self.leave("close")
        await super().close()

    def leave(self, reason: str) -> None:
        """End the running episode for a reason; it is written if it has a step."""
        if self.state is not None and self.state.steps:
            self._end(self.state, f"left before its end: {reason}")
        self.state = self.present = None

    def _trace(self, running: _Running, screen: Observation, action: Action) -> Trace:
        """The trace of a decision without a model: one actor, one message."""
        actor, number = self._actor, len(running.steps)
        message = Message(
            id=f"{actor}:0", sender=actor, round=0, content=action.json(), action=action
        )
        return Trace(
            run=f"{running.task}/{running.seed}/{number}",
            seed=derive(running.seed, "step", number),
            observation=screen,
            agents=(actor,),
            rounds=1,
            calls=(Call(message=message),),
            action=action,
        )

    def _end(self, running: _Running, fault: str | None) -> None:
        self.state = None
        solved = bool(running.steps) and running.steps[-1].reward >= 1.0
        self.last = Episode(
            environment=self.name,
            checker=self.checker,
            task=running.task,
            seed=running.seed,
            policy=self._actor,
            steps=running.steps,
            success=None if fault is not None else solved,
            fault=None if fault is None else Failure(kind="environment", message=fault),
            seconds=time.monotonic() - running.began,
        )
        self._append(self.last)

    def _append(self, *episodes: Episode) -> None:
        if self._path is not None:
            try:
                append_jsonl(self._path, episodes)
            except OSError as error:
                raise TraceError(f"{self._path}: cannot be written: {error.strerror}") from error
