"""The tasks, and the seeds and names for training, validation and tests.

The range in which a seed lies decides the split. A network is drawn from its seed. The names of its
agents are drawn from the names that belong to the split. So no name of ``TEST_SEEDS`` occurs in an
episode of ``TRAIN_SEEDS``.
"""

from __future__ import annotations

from itertools import product
from typing import Literal, get_args

from swarm_ui.errors import ConfigError
from swarm_ui.rollout import spread_jobs

Kind = Literal["colouring", "consensus", "leader", "matching", "cover"]
"""Kind of the coordination problem; see :mod:`swarm_ui.environments.coordination.problem`."""
Family = Literal["smallworld", "preferential", "geometric"]
"""Family of random networks; see :mod:`swarm_ui.environments.coordination.networks`."""

KINDS: tuple[Kind, ...] = get_args(Kind)
FAMILIES: tuple[Family, ...] = get_args(Family)
SMALL = (4, 8, 16)
"""Numbers of agents of the small tasks, which are those of AgentsNet's main comparison."""
LARGE = (50, 100)

TRAIN_SEEDS = range(10_000_000)
VALIDATION_SEEDS = range(10_000_000, 20_000_000)
TEST_SEEDS = range(20_000_000, 30_000_000)
_SEEDS = (TRAIN_SEEDS, VALIDATION_SEEDS, TEST_SEEDS)

_SYLLABLES = tuple(map("".join, product("bdfgklmnprstvz", "aeiou")))
_NAMES = tuple((a + b).capitalize() for a in _SYLLABLES for b in _SYLLABLES if a != b)


def task_names(sizes: tuple[int, ...] = (*SMALL, *LARGE)) -> tuple[str, ...]:
    """The tasks with these numbers of agents, such as ``"colouring-smallworld-16"``."""
    return tuple(
        f"{kind}-{family}-{size}" for size in sizes for kind in KINDS for family in FAMILIES
    )


def parts_of(task: str) -> tuple[Kind, Family, int]:
    """The parts of the name of a task: kind, family of networks, and number of agents.

    Raises:
        ConfigError: there is no such task.
    """
    for size in (*SMALL, *LARGE):
        for kind, family in product(KINDS, FAMILIES):
            if task == f"{kind}-{family}-{size}":
                return kind, family, size
    sizes = ", ".join(map(str, (*SMALL, *LARGE)))
    raise ConfigError(
        f"coordination: no task {task!r}; expected KIND-FAMILY-SIZE with a kind of "
        f"{', '.join(KINDS)}, a family of {', '.join(FAMILIES)} and a size of {sizes}"
    )


def names_of(seed: int) -> tuple[str, ...]:
    """The names that agents may have in an episode with this seed.

    Raises:
        ConfigError: the seed is in none of the three ranges.
    """
    for part, seeds in enumerate(_SEEDS):
        if seed in seeds:
            return _NAMES[part :: len(_SEEDS)]
    raise ConfigError(
        f"coordination: seed {seed} belongs to no split; expected 0 <= seed < {TEST_SEEDS.stop}: "
        "TRAIN_SEEDS, VALIDATION_SEEDS or TEST_SEEDS of swarm_ui.environments.coordination"
    )


def draw_jobs(
    tasks: tuple[str, ...], n: int, seed: int, *, seeds: range = TEST_SEEDS
) -> list[tuple[str, int]]:
    """``n`` episodes of these tasks as (task, seed), in random order, evenly spread."""
    return spread_jobs(tasks, n, seed, seeds)
