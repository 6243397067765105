"""Train the base agent from scratch: a transformer of about 0.2 M parameters, on the CPU.

    python demos/train_base_agent.py --out my_agent

The same command made the checkpoint in nodes/models/tiny_agent/base_agent.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from swarm_ui.experiment.stage1.base_agent import BaseAgentConfig, Stage1Bar, make_base_agent
from swarm_ui.optim.stage1.supervised import Stage1Config


def main() -> None:
    default = BaseAgentConfig()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder to save the agent in")
    parser.add_argument("--start", type=Path, help="continue from the agent in this folder")
    parser.add_argument("--steps", type=int, default=default.stage1.steps)
    parser.add_argument("--width", type=int, default=default.width)
    parser.add_argument("--layers", type=int, default=default.layers)
    parser.add_argument("--processes", type=int, default=default.processes)
    parser.add_argument("--demonstrations", type=int, default=default.demonstrations)
    parser.add_argument("--learning-rate", type=float, default=default.stage1.learning_rate)
    parser.add_argument("--seed", type=int, default=default.seed)
    given = parser.parse_args()
    stage1 = Stage1Config(steps=given.steps, learning_rate=given.learning_rate, seed=given.seed)
    config = replace(
        default,
        width=given.width,
        layers=given.layers,
        processes=given.processes,
        demonstrations=given.demonstrations,
        seed=given.seed,
        stage1=stage1,
    )
    make_base_agent(config, given.out, start=given.start, report=Stage1Bar())


if __name__ == "__main__":
    main()
