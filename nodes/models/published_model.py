"""A model whose adapters a learner publishes by versioned name, for actors in other processes.

    learner = LocalModel.load()                                   # trains
    model = PublishedModel(learner, LocalModel.load, folder=run / "published")
    team = CollabGraph.collaborative(agents=4, rounds=2, model=model, adapters=names)

Here the learner answers. Where the team is sent, the model is made once for each process, and a
version is loaded at the first request to it. The weights are read from the folder, which all
processes must see, or travel with the team if there is no folder.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from msgspec.structs import replace

from swarm_ui.adapter_metadata import write_metadata
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import Completion, Request, leased_versions
from swarm_ui.nodes.models.openai.served_adapters import served_name
from swarm_ui.nodes.models.transformers.in_process_model import Counters, InProcessModel

_WEIGHTS = "adapter_model.safetensors"


class _Published(NamedTuple):
    """The weights of one version."""

    digest: str
    """The beginning of the SHA-256 of the weights."""
    folder: str
    """Where they are; empty: in ``files``."""
    files: Mapping[str, bytes]


class PublishedModel:
    """The adapters of a learner, also in processes that this object is sent to. It is a
    :class:`~swarm_ui.model.VersionedModel`, a :class:`~swarm_ui.model.ScoringModel` and a
    :class:`~swarm_ui.optim.rollout_actors.Publisher`.

    Traces name versions as the learner does (``agent_2@7``).

    Args:
        learner: holds and trains the adapters.
        make: makes a model with the same base weights in another process, without adapters. It is
            sent there.
        folder: where versions are saved. It needs a folder of its own for each training run, which
            all processes see under the same path. ``None``: the weights are sent with the model,
            through Ray's object store.
    """

    def __init__(
        self, learner: InProcessModel[Any], make: Callable[[], Any], folder: Path | None = None
    ) -> None:
        self.learner: InProcessModel[Any] | None = learner
        self.name = learner.name
        self._make, self._folder = make, folder
        self._key = uuid4().hex
        self._base = learner.base_fingerprint()
        self._current: dict[str, str] = {}
        """The published version of each adapter."""
        self._versions: dict[str, _Published] = {}

    def __repr__(self) -> str:
        where = "sent with it" if self._folder is None else f"in '{self._folder}'"
        return f"PublishedModel('{self.name}', weights {where})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "learner": None}

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the adapters."""
        return tuple(self._current) if self.learner is None else self.learner.adapters

    @property
    def counters(self) -> Counters:
        """Counts of the model in this process."""
        counters: Counters = self._model().counters
        return counters

    # -- answers ------------------------------------------------------------------------------

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`."""
        with self._at_versions(requests) as exact:
            done: list[Completion] = await self._model().generate(exact)
        return done

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """See :class:`swarm_ui.model.ScoringModel`."""
        with self._at_versions(requests) as exact:
            scores: list[float] = await self._model().score(exact, replies)
        return scores

    def lease(self, adapter: str) -> str:
        """See :class:`swarm_ui.model.VersionedModel`. Where the learner is not, a plain name means
        the version that was published last when this object was sent."""
        if self.learner is not None:
            return self.learner.lease(adapter)
        version = self._current.get(adapter, adapter)
        _follower(self).hold(version, self._versions)
        leased: str = self._model().lease(version)
        return leased

    def release(self, version: str) -> None:
        """See :class:`swarm_ui.model.VersionedModel`."""
        self._model().release(version)

    async def close(self) -> None:
        """Remove the published weights, if this is the process of the learner."""
        if self.learner is not None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _model(self) -> Any:
        """The model that answers in this process."""
        return _follower(self).model if self.learner is None else self.learner

    @contextmanager
    def _at_versions(self, requests: Sequence[Request]) -> Iterator[list[Request]]:
        """The requests, each for an exact version that is leased inside the block."""
        with leased_versions(self, requests) as versions:
            yield [replace(r, adapter=v) for r, v in zip(requests, versions, strict=True)]

    # -- versions -----------------------------------------------------------------------------

    def publish(self) -> Mapping[str, str]:
        """See :class:`swarm_ui.optim.rollout_actors.Publisher`.

        Raises:
            ConfigError: this is a copy in another process, or a version cannot be written.
        """
        learner = self.learner
        if learner is None:
            raise ConfigError(f"'{self.name}': only the process of the learner can publish")
        before, self._current = self._current, {}
        published: dict[str, _Published] = {}
        for name in learner.adapters:
            version = learner.lease(name)
            try:
                published[version] = self._stored(learner, name, version)
            finally:
                learner.release(version)
            self._current[name] = version
        kept = {v: self._versions[v] for v in before.values()} | published
        folders = {each.folder for each in kept.values()}
        for old in self._versions.values():
            if old.folder and old.folder not in folders:
                shutil.rmtree(old.folder, ignore_errors=True)
        self._versions = kept
        return dict(self._current)

    def _stored(self, learner: InProcessModel[Any], name: str, version: str) -> _Published:
        """Save a version: in the folder, or as bytes."""
        root = self._folder
        try:
            if root is not None:
                root.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=".part-", dir=root))
            try:
                part.chmod(0o755)  # a worker may be another user
                learner.save_version(version, part)
                write_metadata(part, learner.metadata(name).saved_with(self.name, self._base))
                digest = hashlib.sha256((part / _WEIGHTS).read_bytes()).hexdigest()[:16]
                if root is None:
                    files = {path.name: path.read_bytes() for path in part.iterdir()}
                    return _Published(digest, "", files)
                folder = root.resolve() / f"{served_name(version)}-{digest}"
                if not folder.exists():
                    part.rename(folder)
                return _Published(digest, str(folder), {})
            finally:
                shutil.rmtree(part, ignore_errors=True)
        except OSError as error:
            where = "a temporary folder" if root is None else f"'{root}'"
            raise ConfigError(
                f"cannot publish {version} of '{self.name}' in {where}: {error}. To do: make room, "
                "or choose a folder that this process can write"
            ) from error


class _Follower:
    """A model in another process than the learner, and the versions that it holds."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._held: dict[str, str] = {}
        """Digests of the current versions of the model."""

    def hold(self, version: str, published: Mapping[str, _Published]) -> None:
        """Load a version, if the model does not hold it.

        Raises:
            ModelError: it was not published, or cannot be read.
        """
        if self.model.has_version(version) and version not in published:
            return
        found = published.get(version)
        if found is None:
            known = ", ".join(published) or "none"
            raise ModelError(f"no adapter '{version}' is published; there are: {known}")
        if self.model.has_version(version) and self._held.get(version) == found.digest:
            return
        try:
            if found.folder:
                self.model.load_version(version, Path(found.folder))
            else:
                with tempfile.TemporaryDirectory() as folder:
                    for name, data in found.files.items():
                        (Path(folder) / name).write_bytes(data)
                    self.model.load_version(version, Path(folder))
        except (OSError, ConfigError) as error:
            raise ModelError(
                f"cannot load the published {version} of '{self.model.name}' in this process: "
                f"{error}. To do: publish in a folder that all machines see under the same path, "
                "or without a folder"
            ) from error
        self._held[version] = found.digest


_FOLLOWERS: dict[str, _Follower] = {}
"""By the key of a published model. A team is sent anew in every iteration, and its base model must
not be loaded anew each time, so it belongs to the process."""


def _follower(model: PublishedModel) -> _Follower:
    if model._key not in _FOLLOWERS:
        _FOLLOWERS[model._key] = _Follower(model._make())
    return _FOLLOWERS[model._key]
