"""Speed and memory of the embedded phone, on one core.

python benchmarks/phone.py [--quick]

Prints a table; the last line is JSON with ``steps_per_s`` (expert replays over all templates,
resets included), ``steps_per_s_bare`` (resets left out), ``devices_per_gb``, ``fork_us`` (snapshot
and restore into another phone), ``screenshot_ms``, ``templates`` and ``apps``.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import tracemalloc

from swarm_ui.action import Action
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, draw_jobs
from swarm_ui.environments.phone.apps import CORE as APPS
from swarm_ui.environments.phone.templates import TEMPLATES

Script = tuple[str, int, list[Action]]


def scripts(names: tuple[str, ...], episodes: int) -> list[Script]:
    """Episodes with the expert's actions, evenly spread over some templates."""
    phone = PhoneEnvironment()
    written = []
    for task, seed in draw_jobs(names, episodes, seed=0, seeds=TRAIN_SEEDS):
        phone.begin(task, seed)
        actions = [phone.expert()]
        while not phone.act(actions[-1]).ended:
            actions.append(phone.expert())
        written.append((task, seed, actions))
    return written


def best(times: list[float]) -> float:
    """The least disturbed of several measurements."""
    return min(times)


def measure_steps(written: list[Script], repeats: int) -> tuple[float, float]:
    """Steps per second with and without the cost of resets."""
    steps = sum(len(actions) for _, _, actions in written)
    whole, resets = [], []
    phone = PhoneEnvironment()
    for _ in range(repeats):
        began = time.perf_counter()
        for task, seed, actions in written:
            phone.begin(task, seed)
            for action in actions:
                phone.act(action)
        whole.append(time.perf_counter() - began)
        began = time.perf_counter()
        for task, seed, _ in written:
            phone.begin(task, seed)
        resets.append(time.perf_counter() - began)
    return steps / best(whole), steps / max(best(whole) - best(resets), 1e-9)


def measure_fork(repeats: int) -> float:
    """Microseconds to save an episode and restore it in another phone."""
    one, two = PhoneEnvironment(), PhoneEnvironment()
    one.begin("phone-message-task", 1)
    for _ in range(4):
        one.act(one.expert())
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(1000):
            two.restore(one.snapshot())
        times.append(time.perf_counter() - began)
    return best(times) * 1000


def measure_grade(written: list[Script]) -> float:
    """Microseconds to grade an action, the expert's and a wrong one at every step."""
    phone, wrong, graded = PhoneEnvironment(), Action(action_type="navigate_back"), 0
    spent = 0.0
    for task, seed, actions in written:
        phone.begin(task, seed)
        for action in actions:
            began = time.perf_counter()
            phone.grade(action)
            phone.grade(wrong)
            spent += time.perf_counter() - began
            graded += 2
            phone.act(action)
    return spent / graded * 1e6


def measure_memory(devices: int) -> float:
    """Phones in the middle of an episode that fit into 2**30 bytes."""
    jobs = draw_jobs(tuple(TEMPLATES), devices, seed=1, seeds=TRAIN_SEEDS)
    gc.collect()
    tracemalloc.start()
    phones = []
    for task, seed in jobs:
        phone = PhoneEnvironment()
        phone.begin(task, seed)
        phone.act(phone.expert())
        phones.append(phone)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return 2**30 * len(phones) / used


def measure_picture(count: int) -> float:
    """Milliseconds for a picture."""
    phone, times = PhoneEnvironment(), []
    phone.begin("phone-message-task", 1)
    phone.picture()  # loads the font
    for _ in range(count):
        began = time.perf_counter()
        phone.picture()
        times.append(time.perf_counter() - began)
        if phone.act(phone.expert()).ended:
            phone.begin("phone-message-task", 1)
    return sum(times) / len(times) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds, rougher figures")
    quick = parser.parse_args().quick
    each, repeats = (1, 3) if quick else (20, 5)
    written = scripts(tuple(TEMPLATES), len(TEMPLATES) * each)
    steps, bare = measure_steps(written, repeats)
    figures = {
        "steps_per_s": round(steps),
        "steps_per_s_bare": round(bare),
        "devices_per_gb": round(measure_memory(len(TEMPLATES) * (1 if quick else 8))),
        "fork_us": round(measure_fork(3 if quick else 10), 2),
        "screenshot_ms": round(measure_picture(10 if quick else 100), 2),
        "templates": len(TEMPLATES),
        "apps": len(APPS),
    }
    mean = sum(len(actions) for _, _, actions in written) / len(written)
    rows = {
        "episodes replayed (mean steps)": f"{len(written)} ({mean:.1f})",
        "steps/s, resets included": f"{steps:,.0f}",
        "steps/s, resets excluded": f"{bare:,.0f}",
        "grade of one action, us": f"{measure_grade(written):.0f}",
        "snapshot + restore, us": f"{figures['fork_us']}",
        "phones per GiB": f"{figures['devices_per_gb']:,}",
        "screenshot, ms": f"{figures['screenshot_ms']}",
        "templates / apps": f"{len(TEMPLATES)} / {len(APPS)}",
    }
    for name, value in rows.items():
        print(f"{name:34}{value:>16}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
