"""An agent without a role: it sees a screen in its own view, reads messages, proposes an action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from swarm_ui.action import Abstain, Unparsed
from swarm_ui.agent_view import AgentView, Pane, View
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.message import Message
from swarm_ui.model import (
    ChatModel,
    Completion,
    Decision,
    Request,
    StreamingModel,
    check_model,
)
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.prompts import format_named
from swarm_ui.trace.records import hear


@dataclass(frozen=True, slots=True)
class AgentNode:
    """A node that asks a language model for an action."""

    id: str
    model: ChatModel
    adapter: str | None = None
    """Name of its LoRA adapter; ``None``: the base model."""
    temperature: float | None = None
    """Sampling temperature; ``None``: that of the endpoint, and 0 for a model in this process."""
    view: AgentView = "same"
    """``"shuffle"``: it sees the elements in a random order, drawn for each decision. A
    pane: it sees only these elements, and may abstain."""
    max_tokens: int | None = None
    """Maximum number of tokens of a reply; ``None``: that of the endpoint, and 256 for a model in
    this process."""
    timeout: float | None = None
    """Seconds for one call; ``None``: the limit of the run."""

    def __post_init__(self) -> None:
        check_model(f"agent '{self.id}'", self.model)

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        view = self.look(context)
        heard = tuple([hear(message, view, listener=context.node) for message in inbox])
        decision = Decision(observation=view.observation, heard=heard, partial=view.partial)
        request = context.pinned(self.model, self.request(decision, seed=context.seed))
        completion = await completed(self.model, request, context)
        return self._reply(completion, view, decision, request)

    def parameters(self) -> list[Any]:
        """The weights of its adapter, for an optimiser; empty without one. Raises ``ConfigError``
        if they are not in this process."""
        if self.adapter is None:
            return []
        listed = getattr(self.model, "adapter_parameters", None)
        if listed is None:
            raise ConfigError(
                f"agent '{self.id}': the weights of '{self.adapter}' are not in this process; "
                f"train with LocalModel or CausalModel instead of '{self.model.name}'"
            )
        return list(listed(self.adapter))

    def look(self, context: NodeContext) -> View:
        """The agent's view of the screen, which is the same in every round of a decision."""
        if self.view == "same":
            return View(context.observation)
        if isinstance(self.view, Pane):
            return View(context.observation, self.view.order(context.observation))
        order = list(range(len(context.observation.elements)))
        context.stream("view").shuffle(order)
        return View(context.observation, order)

    def request(self, decision: Decision, *, seed: int = 0) -> Request:
        """The request to the model in a context."""
        return Request(
            decision=decision,
            adapter=self.adapter,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=seed,
        )

    def _reply(
        self, completion: Completion, view: View, decision: Decision, request: Request
    ) -> NodeReply:
        reads = format_named(completion.prompt_format)
        shown = reads.parse(completion.text, view.observation, partial=view.partial)
        action, error, abstains = None, None, isinstance(shown, Abstain)
        if isinstance(shown, Unparsed):
            error = shown.reason
        elif not isinstance(shown, Abstain):  # an action
            if not view.partial or decision.reaches(shown):
                action = view.to_screen(shown)
            if action is None:
                count, targets = len(view.observation.elements), shown.targets
                wrong = next((index for index in targets if index >= count), targets[0])
                error = f"there is no element {wrong}; the screen shows {count}"
        return NodeReply(
            content=completion.text,
            action=action,
            error=error,
            abstains=abstains,
            completion=completion,
            order=None if self.view == "same" else view.order,
            temperature=request.temperature,
            seed=request.seed,
        )


async def completed(model: ChatModel, request: Request, context: NodeContext) -> Completion:
    """The model's answer, which names the model. If the run has listeners and the model streams,
    pieces of it are events. Raises ``ModelError`` if there is not exactly one answer."""
    found: list[Completion] = []
    if context.streaming and isinstance(model, StreamingModel):
        async for piece in model.stream(request):
            if isinstance(piece, Completion):
                found = [piece]
            else:
                context.emit_token(piece)
    else:
        found = await model.generate([request])
    if len(found) != 1:
        raise ModelError(
            f"model '{model.name}' returned {len(found)} completions for 1 request; expected one, "
            "of a stream as the last item"
        )
    return found[0] if found[0].model else msgspec.structs.replace(found[0], model=model.name)
