"""Curves, credit, edges and cost of a training, from the lines of ``metrics.jsonl``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec

from swarm_ui.report.contents import (
    Curve,
    CurvePoint,
    EdgeFrame,
    EdgeHistory,
    Estimate,
    Headline,
    HeatMap,
    ReportTable,
    Series,
    limits,
)
from swarm_ui.report.totals import filled_columns
from swarm_ui.stats import wilson_of

_MOST_MAPS = 6

Line = dict[str, Any]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _Iteration(msgspec.Struct):
    """The fields of a line of metrics that a report reads; other fields may have any form."""

    iteration: int
    success: _Share | None = None
    episodes: int = 0
    masked: int = 0
    staleness: int = 0
    credit: float | None = None
    graphs: list[list[tuple[str, str]]] = []


class _Credit(msgspec.Struct):
    iteration: int
    agents: list[str]
    values: list[list[float | None]]

    def __post_init__(self) -> None:
        for row in self.values:
            if len(row) != len(self.agents):
                raise ValueError(f"{len(self.agents)} agents and {len(row)} values of a round")


class _Rollouts(msgspec.Struct):
    iteration: int


_FORMS: dict[object, type] = {"iteration": _Iteration, "credit": _Credit, "rollouts": _Rollouts}


def readable(lines: Iterable[Line], missing: list[str]) -> list[Line]:
    """The lines of ``metrics.jsonl`` that a report can use.

    If lines of training have another form, one line in ``missing`` says so.
    """
    kept, wrong = list[Line](), list[str]()
    for number, line in enumerate(lines, start=1):
        kind = line.get("kind", "iteration" if "iteration" in line else None)
        form = _FORMS.get(kind) if isinstance(kind, str) else None
        try:
            if form is not None:
                msgspec.convert(line, form)
            kept.append(line)
        except msgspec.ValidationError as error:
            wrong.append(f"line {number}: {error}")
    if wrong:
        missing.append(
            f"Measurements: left out {len(wrong)} of {len(kept) + len(wrong)} lines of "
            f"metrics.jsonl that have another form ({wrong[0]})."
        )
    return kept


def _iterations(lines: Sequence[Line]) -> list[Line]:
    """One metrics line for each iteration.

    A resumed run may have written several lines for an iteration; the last one is used."""
    found = {
        line["iteration"]: line
        for line in lines
        if line.get("kind", "iteration") == "iteration" and _number(line.get("iteration"))
    }
    return [found[k] for k in sorted(found)]


def curves(lines: Sequence[Line]) -> tuple[Curve, ...]:
    """Success of the rollouts, mean credit and loss by iteration."""
    success, credit, losses = [], [], []
    for line in _iterations(lines):
        x = float(line["iteration"]) + 1
        rate = _success(line)
        if rate is not None:
            success.append(CurvePoint(x, rate.value, rate.low, rate.high))
        if _number(line.get("credit")):
            credit.append(CurvePoint(x, float(line["credit"])))
        loss = [v for name, v in line.items() if name.startswith("loss/") and _number(v)]
        if loss:
            losses.append(CurvePoint(x, sum(loss) / len(loss)))
    note = (
        "Band: 95 % Wilson interval of the success of the iteration's episodes. Sampled and, with "
        "a critic, guided: not comparable with a test."
    )
    drawn = (
        ("Success of rollouts by iteration", "success, %", "success of rollouts", success, note),
        ("Credit", "mean credit", "mean credit", credit, "Of all scored messages."),
        ("Loss", "loss", "mean over adapters", losses, "After the last step."),
    )
    return tuple(
        Curve(
            title=title, x_label="iteration", y_label=y, note=note, percent=points is success,
            series=(Series(name=name, points=tuple(points)),),
        )
        for title, y, name, points, note in drawn
        if points
    )  # fmt: skip


def last_rollouts(lines: Sequence[Line]) -> Headline | None:
    """Success of the rollouts of the last iteration that has a success."""
    rates = [(line, rate) for line in _iterations(lines) if (rate := _success(line)) is not None]
    if not rates:
        return None
    line, rate = rates[-1]
    where = f"Iteration {int(line['iteration']) + 1}; sampled episodes of training, not a test."
    return Headline(label="Success of rollouts", value=rate, where=where)


def _success(line: Line) -> Estimate | None:
    """Success of an iteration's rollouts with its Wilson interval."""
    if not _number(line.get("success")):
        return None
    value = float(line["success"])
    counted = int(line.get("episodes") or 0) - int(line.get("masked") or 0)
    rate = wilson_of(round(value * counted), max(0, counted))
    if rate is None:
        return Estimate(value=value)
    return Estimate(value=value, low=rate.low, high=rate.high, count=counted)


