"""The models, or objects, that play the three roles of a corpus."""

from __future__ import annotations

from dataclasses import dataclass

from swarm_ui.model import ChatModel
from swarm_ui.optim.stage1.corpus.roles import Adversary, Judge, UIAgent
from swarm_ui.optim.stage1.corpus.scripted_roles import (
    ScriptedAgent,
    ScriptedJudge,
    ScriptedOpponent,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models, or objects, for the three roles.

    One model may play all three: ``Models(agent=model, adversary=model, critic=model)``.
    """

    agent: ChatModel | UIAgent
    adversary: ChatModel | Adversary
    critic: ChatModel | Judge | None
    """``None``: nothing is judged, and nothing is dropped for being wrong."""

    @staticmethod
    def scripted() -> Models:
        """Roles without a language model, for environments that are
        :class:`~swarm_ui.environment.Graded`, such as the embedded phone."""
        return Models(agent=ScriptedAgent(), adversary=ScriptedOpponent(), critic=ScriptedJudge())
