"""Formats of decisions in prompts, and of replies.

- :class:`~swarm_ui.prompts.json_format.JsonFormat` (``"json"``): instructions and JSON actions, for
  large models that were not trained for this.
- :class:`~swarm_ui.prompts.compact_format.CompactFormat` (``"compact"``): about 90 tokens for a
  screen of the core phone, for models that were trained on it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from swarm_ui.action import Abstain, Action, Unparsed
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.observation import Observation


class FreeText(NamedTuple):
    """A part of a reply that the model writes freely."""

    max_tokens: int
    without: str = "\n"
    """Characters that it may not contain."""


Reply = tuple[str | FreeText, ...]
"""A reply: literal parts, and free ones between them. No two literal parts are adjacent."""


class PromptFormat(Protocol):
    """A form of prompts and replies."""

    @property
    def name(self) -> str: ...

    def chat(self, decision: Decision) -> tuple[ChatMessage, ...]:
        """The context of one agent, which is asked for one action."""
        ...

    def write(self, action: Action | Abstain, observation: Observation, reason: str = "") -> str:
        """The text of a reply. :meth:`parse` reads its action.

        ``observation``: the screen as the agent sees it, with the indices of the action;
        ``reason``: one line, in which line breaks become spaces.
        """
        ...

    def parse(
        self, reply: str, observation: Observation, *, partial: bool = False
    ) -> Action | Abstain | Unparsed:
        """The action of a reply, in the indices of ``observation``.

        Its element may not exist: that is for the caller to check. With ``partial`` the agent sees
        only a part of the screen, and may abstain.
        """
        ...

    def replies(self, decision: Decision) -> list[Reply]:
        """Every possible reply in this context, for constrained decoding."""
        ...
