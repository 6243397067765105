"""Rows and differences of a study, computed from its cells; tables in Markdown; parts of the page.

All intervals are 95 %. Those of success and of differences are clustered by template and, if there
are several seeds, by seed; Student's t over the seeds is beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from benchmarks.cell import Cell
from benchmarks.study import Pair, Study
from swarm_ui.errors import ConfigError
from swarm_ui.stats import Interval, Outcome, clustered_difference, clustered_mean, over_seeds

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results.md"
_FEW = 3
"""With fewer seeds there is no interval over seeds."""
_DIGITS = 6
_DOUBT = "†"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The success of an arm on a split; shares are in [0, 1]."""

    arm: str
    split: str
    success: float
    low: float
    high: float
    """Clustered by template and seed."""
    t_low: float | None = None
    t_high: float | None = None
    """Student's t over seeds; ``None``: fewer than three seeds."""
    by_seed: list[float]
    seeds: int
    """0: the study trained nothing."""
    episodes: int
    """Of each seed, also those that a fault masked."""
    work: dict[str, float]
    """Means over the seeds."""
    doubt: str = ""
    """Why the source of a cell cannot be looked up."""


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """An arm minus another, on the same episodes and with the same seeds."""

    ours: str
    theirs: str
    split: str
    named: bool
    """Whether it was named before the study ran; if not, it is exploratory."""
    difference: float
    low: float
    high: float
    t_low: float | None
    t_high: float | None
    by_seed: list[float]
    tokens: float | None = None
    """Difference of the mean tokens of an episode."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of a study."""

    rows: list[Row]
    contrasts: list[Contrast]


def table(study: Study, cells: Sequence[Cell], *, page_only: bool = False) -> Table:
    """The rows and differences of the cells; ``page_only``: those that are on the page."""
    found = _by_arm([*cells, *(study.derived(cells) if study.derived else ())])
    for name, parts in study.means.items():
        if all(part in found for part in parts):
            found[name] = _mean(name, [found[part] for part in parts])
    splits = list(dict.fromkeys(s for own in found.values() for c in own for s in c.outcomes))
    named_on = study.named_on or splits
    pairs = [(pair, split, split in named_on) for pair in study.named for split in splits]
    pairs += [(pair, split, False) for pair in study.explored for split in splits]
    arms = [arm for arm in (study.shown if page_only else found) if arm in found]
    places = [split for split in splits if split in study.shown_on or not study.shown_on]
    rows = [row for arm in arms for row in _published(arm, found[arm])]
    rows += [
        row
        for arm in arms
        for split in (places if page_only else splits)
        if (row := _row(study, arm, found[arm], split)) is not None
    ]
    contrasts = [
        contrast
        for pair, split, named in pairs
        if named or not page_only
        if (contrast := _contrast(found, pair, split, named)) is not None
    ]
    return Table(rows=rows, contrasts=contrasts)


def _by_arm(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.arm, []).append(cell)
    return found


def _mean(name: str, parts: Sequence[Sequence[Cell]]) -> list[Cell]:
    """The mean of several arms in each episode, for the seeds that all have."""
    sides = [{(cell.seed, split): cell for cell in part for split in cell.outcomes}
             for part in parts]  # fmt: skip
    cells = []
    for seed, split in [key for key in sides[0] if all(key in side for side in sides)]:
        own = [side[seed, split] for side in sides]
        same = zip(*(cell.outcomes[split] for cell in own), strict=True)
        doubt = next((cell.origin for cell in own if cell.origin.doubt), own[0].origin)
        work = {place: own[0].work.get(place, {}) for place in ("training", split)}
        outcomes = {split: [_mean_outcome(each) for each in same]}
        cells.append(Cell(arm=name, seed=seed, outcomes=outcomes, work=work, origin=doubt))
    return cells


def _mean_outcome(same: Sequence[Outcome]) -> Outcome:
    values = [o.value for o in same if o.value is not None]
    return msgspec.structs.replace(same[0], value=fmean(values) if values else None)


def _published(arm: str, cells: Sequence[Cell]) -> list[Row]:
    """Rows whose outcomes were not kept, as they were computed then."""
    return [
        Row(
            arm=arm, split=split, doubt="outcomes were not kept",
            work={k: one[k] for k in ("calls", "cpu_s")},
            **{k: one[k] for k in ("success", "low", "high", "by_seed", "seeds", "episodes")},
        )
        for cell in cells
        for split, one in cell.notes.get("published", {}).items()
    ]  # fmt: skip


