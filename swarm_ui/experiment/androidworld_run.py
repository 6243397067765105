"""The base agent on AndroidWorld (``--env androidworld``): it is evaluated there, not trained."""

from __future__ import annotations

import contextlib
from pathlib import Path

from swarm_ui.experiment.arms import base_arms
from swarm_ui.experiment.endpoint_run import compare, find_place
from swarm_ui.experiment.report import finish
from swarm_ui.experiment.results import Work
from swarm_ui.experiment.session import Session
from swarm_ui.experiment.workers import used
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

_ARMS = ("base-greedy", "base-vote")


async def device_run(session: Session) -> Path:
    """The base agent alone and as a voting team; returns the report's path."""
    settings = session.settings
    model = LocalModel.load(session.agent)
    session.screen.say("On AndroidWorld the team is evaluated; stage 2 is not run there.")

    def work(before: Work | None) -> Work:
        return used(model, before)

    async with contextlib.AsyncExitStack() as stack:
        place = await find_place(settings, None, stack)
        arms = [arm for arm in base_arms(settings) if arm.name in _ARMS]
        await compare(session, place, model, arms, work)
    path = finish(session.run, settings, session.results, session.screen, place.pictured)
    session.reached("done")
    return path
