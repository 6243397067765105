"""A corpus on disk, and its exports.

    corpus/
    ├── corpus.json     settings, models, held-out tasks
    ├── walks.jsonl     one finished walk per line: its samples, and how many were dropped, and why
    └── calls.jsonl     calls to models, so that no reply is paid for twice

A line is written whole or not at all, so ``kill -9`` loses no finished walk.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from swarm_ui.budget import Budget, most_tokens
from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.files import LineFile, whole_lines, write_atomic
from swarm_ui.message import Usage
from swarm_ui.model import ChatModel, Request
from swarm_ui.optim.settings import begin
from swarm_ui.optim.stage1.checks import DropCounts
from swarm_ui.optim.stage1.samples import (
    CORPUS_VERSION,
    LEVELS,
    CorpusConfig,
    HeldOut,
    Job,
    Sample,
    WalkResult,
    short_hash,
)
from swarm_ui.prompts import as_chat, transcript

T = TypeVar("T")
Row = dict[str, Any]
Folders = Path | Sequence[Path]

PARTS = ("sft_level1", "sft_level2", "sft_level3", "preference_level3")


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The settings and versions of a corpus, which cannot change while the corpus grows."""

    version: int = CORPUS_VERSION
    environment: str
    agent: str
    adversary: str = ""
    critic: str = ""
    """Empty if there was no critic."""
    config: CorpusConfig
    held_out: HeldOut


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
    """A corpus in a folder, to which finished walks are added."""

    def __init__(self, folder: Path, header: Header) -> None:
        """Create a corpus, or open an existing one to continue it. Raises ``ConfigError`` if the
        folder holds something else, or a corpus made with other settings, and ``TraceError`` if a
        file cannot be read."""
        advice = "use the same, or choose another folder: export and fine-tuning accept several"
        begin(folder, "corpus.json", header, "corpus", advice)
        self._known, self._done = set[str](), set[Job]()
        for walk in _walks(folder):
            self._note(walk)
        self._lines = LineFile(folder / "walks.jsonl")

    def unfinished(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs that are not finished, each once, including those that ended in a fault."""
        return [job for job in dict.fromkeys(jobs) if job not in self._done]

    def add(self, walk: WalkResult) -> WalkResult:
        """Store a walk without the samples that the corpus has already; returns what was stored.
        Raises ``OSError`` if the disk is full or broken; the corpus is unchanged."""
        dropped, kept = DropCounts(walk.dropped), dict[str, Sample]()
        for sample in walk.samples:
            if sample.id in self._known or sample.id in kept:
                dropped.note(sample.level, "a duplicate")
            else:
                kept[sample.id] = sample
        stored = msgspec.structs.replace(
            walk, samples=tuple(kept.values()), dropped=dict(sorted(dropped.items()))
        )
        self._lines.append(msgspec.json.encode(stored))
        self._note(stored)
        return stored

    def _note(self, walk: WalkResult) -> None:
        self._known.update(sample.id for sample in walk.samples)
        if walk.success is not None:
            self._done.add((walk.task, walk.seed))

    def close(self) -> None:
        self._lines.close()


def _walks(folder: Path) -> Iterator[WalkResult]:
    return _lines(folder / "walks.jsonl", WalkResult, "a walk")


def read_header(folder: Path) -> Header:
    """The header of a corpus. Raises ``ConfigError`` if there is none, or of another version."""
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


def read_corpus(folder: Path) -> Iterator[Sample]:
    """The samples of a corpus, in the sequence in which they were made.

    Raises:
        ConfigError: there is no corpus, or it contains a sample that its rule holds out.
        TraceError: a line is not a walk.
    """
    rule = read_header(folder).held_out
    for walk in _walks(folder):
        for sample in walk.samples:
            job = (sample.origin.task, sample.origin.seed)
            rule.check(sample.origin.environment, [job], f"'{folder}', sample {sample.id}")
            yield sample


def gather(corpus: Folders) -> list[Sample]:
    """The samples of one or several corpora, each once.

    Raises the errors of :func:`read_corpus`, and ``ConfigError`` if the corpora have different
    prompt formats, or no samples.
    """
    folders = [corpus] if isinstance(corpus, Path) else list(corpus)
    forms = {read_header(folder).config.prompt_format: folder for folder in folders}
    if len(forms) > 1:
        said = " and ".join(f"'{form}' ('{folder}')" for form, folder in forms.items())
        raise ConfigError(
            f"the corpora have the prompt formats {said}: a model learns one format; synthesize "
            "one of them again in the other"
        )
    found: dict[str, Sample] = {}
    for folder in folders:
        for sample in read_corpus(folder):
            found.setdefault(sample.id, sample)
    if not found:
        raise ConfigError(f"no samples in '{corpus}'; synthesize some first")
    return list(found.values())


def totals(folder: Path) -> Totals:
    """Counts of the samples of a corpus, and of dropped items."""
    read_header(folder)
    kept, dropped = Counter[str](), Counter[str]()
    ended: dict[Job, bool | None] = {}
    for walk in _walks(folder):
        ended[walk.task, walk.seed] = walk.success
        kept.update(f"level {sample.level}" for sample in walk.samples)
        dropped.update(walk.dropped)
    calls = list(_lines(folder / "calls.jsonl", CallRecord, "a call"))
    used = [called.usage for called in calls if called.text is not None]
    return Totals(
        walks=sum(success is not None for success in ended.values()),
        successes=sum(success is True for success in ended.values()),
        faults=sum(success is None for success in ended.values()),
        samples=dict(sorted(kept.items())),
        dropped=dict(sorted(dropped.items())),
        calls=len(calls),
        tokens=sum(usage.prompt_tokens + usage.completion_tokens for usage in used),
    )


def export(corpus: Folders, out: Path) -> list[Path]:
    """Write a corpus, or several, for another library; returns the files, which replace others of
    their names. They are trl's conversational prompts with completions, or with a chosen and a
    rejected reply. Samples of level 3 are written twice: for supervised training, and as
    preferences. A sample that two corpora contain is written once.

    Raises:
        ConfigError: the corpus does not exist, there is nothing to write, or a sample is held out.
    """
    written = []
    for name, part in parts(gather(corpus)).items():
        rows = [conversational(sample, pair=name.startswith("preference")) for sample in part]
        written.append(out / f"{name}.jsonl")
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        write_atomic(written[-1], "".join(f"{line}\n" for line in lines))
    return written


def parts(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """The samples of each part that is not empty, by name of its file."""
    found = [[s for s in samples if s.level == level] for level in LEVELS]
    found.append([s for s in samples if s.rejected is not None])
    return {name: part for name, part in zip(PARTS, found, strict=True) if part}


def conversational(sample: Sample, *, pair: bool) -> Row:
    """TRL's conversational prompt and completion, or with ``pair`` prompt, chosen and rejected."""
    turns = [{"role": turn.role, "content": turn.content} for turn in sample.chat]
    sides = (sample.response, sample.rejected or "")
    chosen, rejected = ([{"role": "assistant", "content": text}] for text in sides)
    if pair:
        return {"prompt": turns, "chosen": chosen, "rejected": rejected}
    return {"prompt": turns, "completion": chosen}


def _lines(path: Path, kind: type[T], what: str) -> Iterator[T]:
    """The complete lines of a file. Raises ``TraceError`` if one cannot be decoded; ``what`` says
    what it should be."""
    for number, line in enumerate(whole_lines(path), start=1):
        try:
            yield msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TraceError(f"'{path}', line {number}: not {what}: {error}") from error


# -- calls to models --------------------------------------------------------------------------


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of ``calls.jsonl``."""

    key: str
    model: str
    text: str | None = None
    """The reply; ``None`` for a failed call."""
    usage: Usage
    """For a failed call: the most that it may have used."""


class CallLog:
    """The calls of a corpus, in one file, and the budget of all of them."""

    def __init__(self, path: Path, budget: Budget) -> None:
        """The calls in the file count against the budget. Raises ``TraceError`` if it cannot be
        read."""
        self._budget, self._known = budget, dict[str, str]()
        for called in _lines(path, CallRecord, "a call"):
            budget.count(called.usage, price=budget.prices.get(called.model))
            if called.text is not None:
                self._known[called.key] = called.text
        self._file = LineFile(path)

    def close(self) -> None:
        self._file.close()

    async def reply(self, model: ChatModel, role: str, request: Request) -> str:
        """The known reply to an equal request to a model in this role, or a new one. Raises
        ``ModelError``, also for an exceeded budget."""
        read = transcript(as_chat(request))
        how = [role, model.name, request.temperature, request.max_tokens, request.seed, read]
        key = short_hash(json.dumps(how))
        if key in self._known:
            return self._known[key]
        used = Usage(prompt_tokens=most_tokens(read), completion_tokens=request.reply_tokens)
        price, text = self._budget.prices.get(model.name), None
        hold = self._budget.reserve(used, f"corpus, call to {model.name}", price)
        try:
            (made,) = await model.generate([request])
            used, text = made.usage, made.text.encode("utf-8", "replace").decode()
            self._known[key] = text
        finally:
            self._budget.settle(hold, used)
            called = CallRecord(key=key, model=model.name, text=text, usage=used)
            self._file.append(msgspec.json.encode(called))
        return text
