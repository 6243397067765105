"""A scripted chat model of LangChain's; stands before the blocks of notebook 4 that need one.

Runs in the environment of LangGraph only. It calls ``add``, then ``multiply`` with the sum, and
then says the product, as the script in the notebook does.
"""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Calculates(BaseChatModel):
    """A model with tools."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        results = [str(message.content) for message in messages if message.type == "tool"]
        if not results:
            reply = _called("add", a=3, b=4)
        elif len(results) == 1:
            reply = _called("multiply", a=int(results[0]), b=12)
        else:
            reply = AIMessage(f"The result is {results[-1]}.")
        return ChatResult(generations=[ChatGeneration(message=reply)])


def _called(name: str, **arguments: int) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": name}])


model = Calculates()
