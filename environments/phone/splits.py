"""The tasks and seeds for training, validation and tests.

There are two suites. ``"core"`` consists of the 66 templates of the published study, on a core
device; it never changes. ``"extended"`` is harder: a full device with drawer, keyboard,
notifications, permissions, interruptions and six more apps. Its templates are in the splits
``extended_train``, ``extended_validation``, ``extended_templates`` and ``extended_apps``, which
correspond to ``train``, ``validation``, ``new_templates`` and ``new_apps`` of the core.

Each task that cannot be done has a twin in which the object exists
(:mod:`swarm_ui.environments.phone.tasks.twins`). The twins are in separate splits, ``twins``
and ``extended_twins``, so adding them did not change the suites.

Tests are held out in three ways:

- **parameters**: the range in which a seed lies decides the split of all random values (names,
  titles, numbers, also those of unrelated records); no value of ``TEST_SEEDS`` occurs in
  ``TRAIN_SEEDS`` (:mod:`swarm_ui.environments.phone.parameters`).
- **templates**: every template is in exactly one of ``train``, ``validation``, ``new_templates``
  and ``new_apps``.
- **apps**: only templates of ``new_apps`` use ``TEST_APPS``; in other episodes these apps are not
  installed. In the extended suite the same holds for ``EXTENDED_TEST_APPS`` and
  ``extended_apps``, whose tasks use known apps too.
"""

from __future__ import annotations

from typing import Literal

from swarm_ui.environments.phone.apps import APPS, CORE_APPS
from swarm_ui.environments.phone.parameters import ParameterSplit
from swarm_ui.environments.phone.tasks import TEMPLATES
from swarm_ui.environments.phone.tasks.template import TemplateSplit
from swarm_ui.errors import ConfigError
from swarm_ui.rollout import spread_jobs

TRAIN_SEEDS = range(10_000_000)
VALIDATION_SEEDS = range(10_000_000, 20_000_000)
TEST_SEEDS = range(20_000_000, 30_000_000)
TEST_APPS = ("recipes", "music")
TRAIN_APPS = tuple(name for name in CORE_APPS if name not in TEST_APPS)
EXTENDED_TEST_APPS = (*TEST_APPS, "recorder", "maps")
EXTENDED_TRAIN_APPS = tuple(name for name in APPS if name not in EXTENDED_TEST_APPS)

_SEEDS: dict[ParameterSplit, range] = {
    "train": TRAIN_SEEDS,
    "validation": VALIDATION_SEEDS,
    "test": TEST_SEEDS,
}
_HELD_OUT: dict[str, dict[str, TemplateSplit]] = {
    "core": {"parameters": "train", "templates": "new_templates", "apps": "new_apps"},
    "extended": {
        "parameters": "extended_train",
        "templates": "extended_templates",
        "apps": "extended_apps",
    },
}


def parameter_split(seed: int) -> ParameterSplit:
    """The split that a seed's parameters come from.

    Raises:
        ConfigError: the seed is in none of the three ranges.
    """
    for split, seeds in _SEEDS.items():
        if seed in seeds:
            return split
    raise ConfigError(
        f"phone: seed {seed} belongs to no split; expected 0 <= seed < {TEST_SEEDS.stop}: "
        "TRAIN_SEEDS, VALIDATION_SEEDS or TEST_SEEDS of swarm_ui.environments.phone"
    )


def tasks(split: TemplateSplit) -> tuple[str, ...]:
    """Names of the templates of a split."""
    return tuple(name for name, template in TEMPLATES.items() if template.split == split)


def jobs(
    split_by: Literal["parameters", "templates", "apps"],
    n: int,
    seed: int,
    *,
    seeds: range = TEST_SEEDS,
    suite: Literal["core", "extended"] = "core",
) -> list[tuple[str, int]]:
    """Choose ``n`` episodes as (task, seed), evenly spread over the templates.

    Args:
        split_by: what is new to a trained agent: only the ``"parameters"``, or also the
            ``"templates"``, or also the ``"apps"``.
        n: number of episodes.
        seed: seed of the choice; equal arguments give equal lists.
        seeds: range of the episodes' seeds; in the default range all parameters are new.
        suite: the published templates, or the harder ones.

    Raises:
        ConfigError: the suite or the split does not exist.
    """
    if suite not in _HELD_OUT:
        raise ConfigError(f"phone: no suite {suite!r}; expected one of {', '.join(_HELD_OUT)}")
    held_out = _HELD_OUT[suite]
    if split_by not in held_out:
        raise ConfigError(f"phone: no split by {split_by!r}; expected one of {', '.join(held_out)}")
    return draw_jobs(tasks(held_out[split_by]), n, seed, seeds=seeds)


def training_jobs(n: int, *, seed: int = 0) -> list[tuple[str, int]]:
    """``n`` episodes for training as (task, seed), evenly spread over the training templates.

    None of them is in a test: their templates and parameters are those of ``train``. Equal
    arguments give equal lists.
    """
    return draw_jobs(tasks("train"), n, seed, seeds=TRAIN_SEEDS)


def draw_jobs(
    names: tuple[str, ...], n: int, seed: int, *, seeds: range = TRAIN_SEEDS
) -> list[tuple[str, int]]:
    """``n`` episodes of the named templates, in random order, evenly spread."""
    return spread_jobs(names, n, seed, seeds)
