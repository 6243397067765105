"""Success and cost of many episodes, counted one episode at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from swarm_ui.report.contents import EpisodeSet, Estimate, HeatMap, ReportTable, TableCell
from swarm_ui.trace.failed_episodes import FAILURE_NAMES, FailureClass
from swarm_ui.trace.records import Episode

MOST_FAMILIES = 24
"""More tasks than these are grouped by the first word of their names."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W_]+")
_ITERATION = re.compile(r"-\d{3,}$")


class Cost(msgspec.Struct, kw_only=True):
    """The cost of some episodes, masked ones included."""

    episodes: int = 0
    masked: int = 0
    decisions: int | None = 0
    """``None``, here and below, means not recorded."""
    calls: int | None = 0
    prompt: int | None = 0
    completion: int | None = 0
    tokens: int | None = 0
    seconds: float | None = 0.0


class RunTotals:
    """Outcomes and cost, by set and by task."""

    def __init__(self, *, kept: bool) -> None:
        self.kept = kept
        """Whether these are only the kept episodes, not all tested ones."""
        self.costs: dict[str, Cost] = {}
        self.outcomes: dict[str, dict[str, list[float]]] = {}
        """Outcomes of unmasked episodes, by set and task."""
        self.splits: dict[str, str] = {}
        """The split of each set, where it is known."""
        self.failures: dict[str, Counter[FailureClass]] = {}
        """Why episodes failed, by set, where all tested episodes were classified."""

    @classmethod
    def of_episodes(cls, sets: Iterable[EpisodeSet]) -> RunTotals:
        totals = cls(kept=True)
        for part in sets:
            name = set_name(part.name)
            cost = totals.costs.setdefault(name, Cost())
            totals.outcomes.setdefault(name, {})
            for episode in part.episodes:
                totals._count(name, episode.task, episode.success)
                _spent(cost, episode)
        return totals

    @classmethod
    def of_results(cls, results: Mapping[str, Any]) -> RunTotals | None:
        """The totals of a ``results.json`` of a command or a demo; ``None`` for other contents."""
        totals = cls(kept=False)
        for part in (*(results.get("plans") or ()), *(results.get("arms") or ())):
            work = part.get("work") or part
            name = str(part.get("name") or f"{part.get('split', '')}-{part.get('arm', '')}")
            totals.outcomes.setdefault(name, {})
            if part.get("name") and part.get("split"):
                totals.splits[name] = str(part["split"])
            prompt, completion = work.get("prompt_tokens"), work.get("completion_tokens")
            totals.costs[name] = Cost(
                decisions=work.get("decisions", work.get("steps")),
                calls=work.get("calls"),
                prompt=prompt,
                completion=completion,
                tokens=work.get("tokens", (prompt or 0) + (completion or 0)),
                seconds=work.get("seconds"),
            )
            for job, outcome in zip(part["jobs"], part["outcomes"], strict=True):
                totals._count(name, str(job[0]), outcome)
            if part.get("failures"):
                found = Counter(why for why in part["failures"] if why in FAILURE_NAMES)
                totals.failures[name] = found
        return totals if totals.outcomes else None

    def _count(self, name: str, task: str, outcome: float | None) -> None:
        self.costs[name].episodes += 1
        if outcome is None:
            self.costs[name].masked += 1
        else:
            self.outcomes[name].setdefault(task, []).append(float(outcome))

    @property
    def _which(self) -> str:
        return "kept episodes" if self.kept else "tested episodes"

    @property
    def _warning(self) -> str:
        return "A run may keep a selection of its episodes. " if self.kept else ""

    def success(self) -> ReportTable | None:
        from swarm_ui.stats import wilson

        rows: list[tuple[TableCell, ...]] = []
        for name, tasks in self.outcomes.items():
            rate = wilson([v for outcomes in tasks.values() for v in outcomes])
            shown = None
            if rate is not None:
                shown = Estimate(value=rate.mean, low=rate.low, high=rate.high, count=rate.n)
            rows.append((name, shown, self.costs[name].masked))
        if not rows:
            return None
        note = (
            f"{self._warning}95 % intervals: Wilson. Episodes masked by a fault are left "
            "out. Training episodes are sampled and may be guided: do not compare them with tests."
        )
        columns = ("episodes", "success, %", "masked")
        return ReportTable(title=f"Success of {self._which}", columns=columns, rows=tuple(rows),
                           note=note)  # fmt: skip

    def families(self) -> HeatMap | None:
        """Share solved, by task (or family of tasks) and set."""
        names = sorted({task for tasks in self.outcomes.values() for task in tasks})
        if not names:
            return None
        whole = len(names) <= MOST_FAMILIES
        group = {task: task if whole else family(task) for task in names}
        rows = tuple(dict.fromkeys(sorted(group.values())))
        solved: Counter[tuple[str, str]] = Counter()  # outcomes are 0 or 1
        played: Counter[tuple[str, str]] = Counter()
        for name, tasks in self.outcomes.items():
            part = self.splits.get(name, name)
            for task, outcomes in tasks.items():
                solved[group[task], part] += sum(v == 1.0 for v in outcomes)
                played[group[task], part] += len(outcomes)
        columns = tuple(dict.fromkeys(self.splits.get(name, name) for name in self.outcomes))

        def cell(row: str, column: str) -> tuple[float | None, str]:
            done, all_ = solved[row, column], played[row, column]
            return (done / all_, f"{done}/{all_}") if all_ else (None, "")

        cells = [[cell(row, column) for column in columns] for row in rows]
        kind = "task" if whole else "family of tasks, by the first word of the task's name"
        return HeatMap(
            title=f"Success of {self._which}, %, by {'task' if whole else 'family'} and split",
            rows=rows,
            columns=columns,
            values=tuple(tuple(share for share, _ in row) for row in cells),
            details=tuple(tuple(said for _, said in row) for row in cells),
            percent=True,
            note=f"{self._warning}A row is a {kind}. Small: solved of unmasked.",
        )

    def cost(self) -> ReportTable | None:
        if not self.costs:
            return None
        rows = tuple(
            (name, c.episodes, c.decisions, c.calls, c.prompt, c.completion, c.tokens,
             round(c.calls / c.decisions, 2) if c.decisions and c.calls is not None else None,
             round(c.seconds, 1) if c.seconds else None)
            for name, c in self.costs.items()
        )  # fmt: skip
        columns = ("", "episodes", "decisions", "calls", "prompt tokens", "completion tokens",
                   "tokens", "calls a decision", "seconds")  # fmt: skip
        note = (
            f"{self._warning}Seconds: wall time summed over episodes, also where they ran at the "
            "same time."
        )
        table = ReportTable(title=f"Cost of {self._which}", columns=columns, rows=rows, note=note)
        return filled_columns(table)


