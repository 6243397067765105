"""What was measured, as ``results.json`` has it, and the tables made of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.table import Table

from swarm_ui.cli.output import table
from swarm_ui.errors import ConfigError
from swarm_ui.rollout.pool import Job
from swarm_ui.storage.run_directory import write_atomic
from swarm_ui.trace.jsonl import iter_jsonl
from swarm_ui.trace.records import Episode

VERSION = 1


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a benchmark's own; see
    :class:`swarm_ui.environments.recorded.benchmark_scores.Measure`."""

    name: str
    value: float
    low: float
    high: float
    tasks: int
    steps: int
    key: str = ""

    def percent(self) -> str:
        """Such as ``"54.8 [50.4, 59.1]"``."""
        return f"{100 * self.value:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """The episodes of one plan: a split under one seed."""

    name: str
    """Of the file in ``traces/``."""
    split: str
    seed: int
    environment: str = ""
    policy: str = ""
    jobs: tuple[Job, ...] = ()
    outcomes: tuple[float | None, ...] = ()
    """One an episode, in the order of ``jobs``; ``None``: masked by a fault."""
    faults: tuple[str, ...] = ()
    """Why, each once."""
    steps: int = 0
    calls: int = 0
    tokens: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0
    """Summed over episodes, which may have been played at the same time."""
    measures: tuple[Measure, ...] = ()
    """The benchmark's own, where it has some."""

    @property
    def solved(self) -> int:
        return sum(value == 1.0 for value in self.outcomes)

    @property
    def masked(self) -> int:
        return sum(value is None for value in self.outcomes)

    @property
    def counted(self) -> int:
        return len(self.outcomes) - self.masked


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All of a run."""

    version: int = VERSION
    made_by: str = "swarm-ui"
    label: str = ""
    """What is not the real thing."""
    plans: tuple[Played, ...] = ()

    def save(self, folder: Path) -> None:
        raw = msgspec.json.format(msgspec.json.encode(self), indent=1)
        write_atomic(folder / "results.json", raw + b"\n")

    @property
    def outcomes(self) -> list[float | None]:
        return [value for plan in self.plans for value in plan.outcomes]


def load(folder: Path) -> Results:
    """Read what a run measured.

    Raises:
        ConfigError: it measured nothing, or another program or version wrote it.
    """
    path = folder / "results.json"
    if not path.exists():
        raise ConfigError(f"'{folder}' is not a run with results: it has no results.json")
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Results)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"'{path}' is not the results of a run: {error}") from error
    if found.version != VERSION or found.made_by != "swarm-ui":
        raise ConfigError(f"'{path}' was written by another program or version")
    return found


def counted(
    name: str, split: str, seed: int, jobs: Sequence[Job], episodes: Sequence[Episode]
) -> Played:
    """The figures of a plan's episodes, which may be in any order, or not all there."""
    pending = list(episodes)
    ordered: list[Episode] = []
    for job in jobs:
        found = next((e for e in pending if (e.task, e.seed) == job), None)
        if found is not None:
            pending.remove(found)
            ordered.append(found)
    calls = [call for e in ordered for step in e.steps for call in step.trace.calls if call.model]
    prompt = sum(call.usage.prompt_tokens for call in calls)
    completion = sum(call.usage.completion_tokens for call in calls)
    return Played(
        name=name,
        split=split,
        seed=seed,
        environment=ordered[0].environment if ordered else "",
        policy=ordered[0].policy if ordered else "",
        jobs=tuple((e.task, e.seed) for e in ordered),
        outcomes=tuple(None if e.success is None else float(e.success) for e in ordered),
        faults=tuple(dict.fromkeys(str(e.fault) for e in ordered if e.fault)),
        steps=sum(len(e.steps) for e in ordered),
        calls=len(calls),
        tokens=prompt + completion,
        prompt_tokens=prompt,
        completion_tokens=completion,
        seconds=sum(e.seconds for e in ordered),
    )


