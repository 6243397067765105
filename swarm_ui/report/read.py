"""What the folder of a run, or a trace file, holds for a report.

Any part (settings, measurements, episodes, results) may be missing or damaged; it is then left out,
and the report says so. Episodes are read one at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec

from swarm_ui.errors import ConfigError, SwarmError, TraceError
from swarm_ui.report.results import ArmResult, Results
from swarm_ui.stats import Interval, wilson_of
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.topology import Edge
from swarm_ui.trace.jsonl import iter_jsonl
from swarm_ui.trace.records import Episode

_ITERATION = re.compile(r"-\d{3,}$")
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
_Line = Mapping[str, Any]


class EpisodeSet:
    """The episodes of a trace file, up to the first that cannot be read; read again each time."""

    def __init__(self, name: str, path: Path, count: int) -> None:
        self.name, self.path, self._count = name, path, count

    def __iter__(self) -> Iterator[Episode]:
        return islice(iter_jsonl(self.path, whole=False), self._count)

    def __len__(self) -> int:
        return self._count


class Iteration(msgspec.Struct, kw_only=True):
    """An iteration of training."""

    iteration: int
    success: _Share | None = None
    """Of its rollouts, masked episodes left out."""
    episodes: _Count = 0
    masked: _Count = 0
    credit: float | None = None
    """Mean of all scored messages."""
    graphs: list[list[Edge]] = []
    """The edges of each graph that was played."""
    loss: float | None = None
    """Mean over adapters."""
    learned: dict[Edge, float] = {}
    """Probabilities of learned edges after the iteration."""

    @property
    def rate(self) -> Interval | None:
        """Success of its rollouts with Wilson's interval; ``None`` if it is not known."""
        counted = self.episodes - self.masked
        if self.success is None or counted <= 0:
            return None
        return wilson_of(round(self.success * counted), counted)


class MeanCredit(msgspec.Struct, kw_only=True):
    """Mean credit of each agent in each round of an iteration, shape ``[rounds, agents]``."""

    iteration: int
    agents: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.agents) for row in self.values):
            raise ValueError(f"{len(self.agents)} agents, and another number of values of a round")


