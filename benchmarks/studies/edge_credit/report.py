"""The figures of the study: rows, contrasts, the budget to the oracle, and the tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.edge_credit.cells import TEMPLATES, Cell, Choice, Played
from benchmarks.studies.edge_credit.plan import ARMS, CHEAP, CONTRASTS, MAIN, Budget, Setting
from benchmarks.studies.split.report import Study as SplitStudy
from benchmarks.studies.split.report import needed_edges
from benchmarks.studies.struct_files import file_hashes, read_cells
from benchmarks.support.origin import Origin, origin
from benchmarks.support.records import read_record
from swarm_ui.stats import Interval, clustered_difference, clustered_mean, over_seeds

ORACLE = "oracle router"
AS_SPLIT = "outcome, settings of the study of split facts"
"""Its record has the end of the budget with the same seeds and test episodes."""
LABELS = {"train": "known templates", "new_templates": "new templates"}
_NOTE = "Scripted agents and a scripted critic on a simulated phone."


class Row(rates.Row, frozen=True, kw_only=True):
    """One arm on one set of templates with test parameters, at one point of the budget."""

    templates: str
    point: str
    training_episodes: int
    tokens: float
    """Mean of an episode: words of all prompts and replies."""
    tokens_low: float | None
    tokens_high: float | None


class Contrast(rates.Contrast, frozen=True, kw_only=True):
    """An arm minus another. The interval of tokens is Student's t over runs."""

    templates: str
    point: str
    measure: str


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """What an arm needs until it is near the oracle, and what it costs."""

    name: str
    setting: Setting
    reached: list[int | None]
    """Training episodes of each run until known templates are near the oracle; ``None``: never."""
    cheap: list[int | None]
    """The same with at most :data:`~benchmarks.studies.edge_credit.plan.CHEAP` times its tokens."""
    calls: float
    """Calls of agents in the learning episodes of a run, and the next for credit."""
    credit_calls: float
    needed_found: list[int]
    """Needed senders that each run found, and the next: its other edges."""
    other_edges: list[int]
    seconds: float
    """CPU time of a run with its tests."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The learning curve of an arm: mean and Student's t interval over runs, after each step."""

    name: str
    templates: str
    episodes: list[int]
    success: list[float]
    low: list[float]
    high: list[float]
    tokens: list[float]
    sampled: list[float]
    """Success of the graphs that were sampled in this step, on training episodes."""


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """All figures, and where they come from."""

    origin: Origin
    budget: Budget
    commits: list[str]
    data: dict[str, str]
    """SHA-256 of each cell."""
    choices: list[Choice]
    needed: int
    """Senders that some training template needs."""
    rows: list[Row]
    contrasts: list[Contrast]
    speeds: list[Speed]
    lines: list[Line]


def study_of(folder: Path) -> Study:
    """The figures of what is in a folder."""
    found = read_cells(folder, Cell)
    cells = list(found.values())
    budget = msgspec.json.decode((folder / "settings.json").read_bytes(), type=Budget)
    oracle = msgspec.json.decode((folder / "oracle.json").read_bytes(), type=dict[str, Played])
    chosen = sorted((folder / "choices").glob("*.json"))
    arms = {
        name: sorted((c for c in cells if c.arm == name), key=lambda c: c.seed) for name in ARMS
    }
    arms = {name: own for name, own in arms.items() if own}
    size = Sizes(budget)
    return Study(
        origin=origin("python -m benchmarks.studies.edge_credit"),
        budget=budget,
        commits=sorted({cell.commit for cell in cells}),
        data=file_hashes([*chosen, *found]),
        choices=[msgspec.json.decode(path.read_bytes(), type=Choice) for path in chosen],
        needed=len(_needed()),
        rows=[_oracle(oracle[t], t) for t in TEMPLATES]
        + [_as_split(t) for t in TEMPLATES]
        + [
            _row(name, [c.tests[p][t] for c in own], t, p, size.episodes(step))
            for t in TEMPLATES
            for p, step in budget.points().items()
            for name, own in arms.items()
        ],
        contrasts=_contrasts(arms, budget),
        speeds=[_speed(name, own, size, oracle["train"].tokens) for name, own in arms.items()],
        lines=[_line(name, own, t, size) for t in TEMPLATES for name, own in arms.items()],
    )


class Sizes:
    """Training episodes of a number of steps."""

    def __init__(self, budget: Budget) -> None:
        self._each = budget.plan(Setting()).episodes // budget.steps

    def episodes(self, steps: int) -> int:
        return steps * self._each


def _row(name: str, tested: Sequence[Played], templates: str, point: str, episodes: int) -> Row:
    rate = clustered_mean([o for one in tested for o in one.outcomes])
    assert rate is not None, f"{name}: every episode has a fault"
    each = [one.success for one in tested]
    t, spent = _t(each), _t([one.tokens for one in tested])
    return Row(
        name=name, templates=templates, point=point, training_episodes=episodes,
        success=round(rate.mean, 4), low=round(rate.low, 4), high=round(rate.high, 4),
        t_low=_round(t, "low"), t_high=_round(t, "high"), by_seed=[round(v, 4) for v in each],
        seeds=len(tested), episodes=len(tested[0].outcomes),
        tokens=round(fmean(one.tokens for one in tested), 1),
        tokens_low=_round(spent, "low", 1), tokens_high=_round(spent, "high", 1),
    )  # fmt: skip


