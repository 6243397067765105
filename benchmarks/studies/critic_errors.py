"""How many errors may a critic make, and does a learned weight of the critic help?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.arms import Evaluate, Roles, Train, phone_tests, untrained_vote
from benchmarks.study import Arm, Study
from benchmarks.support.critics import NoisyCritic
from swarm_ui import CollabGraph
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.node import derive
from swarm_ui.optim import ScriptedAdversary, ScriptedCritic, Trust

WITHOUT = "without a critic (outcome)"
CRITICS: dict[str, dict[str, Any]] = {
    "no errors": {},
    "10 % errors": {"flip": 0.1},
    "30 % errors": {"flip": 0.3},
    "anti-correlated": {"anti": True},
}
"""The errors of the critics, drawn once for each screen and proposal."""
TRUST = ("trusted blindly", "learned weight")


def roles(
    seed: int, team: CollabGraph, *, errors: dict[str, Any] | None, learned: bool = False
) -> Roles:
    """A scripted critic with errors; ``learned``: with the weight that outcomes give it."""
    if errors is None:
        return Roles(adversary=ScriptedAdversary())
    critic = NoisyCritic(ScriptedCritic(PhoneEnvironment), seed=derive(seed, "critic"), **errors)
    return Roles(critic=Trust(critic) if learned else critic, adversary=ScriptedAdversary())


BASE = Train(
    tests=partial(phone_tests, parameters=300),
    set={
        "train.iterations": 4,
        "train.shared_iterations": 4,
        "train.episodes": 64,
        "train.update.steps": 50,
    },
)
ARMS: Mapping[str, Arm] = {
    "untrained": Evaluate(policy=untrained_vote, tests=BASE.tests),
    WITHOUT: BASE.but(roles=partial(roles, errors=None)),
    **{
        f"{critic}, {trust}": BASE.but(
            roles=partial(roles, errors=errors, learned=trust == "learned weight")
        )
        for critic, errors in CRITICS.items()
        for trust in TRUST
    },
}
STUDY = Study(
    arms=ARMS,
    trial=("untrained", WITHOUT, "30 % errors, learned weight"),
    named=(
        ("no errors, trusted blindly", WITHOUT),
        ("30 % errors, learned weight", WITHOUT),
        ("30 % errors, learned weight", "30 % errors, trusted blindly"),
    ),
    explored=(
        ("untrained", WITHOUT),
        *((f"{critic}, {trust}", WITHOUT) for critic in CRITICS for trust in TRUST
          if (critic, trust) not in (("no errors", TRUST[0]), ("30 % errors", TRUST[1]))),
        *((f"{critic}, {TRUST[1]}", f"{critic}, {TRUST[0]}") for critic in CRITICS
          if critic != "30 % errors"),
    ),
    shown=("anti-correlated, trusted blindly", WITHOUT),
)  # fmt: skip
