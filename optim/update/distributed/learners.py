"""Several processes that update the adapters of one team.

The first process plays the episodes, forms the examples and saves the run. The others wait in
:func:`follow`, with the same model loaded, and take part in each update:

    first process                     other processes
    Learners(processes)               follow(processes, load)
    .begin(description of the model)  load it
    .ready(own model)
    .update(tasks)                    train their part
    .close()                          return
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
from torch.nn.utils import parameters_to_vector

from swarm_ui.errors import ConfigError, LearningError, SwarmError
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.update.adapter_task import AdapterTask
from swarm_ui.optim.update.adapter_trainer import AdapterTrainer, UpdateStats
from swarm_ui.optim.update.distributed.processes import (
    LostProcess,
    Processes,
    assign,
)
from swarm_ui.optim.update.distributed.sharded_base import shard_base, sharding_wanted
from swarm_ui.optim.update.distributed.spread import Spread, assigned, spread_of
from swarm_ui.optim.update.update_config import UpdateConfig

Done = Callable[[int, int], None]
"""Called with (finished updates, all updates)."""
Check = Callable[[], None]
"""Called before each step; what it raises ends the update."""


class NewAdapter(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of an adapter that a process adds if it does not have it."""

    rank: int
    alpha: float
    layers: tuple[int, ...] | None = None

    def add_to(self, model: Trainable, name: str) -> None:
        """Add an adapter of this shape to a model."""
        if self.layers is None:
            model.add_adapter(name, self.rank, self.alpha)
        else:
            model.add_adapter(name, self.rank, self.alpha, layers=self.layers)


class _Load(msgspec.Struct, frozen=True, tag=True):
    model: bytes


class _Update(msgspec.Struct, frozen=True, tag=True):
    tasks: tuple[AdapterTask, ...]
    settings: UpdateConfig
    shape: NewAdapter
    weights: tuple[int, ...]
    """The number of weights of each task's adapter."""
    spread: Spread


class _Stop(msgspec.Struct, frozen=True, tag=True):
    pass


_Message = _Load | _Update | _Stop


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The report of one process about a loaded model or its part of an update."""

    stats: dict[int, UpdateStats] = {}
    """Statistics by the position of the task."""
    cpu_seconds: float = 0.0
    base: str = ""
    """Fingerprint of the base model; empty: unknown."""
    error: str = ""


class Learners:
    """The other processes of a training, as the first process uses them."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        self.cpu_seconds = 0.0
        """CPU time of the other processes in all updates so far."""
        self._loading = self._broken = False

    def begin(self, model: bytes) -> None:
        """Let the other processes load a model. ``model`` is passed to their ``load``."""
        self._send(_Load(model))
        self._loading = True

    def ready(self, model: Trainable) -> None:
        """Wait until all other processes have loaded the model that this one has loaded.

        With a configuration for FSDP, the base model is divided among the processes then.

        Raises:
            LearningError: a process could not load it.
            ConfigError: another process has other weights, or the model cannot be divided.
        """
        self._loading = False
        outcomes = _reported(self.processes, _loaded(model))
        _raise_first(outcomes)
        wrong = _different(outcomes)
        if wrong is not None:
            raise ConfigError(
                f"process {wrong + 1} of {len(outcomes)} has loaded other base weights than the "
                "first process; give all machines the same files"
            )
        _shard(self.processes, model)

    def update(
        self,
        model: Trainable,
        tasks: Sequence[AdapterTask],
        settings: UpdateConfig,
        shape: NewAdapter,
        *,
        spread: Spread = "auto",
        done: Done | None = None,
        check: Check | None = None,
    ) -> list[UpdateStats]:
        """Make the updates, and give all processes the new weights.

        Args:
            model: the model of this process.
            tasks: one for each adapter.
            settings: the update's settings, with the defaults of the model filled in.
            shape: the shape of adapters that the other processes do not have yet.
            spread: how the processes share the updates.
            done: called after each adapter that this process has trained.
            check: called before each step of this process. After what it raises, the processes
                make no more updates.

        Returns:
            the figures of each task.

        Raises:
            LearningError: a loss or a gradient was not a number, or a process failed.
        """
        group = self.processes
        spread = spread_of(spread, len(tasks), group.size, sharded=group.sharded)
        weights = tuple(
            sum(p.numel() for p in model.adapter_parameters(task.adapter)) for task in tasks
        )
        message = _Update(tuple(tasks), settings, shape, weights, spread)
        self._broken = True  # until all processes wait for the next message again
        self._send(message)
        try:
            stats, elsewhere = _take_part(group, model, message, done, check)
        except LearningError as error:
            self._broken = isinstance(error, LostProcess)
            raise
        self._broken = False
        self.cpu_seconds += elsewhere
        return stats

    def close(self) -> None:
        """Let the other processes end. Does nothing if the connection is lost."""
        if self._broken:
            return
        self._broken = True
        with suppress(LostProcess):
            if self._loading:
                _reported(self.processes, _Outcome(error="given up"))
            self._send(_Stop())

    def _send(self, message: _Message) -> None:
        self.processes.send(msgspec.msgpack.encode(message))


def follow(processes: Processes, load: Callable[[bytes], Trainable]) -> None:
    """Take part in the updates of the first process, until it closes its :class:`Learners`.

    Args:
        processes: this process is not the first one.
        load: makes the model of :meth:`Learners.begin`. The first process reports its errors.

    Raises:
        LostProcess: the first process, or another one, ended.
    """
    model: Trainable | None = None
    while True:
        message = msgspec.msgpack.decode(processes.send(None), type=_Message)
        if isinstance(message, _Stop):
            return
        if isinstance(message, _Load):
            model = _load_with_others(processes, load, message.model)
        elif model is not None:
            try:
                _take_part(processes, model, message)
            except LostProcess:
                raise
            except LearningError:
                continue  # the first process has the same error, and reports it


