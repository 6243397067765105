"""Stage 2 on real web pages (``--env miniwob``): credit by outcome, other seeds for the test."""

from __future__ import annotations

from pathlib import Path

from swarm_ui.environments.miniwob import REFERENCE_TASKS, MiniWobBrowser, MiniWobEnvironment
from swarm_ui.experiment import miniwob_jobs
from swarm_ui.experiment.arms import base_arms, trained_arms
from swarm_ui.experiment.evaluation import Plan
from swarm_ui.experiment.phone_run import play_on_pages, stage_two
from swarm_ui.experiment.report import finish
from swarm_ui.experiment.session import Session
from swarm_ui.experiment.team_training import World
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

_ARMS = ("base-greedy", "base-vote", "trained-greedy", "trained-vote", "trained-team")
_PAGES = 16


async def pages_run(session: Session) -> Path:
    """All stages; returns the report's path."""
    settings, binary = session.settings, miniwob_jobs.checked_browser()
    tasks = settings.tasks or REFERENCE_TASKS
    session.describe(
        ["Real web pages; credit: outcome of the episode, no critic"],
        {miniwob_jobs.SPLIT: f"{miniwob_jobs.TITLE}, {len(tasks)} tasks trained on, other seeds"},
    )
    model = LocalModel.load(session.agent)
    model.set_linger(miniwob_jobs.LINGER)
    async with MiniWobBrowser(pages=1, binary=binary) as browser:
        world = World(
            lambda: MiniWobEnvironment(open_page=browser.open_page),
            lambda iteration, count, rng: miniwob_jobs.training_jobs(settings, count, rng),
            None,
            _PAGES,
        )
        trained = await stage_two(session, model, world)
    jobs = tuple(miniwob_jobs.test_jobs(tasks, settings.episodes_test))
    arms = [*base_arms(settings), *trained_arms(settings, trained.edges, trained.drawn)]
    plans = [Plan(miniwob_jobs.SPLIT, arm, jobs) for arm in arms if arm.name in _ARMS]
    await play_on_pages(session, model, plans, binary)
    session.results.sort([miniwob_jobs.SPLIT])
    session.reached("evaluated")
    path = finish(session.run, settings, session.results, session.screen, list)
    session.reached("done")
    return path
