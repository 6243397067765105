"""Effect of messages in a trained team: decisions on the same screens with and without its edges.

    python -m benchmarks.studies.talk RUN [RUN ...]

``RUN``: a run directory of the demo, or a run of ``benchmarks/learning.py``. The team plays
validation episodes of the simulated phone without edges. On every screen, the same team also
decides with messages over the DAG that it was tested on. The scripted critic, without errors,
grades the proposals of the last round. So both columns of the table describe the same states. They
show whether messages make the agents better, more similar, or both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import msgspec
from rich.console import Console
from rich.table import Table

from swarm_ui.environment import Environment
from swarm_ui.environments.phone import VALIDATION_SEEDS, PhoneEnvironment, draw_jobs, tasks
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.demo.demo_run import agent_folder, check_learning
from swarm_ui.experiment.environments.phone import CONCURRENCY, TEST_DRAW
from swarm_ui.experiment.script_runner import script
from swarm_ui.experiment.settings import Settings, restored
from swarm_ui.experiment.teams import trained_arms
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.optim.credit.assigners.critic import ScriptedCritic
from swarm_ui.optim.preferences.grading import score_of_action
from swarm_ui.rollout.episodes import Intervention, rollout_many
from swarm_ui.rollout.policy import GraphPolicy
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Trace

RESAMPLES = 2000
ROWS = {
    "one": "an agent is right",
    "any": "any agent is right",
    "same": "all say the same",
    "vote": "the vote is right",
    "split": "the vote is right where agents disagree without edges",
}


class Seen(msgspec.Struct, kw_only=True):
    """The last round of one decision: whether each agent was right, and the vote."""

    right: list[float]
    alike: bool
    vote: float


Played = list[tuple[Seen, Seen]]
"""An episode's decisions: without edges, and with them."""


class Watch:
    """Lets the team with edges also decide on every screen of the team without edges."""

    def __init__(self, team: CollabGraph) -> None:
        self.found: dict[int, Played] = {}
        """By number of the episode."""
        self._team, self._critic = team, ScriptedCritic(PhoneEnvironment)

    async def __call__(
        self, index: int, trace: Trace, environment: Environment
    ) -> Intervention | None:
        assert isinstance(environment, PhoneEnvironment)
        state = environment.snapshot()
        talk = await self._team.run(trace.observation, seed=trace.seed, run_id=trace.run)
        pair = (await self._seen(trace, state), await self._seen(talk, state))
        self.found.setdefault(index, []).append(pair)
        return None

    async def _seen(self, trace: Trace, state: object) -> Seen:
        table = await self._critic.assign(trace, state)
        said = [m.action for m in trace.messages if m.round == trace.rounds - 1 and m.action]
        said = said[: len(trace.agents)]
        vote = 0.0
        if trace.action is not None:
            vote = await score_of_action(self._critic, trace, trace.action, state) or 0
        return Seen(
            right=[value or 0.0 for value in table.values[-1]],
            alike=len({action.key for action in said}) == 1,
            vote=vote,
        )


def figures(steps: Sequence[tuple[Seen, Seen]], side: int) -> dict[str, float]:
    """Shares, by name of :data:`ROWS`, without edges (``side`` 0) or with them (1)."""
    seen = [pair[side] for pair in steps]
    split = [pair[side].vote for pair in steps if not pair[0].alike]
    return {
        "one": mean(mean(s.right) for s in seen),
        "any": mean(float(any(s.right)) for s in seen),
        "same": mean(float(s.alike) for s in seen),
        "vote": mean(s.vote for s in seen),
        "split": mean(split) if split else float("nan"),
    }


def difference(episodes: Sequence[Played]) -> dict[str, tuple[float, float, float]]:
    """Each figure with edges minus without, and its 95 % bootstrap interval over episodes."""
    rng = random.Random(0)

    def gaps(chosen: Sequence[Played]) -> dict[str, float]:
        steps = [pair for episode in chosen for pair in episode]
        silent, talking = figures(steps, 0), figures(steps, 1)
        return {name: talking[name] - silent[name] for name in ROWS}

    drawn = [gaps(rng.choices(episodes, k=len(episodes))) for _ in range(RESAMPLES)]
    found = gaps(episodes)
    at = (int(0.025 * RESAMPLES), int(0.975 * RESAMPLES))
    bounds = {name: sorted(d[name] for d in drawn) for name in ROWS}
    return {name: (found[name], bounds[name][at[0]], bounds[name][at[1]]) for name in ROWS}


def watched(path: Path, episodes: int) -> list[Played]:
    """Play the team of one run."""
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

    run = RunDirectory.open_existing(path)
    settings = restored(run.config(), str(path))
    tested = json.loads((run.edges / "edges.json").read_text(encoding="utf-8"))["tested"]
    edges = tuple((str(a), str(b)) for a, b in tested["edges"])
    model = LocalModel.load(agent_folder(settings))
    model.load_adapters(run.adapters)
    arms = {arm.name: arm for arm in trained_arms(settings, edges, tested["graph"])}
    if "trained-team" not in arms or settings.agents < 2:
        raise ConfigError(f"'{path}': no team was trained there")
    watch = Watch(arms["trained-team"].graph(model))
    jobs = draw_jobs(tasks("train"), episodes, TEST_DRAW, seeds=VALIDATION_SEEDS)
    asyncio.run(
        rollout_many(
            PhoneEnvironment, GraphPolicy(arms["trained-vote"].graph(model)), jobs,
            concurrency=CONCURRENCY, intervention=watch,
        )
    )  # fmt: skip
    return list(watch.found.values())


@script
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--episodes", type=int, default=152, help="of each run (default: 152)")
    given = parser.parse_args()
    check_learning(Settings())
    episodes = [e for path in given.runs for e in watched(path, given.episodes)]
    steps = [s for e in episodes for s in e]
    silent, talking = figures(steps, 0), figures(steps, 1)
    gaps = difference(episodes)
    table = Table(title=f"{len(given.runs)} runs, {len(steps)} decisions, %")
    for column in ("of the decisions", "no edges", "on the DAG", "difference [95 %]"):
        table.add_column(column, justify="left" if column == "of the decisions" else "right")
    for name, label in ROWS.items():
        shown = "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * v for v in gaps[name]))
        table.add_row(label, f"{100 * silent[name]:.1f}", f"{100 * talking[name]:.1f}", shown)
    Console(width=100).print(table)
    print(json.dumps({"no_edges": silent, "dag": talking, "difference": gaps}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
