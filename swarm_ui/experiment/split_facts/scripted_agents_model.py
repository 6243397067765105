"""The scripted agents of split facts, as a model."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.environments.phone.split import scripted_reply
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Request
from swarm_ui.prompts import as_chat, format_named, transcript

_FORMAT = "compact"


class ScriptedAgents:
    """The model of all agents. It is a script, not a language model."""

    name = "scripted"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One scripted reply for each request, with its prompt in the compact format.

        Raises:
            ConfigError: a goal does not belong to a split task.
        """
        return [_reply(request) for request in requests]


def _reply(request: Request) -> Completion:
    """The scripted reply. The words of the prompt and of the reply count as tokens."""
    assert request.decision is not None
    chat = as_chat(request, format_named(_FORMAT).chat)
    text = scripted_reply(request.decision)
    words = sum(len(turn.content.split()) for turn in chat)
    return Completion(
        text=text,
        prompt=transcript(chat),
        usage=Usage(prompt_tokens=words, completion_tokens=len(text.split())),
        model="scripted",
        prompt_format=_FORMAT,
    )
