"""A corpus on disk.

    corpus/
    ├── corpus.json     settings, models, what is held out, versions
    ├── samples.jsonl   one sample a line
    ├── journal.jsonl   one finished walk a line: what it gave, and what was dropped and why
    └── calls.jsonl     calls to models: nothing is asked, or paid, twice

A walk's samples are written first and its line of the journal after them, so what a ``kill -9``
leaves without that line is cut off when the corpus is opened again, and walked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.optim.stage1.corpus.call_log import spent
from swarm_ui.optim.stage1.corpus.corpus_config import CorpusConfig
from swarm_ui.optim.stage1.corpus.held_out import HeldOut
from swarm_ui.optim.stage1.corpus.quality import Dropped, Unique
from swarm_ui.optim.stage1.corpus.samples import CORPUS_VERSION, Job, Sample, Walked
from swarm_ui.storage.durable import LineFile
from swarm_ui.storage.run_directory import installed, write_atomic

_PACKAGES = ("swarm-ui", "msgspec", "openai", "torch", "transformers")


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What a corpus was made with; it cannot change while it grows."""

    version: int = CORPUS_VERSION
    environment: str
    agent: str
    adversary: str
    critic: str
    """Empty: nobody judged."""
    config: CorpusConfig
    held_out: HeldOut
    packages: dict[str, str] = {}
    """Versions when it was begun."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A finished walk."""

    task: str
    seed: int
    success: bool | None
    """``None``: something broke, nothing was kept, and it will be walked again."""
    steps: int
    samples: int = 0
    dropped: dict[str, int] = {}
    fault: str | None = None
    end: int
    """Bytes of ``samples.jsonl`` up to and with its own."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a corpus, and what is not."""

    walks: int
    """Finished without a fault."""
    successes: int
    faults: int
    samples: dict[str, int]
    """By ``"level <n>"``."""
    dropped: dict[str, int]
    """By ``"level <n>: <reason>"``."""
    calls: int
    """To models, failed ones too."""
    tokens: int
    """Of the calls that gave a reply."""


class Corpus:
    """A folder of samples that grows walk by walk."""

    def __init__(self, folder: Path, head: Head) -> None:
        """Begin a corpus, or go on with one.

        Raises:
            ConfigError: the folder holds something else, or a corpus made with other settings.
            TraceError: a file in it cannot be read.
        """
        self.folder = folder
        place = folder / "corpus.json"
        if place.exists():
            _compare(read_head(folder), head, folder)
        else:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise ConfigError(f"'{folder}' is not empty and holds no corpus; choose another")
            stated = msgspec.structs.replace(head, packages=installed(_PACKAGES))
            write_atomic(place, msgspec.json.format(msgspec.json.encode(stated), indent=2))
        self._journal = LineFile(folder / "journal.jsonl")
        self.entries = list(_entries(folder))
        self._samples = LineFile(
            folder / "samples.jsonl", end=self.entries[-1].end if self.entries else 0
        )
        self._unique = Unique(head.config.repeats)
        try:
            for sample in samples_of(folder, end=_end(folder)):
                self._unique.remember(sample)
        except BaseException:
            self.close()
            raise

    def left(self, jobs: list[Job]) -> list[Job]:
        """The jobs not done yet, each once; those that ended in a fault are among them."""
        done = _done(self.entries)
        return [job for job in dict.fromkeys(jobs) if job not in done]

    def add(self, walked: Walked) -> Entry:
        """Keep what a walk gave, but for samples that are there already.

        Raises:
            OSError: the disk is full or broken; the corpus is as it was before.
        """
        dropped = Dropped(walked.dropped)
        kept: list[Sample] = []
        for sample in walked.samples:
            fault = self._unique.fault(sample)
            if fault is None:
                kept.append(sample)
            else:
                dropped.note(sample.level, fault)
        self._samples.extend([msgspec.json.encode(sample) for sample in kept])
        entry = Entry(
            task=walked.task,
            seed=walked.seed,
            success=walked.success,
            steps=walked.steps,
            samples=len(kept),
            dropped=dict(sorted(dropped.items())),
            fault=walked.fault,
            end=self._samples.size,
        )
        self._journal.append(msgspec.json.encode(entry))
        self.entries.append(entry)
        return entry

    def close(self) -> None:
        """Let go of the files."""
        self._samples.close()
        self._journal.close()


