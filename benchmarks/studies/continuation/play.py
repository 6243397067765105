"""The test episodes after each stage of the continuation: phone, real pages, recorded tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.studies.continuation.cells import PHONE_SPLITS, TRACE_SPLITS, Cell, Played
from benchmarks.studies.continuation.tasks import drawn, splits
from swarm_ui.environments.mind2web import Mind2Web
from swarm_ui.environments.miniwob import MiniWobBrowser
from swarm_ui.environments.miniwob.splits import TEST_SEEDS
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone import jobs as phone_jobs
from swarm_ui.experiment.environments.miniwob import LINGER, PAGES, play_pages
from swarm_ui.experiment.environments.phone import TEST_DRAW
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.teams import Arm
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.rollout import Job, rollout_many
from swarm_ui.stats import outcomes
from swarm_ui.trace.records import Episode

if TYPE_CHECKING:
    from benchmarks.studies.continuation.course import Course

_TOGETHER = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Playing:
    """The agents to test, and the environments."""

    course: Course
    agent: Path
    adapters: Path | None
    """``None``: without adapters."""
    trained: Sequence[str]
    data: Path
    binary: Path

    def model(self) -> LocalModel:
        model = LocalModel.load(self.agent)
        if self.adapters is not None:
            model.load_adapters(self.adapters)
        return model

    @property
    def arm(self) -> Arm:
        """One greedy agent that sees the elements in page order."""
        return Arm(name="greedy", label="greedy", trained=self.adapters is not None)


class _Scored(NamedTuple):
    success: tuple[float | None, ...]
    step_success: tuple[float | None, ...] = ()
    element: tuple[float | None, ...] = ()


async def play_all(cell: Cell, playing: Playing, display: ProgressDisplay) -> None:
    """Play the splits that the cell does not have yet. Each split is saved when it is finished."""
    pages = splits(playing.trained)
    every = (*PHONE_SPLITS, *pages, *TRACE_SPLITS)
    wanted = [split for split in every if not cell.has(split)]
    if not wanted:
        return
    model, arm = playing.model(), playing.arm
    with display.bar(f"{cell.folder.name}: test", len(wanted)) as bar:
        for done, split in enumerate(wanted):
            bar.update(done, split)
            jobs = _jobs(playing, split, pages)
            if split in pages:
                scored = await _on_pages(playing, model, arm, jobs)
            elif split in TRACE_SPLITS:
                scored = await _on_traces(playing, model, arm, split, jobs)
            else:
                scored = await _on_phone(model, arm, jobs)
            cell.keep(Played(split=split, jobs=tuple(jobs), **scored._asdict()))


def _jobs(playing: Playing, split: str, pages: dict[str, tuple[str, ...]]) -> list[Job]:
    """Test episodes: the same for every cell, and not used in training."""
    course = playing.course
    if split in pages:
        return drawn("test", pages[split][: course.most_pages], course.web_test, TEST_SEEDS)
    if split in TRACE_SPLITS:
        return _recordings(playing, split).jobs()
    if split == "new_apps":
        return phone_jobs("apps", course.apps_test, TEST_DRAW)
    return phone_jobs("parameters", course.phone_test, TEST_DRAW)


async def _on_phone(model: LocalModel, arm: Arm, jobs: Sequence[Job]) -> _Scored:
    episodes = await rollout_many(PhoneEnvironment, arm.policy(model), jobs, concurrency=_TOGETHER)
    return _Scored(tuple(o.value for o in outcomes(episodes)))


async def _on_pages(playing: Playing, model: LocalModel, arm: Arm, jobs: Sequence[Job]) -> _Scored:
    model.set_linger(LINGER)
    async with MiniWobBrowser(pages=PAGES, binary=playing.binary) as browser:
        episodes = await play_pages(browser, arm.policy(model), jobs, lambda *_: None)
    model.set_linger(0.0)
    return _Scored(tuple(o.value for o in outcomes(episodes)))


async def _on_traces(
    playing: Playing, model: LocalModel, arm: Arm, split: str, jobs: Sequence[Job]
) -> _Scored:
    data = _recordings(playing, split)
    episodes = await rollout_many(data.environment, arm.policy(model), jobs, concurrency=_TOGETHER)
    scores = [_shares(data, episode) for episode in episodes]
    return _Scored(
        tuple(o.value for o in outcomes(episodes)),
        tuple(step for step, _ in scores),
        tuple(element for _, element in scores),
    )


def _shares(data: Mind2Web, episode: Episode) -> tuple[float | None, float | None]:
    """Step success and element accuracy of one recorded task."""
    if episode.success is None:
        return None, None
    scores = data.score([episode], resamples=1)
    return scores["marco_step_acc"].value, scores["marco_element_acc"].value


def _recordings(playing: Playing, split: str) -> Mind2Web:
    return Mind2Web(playing.data, TRACE_SPLITS[split], top_k=None)  # type: ignore[arg-type]
