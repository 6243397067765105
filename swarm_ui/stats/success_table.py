"""Tables of success rates and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.stats.clustered import clustered_difference, clustered_mean
from swarm_ui.stats.interval import Interval, Outcome, Outcomes, wilson
from swarm_ui.stats.paired import paired_difference


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a results table."""

    label: str
    success: Interval | None
    """``None`` if every episode was masked."""
    masked: int
    """Episodes left out because of a fault."""
    difference: Interval | None = None
    """Paired difference to the row of comparison; ``None`` in the row of comparison itself."""


def table(
    results: Mapping[str, Outcomes] | Mapping[str, Sequence[Outcome]],
    *,
    against: str | None = None,
) -> list[Row]:
    """One row for each policy, all run on the same episodes.

    Args:
        results: outcomes by label, in the order of the rows. With :class:`Outcome` records the
            intervals are clustered by template. Plain numbers must be in the same order in all
            rows; they get a Wilson interval, and a normal one for the difference.
        against: label of the row that the others are compared with.
    """
    if against is not None and against not in results:
        raise ConfigError(f"no row '{against}' to compare with; there are {', '.join(results)}")
    records = {label: [o for o in row if isinstance(o, Outcome)] for label, row in results.items()}
    numbers = {
        label: [o for o in row if not isinstance(o, Outcome)] for label, row in results.items()
    }
    rows = []
    for label in results:
        ours, plain = records[label], numbers[label]
        success = clustered_mean(ours) if ours else wilson(plain)
        difference = None
        if against is not None and label != against:
            difference = (
                clustered_difference(ours, records[against])
                if ours
                else paired_difference(plain, numbers[against])
            )
        masked = sum(v is None for v in (*plain, *(o.value for o in ours)))
        rows.append(Row(label=label, success=success, masked=masked, difference=difference))
    return rows


def markdown(rows: Sequence[Row], *, against: str = "the first row") -> str:
    """The rows as a Markdown table, in percent."""
    lines = [
        f"| policy | success % [95 %] | difference to {against} | episodes | masked |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        success = "–" if row.success is None else row.success.percent()
        gap = "–" if row.difference is None else row.difference.percent(signed=True)
        count = 0 if row.success is None else row.success.n
        lines.append(f"| {row.label} | {success} | {gap} | {count} | {row.masked} |")
    return "\n".join(lines)