@dataclass(slots=True)
class Training:
    """The measurements of a training, by iteration. Of several lines of a resumed run about an
    iteration, the last one counts."""

    iterations: dict[int, Iteration] = field(default_factory=dict)
    credit: dict[int, MeanCredit] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[_Line], missing: list[str]) -> Training:
        """The measurements in the lines of ``metrics.jsonl``. If lines have another form, one line
        in ``missing`` says so."""
        found, wrong, number = cls(), list[str](), 0
        for number, line in enumerate(lines, start=1):
            try:
                found._add(line)
            except msgspec.ValidationError as error:
                wrong.append(f"line {number}: {error}")
        if wrong:
            missing.append(
                f"Measurements: left out {len(wrong)} of {number} lines of metrics.jsonl that have "
                f"another form ({wrong[0]})."
            )
        found.iterations = dict(sorted(found.iterations.items()))
        found.credit = dict(sorted(found.credit.items()))
        return found

    def _add(self, line: _Line) -> None:
        kind = line.get("kind", "iteration" if "iteration" in line else None)
        if kind == "credit":
            credit = msgspec.convert(line, MeanCredit)
            self.credit[credit.iteration] = credit
        elif kind == "iteration":
            done = msgspec.convert(line, Iteration)
            given = (v for name, v in line.items() if name.startswith("loss/"))
            losses = [msgspec.convert(v, float) for v in given if v is not None]
            done.loss = sum(losses) / len(losses) if losses else None
            done.learned = {
                (sender, listener): msgspec.convert(p, _Share)
                for name, p in line.items()
                for sender, arrow, listener in [name.removeprefix("edge/").partition(">")]
                if name.startswith("edge/") and arrow
            }
            self.iterations[done.iteration] = done

    @property
    def last(self) -> tuple[int, Interval] | None:
        """The last iteration with a success, and the success of its rollouts."""
        rates = [(k, done.rate) for k, done in self.iterations.items()]
        return next(((k, rate) for k, rate in reversed(rates) if rate is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a run's folder or a trace file holds, as far as it can be read."""

    name: str
    results: Results
    """The tested episodes; without them, the kept ones."""
    tested: bool
    """Whether these are all tested episodes, not a selection that was kept."""
    training: Training
    sets: tuple[EpisodeSet, ...] = ()
    kept: tuple[ArmResult, ...] = ()
    """The outcomes of each set."""
    damage: tuple[str, ...] = ()
    """What cannot be read of them."""
    settings: str = ""
    """``config.json``: settings, versions, machine."""
    missing: tuple[str, ...] = ()


def read(path: Path) -> Contents:
    """The contents of a run's folder or of a trace file. No episode is played again.

    Raises:
        ConfigError: there is no such folder or file.
        TraceError: the trace file cannot be read.
    """
    if path.is_file():
        return _trace_file(path)
    if not path.is_dir():
        raise ConfigError(f"there is no '{path}': expected a run's folder, or a trace file")
    missing: list[str] = []
    sets, kept = _sets(path, missing)
    damage = tuple(missing)
    results = Results()
    try:
        results = Results.load(path)
    except ConfigError as error:
        missing.append(f"Results: {_line(error)}")
    tested = bool(results.arms)
    if not tested:
        results.arms = kept
    settings, labels = _settings(path, missing)
    results.labels = results.labels or labels
    training = Training()
    try:
        training = Training.of(RunDirectory(path).metrics(), missing)
    except (SwarmError, OSError) as error:
        missing.append(f"Measurements: {_line(error)}")
    if not any(map(len, sets)):
        missing.append("Episodes: there is no trace file with episodes in traces/.")
    if not training.iterations and not tested:
        missing.append("Learning curves: the run has no measurements of iterations.")
    return Contents(
        name=path.resolve().name,
        results=results,
        tested=tested,
        training=training,
        sets=sets,
        kept=tuple(kept),
        damage=damage,
        settings=settings,
        missing=tuple(missing),
    )


def set_name(stem: str) -> str:
    """The name of a set of episodes. All iterations of training are one set."""
    return _ITERATION.sub("", stem)


def _trace_file(path: Path) -> Contents:
    arm = ArmResult.of_episodes("", iter_jsonl(path))
    decisions = {*arm.outcomes} == {None} and not arm.faults  # of ``replay --out``
    return Contents(
        name=path.name,
        results=Results(arms=[] if decisions else [arm]),
        tested=False,
        training=Training(),
        sets=(EpisodeSet("", path, len(arm.jobs)),),
        missing=("Outcomes: these are decisions without their episodes.",) if decisions else (),
    )


def _sets(run: Path, missing: list[str]) -> tuple[tuple[EpisodeSet, ...], list[ArmResult]]:
    """The episodes of every trace file, tests first, and the outcomes of each set."""
    found: list[EpisodeSet] = []
    parts: dict[str, list[ArmResult]] = {}
    for path in sorted((run / "traces").glob("*.jsonl"), key=lambda p: (p.stem[:5] == "train", p)):
        arm = ArmResult.of_episodes(set_name(path.stem), _readable(path, missing))
        if arm.jobs:
            found.append(EpisodeSet(path.stem, path, len(arm.jobs)))
            parts.setdefault(arm.name, []).append(arm)
    kept = [ArmResult.total(arms, name) for name, arms in parts.items()]
    return tuple(found), [msgspec.structs.replace(arm, split=arm.name) for arm in kept]


def _readable(path: Path, missing: list[str]) -> Iterator[Episode]:
    """The episodes of a file up to the first that cannot be read, of which ``missing`` tells."""
    count = 0
    try:
        for count, episode in enumerate(iter_jsonl(path), start=1):  # noqa: B007
            yield episode
    except (TraceError, ValueError) as error:
        missing.append(f"Episodes of {path.name} after the first {count}: {_line(error)}")


def _settings(run: Path, missing: list[str]) -> tuple[str, tuple[str, ...]]:
    """``config.json``, and what it says of the whole run, such as that its phone is simulated."""
    try:
        document = RunDirectory(run).document()
    except ConfigError as error:
        missing.append(f"Settings: {_line(error)}")
        return "", ()
    made = document.get("config")
    label = made.get("label") if isinstance(made, dict) else None
    labels = (label,) if isinstance(label, str) else ()
    return json.dumps(document, indent=1, ensure_ascii=False), labels


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
