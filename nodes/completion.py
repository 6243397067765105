"""One request to a model, from inside a node."""

from __future__ import annotations

from msgspec.structs import replace

from swarm_ui.errors import ModelError
from swarm_ui.model import ChatModel, Completion, Request, StreamingModel
from swarm_ui.node import NodeContext


async def completed(model: ChatModel, request: Request, context: NodeContext) -> Completion:
    """The model's answer, which names the model. If the run has listeners and the model streams,
    pieces of it are events.

    Raises:
        ModelError: the model cannot answer, or returned more or fewer answers than requests.
    """
    completions: list[Completion] = []
    if context.streaming and isinstance(model, StreamingModel):
        async for piece in model.stream(request):
            if isinstance(piece, Completion):
                completions = [piece]
            else:
                context.emit_token(piece)
        if not completions:
            raise ModelError(
                f"model '{model.name}' ended a stream without a completion; "
                "expected the completion as the last item"
            )
    else:
        completions = await model.generate([request])
    if len(completions) != 1:
        raise ModelError(
            f"model '{model.name}' returned {len(completions)} completions for 1 request; "
            "expected one"
        )
    completion = completions[0]
    return completion if completion.model else replace(completion, model=model.name)
