"""The question that a learned critic answers: is this reply right on this screen?"""

from __future__ import annotations

from swarm_ui.action import Action
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.observation import Observation
from swarm_ui.optim.adversary import with_label
from swarm_ui.prompts import PromptFormat

OPTIONS = ("yes", "no")
"""The two possible answers. The score is the probability of the first one, relative to both."""
_ASKED = "Is this reply right?"


def question(
    observation: Observation, action: Action, form: PromptFormat
) -> tuple[ChatMessage, ...]:
    """The chat of a critic about one proposal.

    It is the chat of an agent on that screen, with the action as its reply, and one more turn that
    asks whether the reply is right. An adapter of an agent, which predicts such replies, is
    therefore a good start for the training of a critic.

    The sender and its reason are left out. So the wording of a reply cannot influence its score,
    and the questions about all proposals on a screen have a common prefix.

    Args:
        observation: the screen.
        action: the proposal, in the indices of the whole screen.
        form: how screen and action are written.
    """
    chat = form.chat(Decision(observation=observation))
    reply = form.write(with_label(action, observation), observation)
    return (*chat, ChatMessage("assistant", reply), ChatMessage("user", _ASKED))
