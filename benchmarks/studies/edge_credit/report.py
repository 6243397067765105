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
from benchmarks.studies.struct_files import Sources, read_cells, read_struct, sources_of
from benchmarks.support.records import read_record
from benchmarks.support.tables import markdown_table

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


class Study(Sources, frozen=True, kw_only=True):
    """All figures, and where they come from."""

    budget: Budget
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
    budget = read_struct(folder / "settings.json", Budget)
    oracle = read_struct(folder / "oracle.json", dict[str, Played])
    chosen = sorted((folder / "choices").glob("*.json"))
    arms = {
        name: sorted((c for c in cells if c.arm == name), key=lambda c: c.seed) for name in ARMS
    }
    arms = {name: own for name, own in arms.items() if own}
    size = Sizes(budget)
    return Study(
        **sources_of("edge_credit", [*chosen, *found], (cell.commit for cell in cells)),
        budget=budget,
        choices=[read_struct(path, Choice) for path in chosen],
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
    spent = [one.tokens for one in tested]
    tokens_low, tokens_high = rates.bounds(spent, 1)
    row = rates.row(name, [o for one in tested for o in one.outcomes])
    return Row(
        **msgspec.structs.asdict(row), templates=templates, point=point,
        training_episodes=episodes, tokens=round(fmean(spent), 1), tokens_low=tokens_low,
        tokens_high=tokens_high,
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
    pair = (ours[0].arm, theirs[0].arm)
    at = MAIN if measure == "success" else "all"
    named = pair in CONTRASTS and templates == "train" and point == at
    if measure == "success":
        sides = [[o for played in side.values() for o in played.outcomes] for side in (mine, other)]
        gap = rates.contrast((pair[0], sides[0]), (pair[1], sides[1]), named=named)
    else:
        each = [mine[s].tokens - other[s].tokens for s in sorted(set(mine) & set(other))]
        difference, (low, high) = round(fmean(each), 1), rates.bounds(each, 1)
        gap = rates.Contrast(
            ours=pair[0], theirs=pair[1], named=named, difference=difference,
            low=difference if low is None else low, high=difference if high is None else high,
            t_low=low, t_high=high, by_seed=[round(value, 1) for value in each],
        )  # fmt: skip
    return Contrast(
        **msgspec.structs.asdict(gap), templates=templates, point=point, measure=measure
    )


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
    found = [rates.student([success for success, _ in column]) for column in columns]
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


# -- tables ---------------------------------------------------------------------------------------


def markdown(study: Study) -> str:
    """All tables."""
    tables = [curve_table(study), speed_table(study), contrasts_table(study), choices_table(study)]
    return "\n\n".join([f"{study.origin.place}. {_NOTE}", *tables])


def curve_table(study: Study) -> str:
    """Success and tokens at the points of the budget, on known templates; the last two columns
    are new templates."""
    points = list(study.budget.points())
    rows = {(r.name, r.templates, r.point): r for r in study.rows}
    counts = {r.point: r.training_episodes for r in study.rows if r.name == study.speeds[0].name}
    heads = ["edges learn from", *(f"after {counts[p]:,} episodes" for p in points), "tokens",
             "new templates", "tokens there"]  # fmt: skip
    lines = []
    runs = {row.name: row.seeds for row in study.rows}
    for name in [ORACLE, AS_SPLIT, *(speed.name for speed in study.speeds)]:
        known, new = rows[name, "train", "all"], rows[name, "new_templates", "all"]
        played = [rows.get((name, "train", p)) for p in points]
        cells = ["–" if row is None else rates.success_shown(row) for row in played]
        cells += [f"{known.tokens:,.0f}", rates.success_shown(new), f"{new.tokens:,.0f}"]
        label = f"{name}, {runs[name]} run{'s' * (runs[name] > 1)}" if runs[name] else name
        lines.append([label, *cells])
    return markdown_table(heads, lines, "lr")


def speed_table(study: Study) -> str:
    """Episodes until known templates are near the oracle, calls, and the edges that were found."""
    heads = ("edges learn from", "episodes to 95 % of the oracle, each run",
             f"the same with at most {CHEAP:g} times its tokens",
             f"needed edges of {study.needed}", "other edges", "calls of the episodes",
             "calls for credit", "CPU-s")  # fmt: skip
    lines = []
    for one in study.speeds:
        reached, cheap = (
            ", ".join("never" if v is None else f"{v:,}" for v in values)
            for values in (one.reached, one.cheap)
        )
        lines.append((
            one.name, reached, cheap, _span(one.needed_found), _span(one.other_edges),
            f"{one.calls:,.0f}", f"{one.credit_calls:,.0f}", f"{one.seconds:.0f}",
        ))  # fmt: skip
    return markdown_table(heads, lines, "lllr")


def contrasts_table(study: Study) -> str:
    """The named differences in bold, and the same at the other points, which are exploratory."""
    heads = ("difference", "templates", "after", "success, points", "t over runs", "tokens")
    lines = []
    spent = {(c.ours, c.templates, c.point): c for c in study.contrasts if c.measure == "tokens"}
    for one in study.contrasts:
        if one.measure == "success":
            other = spent[one.ours, one.templates, one.point]
            cost = f"{other.difference:+,.0f}"
            if other.t_low is not None:
                cost += f" [{other.low:+,.0f}, {other.high:+,.0f}]"
            lines.append((
                f"{one.ours} - {one.theirs}", LABELS[one.templates], one.point,
                rates.difference_shown(one), rates.seeds_shown(one), _bold(cost, other.named),
            ))  # fmt: skip
    return markdown_table(heads, lines, "lllr")


def choices_table(study: Study) -> str:
    """The settings that were tried on validation parameters; the chosen ones are bold."""
    lines = [
        (choice.arm, _bold(setting_label(setting), setting == choice.setting),
         f"{100 * success:.1f}", f"{spent:,.0f}")
        for choice in study.choices
        for setting, success, spent in choice.tried
    ]  # fmt: skip
    return markdown_table(("arm", "setting", "mean success %", "tokens"), lines, "llr")


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
