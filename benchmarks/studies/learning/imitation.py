"""The control that imitates the critic's own choices, and learns nothing from the team.

The scripted critic knows the task. If a team gains no more than this control, the gain comes from
the solution, not from credit for messages.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import torch

from demos.base_agent.stream import Rehearsal
from swarm_ui.action import Action
from swarm_ui.credit import Judge
from swarm_ui.environment import Environment
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import agent_names, rollout_arm
from swarm_ui.experiment.training.stage2 import TrainingEnvironment, fixed_graph, team_config
from swarm_ui.model import Decision
from swarm_ui.node import derive
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.config import GUIDE, TeamConfig
from swarm_ui.optim.credit.critic import judge_of
from swarm_ui.optim.guidance import Guidance
from swarm_ui.optim.preferences import PreferencePair
from swarm_ui.optim.update import rehearsal, update_team
from swarm_ui.report.results import Cost
from swarm_ui.rollout import GraphPolicy, Intervention, Rollouts, rollout_many
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Trace

_RIGHT = 0.5
"""Score above which the critic finds an action right."""


class Shown:
    """Records the action that the critic finds right in every agent's own context.

    Guidance and errors are those of the other variants: the same critic inverts the same share of
    its verdicts, and a right proposal is executed with the same probability where the vote was
    wrong. If the verdict on the solver's action is inverted, an alternative of the scripted
    adversary is shown instead.
    """

    def __init__(self, critic: Judge, guide: float, seed: int, *, supervisor_seed: int) -> None:
        """
        Args:
            critic: grades actions.
            guide: probability of guidance.
            seed: decides which alternatives are shown.
            supervisor_seed: decides which decisions are guided.
        """
        self.pairs: list[PreferencePair] = []
        self._critic, self._seed = critic, seed
        self._guidance = Guidance(critic, None, guide=guide, seed=supervisor_seed)

    async def __call__(
        self, index: int, trace: Trace, environment: Environment
    ) -> Intervention | None:
        assert isinstance(environment, PhoneEnvironment)
        chosen = await self._chosen(trace, environment)
        for call in trace.calls:
            seen = trace.view(call).from_screen(chosen) if call.node in trace.agents else None
            if seen is not None:
                self.pairs.append(
                    PreferencePair(
                        node=call.node, decision=trace.decision(call), chosen=seen, rejected=None,
                        source="solver",
                    )
                )  # fmt: skip
        return await self._guidance(index, trace, environment)

    async def _chosen(self, trace: Trace, environment: PhoneEnvironment) -> Action:
        right, state = environment.expert(), environment.snapshot()
        (score,) = await self._critic.grade(trace.observation, [right], state)
        if score is None or score > _RIGHT:
            return right
        seed = derive(self._seed, trace.run, trace.seed)
        context = Decision(observation=trace.observation)
        return await ScriptedAdversary().oppose(context, right, seed=seed) or right


def add_adapters(model: LocalModel, names: list[str], config: TeamConfig) -> None:
    """New adapters whose weights follow from the seed, as those of the other variants do."""
    for name in names:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(config.seed, "adapter", name))
            model.add_adapter(name, config.rank, 2 * config.rank)


async def imitate(
    settings: Settings,
    run: RunDirectory,
    model: LocalModel,
    environment: TrainingEnvironment,
    progress: Callable[[float, str], None],
) -> float:
    """Train the adapters, with the iterations, episodes and updates of the full method.

    Each iteration is a line of the run's metrics.

    Returns:
        CPU-seconds.
    """
    config = team_config(settings, environment.concurrency)
    config = dataclasses.replace(config, update=dataclasses.replace(config.update, method="rft"))
    names = agent_names(settings.agents)
    began = time.process_time()
    make_environment = environment.make_environment
    judge = judge_of(environment.critic)
    assert judge is not None and not isinstance(make_environment, Rollouts)
    add_adapters(model, names, config)
    for iteration in range(config.iterations):
        shown = Shown(
            judge,
            GUIDE if config.guide is None else config.guide,
            derive(settings.seed, "imitation", iteration),
            supervisor_seed=derive(settings.seed, "referee", iteration, 0),
        )
        seed = derive(settings.seed, "jobs", iteration)
        jobs = environment.sample_jobs(config.episodes, seed=seed)
        before = Cost.of_model(model)
        await rollout_many(
            make_environment,
            GraphPolicy(rollout_arm(settings, fixed_graph(settings)).graph(model)),
            jobs,
            concurrency=config.concurrency,
            intervention=shown,
        )
        cost = Cost.of_model(model, before)
        updates = update_team(
            model, shown.pairs, {name: name for name in names}, config, iteration,
            rehearse=rehearsal(Rehearsal(KNOWN_WORDS), settings.rehearsal),
        )  # fmt: skip
        work = [{"steps": u.steps, "pairs": u.examples} for u in updates]
        tokens = {"prompt_tokens": cost.prompt_tokens, "completion_tokens": cost.completion_tokens}
        line = {"iteration": iteration, "calls": cost.calls, **tokens, "updates": work}
        run.log({"kind": "imitation", **line})
        progress(iteration + 1, f"iteration {iteration + 1} of {config.iterations}")
    return time.process_time() - began
