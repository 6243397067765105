"""A corpus: its settings and samples, what is held out, its files, and its exports.

    corpus/
    ├── corpus.json     settings, models, held-out tasks
    └── walks.jsonl     one finished walk per line: its samples, and how many were dropped, and why

A line is written whole or not at all, so ``kill -9`` loses no finished walk.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.files import whole_lines, write_atomic
from swarm_ui.model import ChatMessage
from swarm_ui.optim.config import Count, Natural, Share, check
from swarm_ui.prompts import format_named
from swarm_ui.rollout import Job

Row = dict[str, Any]
Folders = Path | Sequence[Path]

HEADER, WALKS = "corpus.json", "walks.jsonl"
PARTS = ("sft_level1", "sft_level2", "sft_level3", "preference_level3")

LEVELS = (1, 2, 3)
"""1: questions about screens; 2: instructions of one step; 3: preferences."""


class CorpusConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for making and keeping samples. The paper gives no sizes; all defaults are ours."""

    levels: tuple[int, ...] = LEVELS
    prompt_format: str = "json"
    """Format of prompts and replies; see :mod:`swarm_ui.prompts`."""
    reasons: bool = True
    """Whether replies give a reason before their action."""
    seed: int = 0
    stray: Share = 0.0
    """Probability of a random action instead of the agent's, so that walks also show the way back.
    Use it only where actions can be undone."""
    screens: Natural = 4
    """Maximum number of different screens of a walk for samples of levels 1 and 2."""
    questions: Count = 8
    """Maximum number of questions about a screen."""
    instructions: Count = 6
    """Maximum number of instructions for a screen."""
    messages: Share = 0.5
    """Share of the preferences with messages of neighbours in their prompt."""

    def __post_init__(self) -> None:
        if not self.levels or not set(self.levels) <= set(LEVELS):
            raise ConfigError(f"corpus: 'levels' must be some of 1, 2 and 3, got {self.levels}")
        format_named(self.prompt_format)
        check(self, "corpus")


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The walk of a sample, and its step from 0."""

    environment: str
    task: str
    seed: int
    step: int


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prompt, a response to learn, and for preferences a rejected response."""

    level: int
    chat: tuple[ChatMessage, ...]
    """The prompt; for levels 2 and 3 it is the prompt of an agent that acts."""
    response: str
    rejected: str | None = None
    """The adversary's response to the same prompt; level 3 only."""
    score: float | None = None
    """The critic's score, in [0, 1]."""
    rejected_score: float | None = None
    prompt_format: str = "json"
    """The format in which chat and responses are written."""
    heard: int = 0
    """Number of messages of neighbours in the prompt."""
    origin: Origin

    @property
    def id(self) -> str:
        """Hash of level, prompt and response (not of the rejected one), without case and spaces."""
        texts = [str(self.level), *(turn.content for turn in self.chat), self.response]
        return short_hash("\x1e".join(" ".join(text.casefold().split()) for text in texts))


class WalkResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The samples of one walk through an environment; one line of ``walks.jsonl``."""

    task: str
    seed: int
    success: bool | None = None
    """``None``: the environment failed, and the walk will be repeated."""
    steps: int = 0
    fault: str | None = None
    samples: tuple[Sample, ...] = ()
    dropped: dict[str, int] = {}
    """Number of dropped items, by ``"level <n>: <reason>"``."""


def short_hash(text: str) -> str:
    """16 hex digits of the SHA-256 of a text."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


TEST_ONLY = ("mind2web test_", "autowebbench ")
"""Prefixes of the names of environments that are only for testing."""


