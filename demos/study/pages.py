"""Stage 2 on real web pages (``--env miniwob``): credit by outcome, other seeds for the test."""

from __future__ import annotations

from pathlib import Path

from study import web
from study.arms import base_arms, trained_arms
from study.evaluate import Plan
from study.report import finish
from study.session import Session
from study.simulated import play_on_pages, stage_two
from study.team import World
from swarm_ui.environments.miniwob import REFERENCE_TASKS, MiniWobBrowser, MiniWobEnvironment
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

_ARMS = ("base-greedy", "base-vote", "trained-greedy", "trained-vote", "trained-team")
_PAGES = 16


async def pages_run(session: Session) -> Path:
    """All stages; returns the report's path."""
    settings, binary = session.settings, web.checked_browser()
    tasks = settings.tasks or REFERENCE_TASKS
    session.describe(
        ["Real web pages; credit: outcome of the episode, no critic"],
        {web.SPLIT: f"{web.TITLE}, {len(tasks)} tasks trained on, other seeds"},
    )
    model = LocalModel.load(session.agent)
    model.set_linger(web.LINGER)
    async with MiniWobBrowser(pages=1, binary=binary) as browser:
        world = World(
            lambda: MiniWobEnvironment(open_page=browser.open_page),
            lambda iteration, count, rng: web.training_jobs(settings, count, rng),
            None,
            _PAGES,
        )
        trained = await stage_two(session, model, world)
    jobs = tuple(web.test_jobs(tasks, settings.episodes_test))
    arms = [*base_arms(settings), *trained_arms(settings, trained.edges, trained.drawn)]
    plans = [Plan(web.SPLIT, arm, jobs) for arm in arms if arm.name in _ARMS]
    await play_on_pages(session, model, plans, binary)
    session.results.sort([web.SPLIT])
    session.reached("evaluated")
    path = finish(session.run, settings, session.results, session.screen, list)
    session.reached("done")
    return path
