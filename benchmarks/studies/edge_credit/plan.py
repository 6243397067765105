"""Arms, settings to choose from, points of measurement and contrasts, fixed before any run."""

from __future__ import annotations

import msgspec

from benchmarks.studies.split.learning import Plan

OUTCOME, CRITIC, WITHOUT, ERRORS = "outcome", "critic", "leave one out", "critic, 20 % errors"
ERROR_SHARE = 0.2
POINTS = {"1/20": 2, "1/8": 5, "1/4": 10, "1/2": 20, "all": 40}
"""Share of the budget -> steps of learning. A sixteenth of the budget would be 2.5 steps."""
MAIN = "1/8"
CONTRASTS = ((CRITIC, OUTCOME), (WITHOUT, OUTCOME))
"""Named before the study was run: success on known templates with test parameters at :data:`MAIN`,
and, third, tokens of an episode at the end of the budget. All else is exploratory."""
NEAR = 0.95
"""Share of the oracle's success that counts as reached."""
HELD = 3
"""Steps in a row that must be near the oracle."""
CHEAP = 2.0
"""Multiple of the oracle's tokens up to which near the oracle counts as cheap. This was named after
the settings had been chosen on validation parameters, so it is exploratory."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What an arm may choose. Price, episodes and number of graphs are the same for all arms."""

    lr: float = 1.0
    normalise: bool = False
    weight: float = 0.0
    """Weight of the credit of edges; the weight of the outcome is always 1."""
    discount: float = 0.0
    """Share of the return of the listener's message that an edge gets, too."""


_OWN = tuple(Setting(lr=lr, normalise=scaled) for scaled in (False, True) for lr in (0.5, 1.0, 2.0))
_CREDITED = tuple(
    Setting(weight=weight, discount=share) for share in (0.0, 0.5) for weight in (0.3, 1.0, 3.0)
)
CANDIDATES = {OUTCOME: _OWN, CRITIC: _CREDITED, WITHOUT: _CREDITED}
"""Six settings for each arm, tried on training templates with validation parameters. The arm with
errors takes the setting of the critic without errors."""
ARMS = (OUTCOME, CRITIC, WITHOUT, ERRORS)


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the study."""

    steps: int = 40
    graphs: int = 8
    """Graphs that are tried on each task and seed."""
    tuning_steps: int = 10
    tuning_seeds: tuple[int, ...] = (100, 101)
    candidates: int = 6
    """Settings that are tried for each arm."""
    each: int = 12
    """Test episodes of each template at the points of measurement; one after every step."""

    def plan(self, setting: Setting, steps: int | None = None) -> Plan:
        """The settings of one run of learning."""
        return Plan(
            steps=self.steps if steps is None else steps, graphs=self.graphs, lr=setting.lr,
            normalise=setting.normalise, credit_weight=setting.weight,
        )  # fmt: skip

    def points(self) -> dict[str, int]:
        """The points of measurement that are within the budget; the last one is its end."""
        within = {name: step for name, step in POINTS.items() if step < self.steps}
        return {**within, "all": self.steps}


QUICK = Budget(steps=6, graphs=2, tuning_steps=1, tuning_seeds=(100,), candidates=2, each=1)
"""Shows that every arm works; the figures mean nothing."""
