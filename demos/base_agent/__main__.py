"""Train an included agent again: a transformer of about 0.2 M parameters, on the CPU.

    torchrun --nproc-per-node 2 -m demos.base_agent base --out nodes/models/tiny_agent/base_agent
    python -m demos.base_agent general --out nodes/models/tiny_agent/general_agent

``base`` starts from random weights, or from ``--start``: in two processes, which average their
gradients, it takes half the time of one. ``general`` continues the base agent, or ``--start``, with
demonstrations on many invented devices.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from torch import distributed

from demos.base_agent.recipes import (
    BaseAgentConfig,
    GeneralAgentConfig,
    make_base_agent,
    make_general_agent,
)
from demos.base_agent.training import print_progress
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m demos.base_agent",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("agent", choices=("base", "general"))
    parser.add_argument("--out", type=Path, required=True, help="folder to save the agent in")
    parser.add_argument("--start", type=Path, help="folder of an agent to continue")
    parser.add_argument("--steps", type=int, help="optimiser steps")
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    config = BaseAgentConfig() if given.agent == "base" else GeneralAgentConfig()
    steps = {"steps": given.steps, "learning_rate": given.learning_rate, "seed": given.seed}
    stage1 = replace(config.stage1, **{k: v for k, v in steps.items() if v is not None})
    seed = config.seed if given.seed is None else given.seed
    if isinstance(config, BaseAgentConfig):
        if "RANK" in os.environ:
            distributed.init_process_group("gloo")
        config = replace(config, stage1=stage1, seed=seed)
        make_base_agent(config, given.out, start=given.start, report=print_progress)
        if distributed.is_initialized():
            distributed.destroy_process_group()
    else:
        general = replace(config, stage1=stage1, seed=seed)
        make_general_agent(
            general, given.out, start=given.start or BASE_AGENT, report=print_progress
        )


if __name__ == "__main__":
    main()
