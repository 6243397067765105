"""Plays the missing cells of a study, one after the other, and keeps each as soon as it is done."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cell import Cell, read_cells, write_cells
from benchmarks.study import Study
from swarm_ui.errors import ConfigError


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
    """Play the arms of a study that have no cell yet.

    Args:
        name: name of the study.
        study: what is compared.
        path: the file of its cells, which gets the new ones.
        folder: keeps weights, from which an interrupted arm continues.
        only: arms; empty: all.
        seeds: of arms that are trained; empty: those of the study.
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
