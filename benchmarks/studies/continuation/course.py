"""Settings of the continuation study."""

from __future__ import annotations

from dataclasses import dataclass, field

from swarm_ui.experiment.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """All settings that affect the results."""

    team: Settings = field(default_factory=lambda: Settings(rehearsal=0.0))
    """Team and training on the phone; later stages change episodes, iterations and seed."""
    teams: str | None = None
    """Folder of a study that has trained the phone's teams, ``rft-1`` and so on; ``None``: train
    them here."""
    phone_seed: int | None = None
    """Training seed of the one phone team that all seeds start from; ``None``: each from its own.
    One team is cheaper, but does not show the variance between training runs on the phone."""
    look: int = 12
    """Sampled episodes of each candidate page, on training seeds."""
    pages: int = 16
    """Real pages open at the same time."""
    web_iterations: int = 3
    web_episodes: int = 112
    traces_iterations: int = 2
    traces_episodes: int = 72
    steps: int = 40
    """Updates in each iteration after the phone; credit by outcome gives fewer pairs."""
    rehearsal: float = 0.4
    """Share of stage-1 samples in the updates of the arm with rehearsal, after the phone."""
    phone_test: int = 96
    apps_test: int = 48
    web_test: int = 5
    """Test episodes of each page."""
    most_pages: int = 100
    """Test episodes of each split, for a quick run."""
    traces_train: int = 240
    traces_test: int = 48


QUICK = Course(
    team=Settings(
        quick=True, iterations=1, shared_iterations=1, episodes=8, shared_steps=3, steps=3,
        rehearsal=0.0,
    ),
    look=2, pages=4, web_iterations=1, web_episodes=8, traces_iterations=1, traces_episodes=6,
    steps=3, phone_test=8, apps_test=4, web_test=1, most_pages=3, traces_train=6, traces_test=4,
)  # fmt: skip
"""Seconds, to try the script; its figures mean nothing."""
