"""The picture of the report's viewer: ``python docs/pictures/draw_viewer.py [FILE]``.

Four shipped base agents act on the embedded phone (a simulation) under a scripted critic, and a
Chromium shows the report. Seeds are fixed. A quarter of a CPU-minute.
"""

from __future__ import annotations

import asyncio
import io
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from draw import TASKS, divided, played
from PIL import Image

from swarm_ui import CollabGraph, Episode
from swarm_ui.environments.web.browser import Chromium
from swarm_ui.experiment.reporting import with_screenshots
from swarm_ui.nodes import BASE_AGENT, LocalModel
from swarm_ui.report import write_report
from swarm_ui.trace.jsonl import write_jsonl

_WIDTH, _HEIGHT = 1280, 1010
_SEEDS = range(3)
_COLOURS = 128


def team_of(model: LocalModel) -> CollabGraph:
    """Four agents and three rounds; each agent sees the elements in an order of its own."""
    edges = [("agent_0", "agent_1"), ("agent_0", "agent_2"), ("agent_2", "agent_3")]
    return CollabGraph.collaborative(
        agents=4, rounds=3, model=model, edges=edges, views="shuffle", temperature=0.8
    )


def shown(episodes: Sequence[Episode]) -> str:
    """The address of the first step on which the agents disagreed, as the viewer writes it."""
    for number, episode in enumerate(episodes, start=1):
        step = divided(episode.steps)
        if step is not None:
            return f"#{number}/{episode.steps.index(step) + 1}"
    raise SystemExit("no episode fits: choose other tasks or seeds")


async def photographed(address: str) -> bytes:
    """The page at an address as a PNG, when the viewer has drawn its episode."""
    chromium = Chromium()
    try:
        page = await (await chromium.context((_WIDTH, _HEIGHT))).new_page()
        await page.goto(address)
        await page.wait_for_selector("#viewer .phone .mark")
        await asyncio.sleep(0.3)  # the page scrolls
        return await page.screenshot()
    finally:
        await chromium.close()


async def write(file: Path) -> None:
    """Draw it."""
    torch.set_num_threads(1)
    team = team_of(LocalModel.load(BASE_AGENT))
    episodes = [await played(team, task, seed) for task in TASKS for seed in _SEEDS]
    with tempfile.TemporaryDirectory() as folder:
        traces = Path(folder) / "four-agents.jsonl"
        write_jsonl(traces, episodes)
        report = write_report(traces, illustrate=with_screenshots)
        png = await photographed(report.as_uri() + shown(episodes))
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(_COLOURS).save(file, optimize=True)
    print(file.name, file.stat().st_size)


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    asyncio.run(write(Path(sys.argv[1]) if len(sys.argv) > 1 else here / "report_viewer.png"))
