"""Files of JSON records that are mapped into memory. A record is decoded when it is needed."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.files import MappedLines

_Kind = TypeVar("_Kind")


class RecordFile:
    """A file of JSON lines, or of one JSON array. The records are located at the first use."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __len__(self) -> int:
        return len(self._records)

    def raw(self, index: int) -> msgspec.Raw:
        """The JSON text of a record."""
        return self._records[index]

    def read(self, index: int, kind: type[_Kind]) -> _Kind:
        """A record. Raises ``ConfigError``, which names it, if it is not of this kind."""
        try:
            return msgspec.json.decode(self.raw(index), type=kind)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"{self.where(index)}: {error}") from error

    def where(self, index: int) -> str:
        return f"{self.path}, record {index}"

    @cached_property
    def _records(self) -> list[msgspec.Raw]:
        try:
            lines = MappedLines(self.path)
        except FileNotFoundError as error:
            raise ConfigError(f"{self.path}: there is no such file") from error
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be read: {error}") from error
        if not lines.view:
            raise ConfigError(f"{self.path}: cannot be read: it is empty")
        if self.path.suffix == ".jsonl":
            # The first bytes of a line show in most cases that it is not blank.
            return [
                msgspec.Raw(line)
                for line in (lines[k] for k in range(len(lines)))
                if bytes(line[:64]).strip() or bytes(line).strip()
            ]
        try:
            # Raw values are skipped, not decoded, so the array takes little memory.
            return msgspec.json.decode(lines.view, type=list[msgspec.Raw])
        except msgspec.MsgspecError as error:
            raise ConfigError(
                f"{self.path}: not a JSON array of records: {error}. Is the download, or the "
                "unzipped file, complete?"
            ) from error
