"""Evaluation of policies on test episodes, which can be resumed: saved episodes are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from msgspec.structs import replace

from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.teams import Arm
from swarm_ui.files import only_writer
from swarm_ui.report.results import ArmResult, Cost, Results, in_order, outcome
from swarm_ui.rollout import Acting, Intervene, Job, PerWorker, Rollouts
from swarm_ui.stats import Measure
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.failures import failure_class
from swarm_ui.trace.jsonl import iter_jsonl, repair_jsonl, write_jsonl, write_stream
from swarm_ui.trace.records import Episode


@dataclass(frozen=True, slots=True)
class Trial:
    """One arm on the episodes of one split."""

    split: str
    arm: Arm
    jobs: tuple[Job, ...]
    adapters: str | None = None
    """Folder of the adapters, for a trained arm."""
    seed: int = 0
    """Seed for choosing the episodes."""
    name: str = ""
    """Name of the trace file; empty: split and arm."""

    @property
    def file(self) -> str:
        return self.name or f"{self.split}-{self.arm.name}"


def trace_name(split: str, seed: int, seeds: Sequence[int]) -> str:
    """Name of the trace file of the episodes of a split, in a run with these seeds."""
    return (split.replace("/", "-") or "episodes") + (f"-seed{seed}" if len(seeds) > 1 else "")


class Evaluator:
    """Plays the trials of a run and saves their results."""

    def __init__(self, run: RunDirectory, results: Results, display: ProgressDisplay) -> None:
        self._run, self.results, self._display = run, results, display

    async def play(
        self,
        trial: Trial,
        policy: Acting | PerWorker[Acting],
        rollouts: Rollouts,
        *,
        intervention: Intervene | None = None,
        max_steps: int | None = None,
        score: Callable[[Sequence[Episode]], tuple[Measure, ...]] | None = None,
    ) -> None:
        """Play the remaining episodes of a trial; each is saved by this process when it ends.

        An episode counts in the progress when it is safely on disk. Episodes that finish while the
        disk is busy are written together (:mod:`swarm_ui.trace.jsonl`).

        Args:
            trial: episodes of an earlier attempt are kept, except those with a fault.
            policy: plays the trial's arm.
            rollouts: plays them; stays open.
            intervention: assigns credit; see :func:`swarm_ui.rollout.rollout`.
            max_steps: truncates episodes.
            score: computes the benchmark's own measures.
        """
        with only_writer(self._run.path, "episodes"):
            path = self._run.traces / f"{trial.file}.jsonl"
            if path.exists():
                repair_jsonl(path)
            kept = finished_episodes(self._run, trial)
            left = list((Counter(trial.jobs) - Counter((e.task, e.seed) for e in kept)).elements())
            if left:
                stream = rollouts.stream(
                    policy, left, intervention=intervention, max_steps=max_steps
                )
                await self._play(trial, kept, stream, together=min(rollouts.concurrency, len(left)))
            episodes = in_order(trial.jobs, _saved(self._run, trial))
            result = _result(trial, episodes, Cost.of_episodes(episodes))
            if score is not None:
                result = replace(result, measures=score(episodes))
            self.results.put(result)
            self.results.save(self._run.path)

    async def _play(
        self,
        trial: Trial,
        kept: Sequence[Episode],
        stream: AsyncGenerator[tuple[int, Episode], None],
        *,
        together: int,
    ) -> None:
        path = self._run.traces / f"{trial.file}.jsonl"
        if path.exists():
            write_jsonl(path, kept)
        label = trial.name or f"{trial.split}: {trial.arm.label}"
        found = Counter(e.success for e in kept)
        count = len(trial.jobs)
        with self._display.bar(label, count, share=not trial.name, together=together) as bar:
            bar.start_from(found.total())
            async with aclosing(write_stream(path, stream)) as written:
                async for _, episode in written:
                    found[episode.success] += 1
                    bar.update(found.total(), _note(found))


def finished_episodes(run: RunDirectory, trial: Trial) -> list[Episode]:
    """The episodes of a trial that need not be played again; changes nothing.

    A last line that is cut off, as by a kill, does not count.

    Raises:
        TraceError: another line is damaged.
    """
    return [episode for episode in _saved(run, trial, whole=False) if episode.fault is None]


def _saved(run: RunDirectory, trial: Trial, *, whole: bool = True) -> list[Episode]:
    path = run.traces / f"{trial.file}.jsonl"
    return list(iter_jsonl(path, whole=whole)) if path.exists() else []


def _result(trial: Trial, episodes: Sequence[Episode], cost: Cost) -> ArmResult:
    labels = [e.policy for e in episodes if e.policy]
    return ArmResult(
        name=trial.name,
        split=trial.split,
        seed=trial.seed,
        environment=min({e.environment for e in episodes if e.environment} or {""}),
        checker=max((e.checker for e in episodes), default=1),
        arm=trial.arm.name,
        label=trial.arm.label if trial.arm.name else (labels or [trial.arm.label])[0],
        jobs=tuple((e.task, e.seed) for e in episodes),
        outcomes=tuple(outcome(e) for e in episodes),
        failures=tuple(failure_class(e) for e in episodes),
        faults=tuple(dict.fromkeys(e.fault for e in episodes if e.fault)),
        edges=trial.arm.edges,
        work=cost,
    )


def _note(found: Counter[bool | None]) -> str:
    return f"{found[True]} solved" + (f", {found[None]} masked" if found[None] else "")