def read_head(folder: Path) -> Head:
    """What a corpus was made with.

    Raises:
        ConfigError: there is none, or one of another version.
    """
    place = folder / "corpus.json"
    try:
        raw = place.read_bytes()
        version = msgspec.json.decode(raw, type=dict[str, Any]).get("version")
        if version == CORPUS_VERSION:
            return msgspec.json.decode(raw, type=Head)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"no corpus in '{folder}': {error}") from error
    raise ConfigError(
        f"the corpus '{folder}' has version {version!r}, this library reads {CORPUS_VERSION}"
    )


def read_corpus(folder: Path, *, held_out: HeldOut | None = None) -> Iterator[Sample]:
    """The samples of a corpus, in the order they were made.

    Args:
        folder: of :func:`~swarm_ui.optim.stage1.corpus.synthesize`.
        held_out: checked beside what the corpus itself was to leave out.

    Raises:
        ConfigError: there is no corpus, or it holds a sample of a held-out task, which is named.
        TraceError: a line is not a sample.
    """
    head = read_head(folder)
    for sample in samples_of(folder, end=_end(folder)):
        origin = sample.origin
        for rule in (head.held_out, *([held_out] if held_out is not None else [])):
            job = (origin.task, origin.seed)
            rule.check(origin.environment, [job], f"'{folder}', sample {sample.id}")
        yield sample


def totals(folder: Path) -> Totals:
    """Counts of what a corpus holds, and of what was dropped and why. Raises as ``read_corpus``."""
    read_head(folder)
    entries = list(_entries(folder))
    kept = Counter(f"level {sample.level}" for sample in samples_of(folder, end=_end(folder)))
    dropped: Counter[str] = Counter()
    for entry in entries:
        dropped.update(entry.dropped)
    done = _done(entries)
    calls, used = spent(folder / "calls.jsonl")
    return Totals(
        walks=len(done),
        successes=sum(e.success is True for e in entries),
        faults=len({(e.task, e.seed) for e in entries} - done),
        samples=dict(sorted(kept.items())),
        dropped=dict(sorted(dropped.items())),
        calls=calls,
        tokens=used.prompt_tokens + used.completion_tokens,
    )


def samples_of(folder: Path, *, end: int | None = None) -> Iterator[Sample]:
    """Every sample in the file, up to a byte. Raises ``TraceError`` if a line is not one."""
    path, at = folder / "samples.jsonl", 0
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if end is not None and at >= end:
                return
            at += len(line)
            try:
                yield msgspec.json.decode(line, type=Sample)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise TraceError(f"'{path}', line {number}: not a sample: {error}") from error
    if end is not None and at != end:
        raise TraceError(
            f"'{path}' has {at} bytes of whole samples, and the journal counts {end}: something "
            "else changed it. Put it back from a copy, or begin another corpus"
        )


def _entries(folder: Path) -> Iterator[Entry]:
    path = folder / "journal.jsonl"
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return  # cut off by a kill; the walk was not finished
            try:
                yield msgspec.json.decode(line, type=Entry)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise TraceError(f"'{path}', line {number}: not a walk: {error}") from error


def _done(entries: list[Entry]) -> set[Job]:
    return {(entry.task, entry.seed) for entry in entries if entry.success is not None}


def _end(folder: Path) -> int:
    end = 0
    for entry in _entries(folder):
        end = entry.end
    return end


def _compare(before: Head, now: Head, folder: Path) -> None:
    for field in ("environment", "agent", "adversary", "critic", "config", "held_out"):
        old, new = getattr(before, field), getattr(now, field)
        if old != new:
            raise ConfigError(
                f"the corpus '{folder}' was begun with another '{field}' ({_short(old)}) than now "
                f"({_short(new)}); go on with the same, or choose another folder: export and "
                "fine-tuning take several"
            )


def _short(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return repr(text if len(text) <= 200 else f"{text[:200]} …")
