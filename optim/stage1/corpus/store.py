"""A corpus on disk.

    corpus/
    ├── corpus.json     settings, models, held-out tasks, versions
    ├── samples.jsonl   one sample per line
    ├── journal.jsonl   one finished walk per line: number of samples, what was dropped, and why
    └── calls.jsonl     calls to models, so that no call is made or paid for twice

The samples of a walk are written before its line in the journal. Samples without this line, which
``kill -9`` may leave, are removed when the corpus is opened again, and the walk is repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.files import LineFile, write_atomic
from swarm_ui.optim.stage1.corpus.call_log import read_records, spent
from swarm_ui.optim.stage1.corpus.config import CorpusConfig
from swarm_ui.optim.stage1.corpus.quality import Deduplicator, DropCounts
from swarm_ui.optim.stage1.corpus.samples import CORPUS_VERSION, HeldOut, Job, Sample, WalkResult
from swarm_ui.storage.run_directory import expect_no_links_out, installed

T = TypeVar("T")

_PACKAGES = ("swarm-ui", "msgspec", "openai", "torch", "transformers")


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The settings and versions of a corpus, which cannot change while the corpus grows."""

    version: int = CORPUS_VERSION
    environment: str
    agent: str
    adversary: str
    critic: str
    """Empty if there was no critic."""
    walker: str = ""
    """Empty if there was no walker."""
    config: CorpusConfig
    held_out: HeldOut
    packages: dict[str, str] = {}
    """Versions when the corpus was created."""


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A finished walk."""

    task: str
    seed: int
    success: bool | None
    """``None``: there was a fault, no sample was kept, and the walk will be repeated."""
    steps: int
    samples: int = 0
    dropped: dict[str, int] = {}
    fault: str | None = None
    end: int
    """Size of ``samples.jsonl`` in bytes, after the samples of this walk."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a corpus."""

    walks: int
    """Number of walks that finished without a fault."""
    successes: int
    faults: int
    samples: dict[str, int]
    """Number of samples, by ``"level <n>"``."""
    dropped: dict[str, int]
    """Number of dropped samples, by ``"level <n>: <reason>"``."""
    calls: int
    """Number of calls to models, including failed ones."""
    tokens: int
    """Number of tokens of the calls with a reply."""


