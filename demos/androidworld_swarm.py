"""What a team of agents learns: who has to talk, and how to act on a phone it has not seen.

python demos/androidworld_swarm.py    # about three minutes on two cores
python demos/androidworld_swarm.py env.name=androidworld model.name=NAME model.url=URL

Settings replace those of the second part: another environment, or a served model, which is not
trained. After `make model`, a real language model plays too. The same --out continues a run.
"""

import argparse
import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from swarm_ui import CollabGraph, GraphPolicy, SwarmError, rollout_many
from swarm_ui.agent_view import Pane
from swarm_ui.environments.miniwob import find_browser
from swarm_ui.environments.phone.split import SPLIT_APPS, SplitPhone, split_tasks
from swarm_ui.environments.phone.split_agents import ScriptedAgents
from swarm_ui.experiment import Run, compare, evaluate, load, train
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.reporting import run_report
from swarm_ui.nodes import AgentNode
from swarm_ui.nodes.models.pretrained.catalogue import pulled_folder
from swarm_ui.optim import EdgeDistribution, ProbabilitySGD, edge_loss
from swarm_ui.report import ArmResult

Edges = Callable[[str], Iterable[tuple[str, str]]]  # those to the agent of an app
PHONE, TASKS = SplitPhone(), split_tasks("train")
ACTING = {task: PHONE.spec(task).acting for task in TASKS}  # the app in which each task ends
SENDERS = {app: [(name, app) for name in SPLIT_APPS if name != app] for app in ACTING.values()}
PRICE = 1e-4  # of a word, in episodes: messages that do not help are given up
# A phone that no agent of this package was trained on, and the best of these agents.
NEW_PHONE = ["env.name=invented", "env.first=710000", "env.devices=1", "env.wordings=few",
             "env.single=true", "model.name=general"]  # fmt: skip
TEAM = ["team.agents=4", "team.rounds=1", "team.edges=none", "team.views=shuffle",
        "team.vote=probability", "team.temperature=0.8", "train.iterations=5",
        "train.episodes=128", "train.shared_iterations=5", "train.update.steps=75"]  # fmt: skip
UNTRAINED, TRAINED = "four that vote, untrained", "four that vote, trained"
SMOLLM2 = ("smollm2-phone", "smollm2-pages") if pulled_folder("smollm2") else ()  # adapters
OUT, SHOW = Console(), ProgressDisplay()


# 1. Who talks to whom: each agent sees one app, and the tasks need values of other apps.
async def play(jobs: Sequence[Any], edges: Edges) -> list[Any]:
    """Episodes of teams, each with the edges of the app that its task operates."""

    def team(task: str, seed: int) -> CollabGraph:
        joined = list(edges(ACTING[task]))
        apps = sorted({ACTING[task], *(app for edge in joined for app in edge)})
        nodes = [AgentNode(app, ScriptedAgents(), view=Pane(name=app)) for app in apps]
        return CollabGraph(nodes, joined, output=ACTING[task])

    return await rollout_many(SplitPhone, GraphPolicy(team, name="split facts"), jobs)


async def who_talks(steps: int) -> None:
    """Learn edges from success minus the price of words; compare them with none, random and all."""
    torch.manual_seed(0)
    edges = {a: EdgeDistribution(SPLIT_APPS, candidates=SENDERS[a], decision=a) for a in SENDERS}
    optimizers = {app: ProbabilitySGD(edges[app], lr=1.0) for app in SENDERS}
    for step in track(range(steps), "learning edges", console=SHOW.console):
        jobs = SplitPhone.training_jobs(len(TASKS), seed=1000 + step)
        for app in sorted(SENDERS):
            own, dags = [job for job in jobs if ACTING[job[0]] == app], edges[app].sample(8)
            played = [e for dag in dags for e in await play(own, lambda _, d=dag: d.edges)]  # type: ignore[misc]
            words = [ArmResult.of_episodes("", [e]).work.tokens for e in played]
            worth = [bool(e.success) - PRICE * n for e, n in zip(played, words, strict=True)]
            tried = [dag for dag in dags for _ in own]
            optimizers[app].zero_grad()
            edge_loss(edges[app], tried, worth, groups=own * 8, normalise=False).backward()  # type: ignore[no-untyped-call]
            optimizers[app].step()
    learned, draw = {app: found.mode().edges for app, found in edges.items()}, random.Random(0)
    size = round(sum(map(len, learned.values())) / len(learned))
    rows: dict[str, Edges] = {
        "no messages": lambda app: (),
        f"{size} random senders": lambda app: draw.sample(SENDERS[app], size),
        "learned edges": learned.__getitem__,
        "all send": SENDERS.__getitem__,
    }
    table = Table("edges", "solved % [95 %]", "words per episode", title="1. Who talks to whom")
    for label, chosen in rows.items():
        episodes = await play(SplitPhone.test_jobs(4 * len(TASKS), seed=1, tasks=TASKS), chosen)
        arm = ArmResult.of_episodes(label, episodes)
        solved = arm.success.percent() if arm.success else "-"
        table.add_row(label, solved, f"{arm.work.tokens / len(episodes):,.0f}")
    OUT.print(table, "Ten scripted agents, one per app of a simulated phone. Test: new values.\n")


