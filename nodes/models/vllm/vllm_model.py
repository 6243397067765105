"""vLLM's engine in this process, to use a GPU without a server.

vLLM needs a separate environment (extra ``vllm``), because it requires other versions of shared
packages than the extra ``train``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError, MissingExtra, ModelError
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, Completion, Request, at_leased_versions
from swarm_ui.nodes.models.chat_engine import decision_pattern
from swarm_ui.nodes.models.leases import give_up, served_name
from swarm_ui.nodes.models.loop_locks import LoopLocks
from swarm_ui.nodes.models.transformers.chat_tokens import ChatPrompt, ChatTokens
from swarm_ui.nodes.models.transformers.prompt_reader import text_prompt
from swarm_ui.nodes.models.unsent import not_sent
from swarm_ui.nodes.models.versions import parsed_version
from swarm_ui.prompts import as_chat, format_named


class VLLMModel:
    """A model in vLLM's engine, with one adapter for each agent and version.

    It is a :class:`~swarm_ui.model.VersionedModel`. All requests of all agents and runs are batched
    by the engine. It belongs to the event loop in which it is first used.
    """

    def __init__(
        self,
        folder_or_name: Path | str,
        *,
        name: str = "",
        prompt_format: str = "json",
        constrained: bool | None = None,
        max_loras: int = 4,
        max_lora_rank: int = 16,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """
        Args:
            folder_or_name: a folder as transformers saves it, or a name on the Hugging Face Hub.
            name: the model's name in traces; the folder's by default.
            prompt_format: how decisions are written and replies are read; see
                :data:`swarm_ui.prompts.FORMATS`.
            constrained: whether replies to decisions are restricted to the actions that are
                possible on the screen; ``None``: those in the compact format are.
            max_loras: adapters in one batch; set it to the number of agents.
            max_lora_rank: at least the rank of every adapter.
            settings: more fields of vLLM's ``AsyncEngineArgs``, such as ``max_model_len`` or
                ``gpu_memory_utilization``.

        Raises:
            MissingExtra: vLLM is not installed.
            ConfigError: the engine does not start with this model and these settings.
        """
        self.prompt_format = format_named(prompt_format).name
        self.name = name or Path(folder_or_name).name
        self._constrained = constrained
        arguments: dict[str, object] = {
            "model": str(folder_or_name), "enable_lora": True, "max_loras": max_loras,
            "max_cpu_loras": 2 * max_loras, "max_lora_rank": max_lora_rank, **(settings or {}),
        }  # fmt: skip
        self._engine: Any = _started(arguments)
        self._chats = ChatTokens(self._engine.get_tokenizer(), self.name)
        self._current: dict[str, int] = {}
        """Number of the current version, by name."""
        self._highest: dict[str, int] = {}
        """Highest number that a version had, by name; also of names that were unloaded."""
        self._loaded: dict[str, Any] = {}
        """vLLM's LoRA request of each version that can be asked."""
        self._replaced: set[str] = set()
        """Versions that are removed when nobody leases them any more."""
        self._leases: Counter[str] = Counter()
        self._ids = count(1)
        self._loading = LoopLocks()

    def __repr__(self) -> str:
        return f"VLLMModel('{self.name}' in this process)"

    def __reduce__(self) -> NoReturn:
        raise not_sent(f"the model '{self.name}'")

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the adapters."""
        return tuple(self._current)

    @property
    def loaded(self) -> tuple[str, ...]:
        """The versions that the engine holds, such as ``"agent_2@7"``."""
        return tuple(self._loaded)

    # -- requests -----------------------------------------------------------------------------

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`. Equal seeds give equal samples only in batches of
        the same shape, because rounding in vLLM depends on the shape of the batch."""
        await self._remove_replaced()
        with at_leased_versions(self, requests) as exact:
            asked = [(request, self._read(request)) for request in exact]
            return await together([self._complete(*each) for each in asked])

    async def tokens(self, chat: Sequence[ChatMessage]) -> list[int]:
        """The tokens of a chat as the model reads them."""
        return self._chats.prompt(chat).ids

    async def check(self) -> None:
        """Raise ``ModelError`` if the engine has failed."""
        try:
            await self._engine.check_health()
        except Exception as error:
            raise ModelError(f"vLLM's engine of '{self.name}' has failed: {error}") from error

    async def close(self) -> None:
        """Stop the engine. It cannot be used again."""
        self._engine.shutdown()

    def _read(self, request: Request) -> ChatPrompt:
        chat = as_chat(request, format_named(self.prompt_format).chat)
        read = text_prompt(self._chats, self.name, chat)
        return replace(read, prompt_format=self.prompt_format, decision=request.decision)

    async def _complete(self, request: Request, prompt: ChatPrompt) -> Completion:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        pattern = decision_pattern(prompt, self._constrained) or request.pattern
        settings = SamplingParams(
            temperature=request.temperature or 0.0, max_tokens=request.reply_tokens,
            seed=request.seed, logprobs=0, output_kind=RequestOutputKind.FINAL_ONLY,
            structured_outputs=None if pattern is None else StructuredOutputsParams(regex=pattern),
        )  # fmt: skip
        lora = None if request.adapter is None else self._loaded[request.adapter]
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
            prompt=prompt.text,
            usage=Usage(prompt_tokens=len(prompt.ids), completion_tokens=len(last.token_ids)),
            logprob=last.cumulative_logprob,
            model=self.name,
            adapter=request.adapter,
            prompt_format="json" if prompt.decision is None else prompt.prompt_format,
            dropped=None if prompt.decision is None else prompt.decision.dropped,
        )

    # -- adapters -----------------------------------------------------------------------------

    async def load_adapter(self, folder: Path, name: str) -> str:
        """Load an adapter in peft's format, also while requests are in flight.

        Returns:
            Its version. No number is given twice, also if the name was unloaded in between. The
            older version is removed when no run leases it.

        Raises:
            ConfigError: the engine refuses the adapter.
        """
        async with self._loading.current():
            old = self._current.get(name)
            version = f"{name}@{self._highest.get(name, -1) + 1}"
            await self._load(version, folder)
            if old is not None:
                self._replaced.add(f"{name}@{old}")
        await self._remove_replaced()
        return version

    async def load_version(self, version: str, folder: Path) -> None:
        """Load a version, such as ``"agent_2@7"``; it then also answers requests to ``"agent_2"``.
        Earlier versions stay until :meth:`unload_version`. Raises ``ConfigError`` if the engine
        refuses the adapter, or this is no version."""
        async with self._loading.current():
            await self._load(version, folder)

    async def _load(self, version: str, folder: Path) -> None:
        """:meth:`load_version`; versions are loaded one at a time, so that none is added twice."""
        from vllm.lora.request import LoRARequest

        name, number = parsed_version(version)
        version = f"{name}@{number}"
        if version not in self._loaded:
            id = next(self._ids)
            # A new name and id each time: vLLM's prefix caches are keyed by the name, its slots by
            # the id, and a version that was unloaded may come back with other weights.
            lora = LoRARequest(f"{served_name(version)}-{id}", id, str(folder.resolve()))
            try:
                await self._engine.add_lora(lora)
            except Exception as error:
                raise ConfigError(
                    f"vLLM's engine of '{self.name}' refuses the adapter in '{folder}': {error}"
                ) from error
            self._loaded[version] = lora
        self._replaced.discard(version)
        self._current[name] = number
        self._highest[name] = max(number, self._highest.get(name, -1))

    async def unload_version(self, version: str) -> None:
        """Remove a version; no error if it is not there. Raises ``ConfigError`` if this is no
        version."""
        name, number = parsed_version(version)
        version = f"{name}@{number}"
        lora = self._loaded.pop(version, None)
        self._replaced.discard(version)
        if self._current.get(name) == number:
            del self._current[name]
        if lora is not None:
            await self._engine.remove_lora(lora.lora_int_id)

    def lease(self, adapter: str) -> str:
        """Return the current version of an adapter, which stays loaded until :meth:`release`.

        Raises ``ModelError`` if there is no such adapter or version."""
        version = f"{adapter}@{self._current[adapter]}" if adapter in self._current else adapter
        if version not in self._loaded:
            known = ", ".join(self._loaded) or "none"
            raise ModelError(f"no adapter '{adapter}'; '{self.name}' has: {known}")
        self._leases[version] += 1
        return version

    def release(self, version: str) -> None:
        """Give up one lease. Raises ``ModelError`` if the version is not leased."""
        give_up(self._leases, version)

    async def _remove_replaced(self) -> None:
        for version in list(self._replaced):
            if not self._leases[version]:  # one may have been leased during the last removal
                await self.unload_version(version)


def _started(arguments: Mapping[str, object]) -> Any:
    """Start vLLM's engine. It starts child processes, which takes about a minute."""
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM
    except ImportError as error:
        raise MissingExtra("vllm", "vLLM's engine in this process", error.name or "vllm") from error
    try:
        return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
    except Exception as error:
        raise ConfigError(
            f"vLLM's engine does not start with {dict(arguments)}: "
            f"{' '.join(str(error).split()) or type(error).__name__}"
        ) from error
