"""Success and cost of many episodes, counted one episode at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from swarm_ui.report.contents import (
    Arm,
    Arms,
    EpisodeSet,
    Estimate,
    Headline,
    HeatMap,
    ReportTable,
    TableCell,
)
from swarm_ui.stats import Outcome, clustered_mean
from swarm_ui.trace.failures import FAILURE_NAMES, FailureClass
from swarm_ui.trace.records import Episode

MOST_FAMILIES = 24
"""Maximum number of listed tasks; more are grouped by the first word of their names."""
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
        self.labels: dict[str, str] = {}
        """The policy of each set, as tables call it, where it is known."""
        self.titles: dict[str, str] = {}
        """Held-out part of each split."""
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
        totals.titles = {k: str(v) for k, v in (results.get("splits") or {}).items()}
        for part in results.get("arms") or ():
            work = part.get("work") or part
            name = str(part.get("name") or f"{part.get('split', '')}-{part.get('arm', '')}")
            totals.outcomes.setdefault(name, {})
            totals.splits[name] = str(part.get("split") or "")
            totals.labels[name] = str(part.get("label") or part.get("arm") or "")
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

    def success(self) -> ReportTable | None:
        """Success of each set with its interval."""
        rows: list[tuple[TableCell, ...]] = []
        for name, tasks in self.outcomes.items():
            shown = _rate(tasks)
            rows.append((name, shown, self.costs[name].masked))
        if not rows:
            return None
        note = (
            "95 % intervals: bootstrap over tasks and their episodes. Episodes masked by a fault "
            "are left out."
        )
        if self.kept:
            note = (
                f"A run may keep a selection of its episodes. {note} Training episodes are sampled "
                "and may be guided: do not compare them with tests."
            )
        columns = ("episodes", "success, %", "masked")
        return ReportTable(title=f"Success of {self._which}", columns=columns, rows=tuple(rows),
                           note=note)  # fmt: skip

    def headline(self) -> Headline | None:
        """Success of the last policy on the first split; ``None`` if not all episodes are known."""
        split, rates = self._rates()
        if self.kept or not rates:
            return None
        label, value = list(rates.items())[-1]
        where = self.titles.get(split, split)
        return Headline(label=f"Success: {label}" if label else "Success", value=value, where=where)

    def arms(self) -> Arms | None:
        """Success of all policies on the first split, where there is more than one."""
        split, rates = self._rates()
        if self.kept or len(rates) < 2:
            return None
        last = list(rates)[-1]
        arms = tuple(Arm(name=name, value=v, chosen=name == last) for name, v in rates.items())
        return Arms(title=self.titles.get(split, split) or "tested episodes", arms=arms)

    def _rates(self) -> tuple[str, dict[str, Estimate]]:
        """Success on the first split by the name of the policy, over all its seeds."""
        first = next((self.splits.get(name, "") for name in self.outcomes), "")
        pooled: dict[str, dict[str, list[float]]] = {}
        for name, tasks in self.outcomes.items():
            if self.splits.get(name, "") == first:
                found = pooled.setdefault(self.labels.get(name, ""), {})
                for task, outcomes in tasks.items():
                    found.setdefault(task, []).extend(outcomes)
        rates = {label: _rate(outcomes) for label, outcomes in pooled.items()}
        return first, {label: rate for label, rate in rates.items() if rate is not None}

    def families(self) -> list[HeatMap]:
        """Share solved by task (or family of tasks) and policy, a map for each split."""
        names = {task for tasks in self.outcomes.values() for task in tasks}
        whole = len(names) <= MOST_FAMILIES
        splits = dict.fromkeys(self.splits.get(name, "") for name in self.outcomes)
        found = [self._by_task(split, whole) for split in splits]
        return [drawn for drawn in found if drawn is not None]

    def _shown(self, name: str) -> str:
        """The name of a set in tables: its split and policy, where several policies were tested."""
        label, split = self.labels.get(name, ""), self.splits.get(name, "")
        several = len({*self.labels.values()}) > 1
        return f"{split}: {label}" if several and label and split else name

    def failed(self) -> dict[str, Counter[FailureClass]]:
        """:attr:`failures` by the names of the sets in tables, which those of one policy on one
        split share, such as its training seeds."""
        found: dict[str, Counter[FailureClass]] = {}
        for name, counted in self.failures.items():
            found.setdefault(self._shown(name), Counter()).update(counted)
        return found

    def _by_task(self, split: str, whole: bool) -> HeatMap | None:
        """The map of one split, with a row for each task if ``whole``, else for each family."""
        solved: Counter[tuple[str, str]] = Counter()  # outcomes are 0 or 1
        played: Counter[tuple[str, str]] = Counter()
        columns: dict[str, None] = {}
        for name, tasks in self.outcomes.items():
            if self.splits.get(name, "") != split:
                continue
            column = self.labels.get(name) or split or name
            columns[column] = None
            for task, outcomes in tasks.items():
                key = task if whole else family(task), column
                solved[key] += sum(v == 1.0 for v in outcomes)
                played[key] += len(outcomes)
        rows = sorted({row for row, _ in played})
        if not rows:
            return None

        def cell(row: str, column: str) -> tuple[float | None, str]:
            done, all_ = solved[row, column], played[row, column]
            return (done / all_, f"{done}/{all_}") if all_ else (None, "")

        cells = [[cell(row, column) for column in columns] for row in rows]
        kind = "task" if whole else "family of tasks, by the first word of the task's name"
        return HeatMap(
            title=self.titles.get(split, split) or self._which,
            rows=tuple(rows),
            columns=tuple(columns),
            values=tuple(tuple(share for share, _ in row) for row in cells),
            details=tuple(tuple(said for _, said in row) for row in cells),
            percent=True,
            note=f"Success in percent. A row is a {kind}. Small: solved of unmasked.",
        )

    def cost(self) -> ReportTable | None:
        """Decisions, calls, tokens and seconds of each set."""
        if not self.costs:
            return None
        rows = tuple(
            (self._shown(name), c.episodes, c.decisions, c.calls, c.prompt, c.completion, c.tokens,
             round(c.calls / c.decisions, 2) if c.decisions and c.calls is not None else None,
             round(c.seconds, 1) if c.seconds else None)
            for name, c in self.costs.items()
        )  # fmt: skip
        columns = ("", "episodes", "decisions", "calls", "prompt tokens", "completion tokens",
                   "tokens", "calls a decision", "seconds")  # fmt: skip
        note = "Seconds: wall time summed over episodes, also where they ran at the same time."
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
    cost.calls = (cost.calls or 0) + sum(call.completion is not None for call in calls)
    cost.prompt = (cost.prompt or 0) + prompt
    cost.completion = (cost.completion or 0) + completion
    cost.tokens = (cost.tokens or 0) + prompt + completion
    cost.seconds = (cost.seconds or 0.0) + episode.seconds


def _rate(outcomes: Mapping[str, Sequence[float]]) -> Estimate | None:
    """The share of solved episodes, by task, with the interval that ``eval`` prints."""
    rate = clustered_mean([
        Outcome(task, k, value) for task, found in outcomes.items() for k, value in enumerate(found)
    ])  # fmt: skip
    return None if rate is None else Estimate.of(rate)


def set_name(stem: str) -> str:
    """The name of a set of episodes. All iterations of training are one set."""
    return _ITERATION.sub("", stem)


def family(task: str) -> str:
    """First word of a task's name: ``click`` of ``click-button``, ``Contacts`` of
    ``ContactsAddContact``."""
    found = _WORD.search(task)
    return found.group(0) if found else task
