"""Tables and JSON of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from rich.table import Table

from swarm_ui.cli.output import shown, table
from swarm_ui.report.results import ArmResult, Comparison, Results
from swarm_ui.stats import over_seeds
from swarm_ui.trace.failures import FAILURES, FailureClass

Failures = Mapping[FailureClass, Mapping[str, int]]
"""The number of episodes of each class of failures that occurs, by split."""


def results_table(results: Results, most_masked: float) -> Table:
    """One row for each split and seed, and totals if there are several.

    ``most_masked``: share of masked episodes above which no success is shown.
    """
    policies = dict.fromkeys(arm.label for arm in results.arms if arm.label)
    rows = [
        (arm.name, arm.success if arm.concludes(most_masked) else None,
         f"{arm.solved}/{arm.counted}", arm.masked, work.decisions / max(1, len(arm.outcomes)),
         work.lost, work.calls / steps, shown(work.tokens / steps, 0))
        for arm in _rows(results.arms)
        for work, steps in [(arm.work, max(1, arm.work.decisions))]
    ]  # fmt: skip
    return table(
        "; ".join(policies) or "no episode",
        ["episodes of", "success % [95 %]", "solved", "masked", "steps", "lost", "calls", "tokens"],
        rows,
        caption="95 % intervals: bootstrap over tasks and their episodes. Means: steps per "
        "episode, calls and tokens per step. Masked: ended by a fault of the environment or of an "
        "endpoint, not counted. Lost: steps without a usable reply, which count. "
        f"{'; '.join(results.labels)}.",
    )


def _rows(arms: Sequence[ArmResult]) -> list[ArmResult]:
    """The results, the total of each split that has several seeds, and the total of all."""
    rows: list[ArmResult] = []
    splits = list(dict.fromkeys(arm.split for arm in arms))
    for split in splits:
        own = [arm for arm in arms if arm.split == split]
        rows += own
        if len(own) > 1 and len(splits) > 1:
            rows.append(ArmResult.total(own, f"{split or 'episodes'}, {len(own)} seeds"))
    return [*rows, ArmResult.total(arms, "all")] if len(arms) > 1 else rows


def measures_table(results: Results) -> Table:
    """The benchmark's own measures, a column for each split; no row if it has none."""
    arms = [arm for arm in results.arms if arm.measures]
    found = [{measure.name: measure.percent() for measure in arm.measures} for arm in arms]
    names = dict.fromkeys(name for column in found for name in column)
    rows = [(name, *(column.get(name) for column in found)) for name in names]
    return table("the benchmark's measures, % [95 %]", ["measure", *(arm.name for arm in arms)],
                 rows, caption="95 % intervals: bootstrap over tasks.")  # fmt: skip


def failures(results: Results) -> Failures:
    """Why episodes failed."""
    found = {
        why: Counter(arm.split for arm in results.arms for each in arm.failures if each == why)
        for why in FAILURES
    }
    return {why: splits for why, splits in found.items() if splits}


def failure_table(found: Failures) -> Table:
    """The classes of failures, with a column for each split."""
    splits = list(dict.fromkeys(split for counts in found.values() for split in counts))
    caption = "Each episode has one class. Faults are masked, all others count as failed."
    columns = ["why", *(split or "episodes" for split in splits)]
    rows = [(FAILURES[why][0], *(counts.get(split, 0) for split in splits))
            for why, counts in found.items()]  # fmt: skip
    return table("failed episodes", columns, rows, caption=caption)


def comparison_table(rows: list[Comparison], ours: str, theirs: str) -> Table:
    """A table of the comparison's rows, in percent."""
    cells = [
        (row.name, *(each and shown(each.mean, times=100) for each in (row.ours, row.theirs)),
         gap and gap.percent(signed=True) + " *"[gap.excludes_zero], row.better, row.worse,
         gap.n if gap else 0, "<0.001" if (row.p or 1.0) < 0.001 else row.p and shown(row.p, 3))
        for row in rows
        for gap in [row.difference]
    ]  # fmt: skip
    return table(
        f"A {ours}\nB {theirs}",
        ["same episodes of", "A %", "B %", "A - B [95 %]", "only A", "only B", "n", "p"],
        cells,
        caption="Paired on the same episodes, with Tango's score interval; * if 0 is outside of "
        "it. p: McNemar's exact test. –: faults masked too many of the episodes.",
    )


def results_json(results: Results, most_masked: float) -> dict[str, object]:
    """The results for ``--json``; no success where too large a share of episodes is masked."""

    def rate(arms: Sequence[ArmResult]) -> object:
        total = ArmResult.total(arms, "")
        return msgspec.to_builtins(total.success) if total.concludes(most_masked) else None

    splits = {}
    for split in dict.fromkeys(arm.split for arm in results.arms):
        arms = [arm for arm in results.arms if arm.split == split]
        means = [arm.solved / arm.counted for arm in arms if arm.counted]
        splits[split] = {
            "success": rate(arms),
            "over_seeds": msgspec.to_builtins(over_seeds(means)) if len(means) > 1 else None,
            "masked": sum(arm.masked for arm in arms),
        }
    rows = [
        {"name": arm.name, "split": arm.split, "seed": arm.seed, "success": rate([arm]),
         "episodes": len(arm.outcomes), "solved": arm.solved, "masked": arm.masked,
         "lost": arm.work.lost, "faults": [str(fault) for fault in arm.faults],
         "steps": arm.work.decisions, "calls": arm.work.calls, "tokens": arm.work.tokens,
         "checker": arm.checker, "measures": msgspec.to_builtins(arm.measures)}
        for arm in results.arms
    ]  # fmt: skip
    return {"label": "; ".join(results.labels), "success": rate(results.arms), "splits": splits,
            "plans": rows}  # fmt: skip
