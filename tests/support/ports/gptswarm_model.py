"""A scripted model in the place of GPTSwarm's mock; stands before the blocks of notebook 4.

Runs in the environment of GPTSwarm only. It guesses, or gives the most frequent of the answers that
it is shown, as the script in the notebook does.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("OPENAI_API_KEY", "unused")  # some of its modules ask for one

from loguru import logger
from swarm.llm.llm import LLM
from swarm.llm.llm_registry import LLMRegistry

logger.remove()  # GPTSwarm logs every answer in full
guesses = iter(["Amman", "Petra", "Amman"])


@LLMRegistry.register("mock")
class Knows(LLM):
    """Takes the place of the mock, whose only answer is "Foo Bar"."""

    async def agen(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        return self.gen(messages)

    def gen(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        text: str = messages[-1].content
        shown = [word for word in ("Amman", "Petra") if word in text]
        return max(shown, key=text.count) if shown else next(guesses)