class HeldOut(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks and seeds of test and validation splits, of which no training sample may be made.

    >>> held_out = HeldOut.of(tasks=["recipes-add"], seeds=[range(20_000_000, 30_000_000)])
    >>> held_out.why("phone (simulated)", "recipes-add", 3)
    "task 'recipes-add' is held out"
    """

    tasks: frozenset[str] = frozenset()
    seeds: tuple[tuple[int, int], ...] = ()
    """First seed of each range, and its last one plus 1."""

    @staticmethod
    def of(*, tasks: Iterable[str] = (), seeds: Iterable[range] = ()) -> HeldOut:
        """``tasks`` are held out with all seeds, ``seeds`` (ranges without a step) in all tasks.
        Raises ``ConfigError`` if one text is given in the place of several."""
        if isinstance(tasks, str):  # a text is also a sequence of letters
            raise ConfigError(f"HeldOut: tasks must be a list, got {tasks!r}; use [{tasks!r}]")
        ranges = dict.fromkeys((part.start, part.stop) for part in seeds)
        return HeldOut(tasks=frozenset(tasks), seeds=tuple(ranges))

    def why(self, environment: str, task: str, seed: int) -> str | None:
        """Why an episode is held out, as in environments only for tests; ``None`` if it is not."""
        if environment.startswith(TEST_ONLY):
            return f"environment '{environment}' is for testing only"
        if task in self.tasks:
            return f"task '{task}' is held out"
        for first, stop in self.seeds:
            if first <= seed < stop:
                return f"seed {seed} is held out ({first} … {stop - 1})"
        return None

    def check(self, environment: str, jobs: Iterable[Job], where: str) -> None:
        """Raise ``ConfigError`` if one of the jobs is held out; the message names its task."""
        for task, seed in jobs:
            if why := self.why(environment, task, seed):
                raise ConfigError(
                    f"{where}: task '{task}', seed {seed} would leak a test split into training: "
                    f"{why}. Leave it out"
                )


# -- on disk ----------------------------------------------------------------------------------


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a corpus, which cannot change while the corpus grows."""

    environment: str
    agent: str
    adversary: str
    critic: str
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


def read_walks(folder: Path) -> Iterator[WalkResult]:
    """The walks of a corpus, with every sample once. Raises ``TraceError`` if a line is none."""
    known = set[str]()
    for number, line in enumerate(whole_lines(folder / WALKS), start=1):
        try:
            walk = msgspec.json.decode(line, type=WalkResult)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TraceError(f"'{folder / WALKS}', line {number}: not a walk: {error}") from error
        kept, dropped = list[Sample](), Counter(walk.dropped)
        for sample in walk.samples:
            if sample.id in known:
                dropped[f"level {sample.level}: a duplicate"] += 1
            else:
                known.add(sample.id)
                kept.append(sample)
        yield msgspec.structs.replace(walk, samples=tuple(kept), dropped=dropped)


def totals(folder: Path) -> Totals:
    """Counts of the samples, and of dropped items. Raises ``TraceError``."""
    ended, samples, dropped = dict[object, bool | None](), Counter[str](), Counter[str]()
    for walk in read_walks(folder):
        ended[walk.task, walk.seed] = walk.success
        samples.update(f"level {sample.level}" for sample in walk.samples)
        dropped.update(walk.dropped)
    found = list(ended.values())
    faults = found.count(None)
    return Totals(
        walks=len(found) - faults, successes=found.count(True), faults=faults,
        samples=dict(sorted(samples.items())), dropped=dict(sorted(dropped.items())),
    )  # fmt: skip


def read_header(folder: Path) -> Header:
    """The header of a corpus. Raises ``ConfigError`` if there is none."""
    try:
        return msgspec.json.decode((folder / HEADER).read_bytes(), type=Header)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"no corpus in '{folder}': {error}") from error


def read_corpus(folder: Path) -> Iterator[Sample]:
    """The samples of a corpus, each once, in the sequence in which they were made. Raises
    ``ConfigError`` if there is none, or one that its rule holds out, and ``TraceError``."""
    rule = read_header(folder).held_out
    for walk in read_walks(folder):
        for sample in walk.samples:
            job = (sample.origin.task, sample.origin.seed)
            rule.check(sample.origin.environment, [job], f"'{folder}', sample {sample.id}")
            yield sample


def gather(corpus: Folders) -> list[Sample]:
    """The samples of one or several corpora, each once. Raises the errors of :func:`read_corpus`,
    and ``ConfigError`` if the corpora have different prompt formats, or no samples."""
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
    """Write the :func:`rows` of corpora, one in each line; returns the files, which replace others.
    Raises ``ConfigError`` if a corpus does not exist, has no sample, or one is held out."""
    written = []
    for name, part in rows(gather(corpus)).items():
        written.append(out / f"{name}.jsonl")
        lines = [json.dumps(row, ensure_ascii=False) for row in part]
        write_atomic(written[-1], "".join(f"{line}\n" for line in lines))
    return written


def rows(samples: Sequence[Sample]) -> dict[str, list[Row]]:
    """The samples of each of :data:`PARTS` that is not empty, in TRL's conversational form. Those
    of level 3 are in two parts: for supervised training, and as preferences."""
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
