"""What a team of agents learns: who has to talk, and how to act on a phone it has not seen.

python demos/androidworld_swarm.py            # about three minutes on two cores
python demos/androidworld_swarm.py --quick    # about a minute; its figures mean little
python demos/androidworld_swarm.py env.name=androidworld model.name=NAME model.url=URL

Settings replace those of the second part: another environment, or a model that is served, which is
evaluated and not trained. With the same --out, a run that was stopped is continued.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from swarm_ui import CollabGraph, GraphPolicy, SwarmError, rollout_many
from swarm_ui.agent_view import Pane
from swarm_ui.environments.miniwob import REFERENCE_TASKS, find_browser
from swarm_ui.environments.phone import TEST_SEEDS, TRAIN_SEEDS, draw_jobs
from swarm_ui.environments.phone.split import SPLIT_APPS, SplitPhone, split_tasks
from swarm_ui.environments.phone.split_agents import ScriptedAgents
from swarm_ui.experiment import Run, compare, evaluate, load, train
from swarm_ui.experiment.model_settings import IN_PROCESS
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.reporting import run_report
from swarm_ui.nodes import AgentNode
from swarm_ui.optim import EdgeDistribution, ProbabilitySGD, edge_loss
from swarm_ui.report import Results
from swarm_ui.rollout import Job
from swarm_ui.stats import clustered_mean, outcomes
from swarm_ui.trace.records import Episode

Edges = Iterable[tuple[str, str]]
PHONE, TASKS = SplitPhone(), split_tasks("train")
ACTING = sorted({PHONE.spec(task).acting for task in TASKS})
SENDERS = {app: [(name, app) for name in SPLIT_APPS if name != app] for app in ACTING}
"""For each app in which a task ends, the edges to its agent."""
PRICE = 1e-4
"""Price of a word, in episodes: messages that do not help are given up."""
NEW_PHONE = ("env.name=invented", "env.first=710000", "env.devices=1", "env.wordings=few",
             "env.single=true", "model.name=general")  # fmt: skip
"""A phone that no agent of this package was trained on, and the best of these agents."""
TEAM = ("team.agents=4", "team.rounds=1", "team.edges=none", "team.views=shuffle",
        "team.vote=probability", "team.temperature=0.8")  # fmt: skip
TRAINING = ("train.iterations=5", "train.episodes=128", "train.shared_iterations=5",
            "train.update.steps=75", "train.edges=fixed")  # fmt: skip
QUICK = ("train.iterations=2", "train.episodes=48", "train.shared_iterations=2")
UNTRAINED, TRAINED = "four that vote, untrained", "four that vote, trained"
SHOW = ProgressDisplay(console=Console(stderr=True))
OUT = Console()


# -- 1. who talks to whom: each agent sees one app, and the tasks need values of other apps --------


async def play(jobs: Sequence[Job], edges: Callable[[str], Edges]) -> list[Episode]:
    """Episodes of teams in which ``edges(app)`` lead to the agent of the app that is operated."""

    def team(task: str, seed: int) -> tuple[CollabGraph, None]:
        acting = PHONE.spec(task).acting
        joined = list(edges(acting))
        used = {acting, *(app for edge in joined for app in edge)}
        nodes = [AgentNode(app, ScriptedAgents(), view=Pane(name=app)) for app in sorted(used)]
        return CollabGraph(nodes, joined, output=acting), None

    return await rollout_many(SplitPhone, GraphPolicy(team, name="split facts"), jobs)


def tokens(episode: Episode) -> int:
    """Tokens of all prompts and replies; of scripted agents their words."""
    used = [call.usage for step in episode.steps for call in step.trace.calls]
    return sum(usage.prompt_tokens + usage.completion_tokens for usage in used)


async def learned_edges(steps: int) -> dict[str, EdgeDistribution]:
    """A distribution of edges for each app, learned from success minus the price of words."""
    torch.manual_seed(0)
    edges = {
        app: EdgeDistribution(SPLIT_APPS, candidates=SENDERS[app], decision=app) for app in ACTING
    }
    optimizers = {app: ProbabilitySGD(edges[app], lr=1.0) for app in ACTING}
    with SHOW.bar("learning edges", steps) as bar:
        for step in range(steps):
            jobs = draw_jobs(TASKS, len(TASKS), 1000 + step, seeds=TRAIN_SEEDS)
            for app in ACTING:
                own = [job for job in jobs if PHONE.spec(job[0]).acting == app]
                dags = edges[app].sample(8)
                played = [e for dag in dags for e in await play(own, lambda _, d=dag: d.edges)]  # type: ignore[misc]
                worth = [bool(e.success) - PRICE * tokens(e) for e in played]
                tried = [dag for dag in dags for _ in own]
                loss = edge_loss(edges[app], tried, worth, groups=own * len(dags), normalise=False)
                optimizers[app].zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizers[app].step()
            bar.update(step + 1)
    return edges


async def who_talks(steps: int) -> None:
    """Compare learned edges with none, with random ones, and with all."""
    edges = {app: found.mode().edges for app, found in (await learned_edges(steps)).items()}
    size, draw = round(fmean(map(len, edges.values()))), random.Random(0)
    rows: dict[str, Callable[[str], Edges]] = {
        "no messages": lambda app: (),
        f"{size} random senders": lambda app: draw.sample(SENDERS[app], size),
        "learned edges": edges.__getitem__,
        "all send": SENDERS.__getitem__,
    }
    table = Table("edges", "solved % [95 %]", "words per episode", title="1. Who talks to whom")
    for label, chosen in rows.items():
        jobs = draw_jobs(TASKS, 4 * len(TASKS), 1, seeds=TEST_SEEDS)
        episodes = await play(jobs, chosen)
        solved, words = clustered_mean(outcomes(episodes)), fmean(map(tokens, episodes))
        table.add_row(label, solved.percent() if solved else "-", f"{words:,.0f}")
    OUT.print(table)
    OUT.print("Ten scripted agents, one for each app of a simulated phone. Test: new values.\n")


# -- 2. how each one thinks: four agents with LoRA adapters, and credit for their actions ----------


def how_each_thinks(folder: Path, settings: Sequence[str], quick: bool) -> dict[str, Run]:
    """Train a team, and compare it with untrained agents on the same new episodes."""
    given = [*NEW_PHONE, *TEAM, *TRAINING, *(QUICK if quick else ()), *settings]
    runs = {
        UNTRAINED: opened(folder / "untrained", given),
        "one agent, untrained": opened(folder / "one", [*NEW_PHONE, *settings, "team.agents=1"]),
        TRAINED: opened(folder / "trained", given),
    }
    if isinstance(runs[TRAINED].config.model, IN_PROCESS):
        train(runs[TRAINED], show=SHOW)
    else:
        del runs[TRAINED]
    chosen = {} if settings else {"split": "parameters", "episodes": 48 if quick else 150}
    where = runs[UNTRAINED].config.env.name if settings else "a phone that no agent has seen"
    compared(f"2. How each one thinks: {where}", tested(runs, **chosen))
    if not settings:
        OUT.print("Credit in training: a script that knows the tasks. Test: new values.\n")
    return runs


def pages(folder: Path, adapters: Path, quick: bool) -> dict[str, Run]:
    """Does the team still act on web pages, which this training did not show?"""
    tasks = REFERENCE_TASKS[:6] if quick else REFERENCE_TASKS
    given = [*TEAM, "team.views=same", "model.name=general", "env.name=miniwob",
             f"env.tasks={list(tasks)}"]  # fmt: skip
    runs = {
        UNTRAINED: opened(folder / "pages-untrained", given),
        TRAINED: opened(folder / "pages-trained", [*given, f"model.adapters={adapters}"]),
    }
    compared("3. Real web pages (MiniWoB++), never trained on", tested(runs))
    return runs


def opened(folder: Path, settings: Sequence[str]) -> Run:
    """A new run, or the one in this folder."""
    return Run.open(folder) if folder.exists() else Run.create(folder, load(overrides=settings))


def tested(runs: dict[str, Run], **chosen: Any) -> dict[str, Results]:
    """The results of each run, which are played unless they are there."""
    results = {}
    for name, run in runs.items():
        SHOW.say(name)
        results[name] = evaluate(run, show=SHOW, **chosen)
    return results


def compared(title: str, results: dict[str, Results]) -> None:
    table = Table("agents", "solved % [95 %]", "minus untrained four [95 %]", title=title)
    for label, found in results.items():
        gain = "" if label == UNTRAINED else compare(found, results[UNTRAINED]).percent(signed=True)
        solved = found.arms[0].success
        table.add_row(label, solved.percent() if solved else "-", gain)
    OUT.print(table)
    OUT.print(". ".join(results[UNTRAINED].labels) + ".")


def main() -> int:
    described = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=described)
    parser.add_argument("settings", nargs="*", metavar="section.name=value")
    parser.add_argument("--quick", action="store_true", help="a short run")
    parser.add_argument("--out", type=Path, help="folder of the runs; default: runs/demo-DATE")
    given = parser.parse_args()
    folder = given.out or Path("runs") / f"demo-{datetime.now():%Y%m%d-%H%M%S}"
    try:
        if not given.settings:
            asyncio.run(who_talks(12 if given.quick else 24))
        runs = [*how_each_thinks(folder, given.settings, given.quick).values()]
        if not given.settings and find_browser() is not None:
            runs += pages(folder, runs[-1].adapters, given.quick).values()
        elif not given.settings:
            OUT.print("Real web pages were left out: no Chromium is installed.")
        report = run_report(*(run.path for run in runs), to=folder / "report.html")
    except (SwarmError, KeyboardInterrupt) as stopped:
        told = " ".join(str(stopped).split()) or "stopped"
        print(f"{told}; continue with the same settings and --out {folder}", file=sys.stderr)
        return 130 if isinstance(stopped, KeyboardInterrupt) else 2
    OUT.print(f"report: {report.resolve()}", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
