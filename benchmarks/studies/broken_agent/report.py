"""The figures of the study: rows and differences of each setting, the search, and the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.broken_agent.arms import ARMS, KINDS, SIGHTS, BrokenCell, Kind, Sight
from benchmarks.studies.broken_agent.plan import CONTRASTS, EXPLORED, HALF, MAIN, Plan
from benchmarks.studies.struct_files import Sources, read_cells, read_struct, sources_of
from benchmarks.support.tables import markdown_table
from swarm_ui.stats import Outcome

_SIGHTS: dict[Sight, str] = {"screen": "the whole screen", "half": "half of a long screen"}
_KINDS: dict[Kind, str] = {"random": "random actions", "wrong": "plausible mistakes"}
_NOTE = "The phone is simulated, the critic scripted: scores on it are not AndroidWorld scores."


class Row(rates.Row, frozen=True, kw_only=True):
    """One arm of one setting."""

    sight: Sight
    kind: Kind
    arm: str


class Contrast(rates.Contrast, frozen=True, kw_only=True):
    """A difference of two arms of one setting."""

    sight: Sight
    kind: Kind


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """How the broken agent was searched in one setting, and what its removal gives back."""

    sight: Sight
    kind: Kind
    seeds: list[int]
    broken: list[str]
    """The broken agent of each seed."""
    found: int
    """Seeds in which the broken agent, and no other, was found."""
    found_in_healthy: int
    """Seeds in which an agent of the healthy team was found."""
    credit_gap: float
    """How far the broken agent's credit lies below the median of its colleagues, mean."""
    largest_healthy_gap: float
    """Largest distance of a healthy agent's credit from the median of its colleagues."""
    recovered: float | None
    """Share of the loss that removing edges and vote gives back; ``None``: there is no loss."""
    seconds: float
    """CPU time of all seeds."""


class Study(Sources, frozen=True, kw_only=True):
    """All figures, and where they come from."""

    plan: Plan
    agents: dict[Sight, list[str]]
    """SHA-256 of the agents' weights."""
    rows: list[Row]
    contrasts: list[Contrast]
    searches: list[Search]


def study_of(folder: Path) -> Study:
    """The figures of what is in a folder."""
    found = read_cells(folder, BrokenCell)
    cells = list(found.values())
    settings = [
        sorted((c for c in cells if (c.sight, c.kind) == (sight, kind)), key=lambda c: c.seed)
        for sight in SIGHTS
        for kind in KINDS
    ]
    settings = [own for own in settings if own]
    return Study(
        **sources_of("broken_agent", found, (cell.commit for cell in cells)),
        plan=read_struct(folder / "settings.json", Plan),
        agents={
            sight: sorted({cell.agent for cell in cells if cell.sight == sight})
            for sight in dict.fromkeys(own[0].sight for own in settings)
        },
        rows=[row for own in settings for row in _rows(own)],
        contrasts=[one for own in settings for one in _contrasts(own)],
        searches=[_search(own) for own in settings],
    )


def _rows(cells: Sequence[BrokenCell]) -> list[Row]:
    sight, kind = cells[0].sight, cells[0].kind
    return [
        Row(
            **msgspec.structs.asdict(rates.row(arm.label, _pooled(cells, arm.name))),
            sight=sight, kind=kind, arm=arm.name,
        )
        for arm in ARMS
    ]  # fmt: skip


def _contrasts(cells: Sequence[BrokenCell]) -> list[Contrast]:
    sight, kind = cells[0].sight, cells[0].kind
    found = {arm.name: (arm.label, _pooled(cells, arm.name)) for arm in ARMS}
    main = (sight, kind) == MAIN
    pairs = [
        *(rates.contrast(found[a], found[b], named=main) for a, b in CONTRASTS),
        *(rates.contrast(found[a], found[b], named=False) for a, b in EXPLORED),
        rates.contrast(found["cut"], (HALF, halfway(found)), named=False),
    ]
    return [Contrast(**msgspec.structs.asdict(one), sight=sight, kind=kind) for one in pairs]


def halfway(found: Mapping[str, tuple[str, Sequence[Outcome]]]) -> list[Outcome]:
    """The mean of the broken and the healthy team in each episode."""
    both = zip(found["full"][1], found["healthy"][1], strict=True)
    return [
        msgspec.structs.replace(
            a, value=None if a.value is None or b.value is None else (a.value + b.value) / 2
        )
        for a, b in both
    ]