def training_cost(lines: Sequence[Line]) -> ReportTable | None:
    """Decisions, calls, tokens and seconds of each iteration, where they are known."""
    work = {line.get("iteration"): line for line in lines if line.get("kind") == "rollouts"}
    names = ("decisions", "calls", "prompt_tokens", "completion_tokens")
    seconds = ("rollout_seconds", "update_seconds", "cpu_seconds")
    rows = []
    stale = any(line.get("staleness") for line in _iterations(lines))
    for line in _iterations(lines):
        spent = work.get(line["iteration"], {})
        cells = [int(spent[k]) if _number(spent.get(k)) else None for k in names]
        times = [round(float(line[k]), 1) if _number(line.get(k)) else None for k in seconds]
        behind = int(line.get("staleness") or 0) if stale else None
        rows.append((str(int(line["iteration"]) + 1), *cells, *times, behind))
    if not any(cell is not None for row in rows for cell in row[1:]):
        return None
    columns = ("iteration", "decisions", "calls", "prompt tokens", "completion tokens",
               "seconds of rollouts", "seconds of updates", "CPU-seconds",
               "updates behind")  # fmt: skip
    return filled_columns(ReportTable(title="Cost of training", columns=columns, rows=tuple(rows)))


def credit_maps(lines: Sequence[Line]) -> list[HeatMap]:
    """Mean credit by round and agent for the first, the last and some other iterations.

    The maps are in the order of the iterations and share one colour scale.
    """
    found = {line["iteration"]: line for line in lines if line.get("kind") == "credit"}
    order = sorted(found)
    step = max(1, -(-len(order) // _MOST_MAPS))
    shown = sorted({*order[::step], *order[-1:]})
    low, high = limits(found[k]["values"] for k in shown)
    return [
        HeatMap(
            title=f"Mean credit in iteration {k + 1}",
            rows=tuple(f"round {r + 1}" for r in range(len(found[k]["values"]))),
            columns=tuple(found[k]["agents"]),
            values=tuple(tuple(row) for row in found[k]["values"]),
            low=low,
            high=high,
        )
        for k in shown
    ]


def edge_history(lines: Sequence[Line], missing: list[str]) -> tuple[EdgeHistory, ...]:
    """For each iteration: the learned edge probabilities, or the share of graphs with each edge.

    If the run recorded neither, a line is added to ``missing``.
    """
    done = _iterations(lines)
    agents = {name for line in lines if line.get("kind") == "credit" for name in line["agents"]}
    learned = [(line, found) for line in done if (found := _probabilities(line))]
    if learned:
        frames = [_frame(line, found) for line, found in learned]
        return (_edges("Learned edge probabilities", frames, agents, "After each iteration."),)
    drawn = [line for line in done if line.get("graphs")]
    if drawn:
        frames = [_frame(line, _shares(line["graphs"])) for line in drawn]
        note = "Edges were not learned: share of the iteration's graphs that had each edge."
        return (_edges("Edges of the graphs that were played", frames, agents, note),)
    missing.append("Edges over iterations: the run has no measurements of edges.")
    return ()


def _probabilities(line: Line) -> list[tuple[str, str, float]]:
    """The probabilities of learned edges, named ``edge/SENDER>LISTENER``."""
    found = []
    for name, p in line.items():
        sender, arrow, listener = name.removeprefix("edge/").partition(">")
        if name.startswith("edge/") and arrow and _number(p) and 0 <= p <= 1:
            found.append((sender, listener, float(p)))
    return found


def _shares(graphs: Sequence[Sequence[tuple[str, str]]]) -> list[tuple[str, str, float]]:
    counts: dict[tuple[str, str], int] = {}
    for graph in graphs:
        for sender, listener in graph:
            counts[sender, listener] = counts.get((sender, listener), 0) + 1
    return [(a, b, n / len(graphs)) for (a, b), n in sorted(counts.items())]


def _frame(line: Line, edges: Sequence[Any]) -> EdgeFrame:
    return EdgeFrame(label=f"iteration {int(line['iteration']) + 1}", edges=tuple(edges))


def _edges(title: str, frames: list[EdgeFrame], agents: set[str], note: str) -> EdgeHistory:
    names = {*agents, *(name for frame in frames for edge in frame.edges for name in edge[:2])}
    return EdgeHistory(title=title, nodes=tuple(sorted(names)), frames=tuple(frames), note=note)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
