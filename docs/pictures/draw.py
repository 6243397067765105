"""The pictures of docs/concepts.md, drawn from runs: ``python docs/pictures/draw.py [FOLDER]``.

The shipped base agents act on the embedded phone (a simulation) under a scripted critic, which
knows the simulated task. Seeds are fixed; the same versions draw the same pictures, apart from
seconds. Half a CPU-minute.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image, ImageDraw, ImageFont

from swarm_ui import CollabGraph, Episode, GraphPolicy, StepRecord
from swarm_ui.credit import credited
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.nodes import BASE_AGENT, LocalModel
from swarm_ui.optim.credit.critic import ScriptedCritic
from swarm_ui.optim.edges.distribution import EdgeDistribution, ProbabilitySGD, edge_loss
from swarm_ui.optim.metrics import decision_credit
from swarm_ui.rollout import rollout
from swarm_ui.viz import edges_svg

NAMES = [f"agent_{k}" for k in range(3)]
TASKS = ("contacts-add", "contacts-edit-phone", "notes-create")
SEEDS = range(20)
_SHOWN = 0.66  # of a screen's height; below it these screens are empty
_BLUE = "#3b6fe0"
_TIMES = re.compile(r" · \d[\d.,]* (?:ms|s|µs)(?=[\"<&])")


def team_of(model: LocalModel) -> CollabGraph:
    """Three agents in a line, two rounds; each sees the elements in an order of its own."""
    return CollabGraph.collaborative(
        agents=3,
        rounds=2,
        model=model,
        edges=[("agent_0", "agent_1"), ("agent_1", "agent_2")],
        views="shuffle",
        temperature=0.8,
    )


async def played(team: CollabGraph, task: str, seed: int) -> Episode:
    """An episode with credit and screenshots."""
    phone = PhoneEnvironment(screenshots=True)
    episode = await rollout(phone, GraphPolicy(team), task=task, seed=seed)
    (credit,) = await ScriptedCritic(PhoneEnvironment)([episode])
    return credited(episode, credit)


def divided(steps: Sequence[StepRecord]) -> StepRecord | None:
    """The step on which the agents disagreed most about a right and a wrong action."""

    def mixed(step: StepRecord) -> float:
        given = [value for row in step.credit or () for value in row if value is not None]
        mean = sum(given) / len(given) if given else 0.0
        return mean * (1.0 - mean)

    best = max(steps, key=mixed, default=None)
    return best if best is not None and mixed(best) > 0.1 else None


async def telling(team: CollabGraph) -> tuple[Episode, StepRecord]:
    """A short solved episode in which the team was divided once."""
    for task in TASKS:
        for seed in SEEDS:
            episode = await played(team, task, seed)
            step = divided(episode.steps)
            if episode.success and step is not None and 4 <= len(episode.steps) <= 6:
                return episode, step
    raise SystemExit("no episode fits: choose other tasks or seeds")


def strip(episode: Episode) -> Image.Image:
    """The episode as a row of screens, the element acted on outlined, the act below."""
    screens = []
    for step in episode.steps:
        seen = step.trace.observation
        assert seen.png is not None
        picture = Image.open(io.BytesIO(seen.png)).convert("RGB")
        element = seen.element(step.executed.index)
        if element is not None and element.bounds is not None:
            ImageDraw.Draw(picture).rectangle(element.bounds, outline=_BLUE, width=5)
        screens.append(picture.crop((0, 0, picture.width, int(picture.height * _SHOWN))))
    wide, high, gap, foot = *screens[0].size, 24, 64
    font = ImageFont.load_default(size=22)
    sheet = Image.new("RGB", (len(screens) * (wide + gap) + gap, high + gap + foot), "#f4f5f7")
    draw = ImageDraw.Draw(sheet)
    for k, (picture, step) in enumerate(zip(screens, episode.steps, strict=True)):
        left = gap + k * (wide + gap)
        sheet.paste(picture, (left, gap))
        words = f"{k + 1}. {step.executed}"
        while draw.textlength(words, font=font) > wide:
            words = words.removesuffix("…")[:-1] + "…"
        draw.text((left, high + gap + 16), words, fill="#24292f", font=font)
    width = min(1400, sheet.width)
    return sheet.resize((width, sheet.height * width // sheet.width), Image.Resampling.LANCZOS)


async def learned(model: LocalModel) -> EdgeDistribution:
    """Edges after 48 episodes with drawn graphs, from the credit of the decisions."""
    edges = EdgeDistribution(NAMES, density=0.5)
    optimizer = ProbabilitySGD(edges, lr=0.5)
    draw = torch.Generator().manual_seed(0)
    for task, seed in PhoneEnvironment.training_jobs(12):
        samples = edges.sample(4, draw)
        team = team_of(model)
        playing = [played(team.with_edges(sample.edges), task, seed) for sample in samples]
        found = await asyncio.gather(*playing)
        utilities = [decision_credit([episode]) for episode in found]
        optimizer.zero_grad()
        edge_loss(edges, samples, utilities).backward()
        optimizer.step()
    return edges


def plot_credit(credit: Any, agents: Sequence[str], path: Path) -> None:
    """Credit, ``[rounds, agents]``, as a heat map; unscored cells are grey."""
    figure = Figure(figsize=(1.6 + 0.9 * len(agents), 1.4 + 0.55 * len(credit)))
    axes = figure.add_subplot(facecolor="#e8e8e8")
    shown = np.array(credit, dtype=float)
    axes.imshow(shown, cmap="RdYlGn", vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(shown):
        axes.text(column, row, "–" if np.isnan(value) else f"{value:.2g}", ha="center")
    axes.set_xticks(range(len(agents)), agents)
    axes.set_yticks(range(len(credit)), [f"round {r + 1}" for r in range(len(credit))])
    axes.set_title("credit, scripted critic")
    figure.savefig(path, dpi=150, bbox_inches="tight")


async def write(folder: Path) -> None:
    """Draw them all."""
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    model = LocalModel.load(BASE_AGENT)
    team = team_of(model)
    (folder / "concept_graph.svg").write_text(team._repr_svg_(), encoding="utf-8")
    episode, step = await telling(team)
    trace = _TIMES.sub("", step.trace._repr_svg_())
    (folder / "concept_trace.svg").write_text(trace, encoding="utf-8")
    plot_credit(step.credit, step.trace.agents, folder / "concept_credit.png")
    strip(episode).save(folder / "concept_episode.png", optimize=True)
    edges = await learned(model)
    title = "after 48 episodes"
    order = [*edges.mode().order]
    chosen = edges_svg(edges.marginals(), order, edges.mode().edges, title)
    (folder / "concept_edges.svg").write_text(chosen, encoding="utf-8")
    print(episode.task, episode.seed, len(episode.steps), step.trace.run)


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    asyncio.run(write(Path(sys.argv[1]) if len(sys.argv) > 1 else here))
