"""What runs measured, as tables, heat maps and curves: success, cost, failures, learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from swarm_ui.report.charts import Curve, Point
from swarm_ui.report.html_tables import Cell, Gap, HeatMap, Table
from swarm_ui.report.read import Contents, Training
from swarm_ui.report.results import ArmResult, compared
from swarm_ui.stats import Interval
from swarm_ui.trace.failures import FailureClass

_MOST_MAPS = 6


@dataclass(frozen=True)
class Tested:
    """A policy on a split, in however many sets of episodes."""

    policy: str
    """Empty: the runs have only one."""
    split: str
    arms: tuple[ArmResult, ...]

    @cached_property
    def total(self) -> ArmResult:
        return ArmResult.total(self.arms, self.name)

    @property
    def name(self) -> str:
        return ": ".join(filter(None, [self.split, self.policy])) or "episodes"

    @property
    def failures(self) -> Mapping[FailureClass, int]:
        """Number of episodes of each class of failures; empty where they were not classified."""
        return Counter(why for why in self.total.failures if why is not None)


def tested(runs: Sequence[Contents]) -> list[Tested]:
    """The policies on each split. Kept episodes count only if no run has tested ones."""
    used = [run for run in runs if run.tested] or list(runs)
    found: dict[tuple[str, str], list[ArmResult]] = {}
    for run in used:
        labels = {arm.label for arm in run.results.arms}
        for arm in run.results.arms:
            label = arm.label if len(labels) > 1 else ""
            own = run.name if len(runs) > 1 else ""
            key = arm.split, ": ".join(filter(None, [own, label]))
            found.setdefault(key, []).append(arm)
    splits = list(dict.fromkeys(split for split, _ in found))
    order = sorted(found, key=lambda key: splits.index(key[0]))
    return [Tested(policy, split, tuple(found[split, policy])) for split, policy in order]


def gain(ours: Tested, theirs: Tested) -> Interval | None:
    """The paired difference on the episodes that both played."""
    rows = compared(ours.arms, theirs.arms)
    return rows[0].difference if rows else None


def success(rows: Sequence[Tested], *, kept: bool) -> Table:
    """Success of each policy on each split, and its paired difference to the first policy.

    ``kept``: these are only the kept episodes, not all tested ones.
    """
    first = {row.split: row for row in reversed(rows)}
    base = rows[0].policy
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        against = first[row.split]
        found = gain(row, against) if against is not row and against.policy == base else None
        cells.append(
            (row.policy, row.split, row.total.success, found and Gap(found), row.total.masked)
        )
    note = (
        "95 % intervals: bootstrap over tasks and their episodes; differences: on the same "
        "episodes, bold if 0 is outside. Episodes masked by a fault are left out."
    )
    if kept:
        note = (
            f"A run may keep a selection of its episodes. {note} Training episodes are sampled and "
            "may be guided: do not compare them with tests."
        )
    title = f"Success of {'kept' if kept else 'tested'} episodes"
    names = ("policy", "episodes of", "success, %", f"minus {base}, points", "masked")
    one_policy, one_split = len({r.policy for r in rows}) == 1, len({r.split for r in rows}) == 1
    hidden = ["policy"] * one_policy + ["episodes of"] * (one_split and not one_policy)
    columns = {name: column for name, column in zip(names, zip(*cells, strict=True), strict=True)
               if name not in hidden and any(value is not None for value in column)}  # fmt: skip
    return Table(title, tuple(columns), list(zip(*columns.values(), strict=True)), note)


def measures(rows: Sequence[Tested]) -> Table | None:
    """The benchmark's own measures; ``None`` if it has none."""
    found = {
        arm.name or row.name: {
            m.name: Interval(mean=m.value, low=m.low, high=m.high, n=m.tasks) for m in arm.measures
        }
        for row in rows
        for arm in row.arms
        if arm.measures
    }
    names = dict.fromkeys(name for column in found.values() for name in column)
    cells = [(name, *(column.get(name) for column in found.values())) for name in names]
    note = "95 % intervals: bootstrap over tasks; n: tasks."
    title = "Measures of the benchmark, %"
    return Table(title, ("measure", *found), cells, note) if names else None


