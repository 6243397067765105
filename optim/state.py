"""The state of team training between iterations, and the files that store it."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.optim.config import GUIDE, TeamConfig
from swarm_ui.optim.credit.trust import CriticTrust
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.metrics import IterationMetrics
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.update.checkpoint import Checkpoints
from swarm_ui.storage.run_directory import append_line, write_atomic

STATE_VERSION = 1
_METRICS = "metrics.jsonl"
_ACTING = "acting"
"""Folder of the weights and edges with which rollouts have begun."""
_MAY_CHANGE = frozenset({"iterations", "concurrency", "patience", "spread"})
_MAY_CHANGE_IN_UPDATE = frozenset({"micro_batch_tokens", "checkpointing"})
"""Settings of ``update`` that change the memory of an update and not its gradient."""


class TeamState(msgspec.Struct, kw_only=True):
    """The state at the start of an iteration, without weights and edges.

    There are no generator states: every random stream is derived from the seed, the iteration and
    its purpose, so a resumed run draws the same numbers as an uninterrupted one.
    """

    version: int = STATE_VERSION
    iteration: int = 0
    """Number of finished iterations."""
    ahead: int | None = None
    """The iteration whose rollouts had begun, with the weights and edges in ``acting``. They are
    not part of the checkpoint, and are played again. ``None``: none had begun."""
    trust: dict[str, object] | None = None
    """State of the critic's weight; ``None``: there is no critic."""
    history: list[IterationMetrics] = []
    config: dict[str, object] = {}
    adapters: dict[str, str] = {}
    """The adapter of each agent."""
    sharing: list[str] | None = None
    """The adapters that shared iterations train as one; ``None``: all."""


