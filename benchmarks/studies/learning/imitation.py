"""The control that imitates the critic's own choices, and learns nothing from the team.

The scripted critic knows the task. If a team gains no more than this control, the gain comes from
the solution, not from credit for messages.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable

from swarm_ui.environment import Environment
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import rollout_arm
from swarm_ui.experiment.training.stage2 import TrainingEnvironment, fixed_graph, team_config
from swarm_ui.node import derive
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.optim.config import GUIDE
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.stage1.synthesis.curriculum import Rehearsal
from swarm_ui.optim.update.team_update import update_team
from swarm_ui.rollout.episodes import Intervention, rollout_many
from swarm_ui.rollout.policy import GraphPolicy
from swarm_ui.trace.records import Trace


class Shown:
    """Records the solver's action in every agent's own context. Sometimes also executes it, as
    guidance does in the full method."""

    def __init__(self, guide: float, seed: int) -> None:
        self.pairs: list[PreferencePair] = []
        self._guide, self._seed = guide, seed

    async def __call__(
        self, index: int, trace: Trace, environment: Environment
    ) -> Intervention | None:
        assert isinstance(environment, PhoneEnvironment)
        right = environment.expert()
        for call in trace.calls:
            seen = trace.view(call).from_screen(right) if call.node in trace.agents else None
            if seen is not None:
                self.pairs.append(
                    PreferencePair(
                        node=call.node, decision=trace.decision(call), chosen=seen, rejected=None,
                        source="solver",
                    )
                )  # fmt: skip
        draw = random.Random(derive(self._seed, trace.run, trace.seed)).random()
        return Intervention(execute=right) if draw < self._guide else None


async def imitate(
    settings: Settings,
    model: LocalModel,
    environment: TrainingEnvironment,
    progress: Callable[[float, str], None],
) -> float:
    """Train the adapters, with the iterations, episodes and updates of the full method.

    Returns:
        CPU-seconds.
    """
    config = team_config(settings, environment.concurrency)
    config = dataclasses.replace(config, update=dataclasses.replace(config.update, method="rft"))
    names = [f"agent_{k}" for k in range(settings.agents)]
    began = time.process_time()
    for name in names:
        model.add_adapter(name, config.rank, config.alpha)
    for iteration in range(config.iterations):
        shown = Shown(
            GUIDE if config.guide is None else config.guide,
            derive(settings.seed, "imitation", iteration),
        )
        jobs = environment.sample_jobs(
            iteration, config.episodes, random.Random(derive(settings.seed, "jobs", iteration))
        )
        await rollout_many(
            environment.make_environment,
            GraphPolicy(rollout_arm(settings, fixed_graph(settings)).graph(model)),
            jobs,
            concurrency=config.concurrency,
            intervention=shown,
        )
        update_team(
            model, shown.pairs, {name: name for name in names}, config, iteration,
            rehearse=Rehearsal(KNOWN_WORDS),
        )  # fmt: skip
        progress(iteration + 1, f"iteration {iteration + 1} of {config.iterations}")
    return time.process_time() - began
