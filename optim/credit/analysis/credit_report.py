"""The comparison of credit assigners on the recorded episodes of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from swarm_ui.credit import SOLVER_CREDIT
from swarm_ui.environment import Environment, Graded
from swarm_ui.errors import ConfigError
from swarm_ui.graph.dag import Dag
from swarm_ui.optim.credit.analysis.calibration import Calibration, calibration
from swarm_ui.optim.credit.analysis.compare import (
    AnyAssigner,
    Comparison,
    RecordedCredit,
    assess_all,
    compare,
)
from swarm_ui.optim.credit.analysis.credit_plots import plot_comparison, plot_reliability
from swarm_ui.optim.credit.assigners.assigner import replay_snapshots
from swarm_ui.optim.credit.assigners.counterfactual import Counterfactual
from swarm_ui.optim.credit.assigners.critic import OutcomeCredit, ScriptedCritic
from swarm_ui.optim.credit.assigners.progress_credit import AgreementCredit, NoveltyCredit
from swarm_ui.optim.credit.assigners.shapley_values import ShapleyCredit
from swarm_ui.optim.credit.assigners.values import CriticValue
from swarm_ui.trace.records import Episode


class CreditReport(msgspec.Struct, frozen=True, kw_only=True):
    """Assigners on the same episodes, and the calibration of each against the reference."""

    comparison: Comparison
    calibration: tuple[Calibration, ...]
    """Calibrations of all assigners except the reference."""

    def plot(self, folder: Path) -> None:
        """Write ``comparison.png`` and ``reliability.png``."""
        plot_comparison(self.comparison, folder / "comparison.png")
        plot_reliability(self.calibration, folder / "reliability.png")


async def compare_recorded(
    episodes: Sequence[Episode],
    *,
    make_environment: Callable[[], Environment] | None = None,
    graph: Dag | None = None,
    assigners: Sequence[AnyAssigner] = (),
    reference: str = "",
) -> CreditReport:
    """Compare all assigners that can judge these episodes.

    Credit from the outcome, new screens and agreement needs only the episodes. Recorded credit is
    compared too, unless it comes from the scripted critic that is compared anyway.

    Args:
        episodes: recorded ones.
        make_environment: replays the episodes for snapshots of their states. If it grades actions,
            a scripted critic is compared, and it is the reference.
        graph: the team that made the decisions. With it and a scripted critic, counterfactual and
            Shapley credit are compared, which ask the team again.
        assigners: more assigners.
        reference: name of the assigner used as the reference; default: the scripted critic, or
            else the recorded credit.

    Raises:
        ConfigError: there are no episodes, or the environment shows screens that differ from the
            recorded ones.
    """
    if not episodes:
        raise ConfigError(
            "credit: there are no episodes to compare assigners on; "
            "name a run or a file that has episodes"
        )
    compared: list[AnyAssigner] = [OutcomeCredit(), NoveltyCredit(), AgreementCredit()]
    records = [record for episode in episodes for record in episode.steps]
    sources = {record.credit_source for record in records if record.credit is not None}
    default = RecordedCredit.name if sources else ""
    if sources:
        compared.append(RecordedCredit())
    states: list[Sequence[object]] | None = None
    if make_environment is not None:
        states = [await replay_snapshots(make_environment, episode) for episode in episodes]
        environment = make_environment()
        if isinstance(environment, Graded):
            critic = ScriptedCritic(lambda: environment)
            if sources == {SOLVER_CREDIT} and reference != RecordedCredit.name:
                compared.pop()  # the same scores a second time
            compared.insert(0, critic)
            default = critic.name
            if graph is not None:
                value = CriticValue(critic)
                compared += [Counterfactual(graph, value), ShapleyCredit(graph, value)]
    compared += assigners
    reference = reference or default
    assessed = [await assess_all(assigner, episodes, states) for assigner in compared]
    comparison = compare(episodes, assessed, reference=reference)
    truth = next((one.tables for one in assessed if one.name == reference), None)
    reports = [
        calibration(episodes, one.tables, truth) for one in assessed if one.name != reference
    ]
    return CreditReport(comparison=comparison, calibration=tuple(reports))
