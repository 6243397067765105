"""Runs with a journal, in processes that are made to be killed:

python tests/storage/journal_child.py FILE

Reads lines from its input. ``run SEED LOG OUT`` forks a child that runs the layered graph of that
seed with the journal, tells LOG what its nodes do and writes the trace to OUT; ``kill`` kills that
child with SIGKILL, ``wait`` does not. Both answer with how it ended. A child costs milliseconds
because what it needs is imported already.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from journal_graph import SCREEN, layered

from swarm_ui import Journal


def run(path: Path, seed: int, log: Path, out: Path) -> None:
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(what: str, id: str, heard: Sequence[str]) -> None:
        os.write(handle, json.dumps([what, id, list(heard)]).encode() + b"\n")

    tell("begin", "", [])
    graph, journal = layered(seed, tell), Journal(path)
    trace = graph.run_sync(SCREEN, seed=seed, run_id=f"run/{seed}", journal=journal)
    beside = out.with_suffix(".part")
    beside.write_bytes(msgspec.json.encode(trace))
    beside.rename(out)


def main() -> None:
    path = Path(sys.argv[1])
    child = 0
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "run":
            seed, log, out = arguments
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    run(path, int(seed), Path(log), Path(out))
                    status = 0
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    if status:
                        sys.excepthook(*sys.exc_info())
                    os._exit(status)
            print("started", flush=True)
            continue
        if command == "kill":
            os.kill(child, signal.SIGKILL)  # not waited for yet, so the number is still its own
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
