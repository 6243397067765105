"""Whole programs of a user who trains a team of the bundled agent, through public names only."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("torch")

import torch

from swarm_ui import CollabGraph, Credit, Critic, Episode, Message, Trace, rollout_many
from swarm_ui.environments import phone
from swarm_ui.nodes import LocalModel
from swarm_ui.optim import (
    MALT,
    DrMAS,
    EdgeDistribution,
    GiGPO,
    LeaveOneOut,
    Outcome,
    ScriptedCritic,
    Shapley,
    dpo_loss,
    minibatches,
    preference_pairs,
    success_rate,
    with_reference,
)


class NamedInGoal:
    """A critic of one's own: 1 for a proposal to use an element that the goal names, else 0."""

    async def __call__(self, episodes: list[Episode]) -> list[Credit]:
        return [Credit.each(episode, self.score) for episode in episodes]

    def score(self, message: Message, trace: Trace) -> float:
        element = trace.observation.element(getattr(message.action, "index", None))
        return float(element is not None and element.text in trace.observation.goal)


async def test_optimisers_of_torch_train_weights_and_edges() -> None:
    torch.manual_seed(0)
    model = LocalModel.load()
    team = CollabGraph.collaborative(agents=3, rounds=2, model=model, temperature=0.8, lora=8)
    edges = EdgeDistribution(team)
    optimizer = torch.optim.AdamW(
        [{"params": team.parameters(), "lr": 2e-3}, {"params": edges.parameters(), "lr": 0.1}]
    )
    critic = ScriptedCritic(phone.PhoneEnvironment)
    before, likely = [p.detach().clone() for p in team.parameters()], edges.marginals()

    dags, jobs = edges.sample(2), phone.training_jobs(8, seed=0)
    played = await asyncio.gather(
        *[rollout_many(phone.PhoneEnvironment, team.with_edges(dag), jobs) for dag in dags]
    )
    episodes = [episode for each in played for episode in each]
    pairs = preference_pairs(episodes, await critic(episodes))
    assert len({pair.node for pair in pairs}) > 1  # so that a batch mixes agents
    for batch in minibatches(with_reference(model, pairs), size=8, steps=2):
        optimizer.zero_grad()
        dpo_loss(model, batch, beta=0.1).backward()
        optimizer.step()
    reward = torch.tensor([success_rate(each) for each in played])
    optimizer.zero_grad()
    (-(reward + 1.0) * edges.log_prob(dags)).mean().backward()
    optimizer.step()

    (episode,) = await rollout_many(phone.PhoneEnvironment, team, phone.training_jobs(1, seed=9))
    used = {call.adapter for call in episode.steps[0].trace.calls if call.adapter}
    assert used == {f"{name}@{number}" for name, number in model.versions.items()}
    assert any(not torch.equal(a, b) for a, b in zip(before, team.parameters(), strict=True))
    assert edges.marginals() != likely


async def test_every_critic_gives_one_table_for_each_episode() -> None:
    model = LocalModel.load()
    team = CollabGraph.collaborative(agents=3, rounds=1, model=model, temperature=1.0)
    jobs = [job for job in phone.training_jobs(2, seed=1) for _ in range(2)]  # repeated starts
    episodes = await rollout_many(phone.PhoneEnvironment, team, jobs)
    judge = ScriptedCritic(phone.PhoneEnvironment)
    critics: list[Critic] = [NamedInGoal(), Outcome(), judge, GiGPO(), DrMAS(), MALT()]
    critics += [LeaveOneOut(team, judge), Shapley(team, judge)]
    for critic in critics:
        tables = await critic(episodes)
        assert [table.shape for table in tables] == [(len(e.steps), 1, 3) for e in episodes]
        assert all(table.scored > 0 for table in tables)
