"""A run's directory: everything that a run writes, under fixed paths.

    runs/20250131-142530-phone/
    ├── config.json      settings, versions, machine
    ├── status.json      what is finished; --resume continues from there
    ├── progress.json    progress bars and time left, for swarm-ui runs and view --follow
    ├── metrics.jsonl    one line for each measurement
    ├── traces/*.jsonl   episodes
    ├── adapters/        LoRA adapters in peft's format
    ├── edges/           learned or sampled edges
    └── report.html

Files are replaced as a whole or grow by whole lines, so that a run killed at any moment leaves a
directory that can be read and resumed.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from swarm_ui.errors import UNREADABLE, ConfigError, TraceError, brief
from swarm_ui.files import append_line, whole_lines, write_atomic
from swarm_ui.trace.jsonl import write_jsonl
from swarm_ui.trace.records import TRACE_VERSION, Episode

RUN_VERSION = 1

_REPORTED = (
    "swarm-ui", "msgspec", "networkx", "openai", "torch", "transformers", "peft", "trl",
    "numpy", "miniwob", "android-env", "vllm", "ray",
)  # fmt: skip
_SECRET = re.compile(
    r"(?i)(^|[_-])(api[_-]?keys?|key|token|secrets?|passwords?|passwd|passphrase|authorization|"
    r"credentials?|cookies?)$"
)
_WORD_IN_NAME = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Where a word begins in a name such as ``authToken``."""
_IN_QUERY = re.compile(r"(?<=[?&#])([^=&#\s]+)=[^&#\s]*")
_USERINFO = re.compile(r"(?<=://)[^/?#\s]+@")
"""User and password of an address: all up to the last ``@`` before the path, as they are sent."""


class RunDirectory:
    """One run on disk. Make one with :meth:`create`, :meth:`open_existing` or
    :meth:`open_to_read`."""

    def __init__(self, path: Path) -> None:
        self.path, self.traces, self.adapters = path, path / "traces", path / "adapters"

    @classmethod
    def create(
        cls, path: Path | None, *, name: str = "run", config: Mapping[str, object]
    ) -> RunDirectory:
        """Create the directory and write ``config.json``.

        Args:
            path: an empty or new directory; ``None``: ``runs/<date>-<name>``, made unique.
            config: settings, JSON-able (or paths); see :func:`without_secrets`.

        Raises ``ConfigError`` if the folder is not empty or cannot be written.
        """
        document = {
            "run_version": RUN_VERSION,
            "trace_version": TRACE_VERSION,
            "name": name,
            "created": _now().isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cpus": os.cpu_count(),
            "packages": installed(_REPORTED),
            "config": without_secrets(config),
        }
        with _writing(path or Path("runs")):
            run = cls(_reserved(name) if path is None else path)
            if os.path.exists(run.path) and (not run.path.is_dir() or any(run.path.iterdir())):
                raise ConfigError(
                    f"the run directory '{run.path}' exists and is not empty; choose another, or "
                    f"continue that run: --resume {run.path}"
                )
            run.traces.mkdir(parents=True, exist_ok=True)
            write_atomic(run.path / "config.json", _pretty(document))
        return run

    @classmethod
    def open_to_read(cls, path: Path) -> RunDirectory:
        """The directory of an existing run; changes nothing. Raises as :meth:`document`."""
        if not path.is_dir():
            raise ConfigError(f"there is no run '{path}': expected the folder of a run")
        run = cls(path)
        run.document()
        return run

    @classmethod
    def open_existing(cls, path: Path) -> RunDirectory:
        """Open the directory of an existing run to continue it. Raises as :meth:`open_to_read` and
        :func:`expect_no_links_out`."""
        run = cls.open_to_read(path)
        expect_no_links_out(path)
        with _writing(path):
            run.traces.mkdir(exist_ok=True)
        return run

    def document(self) -> dict[str, object]:
        """All of ``config.json``: name, time, versions and, as ``config``, the settings. Raises
        ``ConfigError`` if there is no run here, another version wrote it, or it is damaged."""
        if not (self.path / "config.json").is_file():
            raise ConfigError(f"'{self.path}' is not a run: it has no config.json")
        document = self._document("config.json")
        version = document.get("run_version")
        if version != RUN_VERSION:
            raise ConfigError(
                f"the run '{self.path}' has version {str(version)[:40]}, this library reads "
                f"{RUN_VERSION}; open it with the swarm-ui that wrote it"
            )
        return document

    def config(self) -> dict[str, object]:
        """The settings the run was created with. Raises as :meth:`document`."""
        settings = self.document().get("config", {})
        return settings if isinstance(settings, dict) else {}

    @property
    def unused(self) -> bool:
        """Whether the directory holds only what :meth:`create` wrote, and perhaps locks."""
        files = (path for path in self.path.rglob("*") if path.is_file())
        return all(path.name == "config.json" or path.suffix == ".lock" for path in files)

    def remove_if_unused(self) -> bool:
        """Delete a directory that is :attr:`unused`; returns whether it did."""
        if self.unused:
            shutil.rmtree(self.path, ignore_errors=True)
        return not self.path.exists()

    def status(self) -> dict[str, object]:
        """The progress of the run; empty if nothing has finished yet."""
        return self._document("status.json") if (self.path / "status.json").exists() else {}

    def set_status(self, status: Mapping[str, object]) -> None:
        """Replace the status. Call this only when all files that it refers to are on disk."""
        write_atomic(self.path / "status.json", _pretty({**status, "written": _now().isoformat()}))

    def log(self, measurement: Mapping[str, object]) -> None:
        """Append one measurement to ``metrics.jsonl``."""
        append_line(self.path / "metrics.jsonl", msgspec.json.encode(dict(measurement)))

    def metrics(self) -> list[dict[str, object]]:
        """All measurements, oldest first; an incomplete last line is left out."""
        path = self.path / "metrics.jsonl"
        decode = msgspec.json.Decoder(dict[str, object]).decode
        try:
            return [decode(line) for line in whole_lines(path)]
        except UNREADABLE as error:
            raise TraceError(
                f"'{path}' holds a line that is not a JSON object: {brief(error)}"
            ) from error

    def write_episodes(self, name: str, episodes: Sequence[Episode]) -> Path:
        """Write ``traces/<name>.jsonl`` as a whole, one episode on each line; returns its path."""
        path = self.traces / f"{name}.jsonl"
        write_jsonl(path, episodes)
        return path

    def _document(self, name: str) -> dict[str, object]:
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, object])
        except (OSError, *UNREADABLE) as error:
            raise ConfigError(
                f"'{path}' cannot be read as a JSON object: {brief(error)}"
            ) from error


