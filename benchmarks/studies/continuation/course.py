"""What decides the continuation study."""

from __future__ import annotations

from dataclasses import dataclass, field

from swarm_ui.experiment.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """All that decides the study."""

    team: Settings = field(default_factory=lambda: Settings(rehearsal=0.0))
    """The team and its stage on the phone; later stages change episodes, iterations, seed."""
    teams: str | None = None
    """Folder of a study that has trained the phone's teams, ``rft-1`` and so on; ``None``: train
    them here."""
    phone_seed: int | None = None
    """Training seed of the one phone team that all seeds go on from; ``None``: each from its own.
    Cheaper, but silent about how runs on the phone differ."""
    look: int = 12
    """Sampled episodes of each candidate page, on training seeds."""
    pages: int = 16
    """Real pages open at the same time."""
    web_iterations: int = 3
    web_episodes: int = 112
    traces_iterations: int = 2
    traces_episodes: int = 72
    steps: int = 40
    """Updates in each iteration after the phone: an outcome leaves fewer pairs than a critic."""
    rehearsal: float = 0.4
    """Share of stage-1 lessons in the updates of the rehearsing arm after the phone."""
    phone_test: int = 96
    apps_test: int = 48
    web_test: int = 5
    """Test episodes of each page."""
    most_pages: int = 100
    """Of each split: for a trial."""
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
