"""Train an included agent again: a transformer of about 0.2 M parameters, on the CPU.

    torchrun --nproc-per-node 2 -m demos.base_agent base --out nodes/models/tiny_agent/base_agent
    python -m demos.base_agent general --out nodes/models/tiny_agent/general_agent

``base`` starts from random weights, or from ``--start``: in two processes, which average their
gradients, it takes half the time of one. ``general`` continues the base agent, or ``--start``, with
demonstrations on many invented devices.
"""

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
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m demos.base_agent", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("agent", choices=("base", "general"))
    parser.add_argument("--out", type=Path, required=True, help="folder to save the agent in")
    parser.add_argument("--start", type=Path, help="folder of an agent to continue")
    parser.add_argument("--steps", type=int, help="optimiser steps")
    given = parser.parse_args()
    if given.agent == "base":
        if "RANK" in os.environ:
            distributed.init_process_group("gloo")
        base = BaseAgentConfig()
        stage1 = replace(base.stage1, steps=given.steps or base.stage1.steps)
        make_base_agent(replace(base, stage1=stage1), given.out, start=given.start)
        if distributed.is_initialized():
            distributed.destroy_process_group()
    else:
        general = GeneralAgentConfig()
        stage1 = replace(general.stage1, steps=given.steps or general.stage1.steps)
        make_general_agent(
            replace(general, stage1=stage1), given.out, start=given.start or BASE_AGENT
        )
