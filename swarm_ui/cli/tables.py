"""Tables and JSON of results."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.table import Table

from swarm_ui.cli.output import table
from swarm_ui.experiment.comparing import Comparison
from swarm_ui.experiment.results import ArmResult, Cost, Results, success_interval
from swarm_ui.rollout.pool import Job
from swarm_ui.stats import over_seeds


def results_table(results: Results) -> Table:
    """One row for each split and seed, and totals if there are several."""
    policies = list(dict.fromkeys(arm.label for arm in results.arms if arm.label))
    made = table(
        "; ".join(policies) or "no episode",
        ["episodes of", "success % [95 %]", "solved", "masked", "steps", "calls", "tokens"],
        caption="95 % intervals: bootstrap over tasks and their episodes. Means: steps an episode, "
        "calls and tokens a step. "
        f"{'; '.join(results.labels)}.",
    )
    for arm in _rows(results.arms):
        made.add_row(
            arm.name,
            "–" if arm.success is None else arm.success.percent(),
            f"{arm.solved}/{arm.counted}",
            str(arm.masked),
            _mean(arm.work.decisions, len(arm.outcomes)),
            _mean(arm.work.calls, arm.work.decisions),
            _mean(arm.work.tokens, arm.work.decisions, 0),
            style="bold" if arm not in results.arms else "",
        )
    return made


def measures_table(results: Results) -> Table | None:
    """The benchmark's own measures, a column for each split; ``None`` if it has none."""
    arms = [arm for arm in results.arms if arm.measures]
    if not arms:
        return None
    made = table(
        "the benchmark's measures, % [95 %]",
        ["measure", *(arm.name for arm in arms)],
        caption="95 % intervals: bootstrap over tasks.",
    )
    found = [{measure.name: measure.percent() for measure in arm.measures} for arm in arms]
    for name in dict.fromkeys(name for column in found for name in column):
        made.add_row(name, *(column.get(name, "–") for column in found))
    return made


def comparison_table(rows: list[Comparison], ours: str, theirs: str) -> Table:
    """The rows, in percent."""
    made = table(
        f"A {ours}\nB {theirs}",
        ["same episodes of", "A %", "B %", "A - B [95 %]", "only A", "only B", "n", "p"],
        caption="Paired on the same episodes, * if 0 is outside of the interval; p: McNemar's "
        "exact test.",
    )
    for row in rows:
        gap = row.difference
        shown = "–" if gap is None else gap.percent(signed=True)
        made.add_row(
            row.name,
            "–" if row.ours is None else f"{100 * row.ours.mean:.1f}",
            "–" if row.theirs is None else f"{100 * row.theirs.mean:.1f}",
            shown + ("*" if gap is not None and gap.excludes_zero else " "),
            str(row.better),
            str(row.worse),
            str(0 if gap is None else gap.n),
            f"{row.p:.3f}" if row.p >= 0.001 else "<0.001",
            style="bold" if row.name == "all" else "",
        )
    return made


def _rows(arms: Sequence[ArmResult]) -> list[ArmResult]:
    """The results, the total of each split that has several seeds, and the total of all."""
    rows: list[ArmResult] = []
    splits = list(dict.fromkeys(arm.split for arm in arms))
    for split in splits:
        own = [arm for arm in arms if arm.split == split]
        rows += own
        if len(own) > 1 and len(splits) > 1:
            rows.append(_total(own, f"{split or 'episodes'}, {len(own)} seeds"))
    return [*rows, _total(arms, "all")] if len(arms) > 1 else rows


def _total(arms: Sequence[ArmResult], name: str) -> ArmResult:
    cost = Cost()
    for arm in arms:
        cost.add(arm.work)
    return ArmResult(
        name=name,
        split="",
        jobs=tuple(job for arm in arms for job in arm.jobs),
        outcomes=tuple(value for arm in arms for value in arm.outcomes),
        work=cost,
    )


def results_json(results: Results) -> dict[str, object]:
    """The results for ``--json``."""

    def rate(arms: Sequence[ArmResult]) -> object:
        jobs: list[Job] = [job for arm in arms for job in arm.jobs]
        return msgspec.to_builtins(
            success_interval(jobs, [value for arm in arms for value in arm.outcomes])
        )

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
         "faults": list(arm.faults), "steps": arm.work.decisions, "calls": arm.work.calls,
         "tokens": arm.work.tokens, "checker": arm.checker,
         "measures": msgspec.to_builtins(arm.measures)}
        for arm in results.arms
    ]  # fmt: skip
    return {"label": "; ".join(results.labels), "success": rate(results.arms), "splits": splits,
            "plans": rows}  # fmt: skip


def _mean(count: int, of: int, digits: int = 1) -> str:
    return f"{count / of:.{digits}f}" if of else "–"