class TeamStore:
    """Checkpoints and metrics of one training run in one folder."""

    def __init__(
        self,
        folder: Path,
        config: TeamConfig,
        *,
        adapters: Mapping[str, str],
        warn: Callable[[str], None],
        keep: int = 2,
    ) -> None:
        self._folder = folder
        self._config, self._adapters = _plain(config), dict(adapters)
        self._checkpoints = Checkpoints(folder / "checkpoints", keep=keep)
        self._warn = warn
        self._loaded: Path | None = None

    def save(
        self, state: TeamState, model: Trainable, edges: EdgeDistribution, trust: CriticTrust | None
    ) -> None:
        """Write a checkpoint, then the line of metrics. :meth:`load` restores a missing line."""
        state.config, state.adapters = self._config, self._adapters
        state.trust = None if trust is None else trust.state_dict()

        def write(folder: Path) -> None:
            model.save_adapters(folder / "adapters")
            edges.save(folder / "edges.safetensors")
            text = msgspec.json.format(msgspec.json.encode(state))
            (folder / "state.json").write_bytes(text)
            if state.ahead is not None:
                shutil.copytree(self._folder / _ACTING, folder / _ACTING)

        self._checkpoints.save(state.iteration, write)
        try:
            append_line(self._folder / _METRICS, msgspec.json.encode(state.history[-1]))
        except OSError as error:
            raise ConfigError(
                f"cannot write '{self._folder / _METRICS}': {error}. The checkpoint of iteration "
                f"{state.iteration} is complete: resume the run when the file can be written"
            ) from error

    def load(
        self, model: Trainable, edges: EdgeDistribution, trust: CriticTrust | None
    ) -> TeamState | None:
        """Restore the last complete iteration; ``None`` if there is none.

        Raises:
            ConfigError: the run was started with other settings, or every checkpoint is damaged.
        """
        found = self._checkpoints.latest(self._warn)
        if found is None:
            if self.begun:
                raise ConfigError(
                    f"every checkpoint under '{self._folder / 'checkpoints'}' is damaged; restore "
                    "one from a copy, or start a new run in another folder"
                )
            self._rewrite_metrics(TeamState())
            return None
        try:
            raw = (found.folder / "state.json").read_bytes()
            state = msgspec.json.decode(raw, type=TeamState)
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(
                f"{found.folder / 'state.json'}: not a state of version {STATE_VERSION}: {error}"
            ) from error
        self._check(state, found.folder)
        if trust is not None and state.trust is not None:
            trust.load_state_dict(state.trust)
        self._loaded = found.folder
        self._load_weights(model, edges, found.folder)
        self._rewrite_metrics(state)
        return state

    def keep_acting(self, model: Trainable, edges: EdgeDistribution) -> None:
        """Keep the weights and edges with which the next rollouts begin, for the next checkpoint.

        Raises:
            ConfigError: they cannot be written.
        """
        folder = self._folder / _ACTING
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            model.save_adapters(folder / "adapters")
            edges.save(folder / "edges.safetensors")
        except OSError as error:
            raise ConfigError(f"cannot write '{folder}': {error}") from error

    @contextmanager
    def acting(self, model: Trainable, edges: EdgeDistribution) -> Iterator[None]:
        """A context for rollouts that began before the loaded checkpoint and are not in it.

        In the context, the model and the edges are those with which the rollouts began.
        """
        assert self._loaded is not None
        self._load_weights(model, edges, self._loaded / _ACTING)
        try:
            yield
        finally:
            self._load_weights(model, edges, self._loaded)

    def _load_weights(self, model: Trainable, edges: EdgeDistribution, folder: Path) -> None:
        edges.load_state_dict(EdgeDistribution.load(folder / "edges.safetensors").state_dict())
        model.load_adapters(folder / "adapters")

    @property
    def begun(self) -> bool:
        """Whether the folder holds checkpoints already."""
        return any((self._folder / "checkpoints").glob("iteration-*"))

    def _check(self, state: TeamState, folder: Path) -> None:
        if state.version != STATE_VERSION:
            raise ConfigError(
                f"{folder}: state of version {state.version}, this library reads {STATE_VERSION}; "
                "open it with the swarm-ui that wrote it"
            )
        if state.adapters and state.adapters != self._adapters:
            raise ConfigError(
                f"'{self._folder}' was started with other adapters ({state.adapters} then, "
                f"{self._adapters} now); resume with those, or start a new run in another folder"
            )
        then = state.config
        other = [
            f"{key}: {then.get(key)!r} then, {value!r} now"
            for key, value in self._config.items()
            if key not in _MAY_CHANGE and _lasting(then.get(key)) != _lasting(value)
        ]
        if other:
            raise ConfigError(
                f"'{self._folder}' was started with other settings ({'; '.join(other)}); "
                "resume with those, or start a new run in another folder"
            )

    def _rewrite_metrics(self, state: TeamState) -> None:
        """Keep one line for each finished iteration, and remove lines of unfinished iterations.

        Lines of other kinds stay, except those of an unfinished iteration, which is played again
        and writes its lines again.
        """
        path = self._folder / _METRICS
        raw = path.read_bytes() if path.exists() else b""
        kept: list[bytes] = []
        missing = dict(enumerate(state.history))
        for line in raw.splitlines():
            record = _record(line)
            iteration = record.get("iteration", -1)
            if isinstance(iteration, int) and iteration < state.iteration:
                ours = record.get("kind") == "iteration"
                if not ours or missing.pop(iteration, None) is not None:
                    kept.append(line)
        kept += [msgspec.json.encode(metrics) for metrics in missing.values()]
        data = b"".join(line + b"\n" for line in kept)
        if data != raw:
            write_atomic(path, data)


def _record(line: bytes) -> dict[str, object]:
    """Decode a line of metrics. A truncated line gets an iteration number that no run reaches."""
    try:
        return msgspec.json.decode(line, type=dict[str, object])
    except msgspec.DecodeError:
        return {"iteration": sys.maxsize}


def _lasting(value: object) -> object:
    """A setting without those of its parts that a resumed run may change."""
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if key not in _MAY_CHANGE_IN_UPDATE}


def _plain(config: TeamConfig) -> dict[str, object]:
    """The settings as JSON values."""
    # Without a judge, unset guidance is 0 and not `GUIDE`.
    guide = GUIDE if config.guide is None else config.guide
    encoded = msgspec.json.encode(dataclasses.asdict(config) | {"guide": guide})
    return msgspec.json.decode(encoded, type=dict[str, object])