def results_table(results: Results) -> Table:
    """One row a plan, and one for all where there are several."""
    from swarm_ui.stats import wilson

    policies = list(dict.fromkeys(plan.policy for plan in results.plans if plan.policy))
    made = table(
        "; ".join(policies) or "no episode",
        ["episodes of", "success % [95 %]", "solved", "masked", "steps", "calls", "tokens"],
        caption="95 % intervals: Wilson. Means: steps an episode, calls and tokens a step. "
        f"{results.label}.",
    )
    for plan in _rows(results.plans):
        rate = wilson(plan.outcomes)
        made.add_row(
            plan.name,
            "–" if rate is None else rate.percent(),
            f"{plan.solved}/{plan.counted}",
            str(plan.masked),
            _mean(plan.steps, len(plan.outcomes)),
            _mean(plan.calls, plan.steps),
            _mean(plan.tokens, plan.steps, 0),
            style="bold" if plan not in results.plans else "",
        )
    return made


def measures_table(results: Results) -> Table | None:
    """The benchmark's own figures, a column a plan; ``None`` if it has none."""
    plans = [plan for plan in results.plans if plan.measures]
    if not plans:
        return None
    made = table(
        "the benchmark's measures, % [95 %]",
        ["measure", *(plan.name for plan in plans)],
        caption="95 % intervals: bootstrap over tasks.",
    )
    found = [{measure.name: measure.percent() for measure in plan.measures} for plan in plans]
    for name in dict.fromkeys(name for column in found for name in column):
        made.add_row(name, *(column.get(name, "–") for column in found))
    return made


def _rows(plans: Sequence[Played]) -> list[Played]:
    """The plans; each split of several seeds as a whole; and all, where there are several."""
    rows: list[Played] = []
    splits = list(dict.fromkeys(plan.split for plan in plans))
    for split in splits:
        own = [plan for plan in plans if plan.split == split]
        rows += own
        if len(own) > 1 and len(splits) > 1:
            rows.append(total(own, f"{split or 'episodes'}, {len(own)} seeds"))
    return [*rows, total(plans)] if len(plans) > 1 else rows


def total(plans: Sequence[Played], name: str = "all") -> Played:
    """Plans as one."""
    return Played(
        name=name,
        split="",
        seed=0,
        outcomes=tuple(value for plan in plans for value in plan.outcomes),
        steps=sum(plan.steps for plan in plans),
        calls=sum(plan.calls for plan in plans),
        tokens=sum(plan.tokens for plan in plans),
        seconds=sum(plan.seconds for plan in plans),
    )


def episodes_of(folder: Path, name: str) -> list[Episode]:
    """The episodes that were saved of a plan."""
    path = folder / "traces" / f"{name}.jsonl"
    return list(iter_jsonl(path)) if path.exists() else []


def machine(results: Results) -> dict[str, object]:
    """The figures for ``--json``."""
    from swarm_ui.stats import over_seeds, wilson

    def rate(values: Sequence[float | None]) -> object:
        found = wilson(values)
        return None if found is None else msgspec.to_builtins(found)

    by_split: dict[str, list[Played]] = {}
    for plan in results.plans:
        by_split.setdefault(plan.split, []).append(plan)
    splits = {}
    for split, plans in by_split.items():
        means = [
            sum(v for v in p.outcomes if v is not None) / p.counted for p in plans if p.counted
        ]
        spread = over_seeds(means) if len(means) > 1 else None
        splits[split] = {
            "success": rate([v for p in plans for v in p.outcomes]),
            "over_seeds": None if spread is None else msgspec.to_builtins(spread),
            "masked": sum(p.masked for p in plans),
        }
    rows = [
        {"name": p.name, "split": p.split, "seed": p.seed, "success": rate(p.outcomes),
         "episodes": len(p.outcomes), "solved": p.solved, "masked": p.masked,
         "faults": list(p.faults), "steps": p.steps, "calls": p.calls, "tokens": p.tokens,
         "measures": msgspec.to_builtins(p.measures)}
        for p in results.plans
    ]  # fmt: skip
    return {"label": results.label, "success": rate(results.outcomes), "splits": splits,
            "plans": rows}  # fmt: skip


def _mean(count: int, of: int, digits: int = 1) -> str:
    return f"{count / of:.{digits}f}" if of else "–"