def _load_with_others(
    group: Processes, load: Callable[[bytes], Trainable], description: bytes
) -> Trainable | None:
    """The model, or ``None`` if a process could not load it; the first process reports this."""
    model = None
    try:
        model = load(description)
        outcome = _loaded(model)
    except Exception as error:
        outcome = _Outcome(error=_described(error))
    outcomes = _reported(group, outcome)
    if model is None or any(each.error for each in outcomes) or _different(outcomes) is not None:
        return None
    with suppress(ConfigError):  # raised by the first process too, which reports it
        _shard(group, model)
    return model


def _loaded(model: Trainable) -> _Outcome:
    known = getattr(model, "base_fingerprint", None)
    return _Outcome(base="" if known is None else known())


def _different(outcomes: Sequence[_Outcome]) -> int | None:
    """The first process that is known to have loaded another base model than process 0."""
    expected = outcomes[0].base
    found = (k for k, each in enumerate(outcomes) if each.base and each.base != expected)
    return next(found, None) if expected else None


def _shard(group: Processes, model: Trainable) -> None:
    """Divide the base model among the processes, if the launch is configured for that."""
    if sharding_wanted():
        pin = getattr(model, "pin_base", None)
        if pin is not None:
            pin()
        shard_base(model.module, group)


def _take_part(
    group: Processes,
    model: Trainable,
    message: _Update,
    done: Done | None = None,
    check: Check | None = None,
) -> tuple[list[UpdateStats], float]:
    """This process's part of an update; all processes call this.

    Returns:
        the figures of each task, and the CPU seconds of the other processes.
    """
    began = time.process_time()
    _raise_first(_reported(group, _Outcome(error=_unprepared(model, message))))
    for task in message.tasks:
        _exchange(group, model, task.adapter, source=0)
    total = len(message.tasks)
    if message.spread == "batches":
        trainer = AdapterTrainer(model, message.settings, group)
        stats = {}
        for k, task in enumerate(message.tasks):
            stats[k] = trainer.train(task, check)
            if done is not None:
                done(k + 1, total)
        outcome = _Outcome(stats=stats, cpu_seconds=time.process_time() - began)
        outcomes = _reported(group, outcome)
    else:
        owners = assigned([task.tokens for task in message.tasks], group.size)
        outcome = _own_part(group, model, message, owners, done, check)
        outcome = msgspec.structs.replace(outcome, cpu_seconds=time.process_time() - began)
        outcomes = _reported(group, outcome)
        _raise_first(outcomes)
        for k, (task, owner) in enumerate(zip(message.tasks, owners, strict=True)):
            _exchange(group, model, task.adapter, source=owner)
            if owner != group.rank and outcomes[owner].stats[k].steps:
                model.bump(task.adapter)
        stats = {k: outcomes[owner].stats[k] for k, owner in enumerate(owners)}
    elsewhere = sum(each.cpu_seconds for each in outcomes[1:])
    return [stats[k] for k in range(total)], elsewhere


def _own_part(
    group: Processes,
    model: Trainable,
    message: _Update,
    owners: Sequence[int],
    done: Done | None,
    check: Check | None,
) -> _Outcome:
    """Train the adapters that this process is responsible for."""
    trainer = AdapterTrainer(model, message.settings)
    stats: dict[int, UpdateStats] = {}
    try:
        for k, task in enumerate(message.tasks):
            if owners[k] == group.rank:
                trained = trainer.train(task, check)
                stats[k] = msgspec.structs.replace(trained, process=group.rank)
                if done is not None:
                    done(len(stats), len(owners))
    except Exception as error:
        return _Outcome(error=_described(error))
    return _Outcome(stats=stats)


def _unprepared(model: Trainable, message: _Update) -> str:
    """Add the adapters that are missing here; returns an error, or nothing."""
    try:
        for task, expected in zip(message.tasks, message.weights, strict=True):
            if task.adapter not in model.adapters:
                message.shape.add_to(model, task.adapter)
            found = sum(p.numel() for p in model.adapter_parameters(task.adapter))
            if found != expected:
                return (
                    f"adapter '{task.adapter}' has {found} weights, in the first process "
                    f"{expected}; all processes must load the same model and adapters"
                )
    except Exception as error:
        return _described(error)
    return ""


def _exchange(group: Processes, model: Trainable, adapter: str, *, source: int) -> None:
    """Give all processes the weights that one of them has for an adapter."""
    parameters = model.adapter_parameters(adapter)
    values = group.copy(parameters_to_vector(parameters).detach(), source)
    if group.rank != source:
        # Weights may change inside `activate`; runs that use the old ones keep a copy.
        with model.activate(adapter):
            assign(parameters, values)


def _reported(group: Processes, outcome: _Outcome) -> list[_Outcome]:
    """The reports of all processes."""
    raw = group.gather(msgspec.msgpack.encode(outcome))
    return [msgspec.msgpack.decode(each, type=_Outcome) for each in raw]


def _raise_first(outcomes: Sequence[_Outcome]) -> None:
    for rank, outcome in enumerate(outcomes):
        if outcome.error:
            raise LearningError(f"process {rank + 1} of {len(outcomes)}: {outcome.error}")


def _described(error: Exception) -> str:
    """The error of a process, for the others."""
    return str(error) if isinstance(error, SwarmError) else f"{type(error).__name__}: {error}"
