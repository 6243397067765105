"""Records how an environment's own solver grades each decision of an episode."""

from __future__ import annotations

from swarm_ui.action import ActionKey
from swarm_ui.credit import SOLVER_CREDIT, as_matrix
from swarm_ui.environment import Environment, Graded
from swarm_ui.errors import EnvironmentFault
from swarm_ui.rollout.episode import Intervention
from swarm_ui.trace.records import Trace


async def solver_grades(index: int, trace: Trace, environment: Environment) -> Intervention | None:
    """Grade every proposal; the executed action is not changed.

    It is an :class:`~swarm_ui.rollout.Intervene`. The credit of a message is 1.0 if
    its action brings the state nearer to success, else 0.0, also for a reply without a valid
    action; messages of failed calls and abstentions are unscored. It returns ``None`` if the
    environment cannot grade. An error of the solver is not a fault of the episode; it is recorded
    as the rationale of a step without credit.
    """
    if not isinstance(environment, Graded):
        return None
    grades: dict[ActionKey, float] = {}
    try:
        for message in trace.messages:
            if message.action is not None and message.action.key not in grades:
                grades[message.action.key] = environment.grade(message.action)
    except EnvironmentFault as error:
        return Intervention(rationale=(f"not graded: {error}",))
    failed = {call.id for call in trace.calls if call.error is not None}
    values = {
        m.id: 0.0 if m.action is None else grades[m.action.key]
        for m in trace.messages
        if m.id not in failed and not m.abstains
    }
    return Intervention(credit=as_matrix(trace, values), credit_source=SOLVER_CREDIT)
