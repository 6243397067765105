"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


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