def expect_no_links_out(folder: Path) -> None:
    """Check a folder before work in it continues: it may come from a stranger, and a link in it
    would have a file elsewhere overwritten. Raises ``ConfigError`` if a symbolic link leads out of
    it, or a folder in it cannot be read. A folder that does not exist passes."""

    def unreadable(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise ConfigError(f"cannot read the folder '{folder}': {error}") from error

    for parent, folders, files in os.walk(folder, onerror=unreadable):
        for path in (Path(parent, name) for name in (*folders, *files)):
            target = Path(os.path.realpath(path))
            if path.is_symlink() and not target.is_relative_to(os.path.realpath(folder)):
                raise ConfigError(
                    f"'{path}' is a symbolic link to '{target}', outside of '{folder}', and "
                    "nothing is written through it; replace it with the file or folder itself"
                )


def without_secrets(config: Mapping[str, object]) -> dict[str, object]:
    """The settings without entries named like a secret, and without passwords in addresses or
    values of parameters of addresses that are named like a secret."""
    return {str(k): _clean(v) for k, v in config.items() if not _is_secret(str(k))}


def _is_secret(name: str) -> bool:
    return _SECRET.search(_WORD_IN_NAME.sub("_", name)) is not None


def _clean(value: object) -> object:
    if isinstance(value, Mapping):
        return without_secrets(value)
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, str) and "://" in value:
        shown = _USERINFO.sub("", value)
        return _IN_QUERY.sub(lambda f: f"{f[1]}=" if _is_secret(f[1]) else f[0], shown)
    return str(value) if isinstance(value, Path) else value


def installed(packages: Sequence[str]) -> dict[str, str]:
    """Versions of those packages that are installed."""
    found = {package: _version(package) for package in packages}
    return {package: version for package, version in found.items() if version is not None}


@cache  # looking one up reads folders and files
def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _reserved(name: str, number: int = 1) -> Path:
    """A new folder ``runs/<date>-<name>``, with a number added if that exists. It is made here, so
    that another process that begins at the same time gets another one."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"
    path = Path("runs", f"{_now():%Y%m%d-%H%M%S}-{plain}" + (f"-{number}" if number > 1 else ""))
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        return _reserved(name, number + 1)
    return path


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"cannot write the run directory '{folder}': {error}") from error


def _pretty(document: Mapping[str, object]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(dict(document)), indent=2) + b"\n"