def by_task(rows: Sequence[Tested]) -> list[HeatMap]:
    """Share solved by task and policy, a map for each split."""
    splits = dict.fromkeys(row.split for row in rows if row.total.counted)
    return [_by_task([row for row in rows if row.split == split], split) for split in splits]


def _by_task(rows: Sequence[Tested], title: str) -> HeatMap:
    solved: Counter[tuple[str, str]] = Counter()
    played: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for (task, _), outcome in zip(row.total.jobs, row.total.outcomes, strict=True):
            played[task, row.policy] += outcome is not None
            solved[task, row.policy] += outcome == 1.0
    names, columns = sorted({name for name, _ in played}), [row.policy for row in rows]
    cells = [[(solved[name, p], played[name, p]) for p in columns] for name in names]
    return HeatMap(
        title=title or "episodes",
        rows=tuple(names),
        columns=tuple(policy or title or "solved" for policy in columns),
        values=tuple(tuple(k / n if n else None for k, n in row) for row in cells),
        details=tuple(tuple(f"{k}/{n}" if n else "" for k, n in row) for row in cells),
        note="Success in percent. A row is a task. Small: solved of unmasked.",
    )


def cost(rows: Sequence[Tested]) -> Table:
    """Decisions, calls, tokens and seconds of each policy on each split."""
    columns = ("", "episodes", "decisions", "calls", "prompt tokens", "completion tokens",
               "calls a decision", "seconds")  # fmt: skip
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        work = row.total.work
        cells.append((
            row.name, len(row.total.jobs), work.decisions, work.calls, work.prompt_tokens,
            work.completion_tokens, round(work.calls_per_decision, 2), round(work.seconds, 1),
        ))  # fmt: skip
    note = "Seconds: wall time summed over episodes, also where they ran at the same time."
    return Table("Cost of these episodes", columns, cells, note)


# -- training ---------------------------------------------------------------------------------


def curves(runs: Sequence[Contents]) -> list[Curve]:
    """Success of the rollouts, mean credit and loss by iteration, a line for each run."""
    trained = [(run.name, run.training.iterations.values()) for run in runs]
    rates = [
        (name, [Point(i.iteration + 1, r.mean, r.low, r.high) for i in done if (r := i.rate)])
        for name, done in trained
    ]
    credit = [(name, [Point(i.iteration + 1, i.credit) for i in done if i.credit is not None])
              for name, done in trained]  # fmt: skip
    loss = [(name, [Point(i.iteration + 1, i.loss) for i in done if i.loss is not None])
            for name, done in trained]  # fmt: skip
    note = (
        "Band: 95 % Wilson interval of the success of the iteration's episodes. Sampled and, with "
        "a critic, guided: not comparable with a test."
    )
    drawn = (
        Curve("Success of rollouts by iteration, %", rates, note, percent=True),
        Curve("Mean credit", credit, "Of all scored messages."),
        Curve("Loss", loss, "After the last step; mean over adapters."),
    )
    shown = (c._replace(series=[line for line in c.series if line[1]]) for c in drawn)
    return [curve for curve in shown if curve.series]


def credit_maps(name: str, training: Training) -> list[HeatMap]:
    """Mean credit by round and agent for the first, the last and some other iterations."""
    order = list(training.credit)
    step = max(1, -(-len(order) // _MOST_MAPS))
    shown = [training.credit[k] for k in sorted({*order[::step], *order[-1:]})]
    return [
        HeatMap(
            title=f"Mean credit in iteration {found.iteration + 1}{name}",
            rows=tuple(f"round {r + 1}" for r in range(len(found.values))),
            columns=found.agents,
            values=found.values,
        )
        for found in shown
    ]
