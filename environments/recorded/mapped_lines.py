"""Large files of records, mapped into memory and never read into it: a record on demand."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.storage.mapped_lines import MappedLines

_Kind = TypeVar("_Kind")


def mapped(path: Path) -> MappedLines:
    """A file's lines. Raises ``ConfigError``: it cannot be opened, or it is empty."""
    try:
        lines = MappedLines(path)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: there is no such file") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if not lines.view:
        raise ConfigError(f"{path}: cannot be read: the file is empty")
    return lines


class Lines:
    """A file of JSON lines, or one JSON array; where the records stand is found at first use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: list[msgspec.Raw] | None = None

    def __len__(self) -> int:
        return len(self._found())

    def raw(self, index: int) -> msgspec.Raw:
        """A record as it stands in the file."""
        return self._found()[index]

    def read(self, index: int, kind: type[_Kind]) -> _Kind:
        """A record. Raises ``ConfigError``: it is not of that kind; says which and why."""
        try:
            return msgspec.json.decode(self.raw(index), type=kind)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"{self.where(index)}: {error}") from error

    def where(self, index: int) -> str:
        return f"{self.path}, record {index}"

    def _found(self) -> list[msgspec.Raw]:
        if self._records is None:
            self._records = self._find()
        return self._records

    def _find(self) -> list[msgspec.Raw]:
        lines = mapped(self.path)
        if self.path.suffix == ".jsonl":
            found = (lines[number] for number in range(len(lines)))
            return [msgspec.Raw(line) for line in found if line[:64].tobytes().strip()
                    or line.tobytes().strip()]  # fmt: skip
        try:
            # The values are only skimmed: nothing of them is built or kept.
            return msgspec.json.decode(lines.view, type=list[msgspec.Raw])
        except msgspec.MsgspecError as error:
            raise ConfigError(
                f"{self.path}: not a JSON array of records: {error}. Was it downloaded, or "
                "unzipped, to its end?"
            ) from error
