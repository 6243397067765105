"""The comparison of critics on the recorded episodes of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from swarm_ui.credit import SOLVER_CREDIT, Critic
from swarm_ui.environment import Environment
from swarm_ui.errors import ConfigError
from swarm_ui.graph.dag import Dag
from swarm_ui.optim.credit.analysis.calibration import Calibration, calibration
from swarm_ui.optim.credit.analysis.compare import Comparison, assess_all, compare
from swarm_ui.optim.credit.analysis.credit_plots import plot_comparison, plot_reliability
from swarm_ui.optim.credit.counterfactual import LeaveOneOut, Shapley
from swarm_ui.optim.credit.outcome import Outcome, Recorded
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.trace.records import Episode


class CreditReport(msgspec.Struct, frozen=True, kw_only=True):
    """Assigners on the same episodes, and the calibration of each against the reference."""

    comparison: Comparison
    calibration: tuple[Calibration, ...]
    """Calibrations of all critics except the reference."""

    def plot(self, folder: Path) -> None:
        """Write ``comparison.png`` and ``reliability.png``."""
        plot_comparison(self.comparison, folder / "comparison.png")
        plot_reliability(self.calibration, folder / "reliability.png")


async def compare_recorded(
    episodes: Sequence[Episode],
    *,
    make_environment: Callable[[], Environment] | None = None,
    graph: Dag | None = None,
    critics: Sequence[Critic] = (),
    reference: str = "",
) -> CreditReport:
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
        reference: name of the critic used as the reference; default: the scripted critic, or
            else the recorded credit.

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
    reference = reference or default
    assessed = [await assess_all(critic, episodes) for critic in compared]
    comparison = compare(episodes, assessed, reference=reference)
    truth = next((one.tables for one in assessed if one.name == reference), None)
    reports = [
        calibration(episodes, one.tables, truth) for one in assessed if one.name != reference
    ]
    return CreditReport(comparison=comparison, calibration=tuple(reports))
