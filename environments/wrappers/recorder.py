"""A wrapper that writes episodes to a file, for a person or an agent without a trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.wrappers.wrapper import Wrapper
from swarm_ui.errors import ConfigError, EnvironmentFault, Failure, TraceError
from swarm_ui.message import Message
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.trace.jsonl import Anywhere, append_jsonl
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

SOLVED = 1.0


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
        clock: returns seconds, for the length of episodes.

    Raises:
        TraceError: the file cannot be written. The methods that end an episode raise it too; the
            episode is then in :attr:`last` only.
    """

    def __init__(
        self,
        env: Environment,
        path: Anywhere | None,
        *,
        actor: str = "recorded",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(env)
        self._path = None if path is None else _writable(Path(path))
        self._actor, self._clock = actor, clock
        self._job: tuple[str, int] | None = None
        self._began = 0.0
        self._steps: tuple[StepRecord, ...] = ()
        self.last: Episode | None = None
        """The last finished episode."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.leave("reset")
        self._job, self._began, self._steps = (task, seed), self._clock(), ()
        try:
            return await super().reset(task=task, seed=seed)
        except EnvironmentFault as error:
            self._write(str(error))
            raise
        except BaseException:  # such as an unknown task: no episode has begun
            self._job = None
            raise

    async def step(self, action: Action) -> Step:
        screen = self.running()
        assert self._job is not None
        task, seed = self._job
        trace = single_action_trace(
            screen, action, actor=self._actor, task=task, seed=seed, step=len(self._steps)
        )
        try:
            step = await super().step(action)
        except EnvironmentFault as error:
            self._steps = (*self._steps, StepRecord(trace=trace, executed=action))
            self._write(str(error))
            raise
        record = StepRecord(
            trace=trace,
            executed=action,
            reward=step.reward,
            terminated=step.terminated,
            truncated=step.truncated,
            note=step.note,
        )
        self._steps = (*self._steps, record)
        if step.ended:
            self._write(step.fault)
        return step

    async def close(self) -> None:
        self.leave("close")
        await super().close()

    def put_aside(self) -> object:
        return self._job, self._began, self._steps

    def take_up(self, state: object) -> None:
        assert isinstance(state, tuple)
        self._job, self._began, self._steps = state

    def leave(self, reason: str) -> None:
        """End the running episode for a reason; it is written if it has a step."""
        if self._job is not None and self._steps:
            self._write(f"left before its end: {reason}")
        self._job = self.present = None

    def _write(self, fault: str | None) -> None:
        assert self._job is not None
        (task, seed), self._job = self._job, None
        solved = bool(self._steps) and self._steps[-1].reward >= SOLVED
        self.last = Episode(
            environment=self.name,
            checker=self.checker,
            task=task,
            seed=seed,
            policy=self._actor,
            steps=self._steps,
            success=None if fault is not None else solved,
            fault=None if fault is None else Failure(kind="environment", message=fault),
            seconds=self._clock() - self._began,
        )
        if self._path is not None:
            try:
                append_jsonl(self._path, [self.last])
            except OSError as error:
                raise TraceError(f"{self._path}: cannot be written: {error.strerror}") from error


def _writable(path: Path) -> Path:
    """Check at the start that the file can be written."""
    if not path.parent.is_dir():
        raise ConfigError(f"Recorder: the folder of {path} does not exist; create it first")
    try:
        append_jsonl(path, ())
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def single_action_trace(
    screen: Observation, action: Action, *, actor: str, task: str, seed: int, step: int
) -> Trace:
    """The trace of a decision without a model: one actor, one message.

    ``step``: number of the decision in its episode, from 0.
    """
    said = action.json()
    id = f"{actor}:0"
    return Trace(
        run=f"{task}/{seed}/{step}",
        seed=derive(seed, "step", step),
        observation=screen,
        agents=(actor,),
        rounds=1,
        calls=(Call(message=Message(id=id, sender=actor, round=0, content=said, action=action)),),
        action=action,
    )
