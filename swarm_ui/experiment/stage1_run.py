"""Stage 1 inside a run: the base agent from random weights."""

from __future__ import annotations

import dataclasses
import shutil

from swarm_ui.experiment.session import Session

_QUICK_STEPS = 200


def train_from_scratch(session: Session) -> None:
    """Train the base agent into the run directory, unless it is there already."""
    if not session.settings.from_scratch or session.agent.exists():
        return
    from swarm_ui.experiment.base_agent import BaseAgentConfig, make_base_agent
    from swarm_ui.experiment.stage1_progress import Stage1Bar

    config = BaseAgentConfig(processes=session.settings.processes, seed=session.settings.seed)
    if session.settings.quick:
        stage1 = dataclasses.replace(config.stage1, steps=_QUICK_STEPS)
        config = dataclasses.replace(config, stage1=stage1, demonstrations=2)
    part = session.run.path / "agent.part"
    shutil.rmtree(part, ignore_errors=True)
    session.screen.say("stage 1: training the base agent from random weights …")
    make_base_agent(config, part, report=Stage1Bar())
    part.rename(session.agent)
