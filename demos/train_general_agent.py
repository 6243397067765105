"""Train the general agent: more stage 1 of the base agent on many invented devices, on one core.

    python demos/train_general_agent.py --out my_agent

The same command made the checkpoint in nodes/models/tiny_agent/general_agent.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from swarm_ui.errors import SwarmError
from swarm_ui.experiment.stage1.base_agent import Stage1Bar
from swarm_ui.experiment.stage1.general_agent import GeneralAgentConfig, make_general_agent
from swarm_ui.nodes.models.tiny_agent.shipped_agents import agent_folder


def main() -> None:
    default = GeneralAgentConfig()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder to save the agent in")
    parser.add_argument("--start", default="base", help="base, general, or the folder of an agent")
    parser.add_argument("--devices", type=int, default=default.devices, help="invented devices")
    parser.add_argument(
        "--device-episodes", type=int, default=default.device_episodes,
        help="demonstrated episodes on them",
    )  # fmt: skip
    parser.add_argument(
        "--phone-episodes", type=int, default=default.phone_episodes,
        help="demonstrated episodes on the phone's training templates",
    )  # fmt: skip
    parser.add_argument("--steps", type=int, default=default.stage1.steps)
    parser.add_argument("--learning-rate", type=float, default=default.stage1.learning_rate)
    parser.add_argument("--seed", type=int, default=default.seed)
    given = parser.parse_args()
    stage1 = replace(
        default.stage1, steps=given.steps, learning_rate=given.learning_rate, seed=given.seed
    )
    config = replace(
        default,
        devices=given.devices,
        device_episodes=given.device_episodes,
        phone_episodes=given.phone_episodes,
        stage1=stage1,
        seed=given.seed,
    )
    try:
        start = agent_folder(given.start)
        done = make_general_agent(config, given.out, start=start, report=Stage1Bar())
    except SwarmError as error:
        parser.exit(2, f"error: {error}\n")
    print(f"{done.steps:,} steps, {done.samples:,} samples, {done.cpu_seconds:.0f} CPU-seconds")


if __name__ == "__main__":
    main()
