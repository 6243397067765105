"""Training runs in processes that are made to be killed:

python tests/support/trainer_child.py

Reads lines from its input. ``run SEED FOLDER OUT BYTES`` forks a child that trains the small team
of that seed in FOLDER, from wherever it stands, and leaves the adapters in OUT; no file may grow
over BYTES (0: any size). ``kill`` kills that child with SIGKILL, ``wait`` waits for it; both answer
with how it ended. A child costs milliseconds because torch is imported already.
"""

from __future__ import annotations

import dataclasses
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path

import torch
from learning_fakes import TinyModel
from learning_run import CONFIG, run

from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.update.adapter_trainer import UpdateConfig


def config(seed: int) -> TeamConfig:
    """Twelve iterations of a few hundredths of a second."""
    return dataclasses.replace(
        CONFIG, seed=seed, iterations=12, shared_iterations=4, shared_steps=6, episodes=6,
        update=UpdateConfig(steps=4, batch_size=8, lr=5e-2),
    )  # fmt: skip


def train(seed: int, folder: Path, out: Path) -> None:
    """Train, or go on; ``out`` is there once all is done."""
    model = TinyModel()
    run(model, folder, resume=True, config=config(seed))
    beside = out.with_suffix(".part")
    model.save_adapters(beside)
    beside.rename(out)


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:  # the first update loads half of torch
        run(TinyModel(), Path(folder), config=dataclasses.replace(config(0), iterations=1))
    child = 0
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "run":
            seed, folder, out, most = arguments
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    if int(most):  # a write beyond it fails, as on a disk that is full
                        resource.setrlimit(resource.RLIMIT_FSIZE, (int(most), int(most)))
                    train(int(seed), Path(folder), Path(out))
                    status = 0
                finally:
                    if status:
                        sys.excepthook(*sys.exc_info())
                        sys.stderr.flush()
                    os._exit(status)
            print("started", flush=True)
            continue
        if command == "kill":
            os.kill(child, signal.SIGKILL)  # not waited for yet, so the number is still its own
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