def _search(cells: Sequence[BrokenCell]) -> Search:
    gaps = [a.gap.mean for c in cells for a in c.audits if a.agent == c.broken and a.gap]
    others = [
        abs(a.gap.mean)
        for c in cells
        for a in (*(a for a in c.audits if a.agent != c.broken), *c.healthy_audits)
        if a.gap
    ]
    return Search(
        sight=cells[0].sight, kind=cells[0].kind, seeds=[cell.seed for cell in cells],
        broken=[cell.broken for cell in cells],
        found=sum(cell.found == (cell.broken,) for cell in cells),
        found_in_healthy=sum(bool(cell.healthy_found) for cell in cells),
        credit_gap=round(-fmean(gaps), 4) if gaps else 0.0,
        largest_healthy_gap=round(max(others, default=0.0), 4),
        recovered=recovered(cells), seconds=round(sum(cell.seconds for cell in cells), 1),
    )  # fmt: skip


def recovered(cells: Sequence[BrokenCell]) -> float | None:
    """Share of the loss caused by the broken agent that is recovered by removing it."""
    full, cut, healthy = (rates.mean(_pooled(cells, name)) for name in ("full", "cut", "healthy"))
    return round((cut - full) / (healthy - full), 4) if healthy > full else None


def _pooled(cells: Sequence[BrokenCell], arm: str) -> list[Outcome]:
    return [outcome for cell in cells for outcome in cell.outcomes[arm]]


# -- tables ---------------------------------------------------------------------------------------


def markdown(study: Study) -> str:
    """All tables."""
    sections = (section(study, one) for one in study.searches)
    return "\n\n".join([main_table(study), *sections, _NOTE])


def main_table(study: Study) -> str:
    """One row for each setting: the healthy, the broken and the repaired team."""
    rows = {(row.sight, row.kind, row.arm): row for row in study.rows}
    gaps = {(c.sight, c.kind, c.ours, c.theirs): c for c in study.contrasts}
    labels = {arm.name: arm.label for arm in ARMS}
    lines = []
    for one in study.searches:
        place = (one.sight, one.kind)
        shown = [rates.success_shown(rows[*place, arm]) for arm in ("healthy", "full", "cut")]
        found = [
            rates.difference_shown(gaps[*place, labels[ours], labels[theirs]])
            for ours, theirs in CONTRASTS
        ]
        lines.append((_SIGHTS[one.sight], _KINDS[one.kind], *shown, *found))
    heads = ("each agent sees", "the broken agent sends", "healthy %", "broken %", "repaired %",
             "broken - healthy", "repaired - broken", "repaired - no edges")  # fmt: skip
    return markdown_table(heads, lines)


def section(study: Study, search: Search) -> str:
    """The tables of one setting under its heading."""
    sight, kind = SIGHTS[search.sight], KINDS[search.kind]
    heading = f"### {sight[:1].upper()}{sight[1:]}; {kind}"
    parts = [heading, _searched(search), rows_table(study, search), gaps_table(study, search)]
    return "\n\n".join(parts)


def _searched(one: Search) -> str:
    count = len(one.seeds)
    text = (
        f"In each of {count} seed{'s' * (count > 1)} a different agent is broken "
        f"({', '.join(one.broken)}). Credit alone identified the broken agent in {one.found} of "
        f"{count} seeds. In the team without a broken agent, credit flagged an agent in "
        f"{one.found_in_healthy} of {count} seeds. The broken agent's credit lies "
        f"{one.credit_gap:.2f} below the median of the other agents. The credit of every healthy "
        f"agent lies within {one.largest_healthy_gap:.2f} of this median."
    )
    if one.recovered is not None:
        share = f"{100 * one.recovered:.0f} %"
        text += (
            " The broken agent lowers success; removing its edges and its vote recovers "
            f"{share} of the loss."
        )
    return text


def rows_table(study: Study, search: Search) -> str:
    """The arms of one setting."""
    lines = [
        (one.name, rates.success_shown(one), rates.seeds_shown(one), rates.each_shown(one),
         one.seeds)
        for one in study.rows
        if (one.sight, one.kind) == (search.sight, search.kind)
    ]  # fmt: skip
    return markdown_table(("team", "success %", "Student-t", "each seed", "seeds"), lines, "llllr")


def gaps_table(study: Study, search: Search) -> str:
    """The differences of one setting; those that were named before are bold."""
    own = [c for c in study.contrasts if (c.sight, c.kind) == (search.sight, search.kind)]
    return rates.contrasts_table(own)
