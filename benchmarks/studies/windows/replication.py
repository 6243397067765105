"""The main policies without stage 2 again, with window agents that were trained with other seeds.

The contrasts of ``NAMED`` were explored with the first agent, and named before any other agent was
trained. So they are tested on the other agents alone. A further agent is trained like the first one
with another seed; with it, one graph is learned by Thompson sampling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.struct_files import read_struct, write_struct
from benchmarks.studies.windows.agent import WindowAgentConfig
from benchmarks.studies.windows.arms import Played, WindowArm, control_arms, measure, test_jobs
from benchmarks.studies.windows.edges import METHODS, LearnedEdges, learn, learned_name
from benchmarks.studies.windows.fixed import (
    TITLES,
    Group,
    LearnedGraph,
    contrast_of_groups,
    row_of_group,
)
from benchmarks.studies.windows.rows import Contrast, Row
from benchmarks.studies.windows.stage2 import AgentMade, agent_made
from benchmarks.support.tables import markdown_table
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.rollout import Job

CONTROLS = (
    "no-edges", "no-edges-top", "full", "full-shuffled", "reverse", "chain", "redrawn", "scroll-4",
    "half-no-edges", "whole",
)  # fmt: skip
"""The arms of the first agent that further agents play."""
LEARNED = learned_name("thompson", 0)
NAMED = (("full", "no-edges"), (LEARNED, "no-edges"), (LEARNED, "redrawn"))
"""The differences that were named before further agents were trained."""
EXPLORED = (
    ("full", "full-shuffled"), ("full", "no-edges-top"), ("full", "whole"),
    (LEARNED, "no-edges-top"), (LEARNED, "scroll-4"), (LEARNED, "full"),
)  # fmt: skip
TrainAgent = Callable[[WindowAgentConfig, Path], None]
Say = Callable[[str], None]


class FurtherAgent(msgspec.Struct, frozen=True, kw_only=True):
    """A window agent that was trained with another seed, and the graph that was learned with it."""

    seed: int
    made: AgentMade
    graph: LearnedGraph


class Replication(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of the further agents; a seed of a row is that of an agent's training."""

    agents: tuple[FurtherAgent, ...]
    rows: tuple[Row, ...]
    contrasts: tuple[Contrast, ...]


class FurtherAgents:
    """The folder of the further agents, with one folder for each seed."""

    def __init__(self, folder: Path, *, steps: int, episodes: int, budget: int) -> None:
        """
        Args:
            folder: where the results are; it may not exist yet.
            steps: training steps of each agent.
            episodes: test episodes on forms, the same for each agent.
            budget: episodes of edge learning with each agent.
        """
        self._folder, self._steps, self._budget = folder, steps, budget
        self._jobs = test_jobs("forms", episodes)

    def run(self, seeds: Sequence[int], train: TrainAgent, say: Say) -> None:
        """Train the agents with these seeds and play all arms; finished parts are kept.

        Args:
            seeds: other than 0, the seed of the first agent.
            train: trains an agent into a folder.
            say: told what is done next.
        """
        for seed in seeds:
            folder = self._folder / str(seed)
            if not (folder / "agent").exists():
                train(WindowAgentConfig.of(self._steps, seed), folder / "agent")
            agent_made(folder / "agent", folder / "agent.json")
            model = LocalModel.load(folder / "agent")
            for arm in (each for each in control_arms() if each.name in CONTROLS):
                self._measure(folder, model, arm, say)
            graph = folder / "edges" / f"{LEARNED}.json"
            if not graph.exists():
                say(f"agent {seed}: learning edges")
                write_struct(graph, learn(model, "thompson", 0, budget=self._budget))
            edges = read_struct(graph, LearnedEdges).edges
            label = f"learned edges, {METHODS['thompson']}"
            self._measure(folder, model, WindowArm(name=LEARNED, label=label, edges=edges), say)

    def _measure(self, folder: Path, model: LocalModel, arm: WindowArm, say: Say) -> None:
        path = folder / "forms" / f"{arm.name}.json"
        if not path.exists():
            say(f"agent {folder.name}: {arm.label}")
            write_struct(path, measure(model, arm, self._jobs))

    def found(self) -> Replication | None:
        """The figures of all agents that played every arm; ``None``: there are none."""
        names = (*CONTROLS, LEARNED)
        folders = sorted(
            (each for each in self._folder.glob("*") if _played(each).keys() >= set(names)),
            key=lambda each: int(each.name),
        )
        if not folders:
            return None
        played = [_played(folder) for folder in folders]
        return make_replication([_agent(folder) for folder in folders], played, self._jobs)

    def notes(self) -> dict[str, AgentMade]:
        """How each agent was trained, as files of the record."""
        found = self.found()
        agents = () if found is None else found.agents
        return {f"{self._folder.name}/{each.seed}/agent.json": each.made for each in agents}


def make_replication(
    agents: Sequence[FurtherAgent], played: Sequence[dict[str, Played]], jobs: Sequence[Job]
) -> Replication:
    """The rows and contrasts of several agents.

    Args:
        agents: the agents.
        played: the arms of each agent, by name.
        jobs: the test episodes, which all arms played.
    """
    groups = {
        name: Group(played[0][name].label, tuple(each[name] for each in played))
        for name in (*CONTROLS, LEARNED)
    }
    pairs = [(pair, True) for pair in NAMED] + [(pair, False) for pair in EXPLORED]
    return Replication(
        agents=tuple(agents),
        rows=tuple(row_of_group(group, "forms", jobs) for group in groups.values()),
        contrasts=tuple(
            contrast_of_groups(groups[ours], groups[theirs], "forms", jobs, named=named)
            for (ours, theirs), named in pairs
        ),
    )


def _played(folder: Path) -> dict[str, Played]:
    return {path.stem: read_struct(path, Played) for path in folder.glob("forms/*.json")}


def _agent(folder: Path) -> FurtherAgent:
    graph = read_struct(folder / "edges" / f"{LEARNED}.json", LearnedEdges)
    return FurtherAgent(
        seed=int(folder.name), made=agent_made(folder / "agent", folder / "agent.json"),
        graph=LearnedGraph.of(graph),
    )  # fmt: skip


# -- tables ---------------------------------------------------------------------------------------


def replication_tables(found: Replication) -> str:
    """Rows and contrasts as Markdown."""
    heads = (f"policy, {TITLES['forms']}", "success %", "over agents", "calls", "tokens")
    rows = [
        (
            row.name, rates.percent(row.success, row.low, row.high),
            rates.percent_range(row.t_low, row.t_high), f"{row.calls:.0f}", f"{row.tokens:,.0f}",
        )
        for row in found.rows
    ]  # fmt: skip
    gaps = [
        (
            f"{'**named**' if one.named else 'exploratory'}: {one.name}",
            rates.percent(one.difference, one.low, one.high, signed=True),
            rates.percent_range(one.t_low, one.t_high, signed=True),
        )
        for one in found.contrasts
    ]
    contrasts = markdown_table(("difference", "points", "over agents"), gaps)
    return f"{markdown_table(heads, rows, 'lllrr')}\n\n{contrasts}"
