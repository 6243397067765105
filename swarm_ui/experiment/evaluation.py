"""Arms on test episodes: each is saved as soon as it is done, and what is there is not redone."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swarm_ui.experiment.arms import Arm
from swarm_ui.experiment.console import Bar, Screen
from swarm_ui.experiment.results import ArmResult, Results, Work
from swarm_ui.experiment.workers import PIECE, Lanes, Piece, Played, sample
from swarm_ui.node import derive
from swarm_ui.rollout.episodes import Intervene, Job, MakeEnvironment, rollout_many
from swarm_ui.rollout.policy import Policy
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Episode

_KEPT = 6
"""Episodes of each arm that are kept whole."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One arm on one split."""

    split: str
    arm: Arm
    jobs: tuple[Job, ...]
    adapters: str | None = None
    """Folder of the adapters, for a trained arm."""


class Evaluation:
    """The arms of a run, and where their results go."""

    def __init__(self, run: RunDirectory, results: Results, screen: Screen) -> None:
        self._run, self.results, self._screen = run, results, screen

    def left(self, plans: Sequence[Plan]) -> list[Plan]:
        """Those that are not done yet."""
        return [plan for plan in plans if self.results.find(plan.split, plan.arm.name) is None]

    async def in_lanes(
        self, plans: Sequence[Plan], agent: str, workers: Lanes, *, lanes: int, label: str
    ) -> None:
        """Play phone episodes in worker processes.

        Args:
            plans: all; those done already are left out.
            agent: folder of the base agent.
            lanes: how many processes may be busy.
            label: of the bar.
        """
        plans = self.left(plans)
        pieces = [(k, piece) for k, plan in enumerate(plans) for piece in _pieces(plan, agent)]
        if not pieces:
            return
        gathered: dict[int, dict[int, Played]] = {k: {} for k in range(len(plans))}
        counts = [sum(k == owner for owner, _ in pieces) for k in range(len(plans))]
        with self._screen.bar(label, sum(len(plan.jobs) for plan in plans)) as bar:
            episodes = 0

            def done(number: int, played: Played) -> None:
                nonlocal episodes
                owner = pieces[number][0]
                gathered[owner][number] = played
                episodes += len(played.outcomes)
                bar.update(episodes, plans[owner].arm.label)
                if len(gathered[owner]) == counts[owner]:
                    parts = [gathered[owner][k] for k in sorted(gathered[owner])]
                    self._keep(plans[owner], "phone (simulated)", parts)

            await workers.play([piece for _, piece in pieces], lanes=lanes, done=done)

    async def here(
        self,
        plan: Plan,
        policy: Policy,
        make_environment: MakeEnvironment,
        *,
        concurrency: int,
        work: Callable[[Work | None], Work],
        intervention: Intervene | None = None,
        max_steps: int | None = None,
    ) -> None:
        """Play one plan's episodes in this process.

        Args:
            work: counts what the model does: called before with ``None``, then with what it gave.
            intervention: gives credit; see :func:`swarm_ui.rollout.episodes.rollout_many`.
        """
        with self._screen.bar(f"{plan.split}: {plan.arm.label}", len(plan.jobs)) as bar:
            before, began = work(None), time.perf_counter()
            episodes = await rollout_many(
                make_environment,
                policy,
                plan.jobs,
                concurrency=concurrency,
                progress=_counting(bar),
                intervention=intervention,
                max_steps=max_steps,
            )
        self.keep_episodes(plan, episodes, work(before), time.perf_counter() - began)

    def keep_episodes(
        self, plan: Plan, episodes: Sequence[Episode], work: Work, seconds: float
    ) -> None:
        """Save the results of episodes played elsewhere."""
        work.seconds = seconds
        work.decisions = sum(len(episode.steps) for episode in episodes)
        outcomes = tuple(None if e.success is None else float(e.success) for e in episodes)
        worlds = {e.environment for e in episodes if e.environment} or {""}
        self._keep(plan, min(worlds), [Played(outcomes, sample(episodes), work)])

    def _keep(self, plan: Plan, environment: str, parts: Sequence[Played]) -> None:
        total = Work()
        for part in parts:
            total.add(part.work)
        kept = _chosen([episode for part in parts for episode in part.sample], plan)
        self._run.write_episodes(f"{plan.split}-{plan.arm.name}", kept)
        self.results.arms.append(
            ArmResult(
                split=plan.split,
                environment=environment,
                arm=plan.arm.name,
                label=plan.arm.label,
                jobs=plan.jobs,
                outcomes=tuple(value for part in parts for value in part.outcomes),
                edges=plan.arm.edges,
                work=total,
            )
        )
        self.results.save(self._run.path)


def _pieces(plan: Plan, agent: str) -> list[Piece]:
    starts = range(0, len(plan.jobs), PIECE)
    return [Piece(plan.arm, agent, plan.adapters, plan.jobs[at : at + PIECE]) for at in starts]


def _counting(bar: Bar) -> Callable[[int, int, Episode], None]:
    def count(done: int, total: int, _: Episode) -> None:
        bar.update(done, f"{done}/{total}")

    return count


def _chosen(episodes: Sequence[Episode], plan: Plan) -> list[Episode]:
    """A few, failed and solved ones, whatever order they came in."""
    draw = random.Random(derive(0, plan.split, plan.arm.name))
    failed = [e for e in episodes if not e.success]
    solved = [e for e in episodes if e.success]
    half = _KEPT // 2
    return [
        *draw.sample(failed, min(half, len(failed))),
        *draw.sample(solved, min(half, len(solved))),
    ]
