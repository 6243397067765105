"""A role-free agent: sees a screen in its own way, hears others, proposes an action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from swarm_ui.action import Unparsed, parse_action
from swarm_ui.errors import ModelError
from swarm_ui.message import Message
from swarm_ui.model import ChatModel, Completion, Decision, Request
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.observation import Observation
from swarm_ui.trace import hear
from swarm_ui.view import View, identity, shuffled

AgentView = Literal["same", "shuffle"]


@dataclass(frozen=True, slots=True)
class AgentNode:
    """An agent behind a language model."""

    id: str
    model: ChatModel
    adapter: str | None = None
    """Name of the LoRA adapter it speaks with; ``None``: the base model."""
    temperature: float = 0.0
    view: AgentView = "same"
    """``"shuffle"``: sees the elements in a random order of its own, drawn anew each decision."""
    max_tokens: int = 256
    timeout: float | None = None
    """Seconds for one call; ``None``: the run's limit."""

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        view = self.look(context)
        heard = tuple([hear(message, view, listener=context.node) for message in inbox])
        decision = Decision(observation=view.observation, heard=heard)
        seed = context.seed
        request = self.request(decision, seed=seed)
        completions = await self.model.generate([request])
        if len(completions) != 1:
            raise ModelError(
                f"model '{self.model.name}' gave {len(completions)} completions for 1 request"
            )
        return self._reply(completions[0], view, seed)

    def look(self, context: NodeContext) -> View:
        """The screen as this agent sees it; the same in every round of a decision."""
        if self.view == "same":
            return identity(context.observation)
        return shuffled(context.observation, context.stream("view"))

    def request(self, decision: Decision, *, seed: int = 0) -> Request:
        """What it asks its model in a context."""
        return Request(
            decision=decision,
            adapter=self.adapter,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=seed,
        )

    def _reply(self, completion: Completion, view: View, seed: int) -> NodeReply:
        shown = parse_action(completion.text)
        action, error = None, None
        if isinstance(shown, Unparsed):
            error = shown.reason
        else:
            action = view.to_screen(shown)
            if action is None:
                error = _nowhere(shown.index, view.observation)
        return NodeReply(
            content=completion.text,
            action=action,
            error=error,
            adapter=completion.adapter,
            logprob=completion.logprob,
            usage=completion.usage,
            prompt=completion.prompt,
            order=None if self.view == "same" else view.order,
            temperature=self.temperature,
            seed=seed,
        )


def _nowhere(index: int | None, shown: Observation) -> str:
    return f"there is no element {index}; the screen shows {len(shown.elements)}"
