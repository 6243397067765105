"""Evaluation of a policy on test episodes, which can be resumed: saved episodes are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.files import only_writer
from swarm_ui.report.results import ArmResult, Cost, Results, in_order, outcome
from swarm_ui.rollout import Acting, Intervene, Job, PerWorker, Rollouts
from swarm_ui.stats import Measure
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.failures import failure_class
from swarm_ui.trace.jsonl import iter_jsonl, repair_jsonl, write_jsonl, write_stream
from swarm_ui.trace.records import Episode


class Trial(NamedTuple):
    """The episodes of one split."""

    split: str
    jobs: tuple[Job, ...]
    name: str
    """Name of the trace file."""
    seed: int = 0
    """Seed for choosing the episodes."""


def trace_name(split: str, seed: int, seeds: Sequence[int]) -> str:
    """Name of the trace file of the episodes of a split, in a run with these seeds."""
    return (split.replace("/", "-") or "episodes") + (f"-seed{seed}" if len(seeds) > 1 else "")


async def play(
    run: RunDirectory,
    results: Results,
    trial: Trial,
    policy: Acting | PerWorker[Acting],
    rollouts: Rollouts,
    show: ProgressDisplay,
    *,
    intervention: Intervene | None = None,
    max_steps: int | None = None,
    score: Callable[[Sequence[Episode]], tuple[Measure, ...]] | None = None,
) -> None:
    """Play the remaining episodes of a trial; each is saved by this process when it ends.

    An episode counts in the progress when it is safely on disk.

    Args:
        run: its folder keeps the episodes and the results.
        results: gets the result of the trial.
        trial: episodes of an earlier attempt are kept, except those with a fault.
        policy: plays them.
        rollouts: where they are played; stays open.
        show: shows the progress.
        intervention: assigns credit; see :func:`swarm_ui.rollout.rollout`.
        max_steps: truncates episodes.
        score: computes the benchmark's own measures.
    """
    path = run.traces / f"{trial.name}.jsonl"
    with only_writer(run.path, "episodes"):
        if path.exists():
            repair_jsonl(path)
        kept = finished_episodes(run, trial)
        left = list((Counter(trial.jobs) - Counter((e.task, e.seed) for e in kept)).elements())
        if left:
            if path.exists():
                write_jsonl(path, kept)
            found, together = Counter(e.success for e in kept), min(rollouts.concurrency, len(left))
            stream = rollouts.stream(policy, left, intervention=intervention, max_steps=max_steps)
            with show.bar(trial.name, len(trial.jobs), share=False, together=together) as bar:
                bar.start_from(found.total())
                async with aclosing(write_stream(path, stream)) as written:
                    async for _, episode in written:
                        found[episode.success] += 1
                        masked = f", {found[None]} masked" if found[None] else ""
                        bar.update(found.total(), f"{found[True]} solved{masked}")
        episodes = in_order(trial.jobs, list(iter_jsonl(path)) if path.exists() else [])
        results.put(_result(trial, episodes, () if score is None else score(episodes)))
        results.save(run.path)


def finished_episodes(run: RunDirectory, trial: Trial) -> list[Episode]:
    """The episodes of a trial that need not be played again; changes nothing.

    A last line that is cut off, as by a kill, does not count.

    Raises:
        TraceError: another line is damaged.
    """
    path = run.traces / f"{trial.name}.jsonl"
    saved = iter_jsonl(path, whole=False) if path.exists() else ()
    return [episode for episode in saved if episode.fault is None]


def _result(trial: Trial, episodes: Sequence[Episode], measures: tuple[Measure, ...]) -> ArmResult:
    return ArmResult(
        name=trial.name,
        split=trial.split,
        seed=trial.seed,
        environment=min({e.environment for e in episodes if e.environment} or {""}),
        checker=max((e.checker for e in episodes), default=1),
        label=next((e.policy for e in episodes if e.policy), ""),
        jobs=tuple((e.task, e.seed) for e in episodes),
        outcomes=tuple(outcome(e) for e in episodes),
        failures=tuple(failure_class(e) for e in episodes),
        faults=tuple(dict.fromkeys(e.fault for e in episodes if e.fault)),
        work=Cost.of_episodes(episodes),
        measures=measures,
    )
