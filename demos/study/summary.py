"""A study of several seeds as Markdown tables."""

from __future__ import annotations

from pathlib import Path

from study.arms import BASE, TRAINED
from study.repeat import BASE_CELL
from study.results import ArmResult, Results
from study.settings import METHODS
from swarm_ui.errors import ConfigError
from swarm_ui.optim.stats import Interval, over_seeds, paired_difference

_KINDS = (*METHODS, "stage1")
_HEAD = (
    "| policy | seeds | success % | minus base greedy, t over seeds | each seed, paired "
    "| minus more stage 1, t over seeds | minus own greedy, t over seeds |"
)


def summarise(folder: Path) -> str:
    """All cells of a study.

    Raises:
        ConfigError: the base agent was not evaluated there.
    """
    base = Results.load(folder / BASE_CELL)
    if not base.arms:
        raise ConfigError(f"'{folder}' holds no study: there is no {BASE_CELL}/results.json")
    cells = {
        path.parent.name: Results.load(path.parent)
        for kind in _KINDS
        for path in sorted(folder.glob(f"{kind}-*/results.json"))
    }
    parts = [_split(split, base, cells) for split in base.splits if base.find(split, BASE)]
    return "\n\n".join([*parts, _cost(cells), " ".join(base.labels) + "."])


def _split(split: str, base: Results, cells: dict[str, Results]) -> str:
    reference = base.find(split, BASE)
    assert reference is not None  # the caller looked
    n = len(reference.outcomes)
    lines = [f"### {base.splits.get(split, split)} ({n} episodes)", "", _HEAD, "| --- " * 7 + "|"]
    for arm in (a for a in base.arms if a.split == split):
        gap = "–" if arm is reference else _text(_paired(arm, reference))
        lines.append(
            f"| {arm.label} | – | {_text(arm.success, signed=False)} | – | {gap} | – | – |"
        )
    kinds = sorted({name.rpartition("-")[0] for name in cells}, key=_KINDS.index)
    for kind in kinds:
        mine = {n.rpartition("-")[2]: r for n, r in cells.items() if n.rpartition("-")[0] == kind}
        names = dict.fromkeys(a.arm for r in mine.values() for a in r.arms if a.split == split)
        lines += [_row(split, kind, name, mine, cells, reference) for name in names]
    return "\n".join(lines)


def _row(
    split: str,
    kind: str,
    name: str,
    mine: dict[str, Results],
    cells: dict[str, Results],
    reference: ArmResult,
) -> str:
    found = {seed: arm for seed, r in mine.items() if (arm := r.find(split, name)) is not None}
    label = next(iter(found.values())).label
    rates = [interval.mean for a in found.values() if (interval := a.success) is not None]
    gaps = {seed: _paired(arm, reference) for seed, arm in found.items()}
    controls = {s: _of(cells.get(f"stage1-{s}"), split, "stage1-greedy") for s in found}
    owns = {s: _of(mine[s], split, TRAINED) for s in found} if name != TRAINED else {}
    each = "; ".join(f"{seed}: {_text(gap)}" for seed, gap in gaps.items())
    shown = label if kind == "stage1" else f"{kind}: {label}"
    columns = [
        shown,
        str(len(found)),
        f"{100 * sum(rates) / len(rates):.1f}" if rates else "–",
        _text(over_seeds([g.mean for g in gaps.values() if g is not None])),
        each,
        "–" if kind == "stage1" else _text(_over(found, controls)),
        "–" if kind == "stage1" else _text(_over(found, owns)),
    ]
    return f"| {' | '.join(columns)} |"


def _cost(cells: dict[str, Results]) -> str:
    lines = ["| cell | CPU-seconds of training | tokens/s in rollouts | in the model |",
             "| --- | --- | --- | --- |"]  # fmt: skip
    for name, results in cells.items():
        work = results.rollouts
        speed = "– | –" if work is None else (
            f"{work.tokens_per_second:.0f} | {100 * work.model_share:.0f} %"
        )  # fmt: skip
        lines.append(f"| {name} | {results.training_cpu_seconds:.0f} | {speed} |")
    return "\n".join(lines)


def _of(results: Results | None, split: str, name: str) -> ArmResult | None:
    return None if results is None else results.find(split, name)


def _over(ours: dict[str, ArmResult], theirs: dict[str, ArmResult | None]) -> Interval | None:
    """Mean paired difference over the seeds that have both, with Student's t."""
    gaps = [_paired(arm, other) for s, arm in ours.items() if (other := theirs.get(s)) is not None]
    return over_seeds([gap.mean for gap in gaps if gap is not None])


def _paired(ours: ArmResult, theirs: ArmResult) -> Interval | None:
    if ours.jobs != theirs.jobs:
        raise ConfigError(
            f"'{ours.label}' and '{theirs.label}' were not played on the same episodes of "
            f"{ours.split}; the study's folder holds cells with different settings"
        )
    return paired_difference(ours.outcomes, theirs.outcomes)


def _text(interval: Interval | None, *, signed: bool = True) -> str:
    return "–" if interval is None else interval.percent(signed=signed)
