"""The study as a record, and its tables."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.commands.cells import Record, record_of
from benchmarks.studies.kept_results import chosen
from benchmarks.studies.restore import found_files
from benchmarks.studies.split.arms import Difference, Templates
from benchmarks.studies.split_model.facts import Facts
from benchmarks.studies.split_model.plan import SETTINGS_FILE, TRAINING, Sizes, training_cells
from benchmarks.studies.split_model.play import ARMS, SWAPPED, TEMPLATES, Player
from benchmarks.support.origin import Origin
from benchmarks.support.tables import markdown_table
from swarm_ui.environments.phone.split import SPLIT_TEMPLATES as SPECS
from swarm_ui.stats import Outcome, clustered_mean, paired_difference

CONTRASTS = (
    ("needed edges", "no talk"),
    ("learned edges", "broadcast"),
    ("needed edges", SWAPPED),
)
"""The differences that were named before the study was run."""
_LABELS = {"train": "known templates", "new_templates": "new templates"}
_POINTS = 12
"""Points of the learning curve."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One arm on one set of templates, with test parameters."""

    name: str
    templates: Templates
    success: float
    low: float
    high: float
    """95 % interval, clustered by template."""
    seeds: int
    """Trainings."""
    episodes: int
    tokens: float
    """Mean of a decision: tokens of all its prompts and replies."""
    tokens_episode: float
    calls: float
    """Mean calls of a decision."""
    said: float | None
    """Share of the needed values that are in the first message of the agent that sees them;
    ``None`` if no such agent was asked."""
    written: float
    """Share of episodes in which every computed field was typed rightly at some step."""
    written_twin: float
    """The same for the values of the twin episode, which the team of the control hears."""
    copying: float | None
    """Success where every field from the facts is a copy of values (the rule ``join``). This and
    the next column were added after the first episodes were seen: they are exploratory."""
    computing: float | None
    """Success on the other templates: sums, the least of amounts, the earlier of times."""
    gave_up: float
    """Share of episodes that were declared infeasible."""
    cpu_s: float


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """The fine-tuning on the corpus of the scripted team."""

    samples: int
    tokens: int
    steps: int
    curve: tuple[tuple[int, float], ...]
    """Optimiser step, and the mean loss since the point before."""


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """All figures."""

    origin: Origin
    sizes: Sizes
    training: Training
    rows: list[Row]
    differences: list[Difference]
    cells: list[Record]
    """The commands of corpus and training, with commit and CPU time."""


def study(origin: Origin, sizes: Sizes, out: Path) -> Study:
    """The figures of all arms that were played whole."""
    player = Player(sizes, out, None)
    played = finished(player)
    records = [record_of(out, cell) for cell in training_cells(sizes, out)]
    return Study(
        origin=origin,
        sizes=sizes,
        training=_training(out),
        rows=[_row(*key, episodes, player) for key, episodes in played.items()],
        differences=[
            _difference(ours, theirs, t, played[ours, t], played[theirs, t])
            for t in TEMPLATES
            for ours, theirs in CONTRASTS
            if (ours, t) in played and (theirs, t) in played
        ],
        cells=[record for record in records if record is not None],
    )


def finished(player: Player) -> dict[tuple[str, Templates], list[Facts]]:
    """The episodes of the arms that were played whole."""
    played = {(arm, t): player.facts(arm, t) for arm in ARMS for t in TEMPLATES}
    return {key: episodes for key, episodes in played.items() if not player.left(*key)}


def kept_files(sizes: Sizes, out: Path) -> dict[str, Any]:
    """What the record holds of the study's folder: settings, training and episodes."""
    player = Player(sizes, out, None)
    files = found_files(out, (SETTINGS_FILE, "records/*.json"))
    files |= {str(path): value for path, value in _training_files(out).items()}
    for arm, templates in finished(player):
        path = player.facts_path(arm, templates).relative_to(out).as_posix()
        files[path] = player.arm(arm, templates)
    return files


def _row(arm: str, templates: Templates, episodes: list[Facts], player: Player) -> Row:
    rate = clustered_mean(_outcomes(episodes))
    assert rate is not None, f"{arm}: every episode has a fault"
    said = [share for e in episodes for share in e.said]
    decisions = sum(e.decisions for e in episodes)
    calls, used = sum(e.calls for e in episodes), [e.tokens for e in episodes]
    copies = [all(f.rule == "join" for f in SPECS[e.task].fills.values()) for e in episodes]
    return Row(
        name=arm, templates=templates, success=round(rate.mean, 4), low=round(rate.low, 4),
        high=round(rate.high, 4), seeds=1, episodes=len(episodes),
        tokens=round(sum(used) / decisions, 1),
        tokens_episode=round(fmean(used), 1),
        calls=round(calls / decisions, 2), said=round(fmean(said), 4) if said else None,
        written=round(fmean(e.written for e in episodes), 4),
        written_twin=round(fmean(e.written_twin for e in episodes), 4),
        copying=_success(episodes, copies),
        computing=_success(episodes, [not copy for copy in copies]),
        gave_up=round(fmean(e.gave_up for e in episodes), 4),
        cpu_s=round(player.arm(arm, templates).cpu_s, 1),
    )  # fmt: skip


