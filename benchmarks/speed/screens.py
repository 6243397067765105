"""Screens of the simulated phone that its solver sees."""

from __future__ import annotations

from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, draw_jobs
from swarm_ui.observation import Observation


def walk(phone: PhoneEnvironment, task: str, seed: int, most: int) -> list[Observation]:
    """The first screens of an episode that the solver plays, at most ``most``."""
    found = [at_once(phone.reset(task=task, seed=seed))]
    while len(found) < most:
        step = at_once(phone.step(phone.expert()))
        if step.ended:
            break
        found.append(step.observation)
    return found


def walks(names: tuple[str, ...], count: int, most: int, seed: int) -> list[list[Observation]]:
    """The first screens of ``count`` training episodes of these tasks."""
    phone = PhoneEnvironment()
    return [walk(phone, *job, most) for job in draw_jobs(names, count, seed, seeds=TRAIN_SEEDS)]


def screens(names: tuple[str, ...], count: int) -> list[Observation]:
    """One screen of each of ``count`` training episodes, after zero to three steps."""
    phone = PhoneEnvironment()
    drawn = draw_jobs(names, count, seed=0, seeds=TRAIN_SEEDS)
    return [walk(phone, *job, 1 + place % 4)[-1] for place, job in enumerate(drawn)]
