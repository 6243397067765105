"""One request to a model, from inside a node."""

from __future__ import annotations

from msgspec.structs import replace

from swarm_ui.errors import ModelError
from swarm_ui.model import ChatModel, Completion, Request, StreamingModel
from swarm_ui.node import NodeContext


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
    return found[0] if found[0].model else replace(found[0], model=model.name)