def _oracle(tested: Played, templates: str) -> Row:
    return msgspec.structs.replace(_row(ORACLE, [tested], templates, "all", 0), seeds=0)


def _as_split(templates: str) -> Row:
    """The row of learned edges in the record of the study of split facts."""
    split = read_record("split", SplitStudy)
    row = next(r for r in split.rows if (r.name, r.templates) == ("learned edges", templates))
    return Row(
        name=AS_SPLIT, templates=templates, point="all",
        training_episodes=split.learning_episodes, success=row.success, low=row.low,
        high=row.high, t_low=None, t_high=None, by_seed=[], seeds=row.seeds,
        episodes=row.episodes, tokens=row.tokens, tokens_low=None, tokens_high=None,
    )  # fmt: skip


def _contrasts(arms: dict[str, list[Cell]], budget: Budget) -> list[Contrast]:
    pairs = [*CONTRASTS, *((n, CONTRASTS[0][1]) for n in arms if n not in sum(CONTRASTS, ()))]
    return [
        _contrast(arms[ours], arms[theirs], templates, point, measure)
        for measure in ("success", "tokens")
        for templates in TEMPLATES
        for point in budget.points()
        for ours, theirs in pairs
        if ours in arms and theirs in arms
    ]


def _contrast(
    ours: Sequence[Cell], theirs: Sequence[Cell], templates: str, point: str, measure: str
) -> Contrast:
    """Over the seeds that both have."""
    mine = {cell.seed: cell.tests[point][templates] for cell in ours}
    other = {cell.seed: cell.tests[point][templates] for cell in theirs}
    seeds = sorted(set(mine) & set(other))
    each = [
        mine[s].success - other[s].success
        if measure == "success"
        else mine[s].tokens - other[s].tokens
        for s in seeds
    ]
    t, digits = _t(each), 4 if measure == "success" else 1
    gap = t
    if measure == "success":
        gap = clustered_difference(
            [o for s in seeds for o in mine[s].outcomes],
            [o for s in seeds for o in other[s].outcomes],
        )
    low, high = (fmean(each), fmean(each)) if gap is None else (gap.low, gap.high)
    pair = (ours[0].arm, theirs[0].arm)
    at = MAIN if measure == "success" else "all"
    return Contrast(
        ours=pair[0], theirs=pair[1], templates=templates, point=point, measure=measure,
        named=pair in CONTRASTS and templates == "train" and point == at,
        difference=round(fmean(each), digits), low=round(low, digits), high=round(high, digits),
        t_low=_round(t, "low", digits), t_high=_round(t, "high", digits),
        by_seed=[round(value, digits) for value in each],
    )  # fmt: skip


def _speed(name: str, cells: Sequence[Cell], size: Sizes, tokens: float) -> Speed:
    ends = {most: [cell.reached(most) for cell in cells] for most in (math.inf, CHEAP * tokens)}
    reached, cheap = (
        [None if step is None else size.episodes(step) for step in steps] for steps in ends.values()
    )
    needed = _needed()
    found = [
        {(s, r) for acting, edges in cell.learned.edges.items() for s, r in edges if r == acting}
        for cell in cells
    ]
    totals = [sum(map(len, cell.learned.edges.values())) for cell in cells]
    hits = [len(own & needed) for own in found]
    return Speed(
        name=name,
        setting=cells[0].setting,
        reached=reached,
        cheap=cheap,
        calls=round(fmean(cell.learned.calls for cell in cells), 1),
        credit_calls=round(fmean(cell.credit_calls for cell in cells), 1),
        needed_found=hits,
        other_edges=[total - hit for total, hit in zip(totals, hits, strict=True)],
        seconds=round(fmean(cell.learned.seconds for cell in cells), 1),
    )


def _needed() -> set[tuple[str, str]]:
    return {(app, acting) for acting, apps in needed_edges().items() for app in apps}


def _line(name: str, cells: Sequence[Cell], templates: str, size: Sizes) -> Line:
    columns = list(zip(*(cell.curve[templates] for cell in cells), strict=True))
    found = [_t([success for success, _ in column]) for column in columns]
    means = [fmean(success for success, _ in column) for column in columns]
    ends = [
        (mean, mean) if t is None else (max(0.0, t.low), min(1.0, t.high))
        for mean, t in zip(means, found, strict=True)
    ]
    sampled = zip(*(cell.learned.success for cell in cells), strict=True)
    return Line(
        name=name,
        templates=templates,
        episodes=[size.episodes(step + 1) for step in range(len(columns))],
        success=[round(mean, 4) for mean in means],
        low=[round(low, 4) for low, _ in ends],
        high=[round(high, 4) for _, high in ends],
        tokens=[round(fmean(spent for _, spent in column), 1) for column in columns],
        sampled=[round(fmean(column), 4) for column in sampled],
    )


