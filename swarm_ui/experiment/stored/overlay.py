"""Several runs on one page: overlaid curves, success side by side, and settings that differ."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.comparing import compare_runs
from swarm_ui.experiment.reporting import expect_report, run_report
from swarm_ui.experiment.results import ORDER, ArmResult, Results, success_interval
from swarm_ui.experiment.stored.summary import RunSummary, summary_of
from swarm_ui.files import write_atomic
from swarm_ui.report import (
    Curve,
    CurvePoint,
    Estimate,
    Link,
    ReportData,
    ReportTable,
    Series,
    TableCell,
    learning_curves,
    page,
)
from swarm_ui.storage.run_directory import RunDirectory

_TRAINED = re.compile(r"after-(\d+)$")
"""The policies that a demo tests after some iterations of training."""
_DEEPEST = 8
"""Maximum depth of settings; deeper ones, which no command writes, are shown unflattened."""
_OWN = {"run.out", "made_by"}
"""Settings that do not affect what a run does, such as its folder."""


@dataclass(frozen=True, slots=True)
class _Run:
    name: str
    """The name of the run on the page, which no other run has."""
    path: Path
    summary: RunSummary
    arms: list[ArmResult]
    labels: tuple[str, ...]
    settings: dict[str, str]
    report: Path


def overlay_report(paths: Sequence[Path], out: Path) -> Path:
    """Write one page about several runs; returns its path.

    Runs without a report of their own get one, because the page links to it.

    Args:
        paths: folders of runs, at least two.
        out: the HTML file; a report there is replaced.

    Raises:
        ConfigError: one of them is not a run or is damaged, or ``out`` is another page, or the
            report of one of them.
    """
    expect_report(out, "the report of these runs")
    for path in paths:
        if out.resolve() == (path / "report.html").resolve():
            raise ConfigError(
                f"'{out}' is the report of the run '{path}'; choose another name with --out"
            )
    runs = [_read(path, name) for path, name in zip(paths, _names(paths), strict=True)]
    names = ", ".join(run.name for run in runs)
    curves, missing = _curves(runs), ["Episodes: they are in the report of each run."]
    success, gaps = _success(runs), _differences(runs)
    if not curves:
        missing.append("Learning curves: none of the runs has measurements of iterations.")
    if success is None:
        missing.append("Success: none of the runs has tested episodes.")
    elif gaps is None:
        missing.append(
            "Paired differences: they are shown for runs of one policy with common episodes. "
            "Policies of a demo are compared with: swarm-ui compare RUN:POLICY RUN:POLICY"
        )
    tables = (success, gaps, _overview(runs, out), _settings(runs))
    data = ReportData(
        title=f"{len(runs)} runs: {names}",
        summary="Runs side by side. A run that was begun with another split, seed or version of "
        "the success check is not comparable with the others.",
        labels=tuple(dict.fromkeys(label for run in runs for label in run.labels)),
        tables=tuple(table for table in tables if table is not None),
        curves=curves,
        missing=tuple(missing),
    )
    try:
        write_atomic(out, page(data))
    except OSError as error:
        raise ConfigError(f"'{out}' cannot be written: {error}") from error
    return out


def _names(paths: Sequence[Path]) -> list[str]:
    """A short name for each run: its folder's, or the path where two have the same."""
    resolved = [path.resolve() for path in paths]
    if twice := [path for path in resolved if resolved.count(path) > 1]:
        raise ConfigError(f"'{twice[0]}' is named twice; name each run once")
    names = [path.name for path in resolved]
    return [
        str(path) if names.count(name) > 1 else name
        for path, name in zip(paths, names, strict=True)
    ]


def _read(path: Path, name: str) -> _Run:
    document = RunDirectory.open_to_read(path).document()
    summary = summary_of(path)
    if summary.state == "damaged":
        raise ConfigError(f"the run '{path}' is damaged: {summary.problem}")
    report = path / "report.html"
    if not report.is_file():
        report = run_report(path)
    found, settings = Results.load(path), _flat(document.get("config"), "")
    return _Run(name, path, summary, found.arms, found.labels, settings, report)


def _flat(value: object, prefix: str) -> dict[str, str]:
    """Settings by their full names, such as ``team.agents``."""
    if not isinstance(value, dict) or prefix.count(".") > _DEEPEST:
        return {prefix: _shown(value)}
    found: dict[str, str] = {}
    for key, inner in value.items():
        found |= _flat(inner, f"{prefix}.{key}" if prefix else str(key))
    return found


def _shown(value: Any) -> str:
    if value is None or value in ("", []):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _curves(runs: Sequence[_Run]) -> tuple[Curve, ...]:
    """A chart for each measure, with a line for each run that has it."""
    found: dict[tuple[str, str], tuple[Curve, list[Series]]] = {}
    for run in runs:
        for curve in learning_curves(run.path):
            for series in curve.series:
                _, lines = found.setdefault((curve.title, series.name), (curve, []))
                lines.append(Series(name=run.name, points=series.points))
    tested = [line for run in runs if (line := _tested(run)) is not None]
    measured = tuple(
        Curve(title=title if len(curve.series) == 1 else f"{title}: {measure}",
              x_label=curve.x_label, y_label=curve.y_label, series=_merged(lines),
              note=curve.note if _has_band(lines) else "", percent=curve.percent)
        for (title, measure), (curve, lines) in found.items()
    )  # fmt: skip
    if not tested:
        return measured
    first = Curve(
        title="Success of one agent on validation episodes", x_label="iterations of training",
        y_label="success, %", series=_merged(tested), percent=True,
        note="One greedy agent. Band: 95 % interval, bootstrap over tasks and their episodes.",
    )  # fmt: skip
    return (first, *measured)