def filled_columns(table: ReportTable) -> ReportTable:
    kept = [k for k in range(len(table.columns)) if any(row[k] is not None for row in table.rows)]
    return msgspec.structs.replace(
        table,
        columns=tuple(table.columns[k] for k in kept),
        rows=tuple(tuple(row[k] for k in kept) for row in table.rows),
    )


def _spent(cost: Cost, episode: Episode) -> None:
    calls = [call for step in episode.steps for call in step.trace.calls]
    prompt = sum(call.usage.prompt_tokens for call in calls)
    completion = sum(call.usage.completion_tokens for call in calls)
    cost.decisions = (cost.decisions or 0) + len(episode.steps)
    cost.calls = (cost.calls or 0) + sum(bool(call.model or call.prompt) for call in calls)
    cost.prompt = (cost.prompt or 0) + prompt
    cost.completion = (cost.completion or 0) + completion
    cost.tokens = (cost.tokens or 0) + prompt + completion
    cost.seconds = (cost.seconds or 0.0) + episode.seconds


def set_name(stem: str) -> str:
    """The name of a set of episodes. All iterations of training are one set."""
    return _ITERATION.sub("", stem)


def family(task: str) -> str:
    """First word of a task's name: ``click`` of ``click-button``, ``Contacts`` of
    ``ContactsAddContact``."""
    found = _WORD.search(task)
    return found.group(0) if found else task