def _t(values: Sequence[float]) -> Interval | None:
    return over_seeds(values) if len(values) >= rates.FEW else None


def _round(interval: Interval | None, end: str, digits: int = 4) -> float | None:
    return None if interval is None else round(float(getattr(interval, end)), digits)


# -- tables ---------------------------------------------------------------------------------------


def markdown(study: Study) -> str:
    """All tables."""
    dirty = " with changes" if study.origin.dirty else ""
    head = f"Commit {study.origin.commit[:10]}{dirty}, {study.origin.machine}. {_NOTE}"
    parts = [head, curve_table(study), speed_table(study), contrasts_table(study)]
    return "\n\n".join([*parts, choices_table(study)])


def curve_table(study: Study) -> str:
    """Success and tokens at the points of the budget, on known templates; the last two columns
    are new templates."""
    points = list(study.budget.points())
    rows = {(r.name, r.templates, r.point): r for r in study.rows}
    counts = {r.point: r.training_episodes for r in study.rows if r.name == study.speeds[0].name}
    head = ["edges learn from", *(f"after {counts[p]:,} episodes" for p in points), "tokens",
            "new templates", "tokens there"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 1)]
    runs = {row.name: row.seeds for row in study.rows}
    for name in [ORACLE, AS_SPLIT, *(speed.name for speed in study.speeds)]:
        known, new = rows[name, "train", "all"], rows[name, "new_templates", "all"]
        cells = [_rate(rows[name, "train", p]) if (name, "train", p) in rows else "–"
                 for p in points]  # fmt: skip
        cells += [f"{known.tokens:,.0f}", _rate(new), f"{new.tokens:,.0f}"]
        label = f"{name}, {runs[name]} run{'s' * (runs[name] > 1)}" if runs[name] else name
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def speed_table(study: Study) -> str:
    """Episodes until known templates are near the oracle, calls, and the edges that were found."""
    head = ["edges learn from", "episodes to 95 % of the oracle, each run",
            f"the same with at most {CHEAP:g} times its tokens",
            f"needed senders of {study.needed}", "other edges", "calls of the episodes",
            "calls for credit", "CPU-s"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "| --- | --- | --- |" + " ---: |" * (len(head) - 3)]
    for one in study.speeds:
        reached, cheap = (
            ", ".join("never" if v is None else f"{v:,}" for v in values)
            for values in (one.reached, one.cheap)
        )
        needed, others = (_span(v) for v in (one.needed_found, one.other_edges))
        lines.append(
            f"| {one.name} | {reached} | {cheap} | {needed} | {others} | {one.calls:,.0f} | "
            f"{one.credit_calls:,.0f} | {one.seconds:.0f} |"
        )
    return "\n".join(lines)


def contrasts_table(study: Study) -> str:
    """The named differences in bold, and the same at the other points, which are exploratory."""
    head = ["difference", "templates", "after", "success, points", "t over runs", "tokens"]
    lines = [f"| {' | '.join(head)} |", "| --- | --- | --- |" + " ---: |" * 3]
    spent = {(c.ours, c.templates, c.point): c for c in study.contrasts if c.measure == "tokens"}
    for one in study.contrasts:
        if one.measure == "success":
            other = spent[one.ours, one.templates, one.point]
            gap = _points(one.difference, one.low, one.high)
            t = (
                "–"
                if one.t_low is None
                else f"[{100 * one.t_low:+.1f}, {100 * (one.t_high or 0):+.1f}]"
            )
            cost = f"{other.difference:+,.0f}"
            if other.t_low is not None:
                cost += f" [{other.low:+,.0f}, {other.high:+,.0f}]"
            shown = [_bold(gap, one.named), t, _bold(cost, other.named)]
            where = [f"{one.ours} - {one.theirs}", LABELS[one.templates], one.point]
            lines.append(f"| {' | '.join([*where, *shown])} |")
    return "\n".join(lines)


def choices_table(study: Study) -> str:
    """The settings that were tried on validation parameters; the chosen ones are bold."""
    lines = ["| arm | setting | mean success % | tokens |", "| --- | --- | ---: | ---: |"]
    for choice in study.choices:
        for setting, success, spent in choice.tried:
            label = _bold(setting_label(setting), setting == choice.setting)
            lines.append(f"| {choice.arm} | {label} | {100 * success:.1f} | {spent:,.0f} |")
    return "\n".join(lines)


def setting_label(setting: Setting) -> str:
    """A setting in words."""
    if setting.weight:
        return f"credit weight {setting.weight:g}, discount {setting.discount:g}"
    scaled = ", utilities in standard deviations" if setting.normalise else ""
    return f"learning rate {setting.lr:g}{scaled}"


def _bold(text: str, strong: bool) -> str:
    return f"**{text}**" if strong else text


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}–{high}"


def _range(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"[{100 * low:+.1f}, {100 * high:+.1f}]"


def _rate(row: Row) -> str:
    return Interval(mean=row.success, low=row.low, high=row.high, n=row.episodes).percent()


def _points(mean: float, low: float, high: float) -> str:
    return Interval(mean=mean, low=low, high=high, n=0).percent(signed=True)
