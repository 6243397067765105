"""Arms, sizes and contrasts of the study, fixed before it was run with checker v2."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from swarm_ui.experiment.settings import Settings

UNTRAINED, WITHOUT = "untrained", "without"


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of a critic, drawn once for each screen and proposal."""

    label: str
    flip: float = 0.0
    anti: bool = False


CRITICS: dict[str, Errors] = {
    "right": Errors("no errors"),
    "10": Errors("10 % errors", flip=0.1),
    "30": Errors("30 % errors", flip=0.3),
    "anti": Errors("anti-correlated", anti=True),
}
TRUST = {"full": "trusted blindly", "learned": "learned weight"}
LABELS: dict[str, str] = {
    UNTRAINED: "untrained",
    WITHOUT: "without a critic (outcome)",
    **{
        f"{critic}-{trust}": f"{errors.label}, {title}"
        for critic, errors in CRITICS.items()
        for trust, title in TRUST.items()
    },
}
"""What tables call the arms."""
ARMS = tuple(name for name in LABELS if name != UNTRAINED)
"""The arms that are trained, the one without a critic first."""
CONTRASTS = (("right-full", WITHOUT), ("30-learned", WITHOUT), ("30-learned", "30-full"))
"""The differences that were named before the study was run. All others are exploratory."""
EXPLORED = (
    *((name, WITHOUT) for name in (UNTRAINED, *ARMS[1:]) if (name, WITHOUT) not in CONTRASTS),
    ("right-learned", "right-full"),
    ("10-learned", "10-full"),
    ("anti-learned", "anti-full"),
)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a training run and of its test."""

    agents: int = 4
    rounds: int = 1
    iterations: int = 4
    episodes: int = 64
    """In each iteration."""
    shared_steps: int = 50
    """Optimiser steps of each iteration on the adapter that all agents share."""
    episodes_test: int = 300

    def settings(self) -> Settings:
        """The settings of all cells, except the seed."""
        return Settings(
            agents=self.agents,
            rounds=self.rounds,
            iterations=self.iterations,
            shared_iterations=self.iterations,
            episodes=self.episodes,
            shared_steps=self.shared_steps,
            rehearsal=0.0,  # the arms differ in what is learned from the critic, and nothing else
            episodes_test=self.episodes_test,
            episodes_other=0,
            processes=1,
        )


QUICK = Plan(iterations=1, episodes=4, shared_steps=2, episodes_test=4)
"""Shows that every arm works; the figures mean nothing."""
