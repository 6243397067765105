"""Where a learner puts the versions of its adapters, and other processes find those they lack.

A version such as ``"agent_2@7"`` is a folder as peft writes it, with metadata. It is put on the
board once and never changed. A process that is asked for a version which it lacks pulls it, so
nobody needs to know which processes there are, and a restarted one just asks again.
"""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from swarm_ui.adapter_metadata import AdapterMetadata, write_metadata
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.model import Completion, Request, VersionedModel, at_leased_versions
from swarm_ui.nodes.models.acting.calls import answered
from swarm_ui.rollout.cluster import connected

_WHO = "the process that holds the published adapters"


class Learner(Protocol):
    """A model that trains adapters and can save their versions."""

    name: str

    def save_version(self, version: str, folder: Path) -> None: ...

    def metadata(self, adapter: str) -> AdapterMetadata: ...

    def base_fingerprint(self) -> str: ...


class Board(Protocol):
    """Versions of adapters, for this and other processes. It can be sent to them."""

    def put(self, version: str, learner: Learner) -> None:
        """Make a version available; a version with its name is replaced. Raises ``ConfigError`` if
        it cannot be written, or the learner has no such version."""
        ...

    def folder(self, version: str) -> AbstractAsyncContextManager[Path]:
        """A folder with a version, inside the block. Raises ``ModelUnavailable`` if it is not
        here (yet)."""
        ...

    def drop(self, version: str) -> None:
        """Remove a version; no error if it is not here."""
        ...

    def close(self) -> None:
        """Remove all versions."""
        ...


class FolderBoard:
    """A board in a folder that all processes see under the same path: ``folder/agent_2@7``."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def __repr__(self) -> str:
        return f"FolderBoard('{self.root}')"

    def path(self, version: str) -> Path:
        """The folder of a version, whether it is there or not."""
        return self.root / version

    def put(self, version: str, learner: Learner) -> None:
        """See :class:`Board`."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=".part-", dir=self.root))
            try:
                part.chmod(0o755)  # the reader may be another user
                _save(version, learner, part)
                shutil.rmtree(self.path(version), ignore_errors=True)
                part.rename(self.path(version))
            finally:
                shutil.rmtree(part, ignore_errors=True)
        except OSError as error:
            raise ConfigError(
                f"cannot publish {version} of '{learner.name}' in '{self.root}': {error}. To do: "
                "make room, or choose a folder that this process can write"
            ) from error

    @asynccontextmanager
    async def folder(self, version: str) -> AsyncIterator[Path]:
        """See :class:`Board`."""
        if not self.path(version).is_dir():
            raise ModelUnavailable(
                f"expected the adapter {version} in '{self.path(version)}', which is not on this "
                "machine. Publish it in a folder that all machines read under the same path"
            )
        yield self.path(version)

    def drop(self, version: str) -> None:
        """See :class:`Board`."""
        shutil.rmtree(self.path(version), ignore_errors=True)

    def close(self) -> None:
        """See :class:`Board`."""
        shutil.rmtree(self.root, ignore_errors=True)


class RayBoard:
    """A board in the memory of a Ray actor, for machines without a common folder."""

    def __init__(self, actor: Any = None) -> None:
        """``actor``: Ray's handle of a :class:`Shelf`; ``None``: it is made, on this machine.

        Raises:
            ConfigError: this process is not connected to a cluster.
        """
        self._actor = actor or connected(_WHO).remote(Shelf).options(num_cpus=0).remote()

    def __reduce__(self) -> tuple[Any, ...]:
        return RayBoard, (self._actor,)

    def __repr__(self) -> str:
        return "RayBoard()"

    def put(self, version: str, learner: Learner) -> None:
        """See :class:`Board`."""
        with tempfile.TemporaryDirectory() as folder:
            _save(version, learner, Path(folder))
            files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        connected(_WHO).get(self._actor.put.remote(version, files))

    @asynccontextmanager
    async def folder(self, version: str) -> AsyncIterator[Path]:
        """See :class:`Board`."""
        files: Mapping[str, bytes] = await answered(self._actor.get.remote(version), _WHO)
        with tempfile.TemporaryDirectory() as folder:
            for name, data in files.items():
                (Path(folder) / name).write_bytes(data)
            yield Path(folder)

    def drop(self, version: str) -> None:
        """See :class:`Board`."""
        self._actor.drop.remote(version)

    def close(self) -> None:
        """See :class:`Board`."""
        connected(_WHO).kill(self._actor)


class Shelf:
    """The files of versions. Ray runs it as an actor."""

    def __init__(self) -> None:
        self._files: dict[str, Mapping[str, bytes]] = {}

    def put(self, version: str, files: Mapping[str, bytes]) -> None:
        """Add a version."""
        self._files[version] = files

    def get(self, version: str) -> Mapping[str, bytes]:
        """The files of a version by name. Raises ``ModelUnavailable`` if it is not here."""
        if version not in self._files:
            known = ", ".join(self._files) or "none"
            raise ModelUnavailable(f"no adapter '{version}' is published; there are: {known}")
        return self._files[version]

    def drop(self, version: str) -> None:
        """Remove a version."""
        self._files.pop(version, None)


def _save(version: str, learner: Learner, folder: Path) -> None:
    learner.save_version(version, folder)
    metadata = learner.metadata(version).saved_with(learner.name, learner.base_fingerprint())
    write_metadata(folder, metadata)