class Corpus:
    """A corpus in a folder, to which the samples of each finished walk are added."""

    def __init__(self, folder: Path, header: Header) -> None:
        """Create a corpus, or open an existing one to continue it.

        Raises:
            ConfigError: the folder holds something else, a corpus made with other settings, or a
                link that leads out of it.
            TraceError: a file in it cannot be read.
        """
        self.folder, self.header = folder, header
        path = folder / "corpus.json"
        expect_no_links_out(folder)
        if path.exists():
            fields = ("environment", "agent", "adversary", "critic", "walker", "config", "held_out")
            advice = "use the same settings, or choose another folder: export and fine-tuning "
            check_same(read_header(folder), header, fields, folder, f"{advice}accept several")
        else:
            check_empty(folder, "corpus")
            stated = msgspec.structs.replace(header, packages=installed(_PACKAGES))
            write_atomic(path, msgspec.json.format(msgspec.json.encode(stated), indent=2))
        self.entries = _entries(folder)
        end = _end(self.entries)
        self._deduplicator = Deduplicator(header.config.repeats)
        for sample in _samples(folder, end):
            self._deduplicator.remember(sample)
        self._journal = LineFile(folder / "journal.jsonl")
        self._samples = LineFile(folder / "samples.jsonl", end=end)

    def unfinished(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs that are not finished, each once, including those that ended in a fault."""
        done = _done(self.entries)
        return [job for job in dict.fromkeys(jobs) if job not in done]

    def add(self, walked: WalkResult) -> JournalEntry:
        """Store the samples of a walk, without duplicates.

        Raises:
            OSError: the disk is full or broken; the corpus is unchanged.
        """
        dropped = DropCounts(walked.dropped)
        kept: list[Sample] = []
        for sample in walked.samples:
            fault = self._deduplicator.fault(sample)
            if fault is None:
                kept.append(sample)
            else:
                dropped.note(sample.level, fault)
        self._samples.append(*map(msgspec.json.encode, kept))
        entry = JournalEntry(
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
        self._samples.close()
        self._journal.close()


def read_header(folder: Path) -> Header:
    """The header of a corpus.

    Raises:
        ConfigError: there is no corpus, or it has another version.
    """
    try:
        raw = (folder / "corpus.json").read_bytes()
        version = msgspec.json.decode(raw, type=dict[str, Any]).get("version")
        if version == CORPUS_VERSION:
            return msgspec.json.decode(raw, type=Header)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"no corpus in '{folder}': {error}") from error
    raise ConfigError(
        f"the corpus '{folder}' has version {version!r}, this library reads {CORPUS_VERSION}; "
        "open it with the swarm-ui that wrote it"
    )


def read_corpus(folder: Path, *, held_out: HeldOut | None = None) -> Iterator[Sample]:
    """The samples of a corpus, in the sequence in which they were made.

    Args:
        folder: the folder that
            :func:`~swarm_ui.optim.stage1.corpus.synthesize.synthesize` wrote.
        held_out: checked in addition to the rule that the corpus was made with.

    Raises:
        ConfigError: there is no corpus, it contains a sample of a held-out task, or it was made
            without some of the held-out goals, which its samples do not hold.
        TraceError: a line is not a sample.
    """
    made_with = read_header(folder).held_out
    rule = made_with if held_out is None else made_with | held_out
    unchecked = len(rule.goals - made_with.goals)
    if unchecked:
        raise ConfigError(
            f"'{folder}' was made without {unchecked} held-out goal{'s' * (unchecked != 1)}, and "
            "its samples cannot be checked for goals; synthesize it again with this rule"
        )
    for sample in _samples(folder, _end(_entries(folder))):
        job = (sample.origin.task, sample.origin.seed)
        rule.check(sample.origin.environment, [job], f"'{folder}', sample {sample.id}")
        yield sample


def corpus_format(corpus: Path | Sequence[Path]) -> str:
    """The prompt format of one or several corpora.

    Raises:
        ConfigError: there is no corpus, or they have different formats.
    """
    folders = [corpus] if isinstance(corpus, Path) else list(corpus)
    found = {folder: read_header(folder).config.prompt_format for folder in folders}
    if not found:
        raise ConfigError("no corpus: name the folder of at least one")
    first, form = next(iter(found.items()))
    for folder, other in found.items():
        if other != form:
            raise ConfigError(
                f"the corpus '{first}' has the prompt format '{form}', and '{folder}' has "
                f"'{other}': a model learns one format; synthesize one of them again in the other"
            )
    return form


def totals(folder: Path) -> Totals:
    """Counts of the samples of a corpus, and of dropped items.

    Raises the errors of :func:`read_corpus`.
    """
    read_header(folder)
    entries = _entries(folder)
    kept = Counter(f"level {sample.level}" for sample in _samples(folder, _end(entries)))
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


def _samples(folder: Path, end: int) -> Iterator[Sample]:
    path, at = folder / "samples.jsonl", 0
    for sample, following in read_records(path, Sample, "a sample", end=end):
        yield sample
        at = following
    if at != end:
        raise TraceError(
            f"'{path}' has {at} bytes of whole samples, and the journal counts {end}: another "
            "program changed it. Restore it from a copy, or begin another corpus"
        )


def _entries(folder: Path) -> list[JournalEntry]:
    path = folder / "journal.jsonl"
    return [entry for entry, _ in read_records(path, JournalEntry, "a walk")]


def _done(entries: list[JournalEntry]) -> set[Job]:
    return {(entry.task, entry.seed) for entry in entries if entry.success is not None}


def _end(entries: list[JournalEntry]) -> int:
    return entries[-1].end if entries else 0


def check_empty(folder: Path, what: str) -> None:
    """Raise ``ConfigError`` if a folder for new work is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"'{folder}' is not empty and holds no {what}; choose another folder")


def check_same(before: T, now: T, fields: Sequence[str], folder: Path, advice: str) -> None:
    """Raise ``ConfigError`` if the work to continue was started with other settings."""
    for field in fields:
        old, new = getattr(before, field), getattr(now, field)
        if old != new:
            raise ConfigError(
                f"'{folder}' was created with another '{field}' ({_change(old, new)}); {advice}"
            )


def _change(old: object, new: object) -> str:
    """The differences; in a record, only the fields that differ."""
    if not (isinstance(old, msgspec.Struct) and isinstance(new, type(old))):
        return f"{_short(old)}, now {_short(new)}"
    pairs = [(name, getattr(old, name), getattr(new, name)) for name in old.__struct_fields__]
    return "; ".join(f"{name} {_short(a)}, now {_short(b)}" for name, a, b in pairs if a != b)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return repr(text if len(text) <= 200 else f"{text[:200]} …")
