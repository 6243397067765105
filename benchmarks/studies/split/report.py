"""The study as a record, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.split.arms import CONTRASTS, SIZES, Arms, Difference, Row
from benchmarks.studies.split.learning import AGENTS, Learned, Plan, learn
from benchmarks.support.origin import Origin
from benchmarks.support.tables import markdown_table
from swarm_ui.environments.phone.split import SplitPhone, split_tasks

_LABELS = {"train": "known templates", "new_templates": "new templates"}
SIZED = ("broadcast", "oracle router")
"""Arms that are played with other numbers of agents, too."""


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """All figures."""

    origin: Origin
    plan: Plan
    learning_episodes: int
    """Episodes of one run of edge learning."""
    each: int
    """Test episodes of each template."""
    rows: list[Row]
    differences: list[Difference]
    learned: list[Learned]


def run(
    origin: Origin, plan: Plan, seeds: Sequence[int], each: int, tell: Callable[[str], None]
) -> Study:
    """Learn edges once for each seed, then play all arms.

    Args:
        origin: where the figures come from.
        plan: settings of learning.
        seeds: seeds of learning.
        each: test episodes of each template.
        tell: called with a line about each finished part.
    """
    learned = []
    for seed in seeds:
        learned.append(learn(plan, seed))
        tell(f"edges learned, seed {seed}: {learned[-1].seconds:.0f} CPU-seconds")
    tests = [Arms("train", each), Arms("new_templates", each)]
    rows: list[Row] = []
    for test in tests:
        test.play_fixed()
        test.play_learned(learned)
        rows += [test.row(name) for name in test.played]
        tell(f"played: {test.templates}")
    for agents in SIZES:
        if agents != AGENTS:
            sized = Arms("train", each, agents)
            sized.play_fixed(SIZED)
            rows += [sized.row(name) for name in SIZED]
    tell("played: other numbers of agents")
    return Study(
        origin=origin,
        plan=plan,
        learning_episodes=plan.episodes,
        each=each,
        rows=rows,
        differences=[test.difference(*pair) for test in tests for pair in CONTRASTS],
        learned=learned,
    )


def markdown(study: Study) -> str:
    """The tables of the study."""
    parts = [
        f"{study.origin.place}: {study.origin.command}",
        "Scripted agents on the simulated phone. They are no evidence about language models.",
    ]
    parts += [f"**{AGENTS} agents**", main_table(study)]
    sized = [r for r in study.rows if r.templates == "train" and r.name in SIZED]
    sized.sort(key=lambda row: row.agents)
    parts += ["**Other numbers of agents, known templates**", _sized_table(sized)]
    lines = [
        (gap.name, _LABELS[gap.templates], rates.percent(gap.difference, gap.low, gap.high,
                                                         signed=True), f"{gap.tokens:.2f}")
        for gap in study.differences
    ]  # fmt: skip
    heads = ("difference", "templates", "success", "tokens per episode, ratio")
    parts.append(markdown_table(heads, lines))
    if study.learned:
        parts.append(_senders(study.learned))
    return "\n\n".join(parts)


def needed_edges() -> dict[str, set[str]]:
    """Acting app -> the apps that some training template needs."""
    phone = SplitPhone()
    found: dict[str, set[str]] = {}
    for name in split_tasks("train"):
        spec = phone.spec(name)
        found.setdefault(spec.acting, set()).update(spec.sources)
    return found


def main_table(study: Study) -> str:
    """All arms with the full number of agents; tokens are those of an episode."""
    rows = {(r.name, r.templates): r for r in study.rows if r.agents == AGENTS}
    counts = [rows["broadcast", templates].episodes for templates in ("train", "new_templates")]
    heads = ("arm", f"known templates, success % of {counts[0]} episodes", "tokens",
             f"new templates, success % of {counts[1]}", "tokens")  # fmt: skip
    lines = []
    for (name, templates), row in rows.items():
        if templates == "train":
            label = f"{name}, {row.seeds} runs" if row.seeds else name
            lines.append((label, *_cells(row), *_cells(rows[name, "new_templates"])))
    return markdown_table(heads, lines, "llrlr")


def _sized_table(rows: Sequence[Row]) -> str:
    lines = [(row.name, row.agents, *_cells(row)) for row in rows]
    return markdown_table(("arm", "agents", "success %", "tokens"), lines, "lrlr")


def _cells(row: Row) -> tuple[str, str]:
    return rates.percent(row.success, row.low, row.high), f"{row.tokens:,.0f}"


def _senders(learned: Sequence[Learned]) -> str:
    """How many of the needed senders the learned graphs have, and how many others."""
    lines = []
    needed = {(app, acting) for acting, apps in needed_edges().items() for app in apps}
    for one in learned:
        found = {(s, r) for acting, edges in one.edges.items() for s, r in edges if r == acting}
        total = sum(len(edges) for edges in one.edges.values())
        hit = len(found & needed)
        lines.append((one.seed, f"{hit} of {len(needed)}", total - hit, f"{one.seconds:.0f}"))
    return markdown_table(("run", "needed senders found", "other edges", "CPU-s"), lines)
