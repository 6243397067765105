"""The figures of the study as tables and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from benchmarks.studies.critic.critics import BASELINES, START, UNTRAINED, cards
from benchmarks.studies.critic.sizes import TESTS
from benchmarks.studies.struct_files import file_hashes, read_struct
from benchmarks.support.origin import Origin, origin
from benchmarks.support.tables import markdown_table
from swarm_ui.optim.credit.judging import JudgingFigures
from swarm_ui.optim.credit.learned import CriticCard
from swarm_ui.stats import Interval

_LABEL = (
    "The phone is simulated. Its labels are those of its solver; labels of MiniWoB++ pages are "
    "outcomes of episodes, so right steps of failed episodes count as wrong."
)
_LABELS = {
    "all-1": "learned critic",  # trained on all sources
    UNTRAINED: "the model without training", "majority": "majority of agents",
    START: "probability of the reply under the adapter that training starts from",
    "likelihood": "probability of the reply under an agent", "outcome": "outcome of the episode",
}  # fmt: skip


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of a study, and where they come from."""

    origin: Origin
    """Of the last command of the study."""
    settings: dict[str, object]
    data: dict[str, str]
    """SHA-256 of each file of judged replies."""
    figures: list[JudgingFigures]
    critics: dict[str, CriticCard]


def record_of(folder: Path) -> Record:
    """The record of what is in a study's folder."""
    settings = folder / "settings.json"
    files = sorted((folder / "judged").glob("*.jsonl"))
    return Record(
        origin=origin("python -m benchmarks.studies.critic"),
        settings=msgspec.json.decode(settings.read_bytes()) if settings.exists() else {},
        data=file_hashes(files),
        figures=_load(folder),
        critics=cards(folder),
    )


def summary(record: Record) -> str:
    """All tables as Markdown."""
    figures = record.figures
    return "\n\n".join(
        [overview(record), _ranking(figures), _kinds(figures), _curves(figures), _LABEL]
    )


def overview(record: Record) -> str:
    """AUC of every score on every split, as Markdown."""
    splits = [split for split in TESTS if any(f.split == split for f in record.figures)]
    lines = []
    for title in dict.fromkeys(map(_title, record.figures)):
        found = {f.split: _shown(f.auc) for f in record.figures if _title(f) == title}
        lines.append([title, *(found.get(split, "–") for split in splits)])
    return markdown_table(["score", *(TESTS[split] for split in splits)], lines)


def rows_of(record: Record) -> dict[str, Any]:
    """The figures as JSON values: ``rows``, and the ``critics`` with their training."""
    rows = [
        {
            "name": f.scorer, "split": f.split, "labels": f.labels, "replies": f.replies,
            "right": f.right, "auc": numbers(f.auc), "inside": numbers(f.inside),
            "beside_solver": numbers(f.beside_solver),
            "auc_by_mistake": {kind: numbers(value) for kind, value in f.kinds.items()},
            "mistakes": f.mistakes, "calibration_error": f.error,
            "reliability": [[c.score, c.right.mean, c.right.n] for c in f.bins],
        }
        for f in record.figures
    ]  # fmt: skip
    return {"rows": rows, "critics": msgspec.to_builtins(record.critics)}


def numbers(interval: Interval | None) -> list[float] | None:
    """Mean, lower and upper end."""
    return None if interval is None else [interval.mean, interval.low, interval.high]


def _ranking(figures: list[JudgingFigures]) -> str:
    lines = []
    for f in figures:
        share = "–" if f.right is None else f"{f.replies}, {100 * f.right:.0f}"
        error = "–" if f.error is None else f"{f.error:.3f}"
        lines.append((
            _title(f), TESTS.get(f.split, f.split), share, _shown(f.auc), _shown(f.inside),
            _shown(f.beside_solver), error,
        ))  # fmt: skip
    heads = ("score", "replies of", "agents' replies, right %", "AUC", "where agents disagree",
             "solver's reply above theirs", "calibration error")  # fmt: skip
    return markdown_table(heads, lines)


def _kinds(figures: list[JudgingFigures]) -> str:
    lines = [
        (
            _title(f), TESTS.get(f.split, f.split),
            *(f"{_shown(f.kinds.get(kind))} ({f.mistakes.get(kind, 0)})"
              for kind in ("own", "colleague", "adversary")),
        )
        for f in figures
    ]  # fmt: skip
    heads = ("score", "replies of", "own mistakes", "of colleagues", "of the adversary")
    shown = markdown_table(heads, lines)
    return f"AUC by the kind of mistake, and how many there are:\n\n{shown}"


def _curves(figures: list[JudgingFigures]) -> str:
    lines = []
    for f in figures:
        if f.scorer not in (START, *BASELINES):
            curve = ", ".join(f"{c.score:.2f} → {c.right.mean:.2f} ({c.right.n})" for c in f.bins)
            lines.append((_title(f), TESTS.get(f.split, f.split), curve))
    shown = markdown_table(("critic", "replies of", "score → share right (replies)"), lines)
    return f"Reliability on the agents' replies:\n\n{shown}"


def _title(figures: JudgingFigures) -> str:
    return _LABELS.get(figures.scorer, f"learned critic {figures.scorer}")


def _shown(interval: Interval | None) -> str:
    if interval is None:
        return "–"
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _load(folder: Path) -> list[JudgingFigures]:
    """All figures, by split; critics first, then the baselines."""
    paths = sorted((folder / "figures").glob("*.json"))
    found = [read_struct(path, JudgingFigures) for path in paths]
    order = {split: k for k, split in enumerate(TESTS)}
    last = {name: k for k, name in enumerate((START, UNTRAINED, *BASELINES), start=1)}
    return sorted(found, key=lambda f: (order.get(f.split, 99), last.get(f.scorer, 0), f.scorer))
