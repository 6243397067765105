"""The first screen: the headline, the learning curve with the arms, one decision of the team."""

from __future__ import annotations

from swarm_ui.report.charts import arm_list, curve
from swarm_ui.report.contents import Curve, Estimate, Headline, ReportData
from swarm_ui.report.estimates import bounds, figure
from swarm_ui.report.first_screen.deciding import Decision
from swarm_ui.report.html import Markup, join, note, tag
from swarm_ui.viz import trace_svg


def overview(data: ReportData, decision: Decision | None) -> Markup:
    """The first screen; nothing if the report has none of its parts.

    Args:
        data: the headline, the arms and the first curve are drawn.
        decision: drawn below them, with a link to its step in the viewer.
    """
    cards = []
    if data.headline is not None:
        cards.append(_headline(data.headline, data.summary))
    first = first_curve(data)
    if first is not None:
        cards.append(curve(first, data.arms if first.percent else None))
    elif data.arms is not None:
        cards.append(tag("figure", tag("figcaption", "Policies"), arm_list(data.arms)))
    if decision is not None:
        cards.append(_decision(decision))
    return tag("section", *cards, id="overview") if cards else Markup("")


def first_curve(data: ReportData) -> Curve | None:
    """The curve of the first screen: the first one of percentages, or else the first one."""
    percentages = (found for found in data.curves if found.percent)
    return next(percentages, next(iter(data.curves), None))


def _headline(data: Headline, summary: str) -> Markup:
    unit = tag("small", " %") if data.value.percent else Markup("")
    known = bounds(data.value)
    around = [f"95 % interval {known}"] if known else []
    around += [f"n = {data.value.count:,}"] if data.value.count is not None else []
    return tag(
        "div",
        tag("p", data.label, class_="label"),
        tag("p", figure(data.value, data.value.value), unit, class_="value"),
        tag("p", ", ".join(around), class_="around") if around else Markup(""),
        _gain(data.gain, data.against),
        note(data.where),
        tag("p", summary, class_="summary") if summary else Markup(""),
        class_="headline",
    )


def _gain(gain: Estimate | None, against: str) -> Markup:
    if gain is None:
        return Markup("")
    unit = " points" if gain.percent else ""
    words = "" if gain.excludes_zero else "; 0 is inside the interval"
    number = tag("b" if gain.excludes_zero else "span", f"{figure(gain, gain.value)}{unit}")
    return tag("p", number, f" {bounds(gain)} against {against}{words}", class_="gain")


def _decision(data: Decision) -> Markup:
    where = f"step {data.step + 1} of episode {data.episode + 1} ({data.task})"
    link = tag("a", where, href=f"#{data.episode + 1}/{data.step + 1}")
    return tag(
        "figure",
        tag("figcaption", "How the team decides"),
        tag("div", Markup(trace_svg(data.trace)), class_="wide decided"),
        tag("p", join("In the viewer: ", link), class_="note"),
        class_="full",
    )