class Published:
    """What a learner has put on a board for other processes."""

    def __init__(self, learner: Any, board: Board, kept: int) -> None:
        """``kept``: the versions of this many calls of :meth:`publish` are needed."""
        self._learner, self._board = learner, board
        self._last: deque[dict[str, str]] = deque(maxlen=kept)
        self.there: set[str] = set()
        """The versions on the board."""

    @property
    def current(self) -> Mapping[str, str]:
        """The version of each adapter at the last call of :meth:`publish`."""
        return self._last[-1] if self._last else {}

    @property
    def needed(self) -> set[str]:
        """The versions of the last calls of :meth:`publish`."""
        return {version for current in self._last for version in current.values()}

    def publish(self) -> dict[str, str]:
        """Put the current weights on the board; the version of each adapter. Raises ``ConfigError``
        if one cannot be written."""
        current: dict[str, str] = {}
        for name in self._learner.adapters:
            current[name] = self._learner.lease(name)
            try:
                self.put(current[name])
            finally:
                self._learner.release(current[name])
        self._last.append(current)
        return dict(current)

    def put(self, version: str) -> None:
        """Put a version on the board if it is not there."""
        if version not in self.there:
            self._board.put(version, self._learner)
            self.there.add(version)

    def drop(self, version: str) -> None:
        """Remove a version from the board."""
        self.there.discard(version)
        self._board.drop(version)


class PullingModel:
    """A model of this process, which gets the versions that it lacks from a board. The newest ones
    of each adapter stay in memory although no request uses them."""

    def __init__(self, model: Any, kept: int = 2) -> None:
        """
        Args:
            model: if it is a :class:`~swarm_ui.model.VersionedModel` with ``load_version``, it
                pulls versions.
            kept: versions of each adapter that stay in memory.
        """
        self.model, self._kept = model, kept
        self.own: dict[str, str] | None = None
        """The version of each adapter that it has from the beginning. They stay. ``None``: it has
        no versions."""
        if isinstance(model, VersionedModel) and hasattr(model, "load_version"):
            self.own = {name: model.lease(name) for name in getattr(model, "adapters", ())}
        self.recent: dict[str, None] = {}
        """Versions from the board that stay in memory, in the order of their last use."""

    async def ask(
        self, method: str, board: Board | None, requests: Sequence[Request], *others: object
    ) -> Any:
        """Call ``generate`` or ``score``, for exact versions of adapters.

        Raises:
            ModelUnavailable: a version is not published (yet).
            ModelError: it cannot be read, or does not fit the model.
        """
        with ExitStack() as leases:
            for version in sorted({each.adapter for each in requests if each.adapter}):
                own = self.own
                if board is not None and own is not None and version not in own.values():
                    await self._pull(version, board)
                    leases.callback(self.model.release, version)
                    await self._keep(version)
            return await getattr(self.model, method)(requests, *others)

    async def _pull(self, version: str, board: Board) -> None:
        """Lease a version, which comes from the board if the model lacks it."""
        if self._leased(version):
            return
        try:
            async with board.folder(version) as folder:
                if self._leased(version):  # loaded by another request meanwhile
                    return
                made = self.model.load_version(version, folder)
                if inspect.isawaitable(made):
                    await made
        except (OSError, ConfigError) as error:
            raise ModelError(
                f"cannot load the published {version} of '{self.model.name}' in this process: "
                f"{error}"
            ) from error
        self.model.lease(version)

    def _leased(self, version: str) -> bool:
        """Lease a version if the model has it."""
        try:
            self.model.lease(version)
        except ModelError:
            return False
        return True

    async def _keep(self, version: str) -> None:
        if version not in self.recent:
            self.model.lease(version)
        self.recent.pop(version, None)
        self.recent[version] = None
        name = version.rpartition("@")[0]
        for old in [each for each in self.recent if each.startswith(f"{name}@")][: -self._kept]:
            del self.recent[old]
            self.model.release(old)
            if hasattr(self.model, "unload_version"):  # it keeps what was loaded
                await self.model.unload_version(old)


class PublishedCopy:
    """A model in another process than its learner's. It answers with the versions that were
    published there; an adapter's name without a version means the one that was current when this
    object was made. It is a :class:`~swarm_ui.model.VersionedModel`.
    """

    name: str

    def __init__(self, current: Mapping[str, str] | None) -> None:
        """``current``: the version of each adapter; ``None``: the model has no versions."""
        self.current = None if current is None else dict(current)

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request, in order; see :class:`swarm_ui.model.ChatModel`."""
        done: list[Completion] = await self._exactly("generate", requests)
        return done

    def lease(self, adapter: str) -> str:
        """The published version of an adapter; a version stands for itself. Raises ``ModelError``
        if there is no such adapter."""
        if self.current is None or "@" in adapter:
            return adapter
        if adapter not in self.current:
            known = ", ".join(self.current.values()) or "none"
            raise ModelError(f"no adapter '{adapter}'; there are: {known}")
        return self.current[adapter]

    def release(self, version: str) -> None:
        """Does nothing: a version stays on its board while it is needed."""

    async def _exactly(self, method: str, requests: Sequence[Request], *others: object) -> Any:
        with at_leased_versions(self, requests) as exact:
            return await self._ask(method, exact, *others) if exact else []

    async def _ask(self, method: str, requests: Sequence[Request], *others: object) -> Any:
        """Answer requests for exact versions."""
        raise NotImplementedError


class ScoringCopy(PublishedCopy):
    """One that can also compute the probability of a given reply. It is a
    :class:`~swarm_ui.model.ScoringModel`."""

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each reply under its request; see
        :class:`swarm_ui.model.ScoringModel`."""
        scores: list[float] = await self._exactly("score", requests, list(replies))
        return scores
