"""The section of the report on why episodes failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from swarm_ui.report.compressed_episodes import Failed
from swarm_ui.report.html import Markup, join, note, tag
from swarm_ui.report.totals import set_name
from swarm_ui.trace.failures import (
    FAILURE_CLASSES,
    FAILURE_NAMES,
    FAILURE_RULES,
    FailureClass,
)

_EXAMPLES = 3
"""Number of linked episodes of each class."""

Counts = Mapping[str, Mapping[FailureClass, int]]


def failures(shown: Sequence[Failed], tested: Counts) -> Markup:
    """The counts of each class by set, links to examples, and the rules.

    Args:
        shown: the episodes of the viewer that were not solved.
        tested: counts of all tested episodes; empty: those of ``shown`` are counted.

    Returns:
        nothing if no episode failed.
    """
    counts = tested or _counted(shown)
    found = [why for why in FAILURE_CLASSES if any(row.get(why) for row in counts.values())]
    if not found:
        return Markup("")
    names = (tag("th", FAILURE_NAMES[why], scope="col", class_="number") for why in found)
    heads = [tag("th", "episodes", scope="col"), *names]
    rows = [tag("tr", tag("th", tag("span", name or "all", class_="words"), scope="row"),
                *(_number(row.get(why, 0)) for why in found))
            for name, row in counts.items()]  # fmt: skip
    examples = tag("tr", tag("th", "examples", scope="row"),
                   *(_examples(why, shown) for why in found))  # fmt: skip
    grid = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows, examples))
    which = "" if tested else "A run may keep a selection of its episodes. "
    return join(
        tag("div", grid, class_="wide"),
        note(f"{which}Numbers of episodes; each has one class. “World fault” is masked, all others "
             "count as failed. Examples lead to the last step in the viewer."),
        _rules(found),
    )  # fmt: skip


def _counted(shown: Sequence[Failed]) -> Counts:
    counts: dict[str, Counter[FailureClass]] = {}
    for episode in shown:
        counts.setdefault(set_name(episode.set), Counter())[episode.why] += 1
    return counts


def _number(count: int) -> Markup:
    return tag("td", f"{count:,}" if count else "–", class_="number")


def _examples(why: FailureClass, shown: Sequence[Failed]) -> Markup:
    """Links to a few episodes of a class, of different sets first."""
    found = [episode for episode in shown if episode.why == why]
    first = list({set_name(episode.set): episode for episode in reversed(found)}.values())[::-1]
    chosen = [*first, *(episode for episode in found if episode not in first)][:_EXAMPLES]
    links = [
        tag("a", f"#{e.number}", href=f"#{e.number}/{max(1, e.steps)}",
            title=f"{e.task}, seed {e.seed}")
        for e in chosen
    ]  # fmt: skip
    parts = [part for link in links for part in (" ", link)][1:]
    return tag("td", join(*parts) if parts else "none kept", class_="number")


def _rules(found: Sequence[FailureClass]) -> Markup:
    rules = [join(tag("dt", FAILURE_NAMES[why]), tag("dd", FAILURE_RULES[why])) for why in found]
    said = note("Only the environment's own solver, which knows the simulated task, says what is "
                "right; estimates of other critics are not used.")  # fmt: skip
    return tag("details", tag("summary", "How failed episodes are classified"), tag("dl", *rules),
               said)  # fmt: skip
