"""An episode of a team as samples: every prompt that an agent got, with its reply.

For environments in which no agent sees enough, such as split facts on the phone: what a sender says
and what a listener does with it are learned together.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.optim.stage1.corpus.samples import (
    CORPUS_VERSION,
    Origin,
    Sample,
    WalkResult,
    sample_id,
    short_hash,
)
from swarm_ui.optim.stage1.corpus.walk import SampledEpisode, WalkFault
from swarm_ui.prompts import chat_of
from swarm_ui.rollout import Policy, rollout
from swarm_ui.trace.records import Call, Episode


@dataclass(slots=True, eq=False)
class TeamWalk(SampledEpisode):
    """Plays one episode of a team, and makes the samples of all its agents.

    The team's replies are taken to be right for what each agent sees and hears. So the samples of
    an episode that fails are kept too: for example, it is right that an agent gives up if nobody
    told it a value. A reply that an agent repeats in an episode is one sample, at a random one of
    its steps.
    """

    team: Policy

    async def run(self) -> WalkResult:
        """Play the episode.

        Raises:
            WalkFault: the environment failed.
            ModelError: a model of the team failed.
            ConfigError: the prompt formats of the team and the corpus differ.
        """
        episode = await rollout(
            self.environment,
            self.team,
            task=self.task,
            seed=self.seed,
            max_steps=self.config.max_steps,
        )
        fault = episode.fault
        if fault is not None and fault.kind in ("model", "unavailable"):
            kind = ModelUnavailable if fault.kind == "unavailable" else ModelError
            raise kind(f"{self.team.name}, task '{self.task}', seed {self.seed}: {fault}")
        if fault is not None:
            raise WalkFault(str(fault), len(episode.steps))
        samples: list[Sample] = []
        for step, call in self._chosen(episode):
            self.keep(samples, self._sample(step, call))
        return self.result(episode.success, len(episode.steps), samples)

    def _chosen(self, episode: Episode) -> Iterator[tuple[int, Call]]:
        """One call for each agent and reply, in the order of the episode."""
        rng = random.Random(self.seed_for("team"))
        alike: dict[tuple[str, str], list[tuple[int, Call]]] = {}
        for number, step in enumerate(episode.steps):
            if self.held_out.has_goal(step.trace.observation.goal):
                self.dropped.note(3, "goal of a held-out task", len(step.trace.calls))
                continue
            for call in step.trace.calls:
                if not call.prompt or call.error is not None:
                    continue
                self._check_format(step.trace.message(call.message).prompt_format)
                alike.setdefault((call.node, call.reply), []).append((number, call))
        chosen = [rng.choice(calls) for calls in alike.values()]
        self.dropped.note(3, "repeated by the agent", sum(map(len, alike.values())) - len(chosen))
        yield from sorted(chosen, key=lambda pair: pair[0])

    def _check_format(self, found: str) -> None:
        if found != self.config.prompt_format:
            raise ConfigError(
                f"synthesize: {self.team.name} writes prompts in the format '{found}', and the "
                f"corpus has '{self.config.prompt_format}'; set prompt_format='{found}'"
            )

    def _sample(self, step: int, call: Call) -> Sample:
        chat = chat_of(call.prompt)
        return Sample(
            version=CORPUS_VERSION,
            id=sample_id(3, chat, call.reply, None),
            level=3,
            kind="team",
            chat=chat,
            response=call.reply,
            prompt_format=self.config.prompt_format,
            heard=len(call.heard),
            alike=short_hash("\x1e".join(["3", *(turn.content for turn in chat), call.reply])),
            origin=Origin(
                environment=self.environment.name,
                task=self.task,
                seed=self.seed,
                step=step,
                agent=f"{call.node} of {self.team.name}",
                prompt=short_hash(call.prompt),
            ),
        )