def _row(study: Study, arm: str, cells: Sequence[Cell], split: str) -> Row | None:
    own = [cell for cell in cells if split in cell.outcomes]
    outcomes = [o for cell in own for o in cell.outcomes[split]]
    rate = clustered_mean(outcomes if study.pooled else _over_seeds(outcomes))
    if rate is None:
        return None
    each = [_success(cell.outcomes[split]) for cell in own]
    trained = own[0].seed is not None
    low, high = _student(each if trained and study.pooled else [])
    work: dict[str, list[float]] = {}
    for place in ("training", split):
        prefix = "training " if place == "training" else ""
        for cell in own:
            for key, value in cell.work.get(place, {}).items():
                work.setdefault(prefix + key, []).append(value)
    return Row(
        arm=arm, split=split, success=_rounded(rate.mean), low=_rounded(rate.low),
        high=_rounded(rate.high), t_low=low, t_high=high, by_seed=[_rounded(v) for v in each],
        seeds=len(own) if trained or len(own) > 1 else 0, episodes=len(outcomes) // len(own),
        work={key: round(fmean(values), 1) for key, values in work.items()},
        doubt=next((cell.origin.doubt for cell in own if cell.origin.doubt), ""),
    )  # fmt: skip


def _over_seeds(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Each episode once, with its mean over the seeds that played it."""
    found: dict[tuple[str, int], list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault((outcome.template, outcome.seed), []).append(outcome)
    return [msgspec.structs.replace(_mean_outcome(same), run=0) for same in found.values()]


def _contrast(
    found: Mapping[str, Sequence[Cell]], pair: Pair, split: str, named: bool
) -> Contrast | None:
    """The difference on one split, on the episodes that both sides played; ``None`` if a side has
    no such outcomes.

    An arm that was trained is compared on common seeds; one that was not counts for every seed.
    """
    sides = [{c.seed: c for c in found.get(arm, ()) if split in c.outcomes} for arm in pair]
    seeds = _common_seeds(*sides)
    cells = [[side.get(seed) or side[None] for seed in seeds] for side in sides]
    every = [
        [msgspec.structs.replace(o, run=seed or 0)
         for seed, cell in zip(seeds, own, strict=True) for o in cell.outcomes[split]]
        for own in cells
    ]  # fmt: skip
    both = set.intersection(*({(o.template, o.seed) for o in own} for own in every))
    ours, theirs = ([o for o in own if (o.template, o.seed) in both] for own in every)
    gap = clustered_difference(ours, theirs) if ours else None
    if gap is None:
        return None
    each = [
        _success([o for o in ours if o.run == (s or 0)])
        - _success([o for o in theirs if o.run == (s or 0)])
        for s in seeds
    ]
    low, high = _student(each if seeds != [None] else [])
    spent = [[cell.work.get(split, {}).get("tokens") for cell in own] for own in cells]
    more = [a - b for a, b in zip(*spent, strict=True) if a is not None and b is not None]
    return Contrast(
        ours=pair[0], theirs=pair[1], split=split, named=named,
        difference=_rounded(gap.mean), low=_rounded(gap.low), high=_rounded(gap.high),
        t_low=low, t_high=high, by_seed=[_rounded(v) for v in each],
        tokens=round(fmean(more), 1) if more and len(more) == len(seeds) else None,
    )  # fmt: skip


def _common_seeds(
    ours: Mapping[int | None, Cell], theirs: Mapping[int | None, Cell]
) -> Sequence[int | None]:
    if not ours or not theirs:
        return []
    sides = [{seed for seed in side if seed is not None} for side in (ours, theirs)]
    if None in ours or None in theirs:
        return sorted(sides[0] | sides[1]) or [None]
    return sorted(sides[0] & sides[1])


def _success(outcomes: Sequence[Outcome]) -> float:
    return fmean(o.value for o in outcomes if o.value is not None)


def _student(values: Sequence[float]) -> tuple[float | None, float | None]:
    found = over_seeds(values) if len(values) >= _FEW else None
    return (None, None) if found is None else (_rounded(found.low), _rounded(found.high))


def _rounded(value: float) -> float:
    return round(value, _DIGITS)


# -- Markdown -------------------------------------------------------------------------------------


def markdown(study: Study, found: Table, cells: Sequence[Cell]) -> str:
    """All tables: rows by split, differences, further tables of the study."""
    parts = []
    for split in dict.fromkeys(row.split for row in found.rows):
        parts.append(_rows_table(split, [row for row in found.rows if row.split == split]))
    if found.contrasts:
        parts.append(contrasts_table(found.contrasts))
    if study.more is not None:
        parts.append(study.more(cells))
    doubts = dict.fromkeys(row.doubt for row in found.rows if row.doubt)
    parts += [f"{_DOUBT} {', '.join(doubts)}"] if doubts else []
    return "\n\n".join([*parts, study.note])


def _rows_table(split: str, rows: Sequence[Row]) -> str:
    kinds = list(dict.fromkeys(key for row in rows for key in row.work))
    heads = (split, "success %", "Student's t", "each seed", "seeds", "episodes", *kinds)
    lines = [
        (
            f"{row.arm} {_DOUBT}" if row.doubt else row.arm, success_shown(row),
            percent_range(row.t_low, row.t_high),
            ", ".join(f"{100 * value:.1f}" for value in row.by_seed) if row.seeds else "–",
            row.seeds or "–", row.episodes,
            *(f"{row.work[key]:,.0f}" if key in row.work else "–" for key in kinds),
        )
        for row in rows
    ]  # fmt: skip
    return markdown_table(heads, lines, "llllr")


def contrasts_table(contrasts: Sequence[Contrast]) -> str:
    """The named differences first, in bold; the others are exploratory."""
    spent = any(one.tokens is not None for one in contrasts)
    heads = ("difference", "on", "points", "Student's t", "each seed", *["tokens"] * spent)
    lines = [
        (
            f"{one.ours} − {one.theirs}", one.split, difference_shown(one),
            percent_range(one.t_low, one.t_high, signed=True),
            ", ".join(f"{100 * value:+.1f}" for value in one.by_seed),
            *["–" if one.tokens is None else f"{one.tokens:+,.0f}"] * spent,
        )
        for one in sorted(contrasts, key=lambda one: not one.named)
    ]  # fmt: skip
    return markdown_table(heads, lines)


def page_part(study: Study, found: Table) -> str:
    """The part of the page: some rows, all splits side by side, and the named differences."""
    parts = []
    splits = study.shown_on or list(dict.fromkeys(row.split for row in found.rows))
    places = {(row.arm, row.split): row for row in found.rows}
    lines = []
    for arm in study.shown:
        own = [places.get((arm, split)) for split in splits]
        shown = ["–" if row is None else success_shown(row) for row in own]
        lines.append((arm, *shown, max((row.seeds for row in own if row), default=0) or "–"))
    if lines:
        parts.append(markdown_table(("success %", *splits, "seeds"), lines, "lr"))
    gaps = {(one.ours, one.theirs, one.split): one for one in found.contrasts if one.named}
    on = list(dict.fromkeys(split for _, _, split in gaps))
    lines = [
        (f"{ours} − {theirs}", *(
            difference_shown(gap).strip("*") if (gap := gaps.get((ours, theirs, split))) else "–"
            for split in on
        ))
        for ours, theirs in dict.fromkeys((ours, theirs) for ours, theirs, _ in gaps)
    ]  # fmt: skip
    if lines:
        parts.append(markdown_table(("named difference, points", *on), lines))
    return "\n\n".join(parts)


def with_part(page: str, name: str, text: str) -> str:
    """The page with this text between the markers of a study.

    Raises:
        ConfigError: the page lacks the markers.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ConfigError(f"docs/results.md lacks the markers '{begin}' and '{end}': add them")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def success_shown(row: Row) -> str:
    """Success in percent with its clustered interval."""
    return Interval(mean=row.success, low=row.low, high=row.high, n=0).percent()


def difference_shown(one: Contrast) -> str:
    """The difference in points with its clustered interval; bold if it was named before."""
    gap = Interval(mean=one.difference, low=one.low, high=one.high, n=0).percent(signed=True)
    return f"**{gap}**" if one.named else gap


def percent_range(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """An interval in percent."""
    if low is None or high is None:
        return "–"
    sign = "+" if signed else ""
    return f"[{100 * low:{sign}.1f}, {100 * high:{sign}.1f}]"


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[object]], align: str = "l") -> str:
    """A Markdown table.

    Args:
        heads: titles of the columns.
        rows: the cells of each row.
        align: ``l`` (left) or ``r`` (right) for each column; the last one also for those after it.
    """
    rules = [" ---:" if place == "r" else " ---" for place in align.ljust(len(heads), align[-1])]
    lines = [f"| {' | '.join(heads)} |", f"|{' |'.join(rules)} |"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, cells))} |" for cells in rows)])
