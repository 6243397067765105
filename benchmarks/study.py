"""A study as data: the arms that it plays, and the differences that were named before it ran."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.cell import Cell, read_cells, write_cells
from swarm_ui.errors import ConfigError

Pair = tuple[str, str]


class Arm(Protocol):
    """One way to train or to play."""

    @property
    def seeded(self) -> bool:
        """Whether it is trained; if not, it is played once."""
        ...

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> Iterable[Cell]:
        """The cells of this arm with one seed of its training, if it is trained. ``quick``: within
        seconds, with figures that mean nothing; ``folder`` continues an interrupted run."""
        ...


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is compared, and how it is shown."""

    named: Sequence[Pair]
    """The differences that were named before the study ran: an arm, and what is taken from it."""
    named_on: Sequence[str] = ()
    """The splits on which they were named; all others are exploratory. Empty: all."""
    explored: Sequence[Pair] = ()
    """Differences that were not named before."""
    arms: Mapping[str, Arm] = field(default_factory=dict)
    """What ``--run`` plays. Empty: the program that made the cells was removed."""
    trial: Sequence[str] = ()
    """The arms of ``--run --quick``; empty: all."""
    seeds: Sequence[int] = (1, 2, 3)
    """Of the arms that are trained."""
    own_seeds: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Of arms with other seeds."""
    means: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Rows that are the mean of several arms in each episode."""
    derived: Callable[[Sequence[Cell]], Iterable[Cell]] | None = None
    """Makes further rows from the cells."""
    pooled: bool = True
    """Whether intervals cover the variation over seeds; if not, each episode counts once, with its
    mean over seeds."""
    more: Callable[[Sequence[Cell]], str] | None = None
    """Further tables, from notes of the cells."""
    shown: Sequence[str] = ()
    """Arms whose rows are on the page."""
    shown_on: Sequence[str] = ()
    """Splits that are on the page; empty: all."""
    picture: bool = False
    """Whether the page has a picture of the shown rows, ``docs/pictures/STUDY.svg``."""
    curves: bool = False
    """Whether the picture has the success in the rollouts of each training."""
    note: str = "The phone is simulated: these are not AndroidWorld scores."


def names() -> list[str]:
    """The names of all studies."""
    from benchmarks import studies

    return sorted(module.name for module in pkgutil.iter_modules(studies.__path__))


def study(name: str) -> Study:
    """The study of a name.

    Raises:
        ConfigError: there is no such study.
    """
    if name not in names():
        raise ConfigError(f"there is no study '{name}': expected one of {', '.join(names())}")
    found = importlib.import_module(f"benchmarks.studies.{name}").STUDY
    assert isinstance(found, Study)
    return found


def run(
    name: str,
    study: Study,
    *,
    path: Path,
    folder: Path,
    only: Sequence[str] = (),
    seeds: Sequence[int] = (),
    quick: bool = False,
) -> None:
    """Play the arms of a study that have no cell yet, and keep each as soon as it is done.

    Args:
        name, study: what is compared.
        path: the file of its cells, which gets the new ones.
        folder: keeps weights, from which an interrupted arm continues.
        only, seeds: arms, and seeds of those that are trained; empty: all.
        quick: within a minute, with figures that mean nothing.

    Raises:
        ConfigError: there is no such arm, or the study cannot be played.
    """
    if not study.arms:
        raise ConfigError(
            f"the program that made the cells of '{name}' was removed; docs/results.md names the "
            "commit that has it"
        )
    for arm in only:
        if arm not in study.arms:
            raise ConfigError(f"--only {arm}: expected one of {', '.join(study.arms)}")
    for arm in only or (study.trial if quick and study.trial else study.arms):
        chosen = (seeds or study.own_seeds.get(arm, study.seeds))[: 1 if quick else None]
        for seed in chosen if study.arms[arm].seeded else [None]:
            cells = read_cells(name, path)
            if any(_made_by(arm, seed, cell) for cell in cells):
                continue
            print(f"{name}: {arm}{'' if seed is None else f', seed {seed}'}", file=sys.stderr)
            place = folder / f"{arm}-{seed}".replace(" ", "_").replace("/", "_")
            made = study.arms[arm].play(arm, seed, quick=quick, folder=place)
            write_cells(name, [*cells, *made], path)


def _made_by(arm: str, seed: int | None, cell: Cell) -> bool:
    """Whether the cell is one of an arm's, which are named ``ARM`` or ``ARM; TEST``."""
    return cell.seed == seed and (cell.arm == arm or cell.arm.startswith(f"{arm}; "))
