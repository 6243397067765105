"""Tables of success rates and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.stats.clustered import clustered_mean, paired_difference
from swarm_ui.stats.interval import Interval, Outcome


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a results table."""

    label: str
    success: Interval | None
    """``None`` if every episode was masked."""
    masked: int
    """Episodes left out because of a fault."""
    difference: Interval | None = None
    """Paired difference to the row of comparison; ``None`` in the row of comparison itself."""


def table(results: Mapping[str, Sequence[Outcome]], *, against: str | None = None) -> list[Row]:
    """One row for each policy, all run on the same episodes. Intervals are clustered by template.

    Args:
        results: outcomes by label, in the order of the rows; see :func:`~swarm_ui.stats.outcomes`.
        against: label of the row that the others are compared with, by
            :func:`~swarm_ui.stats.paired_difference`.
    """
    if against is not None and against not in results:
        raise ConfigError(f"no row '{against}' to compare with; there are {', '.join(results)}")
    rows = []
    for label, ours in results.items():
        if not all(isinstance(outcome, Outcome) for outcome in ours):
            raise ConfigError(
                f"row '{label}' has outcomes without their task, by which intervals are clustered: "
                "expected the records that outcomes(episodes) returns"
            )
        difference = None
        if against is not None and label != against:
            difference = paired_difference(ours, results[against])
        rows.append(
            Row(
                label=label,
                success=clustered_mean(ours),
                masked=sum(outcome.value is None for outcome in ours),
                difference=difference,
            )
        )
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
