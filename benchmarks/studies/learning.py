"""What does a team gain from stage 2, and which of its parts are needed?

A team of four is trained from the base agent on the phone (5 iterations of 112 episodes). It is
tested as a vote without edges (4 calls for a decision), as a team of 3 rounds on DAGs that it did
not see in training (12 calls), and as one of its agents alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.arms import (
    Evaluate,
    Jobs,
    MoreStage1,
    Roles,
    Train,
    dag,
    one_agent,
    own_dag,
    phone_tests,
    scripted,
    untrained_vote,
    vote,
)
from benchmarks.study import Arm, Study
from demos.base_agent.recipes import pool
from demos.base_agent.stream import Mix, Stream
from demos.base_agent.training import Stage1Config, train
from swarm_ui import CollabGraph, Observation, Trace
from swarm_ui.model import ChatModel
from swarm_ui.nodes import LocalModel
from swarm_ui.optim import ScriptedAdversary
from swarm_ui.rollout import Decide, GraphPolicy, Policy

STARTS = ("four untrained agents", "DPO, no rehearsal", "DPO, critic with 20 % errors")
"""Teams that were tested on three DAGs; the record has one of the others."""


def tests() -> Jobs:
    """8 episodes of each known template, and 15 of each new one in known and in new apps."""
    return phone_tests(parameters=304, templates=195, apps=195)


def unguided(seed: int, team: CollabGraph, *, outcome: bool = False) -> Roles:
    """Without guidance; negatives are not graded. ``outcome``: there is no critic either."""
    return Roles(None if outcome else scripted(seed, team).critic, adversary=ScriptedAdversary())


def more_stage1(seed: int, steps: int) -> tuple[LocalModel, dict[str, float]]:
    """The agent after these steps on the corpus of stage 1."""
    model, own = LocalModel.load(), (1000 + seed) * 1000
    stream = Stream(own, Mix(), pool())
    stage1 = Stage1Config(steps=steps, learning_rate=1e-3, seed=own)
    return model, {"cpu_s": train(model, stream, stage1).cpu_seconds}


def untrained() -> LocalModel:
    """The architecture of the base agent with random weights."""
    base = LocalModel.load()
    shape: Any = base.module.config
    return LocalModel.untrained(
        base.tokenizer, width=shape.hidden_size, layers=shape.num_hidden_layers,
        heads=shape.num_attention_heads, seed=0,
    )  # fmt: skip


def alone(model: LocalModel) -> Policy:
    """One greedy agent."""
    return GraphPolicy(CollabGraph.solo(model))


class LoopGuard:
    """One greedy agent, which sees the elements in another order on a screen that occurs again.
    Part of the gain of a vote is only the escape from loops."""

    name = "greedy, loop guard"

    def __init__(self, model: ChatModel) -> None:
        self._usual = CollabGraph.solo(model)
        self._stuck = CollabGraph.solo(model, view="shuffle")

    def begin(self, *, task: str, seed: int) -> Decide:
        seen: set[tuple[object, ...]] = set()

        async def decide(observation: Observation, seed: int, run: str) -> Trace:
            key = observation.screen_key()
            graph = self._stuck if key in seen else self._usual
            seen.add(key)
            return await graph.run(observation, seed=seed, run_id=run)

        return decide


POLICIES = {"vote": vote, "one agent": one_agent, **{f"DAG {k + 1}": dag(k) for k in range(3)}}
VOTES = {"vote": vote, "one agent": one_agent}
DPO = Train(
    tests=tests,
    set={
        "team.rounds": 3,
        "team.temperature": 1.1,
        "train.iterations": 5,
        "train.shared_iterations": 3,
        "train.episodes": 112,
        "train.update.method": "dpo",
        "train.update.lr": 2e-3,
    },
    policies=POLICIES,
    rehearsal=0.4,
)
RFT = DPO.but({"train.update.method": "rft", "train.update.lr": 3e-3})
NO_GUIDE = {"train.guide": 0.0, "train.grade_negatives": False}
ARMS: Mapping[str, Arm] = {
    "random weights": Evaluate(policy=alone, tests=tests, model=untrained),
    "base agent": Evaluate(policy=alone, tests=tests),
    "base agent, loop guard": Evaluate(policy=LoopGuard, tests=tests),
    "base agent, one shuffled call": Evaluate(
        policy=lambda model: GraphPolicy(CollabGraph.solo(model, view="shuffle")), tests=tests
    ),
    "vote of four clones": Evaluate(
        policy=lambda model: GraphPolicy(
            CollabGraph.collaborative(4, 1, model=model, edges=(), temperature=1.1)
        ),
        tests=tests,
    ),
    "four untrained agents": Evaluate(policy=untrained_vote, tests=tests),
    "DPO": DPO,
    "RFT": RFT,
    "RFT, critic, no guidance": RFT.but(NO_GUIDE, roles=unguided, policies=VOTES),
    "RFT, outcome, no guidance": RFT.but(
        NO_GUIDE, roles=partial(unguided, outcome=True), policies=VOTES
    ),
    "one agent with the calls of the team": RFT.but(
        {"team.agents": 1, "team.rounds": 1, "train.edges": "fixed", "train.update.steps": 140,
         "train.episodes": 12 * 112},
        policies=VOTES,
    ),
    "DPO, outcome, no guidance": DPO.but(NO_GUIDE, roles=partial(unguided, outcome=True)),
    "DPO, one DAG": DPO.but({"train.edges": "fixed"}, policies={**POLICIES, "own DAG": own_dag}),
    "DPO, no edges": DPO.but(
        {"train.edges": "fixed", "team.edges": "none", "team.rounds": 1}, policies=VOTES
    ),
    "DPO, learned edges": DPO.but(
        {"train.edges": "learned"}, policies={**VOTES, "on DAGs": dag(0)}
    ),
    "DPO, no rehearsal": DPO.but(rehearsal=0.0),
    "DPO, critic with 20 % errors": DPO.but(roles=partial(scripted, errors=0.2)),
    **{
        f"more stage 1, time of {name}": MoreStage1(
            study="learning", of=f"{name}; vote", train=more_stage1, tests=tests,
            policies={"vote": untrained_vote, "one agent": alone},
        )
        for name in ("DPO", "RFT")
    },
}  # fmt: skip
STUDY = Study(
    arms=ARMS,
    picture=True,
    trial=("base agent", "RFT", "more stage 1, time of RFT"),
    named=(
        ("RFT; vote", "more stage 1, time of RFT; vote"),
        ("RFT, critic, no guidance; vote", "RFT, outcome, no guidance; vote"),
        ("RFT; vote", "one agent with the calls of the team; vote"),
    ),
    explored=(
        ("RFT; vote", "four untrained agents"),
        ("RFT; on DAGs", "four untrained agents"),
        ("RFT; on DAGs", "RFT; vote"),
        ("DPO; vote", "four untrained agents"),
        ("DPO; on DAGs", "four untrained agents"),
        ("DPO; on DAGs", "DPO; vote"),
        ("DPO; on DAGs", "DPO, no edges; vote"),
        ("DPO; on DAGs", "DPO, outcome, no guidance; on DAGs"),
        ("DPO; on DAGs", "DPO, critic with 20 % errors; on DAGs"),
        ("DPO; on DAGs", "DPO, one DAG; on DAGs"),
        ("DPO; on DAGs", "DPO, learned edges; on DAGs"),
        ("DPO; on DAGs", "DPO, no rehearsal; on DAGs"),
        ("DPO; on DAGs", "imitation of the solver; on DAGs"),
        ("RFT; vote", "imitation of the solver; vote"),
        ("more stage 1, time of RFT; vote", "four untrained agents"),
        ("more stage 1, time of DPO; vote", "four untrained agents"),
        ("four untrained agents", "base agent"),
        ("four untrained agents; on DAGs", "four untrained agents"),
    ),
    means={f"{name}; on DAGs": [f"{name}; DAG {k}" for k in (1, 2, 3)] for name in STARTS},
    note="The phone is simulated and its critic scripted: these are not AndroidWorld scores. The "
    "control that imitates the solver was made by an earlier program (commit 71d2855d).",
    shown=(
        "base agent", "four untrained agents", "more stage 1, time of RFT; vote", "RFT; vote",
        "DPO; on DAGs",
    ),
)  # fmt: skip