def _outcomes(episodes: list[Facts]) -> list[Outcome]:
    return [Outcome(e.task, e.seed, e.value) for e in episodes]


def _success(episodes: list[Facts], chosen: list[bool]) -> float | None:
    """Success of the ``chosen`` episodes, or ``None`` if none is chosen."""
    known = [float(bool(e.value)) for e, own in zip(episodes, chosen, strict=True) if own]
    return round(fmean(known), 4) if known else None


def _difference(
    ours: str, theirs: str, templates: Templates, one: list[Facts], other: list[Facts]
) -> Difference:
    gap = paired_difference(_outcomes(one), _outcomes(other))
    assert gap is not None, f"{ours} - {theirs}: every episode has a fault"
    return Difference(
        name=f"{ours} - {theirs}", templates=templates, difference=round(gap.mean, 4),
        low=round(gap.low, 4), high=round(gap.high, 4),
        tokens=round(fmean(e.tokens for e in one) / fmean(e.tokens for e in other), 4),
    )  # fmt: skip


def _training_files(out: Path) -> dict[str, Any]:
    """What the table needs of the training, by path."""
    stage = f"{TRAINING}/3-supervised"
    files = found_files(out, (f"{stage}/stage.json", f"{stage}/metrics.jsonl"))
    about = chosen(files[f"{stage}/stage.json"], ("samples", "tokens", "steps"))
    lines = [chosen(line, ("step", "loss")) for line in files[f"{stage}/metrics.jsonl"]]
    return {f"{stage}/stage.json": about, f"{stage}/metrics.jsonl": lines}


def _training(out: Path) -> Training:
    stage, lines = _training_files(out).values()
    losses = [(line["step"], line["loss"]) for line in lines if "loss" in line]
    width = max(1, -(-len(losses) // _POINTS))
    parts = [losses[k : k + width] for k in range(0, len(losses), width)]
    curve = tuple((part[-1][0], round(fmean(loss for _, loss in part), 4)) for part in parts)
    return Training(
        samples=stage["samples"], tokens=stage["tokens"], steps=stage["steps"], curve=curve
    )


def markdown(found: Study) -> str:
    """The tables of the study."""
    parts = [
        f"{found.origin.place}: {found.origin.command}",
        f"{found.sizes.model} on the simulated phone, one training, one seed of test episodes.",
        main_table(found),
        contrast_table(found),
        control_line(found),
        curve_line(found),
    ]
    return "\n\n".join(parts)


def main_table(found: Study) -> str:
    """One line for each arm and set of templates; tokens are those of a decision."""
    heads = ("arm", "templates", "success %", "values copied %", "values computed %", "said %",
             "calls", "tokens a decision", "episodes")  # fmt: skip
    lines = [
        (
            row.name, _LABELS[row.templates], rates.percent(row.success, row.low, row.high),
            _share(row.copying), _share(row.computing), _share(row.said), f"{row.calls:.1f}",
            f"{row.tokens:,.0f}", row.episodes,
        )
        for row in found.rows
    ]  # fmt: skip
    return markdown_table(heads, lines, "lllr")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}"


def contrast_table(found: Study) -> str:
    """The differences that were named in advance."""
    lines = [
        (gap.name, _LABELS[gap.templates], rates.percent(gap.difference, gap.low, gap.high,
                                                         signed=True), f"{gap.tokens:.2f}")
        for gap in found.differences
    ]  # fmt: skip
    heads = ("difference", "templates", "points", "tokens per episode, ratio")
    return markdown_table(heads, lines, "lllr")


def control_line(found: Study) -> str:
    """What the team of the control typed, in words."""
    told = [row for row in found.rows if row.name == SWAPPED]
    parts = [
        f"{round(row.written_twin * row.episodes)} of {row.episodes} episodes with "
        f"{_LABELS[row.templates]}"
        for row in told
    ]
    return (
        "When the messages held the values of the twin episode, the team typed those in "
        f"{' and in '.join(parts)}."
    )


def curve_line(found: Study) -> str:
    """The loss of the training, in words."""
    points = ", ".join(f"{loss:.2f} at step {step}" for step, loss in found.training.curve)
    return (
        f"The model was trained for {found.training.steps} steps on {found.training.samples} "
        f"samples. The mean loss, over the steps since the previous value, was {points}."
    )
