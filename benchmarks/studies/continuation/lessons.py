"""The synthetic-only control: a trained team is trained further on the sample stream of stage 1."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable

from demos.base_agent.recipes import BaseAgentConfig, pool
from demos.base_agent.screens import ActionSample
from demos.base_agent.stream import Mix, Stream
from swarm_ui.action import Action
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import agent_names
from swarm_ui.experiment.training.stage2 import team_config
from swarm_ui.node import derive
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.preferences import PreferencePair
from swarm_ui.optim.update import update_team

_PROBE_STEPS = 12


class Lessons:
    """Samples from invented screens and from the demonstrations of the base agent only."""

    def __init__(self, settings: Settings, steps: int) -> None:
        """
        Args:
            settings: settings of the team.
            steps: number of updates in an iteration.
        """
        self._settings, self._steps = settings, steps
        self._names = agent_names(settings.agents)
        mix = dataclasses.replace(Mix(), questions=0.0)
        seed = derive(settings.seed, "lessons")
        self._stream = Stream(seed, KNOWN_WORDS, mix, pool(BaseAgentConfig()))

    def pairs(self, count: int) -> list[PreferencePair]:
        """Draw ``count`` samples and assign them to the agents in turn."""
        found: list[PreferencePair] = []
        while len(found) < count:
            lesson = self._stream.draw()
            if isinstance(lesson, ActionSample) and isinstance(lesson.action, Action):
                found.append(
                    PreferencePair(
                        node=self._names[len(found) % len(self._names)], decision=lesson.decision,
                        chosen=lesson.action, rejected=None, source="lesson",
                    )
                )  # fmt: skip
        return found

    def config_for(self, cpu_seconds: float, make: Callable[[], LocalModel]) -> TeamConfig:
        """The number of iterations that takes this time; each trains one adapter for all agents.

        Args:
            make: creates a model on which the speed is measured.
        """
        probe, model = min(_PROBE_STEPS, self._steps), make()
        filled = team_config(self._settings, 1).filled(model)
        once = dataclasses.replace(filled, iterations=1, shared_iterations=1, shared_steps=probe)
        each = self._update(model, once, 0) / probe
        iterations = max(1, round(cpu_seconds / each / self._steps))
        return dataclasses.replace(once, iterations=iterations, shared_iterations=iterations,
                                   shared_steps=self._steps)  # fmt: skip

    def teach(
        self, model: LocalModel, config: TeamConfig, tell: Callable[[float, str], None]
    ) -> float:
        """Train the adapters in place; returns the CPU-seconds it took."""
        spent = 0.0
        for iteration in range(config.iterations):
            spent += self._update(model, config, iteration)
            tell(iteration + 1, f"iteration {iteration + 1} of {config.iterations}")
        return spent

    def _update(self, model: LocalModel, config: TeamConfig, iteration: int) -> float:
        began = time.process_time()
        assert config.shared_steps is not None
        lessons = self.pairs(config.shared_steps * config.update.batch_size)
        random.Random(derive(config.seed, "order", iteration)).shuffle(lessons)
        adapters = {name: name for name in self._names}
        update_team(model, lessons, adapters, config, iteration, together=self._names)
        return time.process_time() - began
