"""The weights of one version of an adapter, as a learner publishes them for other processes.

A folder of published versions has one sub-folder for each, in peft's format with metadata. Its name
consists of the version's name on a server and the digest of the weights: ``agent_2-v7-<digest>``
for ``agent_2@7``. A version is written once and never changed, so a restarted process can read it
again. If the machines have no common folder, the files are sent.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from swarm_ui.adapter_metadata import AdapterMetadata, write_metadata
from swarm_ui.errors import ConfigError
from swarm_ui.nodes.models.leases import served_name

_WEIGHTS = "adapter_model.safetensors"
_DIGEST = re.compile(r"[0-9a-f]{8,64}")


class Learner(Protocol):
    """A model that holds versions of adapters and can save them."""

    name: str

    def save_version(self, version: str, folder: Path) -> None: ...

    def metadata(self, adapter: str) -> AdapterMetadata: ...


class PublishedVersion(NamedTuple):
    """The location of the weights of a version."""

    digest: str
    """The beginning of the SHA-256 of the weights; empty: not known."""
    folder: str
    """The folder of the weights; empty: they are in ``files``."""
    files: Mapping[str, bytes] = {}

    @contextmanager
    def unpacked(self) -> Iterator[Path]:
        """A folder with the files: the published one, or a temporary one."""
        if self.folder:
            yield Path(self.folder)
            return
        with tempfile.TemporaryDirectory() as folder:
            for name, data in self.files.items():
                (Path(folder) / name).write_bytes(data)
            yield Path(folder)


def write_version(
    learner: Learner, version: str, root: Path | None, *, base: str
) -> PublishedVersion:
    """Publish a version.

    Args:
        learner: holds the version.
        version: such as ``"agent_2@7"``; it is current or leased.
        root: the folder of published versions; ``None``: the files are returned.
        base: fingerprint of the base model.

    Raises:
        ConfigError: it cannot be written, or there is no such version.
    """
    try:
        if root is not None:
            root.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=root))
        try:
            part.chmod(0o755)  # the reader may be another user
            learner.save_version(version, part)
            write_metadata(part, learner.metadata(version).saved_with(learner.name, base))
            digest = hashlib.sha256((part / _WEIGHTS).read_bytes()).hexdigest()[:16]
            if root is None:
                files = {path.name: path.read_bytes() for path in part.iterdir()}
                return PublishedVersion(digest, "", files)
            folder = root.resolve() / f"{served_name(version)}-{digest}"
            if folder.exists():
                os.utime(folder)  # it is the newest again, see published_in
            else:
                part.rename(folder)
            return PublishedVersion(digest, str(folder))
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        where = "a temporary folder" if root is None else f"'{root}'"
        raise ConfigError(
            f"cannot publish {version} of '{learner.name}' in {where}: {error}. To do: make room, "
            "or choose a folder that this process can write"
        ) from error


def published_in(root: Path, version: str) -> PublishedVersion | None:
    """A version in a folder of published versions; ``None`` if it is not there. If runs published
    it with different weights, the newest is taken."""
    name = served_name(version)
    if (root / name).is_dir():
        return PublishedVersion("", str(root / name))
    found = [path for path in root.glob(f"{glob.escape(name)}-*") if path.is_dir()]
    fits = [path for path in found if _DIGEST.fullmatch(path.name[len(name) + 1 :])]
    if not fits:
        return None
    newest = max(fits, key=lambda path: path.stat().st_mtime)
    return PublishedVersion(newest.name[len(name) + 1 :], str(newest))