def _merged(lines: Sequence[Series]) -> tuple[Series, ...]:
    """Merge equal lines into one line with the names of all, because only the topmost of them would
    be visible."""
    names: dict[tuple[CurvePoint, ...], list[str]] = {}
    for line in lines:
        names.setdefault(line.points, []).append(line.name)
    return tuple(Series(name=" = ".join(own), points=points) for points, own in names.items())


def _has_band(lines: Sequence[Series]) -> bool:
    return any(point.low is not None for line in lines for point in line.points)


def _tested(run: _Run) -> Series | None:
    """The success that a demo measured after each iteration of training."""
    points = []
    for arm in run.arms:
        found, rate = _TRAINED.match(arm.arm), arm.success
        if found and rate is not None:
            points.append(CurvePoint(float(found[1]), rate.mean, rate.low, rate.high))
    return Series(name=run.name, points=tuple(points)) if points else None


def _success(runs: Sequence[_Run]) -> ReportTable | None:
    """Success by split, or by split and policy if runs have several: a column for each run."""
    keys = dict.fromkeys(
        (arm.split, arm.arm) for run in runs for arm in run.arms if not _TRAINED.match(arm.arm)
    )
    if not keys:
        return None
    splits = list(dict.fromkeys(split for split, _ in keys))
    several = any(policy for _, policy in keys)
    rows: list[tuple[TableCell, ...]] = []
    place = {name: k for k, name in enumerate(ORDER)}
    for split, policy in sorted(keys, key=lambda k: (splits.index(k[0]), place.get(k[1], 99))):
        names = (split or "episodes", *([policy] if several else []))
        cells = (_estimate([a for a in run.arms if (a.split, a.arm) == (split, policy)])
                 for run in runs)  # fmt: skip
        rows.append((*names, *cells))
    return ReportTable(
        title="Success by split, %",
        columns=("split", *(["policy"] if several else []), *(run.name for run in runs)),
        rows=tuple(rows),
        note="95 % intervals: bootstrap over tasks and their episodes. n: episodes that count; "
        "those that a fault masked are left out.",
    )


def _estimate(arms: Sequence[ArmResult]) -> Estimate | None:
    jobs = [job for arm in arms for job in arm.jobs]
    found = success_interval(jobs, [value for arm in arms for value in arm.outcomes])
    return None if found is None else Estimate.of(found)


def _differences(runs: Sequence[_Run]) -> ReportTable | None:
    """Paired differences to the first run, for runs of one policy that share episodes with it."""
    first, *others = [run for run in runs if len({arm.arm for arm in run.arms}) == 1] or [runs[0]]
    rows: list[tuple[TableCell, ...]] = []
    for run in others:
        try:
            found = compare_runs(run.path, first.path)
        except ConfigError:  # no episode in common, which the note says
            continue
        for row in found:
            gap = row.difference
            shown = None if gap is None else Estimate.of(gap, difference=True)
            rows.append((run.name, row.name, shown, row.better, row.worse))
    if not rows:
        return None
    return ReportTable(
        title=f"Difference to {first.name} on the same episodes, points",
        columns=("run", "split", "difference", "only this run", f"only {first.name}"),
        rows=tuple(rows),
        note="95 % intervals: Tango's score interval for paired proportions. The last columns: "
        "episodes that only one of the two solved. Runs without common episodes are left out.",
    )


def _overview(runs: Sequence[_Run], out: Path) -> ReportTable:
    rows = []
    for run in runs:
        about = run.summary
        link = Link(text=run.name, address=_address(run.report, out))
        policies = dict.fromkeys(arm.label for arm in run.arms if not arm.arm)
        policy = "; ".join(policies) or about.model or "–"
        rows.append((link, about.command or "–", about.environment or "–", policy, about.begun,
                     about.state))  # fmt: skip
    return ReportTable(
        title="The runs",
        columns=("run", "command", "environment", "policy", "begun", "state"),
        rows=tuple(rows),
        note="A name leads to the run's own report.",
    )


def _address(target: Path, page: Path) -> str:
    """The path from one page to another, as an address: no part of it is taken for a scheme."""
    try:
        found = os.path.relpath(target.resolve(), page.resolve().parent)
    except ValueError:  # on another drive
        return target.resolve().as_uri()
    return quote(found.replace(os.sep, "/"), safe="/")


def _settings(runs: Sequence[_Run]) -> ReportTable | None:
    """The settings that are not the same in all runs."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    rows = []
    for name in names:
        values = [run.settings.get(name, "–") for run in runs]
        if name not in _OWN and len({*values}) > 1:
            rows.append((name, *values))
    if not rows:
        return None
    return ReportTable(
        title="Settings that differ",
        columns=("setting", *(run.name for run in runs)),
        rows=tuple(rows),
        note="As in config.json of the runs; –: not set. Settings that are equal are left out.",
    )
