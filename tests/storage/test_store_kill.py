"""A process killed with ``kill -9`` at random moments, again and again, loses and repeats nothing.

What is asserted, for every kill, from side files to which the nodes write each start and each end
and from what the store holds right after the kill:

- nothing is lost: what was in the store after one kill is there, word for word, after the next,
  and the trace in the end is that of a run nobody disturbed;
- nothing is done twice: a call that was in the store when a process was killed is never started
  again. So a call starts again only if it was under way at a kill: it had not ended, or it had
  ended in that very process and its write had not come to its end;
- nobody runs ahead: all that a started call hears is in the store after the kill.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from graph_fakes import timeless
from kill_children import children, say
from store_child import OPEN, Stores
from store_graph import SCREEN, layered

from swarm_ui import ConfigError, Trace
from swarm_ui.storage.protocol import RecordedCall

KILLS = {"directory": 17, "directory-nosync": 16, "sqlite": 17}


def told(log: Path) -> list[tuple[str, str, list[str]]]:
    """What the nodes of one process wrote; a line that was cut off by the kill had no effect."""
    if not log.exists():
        return []
    return [tuple(json.loads(line)) for line in log.read_bytes().split(b"\n")[:-1]]


def wait_until(log: Path, lines: int, out: Path) -> None:
    """Until the nodes have written so much, or the run is over."""
    until = time.monotonic() + 60
    while len(told(log)) < lines and not out.exists():
        assert time.monotonic() < until, f"{log}: {lines} lines did not come"
        time.sleep(0.0005)


def kept(store: Stores, run: str) -> dict[str, RecordedCall]:
    try:
        return {message.id: (message, call) for message, call in store.read(run).calls}
    except ConfigError:  # killed before the run was there
        return {}


def killed_until_finished(
    process: subprocess.Popen[str], store: Stores, seed: int, folder: Path, rng: random.Random
) -> tuple[int, Trace]:
    """Run one graph, killing it as often as it takes; how often, and the trace."""
    out = folder / f"{seed}.json"
    written: dict[str, RecordedCall] = {}
    started: set[str] = set()
    kills = 0
    while True:
        log = folder / f"{seed}.{kills}.log"
        assert say(process, "run", seed, log, out) == "started"
        if rng.random() < 0.8:
            wait_until(log, rng.randrange(1, 40), out)
        time.sleep(rng.uniform(0, 0.008))
        ended = int(say(process, "kill"))
        now = kept(store, f"run/{seed}")
        lines = told(log)
        begun = [id for what, id, _ in lines if what == "start"]
        over = {id for what, id, _ in lines if what == "end"}

        assert {id: now.get(id) for id in written} == written, "something was lost"
        assert not set(begun) & set(written), "done twice"
        for what, id, heard in lines:
            assert what != "start" or set(heard) <= set(now), f"{id} ran ahead"
        # A node that fails and its fallback are one call, so there may be two starts of it.
        again = {id for id in begun if begun.count(id) > 1}
        assert all(id.startswith("weak:") for id in again)
        asked = {id for id in now if call_is_made(id)}
        assert asked <= started | set(begun), "kept without having been made"
        assert asked - set(written) <= over, "kept before its end"

        written, started = now, started | set(begun)
        if ended == 0:
            return kills, msgspec.json.decode(out.read_bytes(), type=Trace)
        assert ended == -signal.SIGKILL
        kills += 1


def call_is_made(id: str) -> bool:
    """Whether a message comes from a node that writes to the side file."""
    name = id.rsplit("/", 1)[-1].split(":")[0]
    return name not in ("vote", "inner")


@pytest.mark.parametrize("kind", list(KILLS))
def test_killed_at_random_moments(kind: str, tmp_path: Path) -> None:
    """``pytest tests/storage/test_store_kill.py``: 50 kills in all."""
    path = tmp_path / "store"
    rng, kills, seed = random.Random(kind), 0, 0
    with children("storage/store_child.py", kind, path) as process, OPEN[kind](path) as store:
        while kills < KILLS[kind]:
            seed += 1
            more, trace = killed_until_finished(process, store, seed, tmp_path, rng)
            undisturbed = layered(seed, wait=0).run_sync(SCREEN, seed=seed, run_id=f"run/{seed}")
            assert timeless(trace) == timeless(undisturbed)
            assert [run.finished for run in store.runs()] == [True] * seed
            kills += more


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_several_processes_write_at_once(kind: str, tmp_path: Path) -> None:
    """They make the store together, too; one that is killed keeps nobody else from going on."""
    path = tmp_path / "store"
    outs = [tmp_path / f"{seed}.json" for seed in range(6)]
    with ExitStack() as stack:
        teams = [
            stack.enter_context(children("storage/store_child.py", kind, path)) for _ in range(3)
        ]
        for seed, process in enumerate(teams):
            assert say(process, "run", seed, tmp_path / f"{seed}.log", outs[seed]) == "started"
        wait_until(tmp_path / "0.log", 20, outs[0])
        say(teams[0], "kill")
        assert [say(process, "wait") for process in teams[1:]] == ["0", "0"]
        for first in (0, 3):
            for seed, process in enumerate(teams, first):
                say(process, "run", seed, tmp_path / f"{seed}.log", outs[seed])
            assert [say(process, "wait") for process in teams] == ["0", "0", "0"]
    with OPEN[kind](path) as store:
        for seed in range(6):
            trace = msgspec.json.decode(outs[seed].read_bytes(), type=Trace)
            undisturbed = layered(seed, wait=0).run_sync(SCREEN, seed=seed, run_id=f"run/{seed}")
            assert timeless(trace) == timeless(undisturbed)
            assert len(store.read(f"run/{seed}").calls) == len(trace.calls)
        assert [run.finished for run in store.runs()] == [True] * 6
