"""Messages between agents."""

from __future__ import annotations

import msgspec

from swarm_ui.action import Action


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Number of tokens that a call used."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


class Message(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, repr_omit_defaults=True
):
    """The message of one node in one round; stored once, referred to by ``id``."""

    id: str
    """Unique within a trace: ``"<sender>:<round>"``."""
    sender: str
    round: int
    content: str
    """The whole reply with its reason, as the sender's model wrote it."""
    action: Action | None = None
    """The proposal, in the indices of the whole screen (not the sender's view); ``None``: no valid
    one."""
    error: str | None = None
    """Why there is no valid proposal; ``None`` if there was no error. If a node fails, its
    successors receive a message with an error (a tombstone)."""
    prompt_format: str = "json"
    """The format of the content, see :mod:`swarm_ui.prompts`."""
    abstains: bool = False
    """The agent sees only a part of the screen and proposes nothing: this is no failure."""


class Heard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message as the receiver sees it: actions in the indices of the receiver's view."""

    sender: str
    round: int
    content: str
    action: Action | None = None
    own: bool = False
    """True for the receiver's own message of an earlier round."""
    prompt_format: str = "json"
    """The format of the content."""


PERSON = "person"
"""Name of the model in the record of an answer that a person gave."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question of a node to a person."""

    id: str
    """Id of the message that will hold the answer."""
    node: str
    """Name of the node. A nested node has its full name, such as ``"team/approve"``."""
    round: int
    text: str
