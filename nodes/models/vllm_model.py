"""vLLM's engine in this process, to use a GPU without a server.

vLLM needs a separate environment (extra ``vllm``), because it requires other versions of shared
packages than the extra ``train``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

from swarm_ui.engine.tasks import together
from swarm_ui.errors import ConfigError, MissingExtra, ModelError
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Request, at_leased_versions
from swarm_ui.nodes.models.reply_patterns import decision_pattern
from swarm_ui.nodes.models.transformers.chat_reader import ChatReader
from swarm_ui.nodes.models.versions import VersionBook, not_sent, parsed_version
from swarm_ui.prompts import format_named


class VLLMModel:
    """A model in vLLM's engine, which batches the requests of all agents and runs, each with its
    adapter. It is a :class:`~swarm_ui.model.VersionedModel`, and belongs to the event loop in which
    it is first used."""

    def __init__(
        self,
        folder_or_name: Path | str,
        *,
        name: str = "",
        prompt_format: str = "json",
        constrained: bool | None = None,
        max_loras: int = 4,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """
        Args:
            folder_or_name: a folder as transformers saves it, or a name on the Hugging Face Hub.
            name: the model's name in traces; the folder's by default.
            prompt_format: of prompts and replies; see :data:`swarm_ui.prompts.FORMATS`.
            constrained: whether replies to decisions are restricted to the actions on the screen;
                ``None``: those in the compact format are.
            max_loras: adapters in one batch; set it to the number of agents.
            settings: more fields of vLLM's ``AsyncEngineArgs``, such as ``max_model_len``, or
                ``max_lora_rank`` for adapters of a rank above 16.

        Raises:
            MissingExtra: vLLM is not installed.
            ConfigError: the engine does not start with this model and these settings.
        """
        self.prompt_format = format_named(prompt_format).name
        self.name = name or Path(folder_or_name).name
        self._constrained = constrained
        arguments: dict[str, object] = {
            "model": str(folder_or_name), "enable_lora": True, "max_loras": max_loras,
            "max_cpu_loras": 2 * max_loras, **(settings or {}),
        }  # fmt: skip
        self._engine: Any = _started(arguments)
        self._reader = ChatReader(tokenizer=self._engine.get_tokenizer(), name=self.name)
        self._book = VersionBook[Any]()
        """vLLM's LoRA request of each version that can be asked."""
        self.lease, self.release = self._book.lease, self._book.release
        self._held: dict[str, Any] = {}
        """LoRA requests that the engine holds, by version."""
        self._ids = count(1)
        self._changing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"VLLMModel('{self.name}' in this process)"

    def __reduce__(self) -> NoReturn:
        raise not_sent(f"the model '{self.name}'")

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the adapters."""
        return tuple(self._book.numbers)

    # -- requests -----------------------------------------------------------------------------

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`. Equal seeds give equal samples only in batches of
        the same shape, because vLLM's rounding depends on it."""
        await self._remove()
        with at_leased_versions(self, requests) as exact:
            return await together([self._complete(request) for request in exact])

    async def close(self) -> None:
        """Stop the engine. It cannot be used again."""
        self._engine.shutdown()

    async def _complete(self, request: Request) -> Completion:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        prompt = self._reader.read(request, self.prompt_format)
        pattern = request.pattern or decision_pattern(
            prompt.decision, prompt.prompt_format, self._constrained
        )
        settings = SamplingParams(
            temperature=request.temperature or 0.0, max_tokens=request.reply_tokens,
            seed=request.seed, logprobs=0, output_kind=RequestOutputKind.FINAL_ONLY,
            structured_outputs=None if pattern is None else StructuredOutputsParams(regex=pattern),
        )  # fmt: skip
        lora = None if request.adapter is None else self._book[request.adapter]
        try:
            async for output in self._engine.generate(
                {"prompt_token_ids": prompt.ids}, settings, uuid4().hex, lora_request=lora
            ):
                last = output.outputs[0]
        except asyncio.CancelledError:
            raise
        except Exception as error:  # of vLLM: a prompt that is too long, or a dead engine
            raise ModelError(f"vLLM's engine of '{self.name}' cannot answer: {error}") from error
        return Completion(
            text=last.text,
            usage=Usage(prompt_tokens=len(prompt.ids), completion_tokens=len(last.token_ids)),
            logprob=last.cumulative_logprob,
            model=self.name,
            adapter=request.adapter,
            **prompt.told(),
        )

    # -- adapters -----------------------------------------------------------------------------

    async def load_version(self, version: str, folder: Path) -> None:
        """Load a version, such as ``"agent_2@7"``; it then also answers requests to ``"agent_2"``,
        until another one does. Raises ``ConfigError`` if the engine refuses the adapter, or this is
        no version."""
        from vllm.lora.request import LoRARequest

        name, number = parsed_version(version)
        async with self._changing:  # one at a time, so that none is added twice
            if version not in self._book:
                # A new name and id each time: vLLM's prefix caches are keyed by the name, its slots
                # by the id, and a version that was removed may come back with other weights.
                id = next(self._ids)
                lora = LoRARequest(f"{version}-{id}", id, str(folder.resolve()))
                try:
                    await self._engine.add_lora(lora)
                except Exception as error:
                    raise ConfigError(
                        f"vLLM's engine of '{self.name}' refuses the adapter in '{folder}': {error}"
                    ) from error
                self._held[version] = lora
            self._book.publish(name, self._held[version], number)
        await self._remove()

    async def _remove(self) -> None:
        """Remove from the engine what no run needs any more."""
        for version in [held for held in self._held if held not in self._book]:
            await self._engine.remove_lora(self._held.pop(version).lora_int_id)


def _started(arguments: dict[str, object]) -> Any:
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM
    except ImportError as error:
        raise MissingExtra("vllm", "vLLM's engine in this process", error.name or "vllm") from error
    try:
        return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"vLLM's engine does not start with {arguments}: {why}") from error
