"""A corpus on disk, and its exports.

    corpus/
    ├── corpus.json     settings, models, held-out tasks
    └── walks.jsonl     one finished walk per line: its samples, and how many were dropped, and why

A line is written whole or not at all, so ``kill -9`` loses no finished walk.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.files import LineFile, whole_lines, write_atomic
from swarm_ui.optim.config import begin
from swarm_ui.optim.stage1.samples import CorpusConfig, HeldOut, Sample, WalkResult
from swarm_ui.rollout import Job

Row = dict[str, Any]
Folders = Path | Sequence[Path]

PARTS = ("sft_level1", "sft_level2", "sft_level3", "preference_level3")


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a corpus, which cannot change while the corpus grows."""

    environment: str
    agent: str
    adversary: str = ""
    critic: str = ""
    config: CorpusConfig
    held_out: HeldOut


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a corpus: walks that finished, solved ones, those with a fault, samples by
    ``"level <n>"``, and dropped samples by ``"level <n>: <reason>"``."""

    walks: int
    successes: int
    faults: int
    samples: dict[str, int]
    dropped: dict[str, int]


class Corpus:
    """A corpus in a folder, to which finished walks are added."""

    def __init__(self, folder: Path, header: Header) -> None:
        """Create a corpus, or open an existing one to continue it. Raises ``ConfigError`` if the
        folder holds something else, or a corpus made with other settings, and ``TraceError`` if a
        file cannot be read."""
        advice = "use the same, or choose another folder: export and fine-tuning accept several"
        begin(folder, "corpus.json", header, "corpus", advice)
        self._known, self._ended = set[str](), dict[Job, bool | None]()
        self._kept, self._dropped = Counter[str](), Counter[str]()
        for walk in _walks(folder):
            self._note(walk)
        self._lines = LineFile(folder / "walks.jsonl")

    def unfinished(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs that are not finished, each once, including those that ended in a fault."""
        return [job for job in dict.fromkeys(jobs) if self._ended.get(job) is None]

    def add(self, walk: WalkResult) -> WalkResult:
        """Store a walk without the samples that the corpus has already; returns what was stored.
        Raises ``OSError`` if the disk is full or broken; the corpus is unchanged."""
        dropped, kept = Counter(walk.dropped), dict[str, Sample]()
        for sample in walk.samples:
            if sample.id in self._known or sample.id in kept:
                dropped[f"level {sample.level}: a duplicate"] += 1
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
        self._ended[walk.task, walk.seed] = walk.success
        self._kept.update(f"level {sample.level}" for sample in walk.samples)
        self._dropped.update(walk.dropped)

    def totals(self) -> Totals:
        """Counts of the samples, and of dropped items."""
        ended = list(self._ended.values())
        return Totals(
            walks=len(ended) - ended.count(None),
            successes=ended.count(True),
            faults=ended.count(None),
            samples=dict(sorted(self._kept.items())),
            dropped=dict(sorted(self._dropped.items())),
        )

    def close(self) -> None:
        self._lines.close()


def _walks(folder: Path) -> Iterator[WalkResult]:
    path = folder / "walks.jsonl"
    for number, line in enumerate(whole_lines(path), start=1):
        try:
            yield msgspec.json.decode(line, type=WalkResult)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TraceError(f"'{path}', line {number}: not a walk: {error}") from error


def read_header(folder: Path) -> Header:
    """The header of a corpus. Raises ``ConfigError`` if there is none."""
    try:
        return msgspec.json.decode((folder / "corpus.json").read_bytes(), type=Header)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"no corpus in '{folder}': {error}") from error


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


def export(corpus: Folders, out: Path) -> list[Path]:
    """Write a corpus, or several, for another library; returns the files, which replace others of
    their names: the :func:`rows` of each part, one in each line. A sample that two corpora contain
    is written once.

    Raises:
        ConfigError: the corpus does not exist, there is nothing to write, or a sample is held out.
    """
    written = []
    for name, part in rows(gather(corpus)).items():
        written.append(out / f"{name}.jsonl")
        lines = [json.dumps(row, ensure_ascii=False) for row in part]
        write_atomic(written[-1], "".join(f"{line}\n" for line in lines))
    return written


def rows(samples: Sequence[Sample]) -> dict[str, list[Row]]:
    """The samples of each of :data:`PARTS` that is not empty, as TRL's conversational prompts with
    completions, or with a chosen and a rejected reply. Samples of level 3 are in two parts: for
    supervised training, and as preferences."""
    found: dict[str, list[Row]] = {part: [] for part in PARTS}
    for sample in samples:
        prompt = [{"role": turn.role, "content": turn.content} for turn in sample.chat]
        chosen, rejected = (
            [{"role": "assistant", "content": text}]
            for text in (sample.response, sample.rejected or "")
        )
        found[PARTS[sample.level - 1]].append({"prompt": prompt, "completion": chosen})
        if sample.rejected is not None:
            found[PARTS[-1]].append({"prompt": prompt, "chosen": chosen, "rejected": rejected})
    return {part: some for part, some in found.items() if some}