# 2. How each one thinks: four agents with LoRA adapters, and credit for their actions.
def opened(folder: Path, *settings: str) -> Run:
    """A new run, or the one in this folder."""
    return Run.open(folder) if folder.exists() else Run.create(folder, load(overrides=settings))


def compared(title: str, runs: dict[str, Run], **chosen: Any) -> None:
    """Evaluate the runs as far as that is not done, and compare each with the first one."""
    table = Table("agents", "solved % [95 %]", "minus the first [95 %]", title=title)
    results = {label: evaluate(run, show=SHOW, **chosen) for label, run in runs.items()}
    first = next(iter(results.values()))
    for label, found in results.items():
        gain = "" if found is first else compare(found, first).percent(signed=True)
        table.add_row(label, solved.percent() if (solved := found.arms[0].success) else "-", gain)
    OUT.print(table, ". ".join(first.labels) + ".\n")


def how_each_thinks(folder: Path, settings: list[str]) -> list[Run]:
    """Train a team, compare it with untrained agents on the same new episodes, and on web pages."""
    one = opened(folder / "one", *NEW_PHONE, *settings, "team.agents=1")
    team = [*NEW_PHONE, *TEAM, *settings]
    runs = {UNTRAINED: opened(folder / "untrained", *team), "one agent, untrained": one}
    if one.config.model.kind in ("agent", "local"):  # its weights are in this process
        runs[TRAINED] = opened(folder / "trained", *team)
        train(runs[TRAINED], show=SHOW)  # credit: a script that knows the tasks
    if settings:
        compared(f"2. How each one thinks: {one.config.env.name}", runs)
        return [*runs.values()]
    compared("2. How each one thinks: an unseen phone", runs, split="parameters", episodes=150)
    OUT.print("Credit in training: a script that knows the tasks. Test: new values.\n")
    if find_browser() is None:
        OUT.print("Real web pages were left out: no Chromium is installed.")
        return [*runs.values()]
    web = ["env.name=miniwob", *TEAM, "team.views=same", "model.name=general"]
    own = f"model.adapters={runs[TRAINED].adapters}"
    pages = {UNTRAINED: opened(folder / "pages-untrained", *web)}
    pages[TRAINED] = opened(folder / "pages-trained", *web, own)
    compared("3. Real web pages (MiniWoB++), never trained on", pages, episodes=49)
    real = ["env.name=miniwob", "model.name=smollm2", "team.agents=1"]
    learned = {name: opened(folder / name, *real, f"model.adapters={name}") for name in SMOLLM2}
    if learned:  # before and after it learned 14 pages from outcomes, here with new seeds
        compared("4. SmolLM2, a language model", learned, split="practice", episodes=56)
    return [*runs.values(), *pages.values(), *learned.values()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("settings", nargs="*", help="section.name=value, for the second part")
    parser.add_argument("--out", type=Path, default=f"runs/demo-{datetime.now():%Y%m%d-%H%M%S}")
    given = parser.parse_args()
    try:
        if not given.settings:
            asyncio.run(who_talks(24))
        paths = [run.path for run in how_each_thinks(given.out, given.settings)]
        OUT.print(f"report: {run_report(*paths, to=given.out / 'report.html')}", soft_wrap=True)
    except (SwarmError, KeyboardInterrupt) as stopped:
        told = " ".join(str(stopped).split()) or "stopped"
        raise SystemExit(f"{told}; continue with the same settings and --out {given.out}") from None
