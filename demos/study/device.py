"""The base agent on AndroidWorld (``--env androidworld``): it is evaluated there, not trained."""

from __future__ import annotations

import contextlib
from pathlib import Path

from study.arms import base_arms
from study.endpoint import compare, find_place
from study.report import finish
from study.results import Work
from study.session import Session
from study.work import used
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
