"""The first screen: one figure, and a decision of the team."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice

from swarm_ui.report import measured
from swarm_ui.report.html_tables import note
from swarm_ui.report.measured import Tested
from swarm_ui.report.read import Contents, EpisodeSet
from swarm_ui.stats import Interval
from swarm_ui.trace.records import Trace
from swarm_ui.viz import trace_svg
from swarm_ui.viz.svg import Markup, tag

_MOST_READ = 200


def headline(rows: Sequence[Tested]) -> list[Markup]:
    """Success of the last policy on the first split, and its difference to the first policy."""
    here = [row for row in rows if row.split == rows[0].split and row.total.counted]
    value = here[-1].total.success if here else None
    if value is None:
        return []
    last, first = here[-1], here[0]
    gap = measured.gain(last, first) if last is not first else None
    against = [] if gap is None else [_gain(gap, first.policy)]
    label = f"Success: {last.policy}" if last.policy else "Success"
    return [_card(label, value, last.split, against)]


def last_rollouts(runs: Sequence[Contents]) -> list[Markup]:
    """Success of the last rollouts of the last run that trained."""
    found = [(run, last) for run in runs if (last := run.training.last) is not None]
    if not found:
        return []
    run, (iteration, value) = found[-1]
    of = f", {run.name}" if len(runs) > 1 else ""
    where = f"Iteration {iteration + 1}{of}; sampled episodes of training, not a test."
    return [_card("Success of rollouts", value, where, [])]


def _card(label: str, value: Interval, where: str, more: Sequence[Markup]) -> Markup:
    mean, _, ends = value.percent().partition(" ")
    return tag(
        "div",
        tag("p", label, class_="label"),
        tag("p", mean, tag("small", " %"), class_="value"),
        tag("p", f"95 % interval {ends}, n = {value.n:,}", class_="around"),
        *more,
        note(where),
        class_="headline",
    )


def _gain(gap: Interval, against: str) -> Markup:
    words = "" if gap.excludes_zero else "; 0 is inside the interval"
    mean, _, ends = gap.percent(signed=True).partition(" ")
    number = tag("b" if gap.excludes_zero else "span", f"{mean} points")
    return tag("p", number, f" {ends} against {against}{words}", class_="gain")


def team_decision(sets: Iterable[EpisodeSet]) -> list[Markup]:
    """A decision that illustrates the team's vote; empty: no team of agents decided.

    It is the first of 200 episodes in which agents disagreed, or else the first of a team.
    """
    found: list[Markup] = []
    for number, episode in enumerate(islice(chain.from_iterable(sets), _MOST_READ), start=1):
        for k, step in enumerate(episode.steps, start=1):
            trace, agents = step.trace, step.trace.agents
            said = [(m.sender, m.action.key) for m in trace.messages
                    if m.sender in agents and m.action is not None]  # fmt: skip
            if trace.action is None or len({sender for sender, _ in said}) < 2:
                continue
            divided = len({key for _, key in said}) > 1
            if divided or not found:
                where = f"step {k} of episode {number} ({episode.task})"
                found = [_decided(trace, tag("a", where, href=f"#{number}/{k}"))]
            if divided:
                return found
    return found


def _decided(trace: Trace, link: Markup) -> Markup:
    return tag(
        "figure",
        tag("figcaption", "How the team decides"),
        tag("div", Markup(trace_svg(trace)), class_="wide decided"),
        tag("p", "In the viewer: ", link, class_="note"),
        class_="full",
    )
