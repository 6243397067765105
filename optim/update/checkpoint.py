"""Checkpoints that stay readable when the process is killed at any time.

    checkpoints/
    ├── iteration-0002/
    └── iteration-0003/
        ├── manifest.json     every other file with its size and SHA-256
        ├── state.json
        ├── edges.safetensors
        └── adapters/...

A checkpoint is written as a whole (:func:`swarm_ui.storage.durable.replacing_folder`). So a folder
``iteration-...`` was complete when it was written, and the manifest shows later damage.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.storage.durable import replacing_folder, write_atomic

_MANIFEST = "manifest.json"
_NAME = re.compile(r"iteration-(\d{4,})$")
_PARTS = ".iteration-*"
"""Folders that a kill leaves."""


class _Entry(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Checkpoint(NamedTuple):
    """A complete checkpoint."""

    iteration: int
    folder: Path


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, root: Path, *, keep: int = 2) -> None:
        """``keep``: number of the newest checkpoints to keep, at least 1."""
        if keep < 1:
            raise ConfigError(f"checkpoints: keep must be at least 1, got {keep}")
        self.root = root
        self.keep = keep

    def save(self, iteration: int, write: Callable[[Path], None]) -> Path:
        """Write one checkpoint; it is on disk when this returns.

        ``write`` gets the folder for the files of the state after ``iteration`` iterations. Raises
        ``ConfigError`` if the checkpoint cannot be written.
        """
        final = self.root / f"iteration-{iteration:04d}"
        try:
            self._clear_parts()
            with replacing_folder(final) as folder:
                write(folder)
                _write_manifest(folder)
        except OSError as error:
            raise ConfigError(
                f"cannot write the checkpoint of iteration {iteration} under '{self.root}': {error}"
            ) from error
        self._prune(iteration)
        return final

    def latest(self, warn: Callable[[str], None]) -> Checkpoint | None:
        """The newest undamaged checkpoint, if any; ``warn`` is called for each damaged one."""
        for iteration, folder in sorted(self._found(), reverse=True):
            damage = _damage(folder)
            if damage is None:
                return Checkpoint(iteration, folder)
            warn(
                f"the checkpoint '{folder}' is damaged ({damage}); going back to the one before it"
            )
        return None

    def _found(self) -> list[tuple[int, Path]]:
        if not self.root.is_dir():
            return []
        named = [(_NAME.match(path.name), path) for path in self.root.iterdir() if path.is_dir()]
        return [(int(match.group(1)), path) for match, path in named if match]

    def _prune(self, newest: int) -> None:
        """Remove old checkpoints, and those of later iterations, which a resumed run replaces."""
        older = sorted((i, path) for i, path in self._found() if i <= newest)
        later = [path for i, path in self._found() if i > newest]
        for path in later + [path for _, path in older[: -self.keep]]:
            try:
                shutil.rmtree(path)
            except OSError as error:
                raise ConfigError(
                    f"cannot remove the old checkpoint '{path}': {error}; remove it, and resume: "
                    f"the checkpoint of iteration {newest} is complete"
                ) from error

    def _clear_parts(self) -> None:
        for path in self.root.glob(_PARTS):
            shutil.rmtree(path)


def _write_manifest(folder: Path) -> None:
    entries = {
        path.relative_to(folder).as_posix(): _entry(path)
        for path in sorted(folder.rglob("*"))
        if not path.is_dir()
    }
    write_atomic(folder / _MANIFEST, msgspec.json.format(msgspec.json.encode(entries)))


def _damage(folder: Path) -> str | None:
    """A description of the damage of a checkpoint; ``None`` if there is none."""
    try:
        entries = msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=dict[str, _Entry])
    except (OSError, msgspec.DecodeError) as error:
        return f"{_MANIFEST}: {error}"
    for name, expected in entries.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != expected.size:
            return f"{name} has {path.stat().st_size} bytes, expected {expected.size}"
        if _entry(path) != expected:
            return f"{name} has other contents than were written"
    return None


def _entry(path: Path) -> _Entry:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return _Entry(path.stat().st_size, digest)
