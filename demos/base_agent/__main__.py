"""Train an included agent again: a transformer of about 0.2 M parameters, on the CPU.

torchrun --nproc-per-node 2 -m demos.base_agent base --out nodes/models/tiny_agent/base_agent
python -m demos.base_agent general --out nodes/models/tiny_agent/general_agent
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

from torch import distributed

from demos.base_agent.recipes import BASE, BASE_AGENT, GENERAL, make_base_agent, make_general_agent

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m demos.base_agent", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("agent", choices=("base", "general"))
    parser.add_argument("--out", type=Path, required=True, help="folder to save the agent in")
    parser.add_argument("--start", type=Path, help="folder of an agent to continue (default of "
                        "general: the base agent)")  # fmt: skip
    parser.add_argument("--steps", type=int, help="optimiser steps")
    given = parser.parse_args()
    config = BASE if given.agent == "base" else GENERAL
    config = replace(config, steps=given.steps or config.steps)
    if given.agent == "general":
        make_general_agent(given.out, config, start=given.start or BASE_AGENT)
    else:
        if "RANK" in os.environ:
            distributed.init_process_group("gloo")
        make_base_agent(given.out, config, start=given.start)
        if distributed.is_initialized():
            distributed.destroy_process_group()
