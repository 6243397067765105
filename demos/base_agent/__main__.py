"""Train an included agent again: a transformer of about 0.2 M parameters, on the CPU.

torchrun --nproc-per-node 2 -m demos.base_agent base --out nodes/models/tiny_agent/base_agent
python -m demos.base_agent general --out nodes/models/tiny_agent/general_agent
"""

import argparse
import asyncio
import os
from dataclasses import replace
from pathlib import Path

from torch import distributed

from demos.base_agent import recipes
from demos.base_agent.stream import Mix
from swarm_ui.nodes import BASE_AGENT

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m demos.base_agent", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("agent", choices=("base", "general"))
    parser.add_argument("--out", type=Path, required=True, help="folder to save the agent in")
    parser.add_argument("--steps", type=int, help="optimiser steps")
    given = parser.parse_args()
    general = given.agent == "general"
    config = recipes.GENERAL if general else recipes.BASE
    config = replace(config, steps=given.steps or config.steps)
    mix = recipes.HALF_DEMONSTRATIONS if general else Mix()
    shown = asyncio.run(recipes.general_demonstrations(config.seed)) if general else ()
    start = BASE_AGENT if general else None
    if "RANK" in os.environ:
        distributed.init_process_group("gloo")
    recipes.make_agent(given.out, config, start=start, mix=mix, shown=shown)
    if distributed.is_initialized():
        distributed.destroy_process_group()
