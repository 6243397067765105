"""Comparison of critics on the same recorded episodes: AUC, calibration and cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from rich import box
from rich.table import Table

from swarm_ui.credit import SOLVER_CREDIT, Credit, Critic
from swarm_ui.environment import Environment
from swarm_ui.errors import ConfigError
from swarm_ui.graph.dag import Dag
from swarm_ui.optim.credit.counterfactual import LeaveOneOut, Shapley
from swarm_ui.optim.credit.critic import calls_of, credit_of, name_of
from swarm_ui.optim.credit.figures import auc_by_bootstrap, calibration_error, inside_auc
from swarm_ui.optim.credit.outcome import Outcome, Recorded
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.stats import Interval
from swarm_ui.trace.records import Episode


class Assessed(NamedTuple):
    """The credit that one critic gave, and its cost."""

    name: str
    credit: Sequence[Credit]
    seconds: float
    calls: int | None
    """Number of calls to agents and models; ``None``: the critic does not count them."""


class Scored(NamedTuple):
    """One message with its score."""

    episode: int
    step: int
    round: int
    agent: str
    score: float
    outcome: float
    right: bool | None
    """Whether the reference judges the message right; ``None``: it does not judge it."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One critic in a comparison; scores are in [0, 1]. AUCs are with intervals over episodes."""

    name: str
    share: float
    """Share that this critic scored of the messages that any critic scored."""
    auc: Interval | None
    """AUC of the score against the reference."""
    inside: Interval | None
    """Probability that, of a right and a wrong message in one decision, the right one has the
    higher score. 0.5: the score cannot tell them apart. ``None``: no decision has both."""
    outcome_auc: Interval | None
    """AUC of the score against the episode's outcome."""
    calibration: float | None
    """Expected calibration error. ``None`` for signed credit, which is not a probability, and
    without a reference."""
    calls: int | None
    seconds: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All critics on the same episodes."""

    episodes: int
    """Number of episodes that are not masked."""
    decisions: int
    messages: int
    """Messages that any critic scored."""
    reference: str
    """Name of the critic that is used as the reference; empty: none."""
    sides: tuple[Side, ...]

    def table(self) -> Table:
        """What each critic scores and tells apart, and its cost, for a terminal."""
        said = f"right says {self.reference}" if self.reference else "no reference"
        found = Table(
            title=f"{len(self.sides)} critics on {self.episodes} episodes, {self.decisions} "
            f"decisions, {self.messages} messages ({said})",
            title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
        )  # fmt: skip
        heads = ("scored %", "AUC", "inside a decision", "solved", "calibration", "calls", "s")
        found.add_column("critic", overflow="fold")
        for head in heads:
            found.add_column(head, justify="right")
        for side in self.sides:
            found.add_row(
                side.name, f"{100 * side.share:.0f}", _shown(side.auc), _shown(side.inside),
                _shown(side.outcome_auc), _shown(side.calibration),
                "–" if side.calls is None else f"{side.calls}", f"{side.seconds:.2f}",
            )  # fmt: skip
        return found


async def compare_recorded(
    episodes: Sequence[Episode],
    *,
    make_environment: Callable[[], Environment] | None = None,
    graph: Dag | None = None,
    critics: Sequence[Critic] = (),
    reference: str = "",
) -> Comparison:
    """Compare all critics that can judge these episodes.

    Credit from the outcome needs only the episodes. Recorded credit is compared too, unless it
    comes from the scripted critic that is compared anyway.

    Args:
        episodes: recorded ones.
        make_environment: makes the environment of the episodes, which must grade actions. With it a
            scripted critic is compared, and it is the reference.
        graph: the team that made the decisions. With it and a scripted critic, counterfactual and
            Shapley credit are compared, which ask the team again.
        critics: more critics.
        reference: name of the critic used as the reference; default: the scripted critic, or else
            the recorded credit.

    Raises:
        ConfigError: there are no episodes, or the environment shows screens that differ from the
            recorded ones.
    """
    if not episodes:
        raise ConfigError(
            "credit: there are no episodes to compare critics on; "
            "name a run or a file that has episodes"
        )
    compared: list[Critic] = [Outcome()]
    records = [record for episode in episodes for record in episode.steps]
    sources = {record.credit_source for record in records if record.credit is not None}
    default = Recorded.name if sources else ""
    if sources:
        compared.append(Recorded())
    if make_environment is not None:
        critic = ScriptedCritic(make_environment)
        if sources == {SOLVER_CREDIT} and reference != Recorded.name:
            compared.pop()  # the same scores a second time
        compared.insert(0, critic)
        default = critic.name
        if graph is not None:
            compared += [LeaveOneOut(graph, critic), Shapley(graph, critic)]
    compared += critics
    assessed = [await assess(critic, episodes) for critic in compared]
    return compare(episodes, assessed, reference=reference or default)


async def assess(critic: Critic, episodes: Sequence[Episode]) -> Assessed:
    """The credit of a critic for all episodes, with its cost."""
    before, began = calls_of(critic), time.perf_counter()
    credit = await credit_of(critic, episodes)
    seconds = time.perf_counter() - began
    calls = None if before is None else (calls_of(critic) or 0) - before
    return Assessed(name_of(critic), credit, seconds, calls)


def compare(
    episodes: Sequence[Episode], assessed: Sequence[Assessed], *, reference: str = ""
) -> Comparison:
    """Compare critics by the credit that they gave.

    ``reference``: name of the critic whose credit counts as right. Raises ``ConfigError`` if there
    are no critics, two have the same name, or the reference is missing.
    """
    by_name = {one.name: one for one in assessed}
    if not assessed or len(by_name) < len(assessed):
        raise ConfigError(
            f"compare: expected critics with different names, got {[a.name for a in assessed]}"
        )
    if reference and reference not in by_name:
        raise ConfigError(f"compare: no critic '{reference}'; there are {', '.join(by_name)}")
    truth = by_name[reference].credit if reference else None
    rows = {name: scored(episodes, one.credit, truth) for name, one in by_name.items()}
    messages = len({row[:4] for found in rows.values() for row in found})
    kept = [episode for episode in episodes if episode.success is not None]
    return Comparison(
        episodes=len(kept),
        decisions=sum(len(episode.steps) for episode in kept),
        messages=messages,
        reference=reference,
        sides=tuple(_side(one, rows[name], messages) for name, one in by_name.items()),
    )


def scored(
    episodes: Sequence[Episode], credit: Sequence[Credit], reference: Sequence[Credit] | None = None
) -> list[Scored]:
    """All scored messages of unmasked episodes, in order. ``reference``: credit that is taken as
    right, for each episode."""
    rows: list[Scored] = []
    truths = [None] * len(episodes) if reference is None else reference
    for number, (episode, given, truth) in enumerate(zip(episodes, credit, truths, strict=True)):
        if episode.success is None:
            continue
        right = None if truth is None else truth.unit().values
        for k, r, a, score in _cells(given.unit().values):
            mark = None if right is None else right[k][r][a]
            bit = None if mark is None or mark == 0.5 else mark > 0.5
            agent = episode.steps[k].trace.agents[a]
            rows.append(Scored(number, k, r, agent, score, float(episode.success), bit))
    return rows


def _cells(
    matrices: Iterable[Iterable[Iterable[float | None]]],
) -> Iterator[tuple[int, int, int, float]]:
    """Step, round, agent and score of each message that is scored."""
    for k, matrix in enumerate(matrices):
        for r, row in enumerate(matrix):
            for a, score in enumerate(row):
                if score is not None:
                    yield k, r, a, score


def _side(one: Assessed, rows: Sequence[Scored], messages: int) -> Side:
    known = [row for row in rows if row.right is not None]
    scores, right = [row.score for row in known], [bool(row.right) for row in known]
    signed = any(credit.signed for credit in one.credit)
    return Side(
        name=one.name,
        share=len(rows) / messages if messages else 0.0,
        auc=auc_by_bootstrap(scores, right, [row.episode for row in known]),
        inside=inside_auc(
            [(r.episode, (r.episode, r.step), bool(r.right), r.score) for r in known]
        ),
        outcome_auc=auc_by_bootstrap(
            [row.score for row in rows], [row.outcome > 0.5 for row in rows],
            [row.episode for row in rows],
        ),
        calibration=None if signed else calibration_error(scores, right),
        calls=one.calls,
        seconds=one.seconds,
    )  # fmt: skip


def _shown(value: Interval | float | None) -> str:
    if isinstance(value, Interval):
        return f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]"
    return "–" if value is None else f"{value:.2f}"
