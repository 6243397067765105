"""Agents that ask a server, or another engine, while their adapters are trained in this process.

    learner = CausalModel.from_pretrained(folder)            # trains
    actor = OpenAIModel("base", "http://localhost:8000/v1")  # vLLM, serves the same folder
    model = ActorModel(actor, learner, folder=run / "served")
    team = CollabGraph.collaborative(agents=4, rounds=2, model=model, adapters=names)
    trainer = TeamTrainer(learner, team, …)

The learner knows which version of an adapter is current and which ones are leased. A version is
saved and loaded into the engine at the first request to it, and unloaded when it is not current and
not leased. So no call is needed after a training step.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, Protocol

import msgspec

from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.model import ChatMessage, Completion, Request, leased_versions
from swarm_ui.nodes.models.openai.served_adapters import served_name
from swarm_ui.nodes.models.reply_patterns import reply_pattern
from swarm_ui.nodes.models.transformers.causal_model import CausalModel
from swarm_ui.nodes.models.transformers.chat_tokens import ChatPrompt
from swarm_ui.nodes.models.transformers.in_process_model import Counters
from swarm_ui.nodes.models.unsent import not_sent
from swarm_ui.prompts import format_named

_WEIGHTS = "adapter_model.safetensors"


class Engine(Protocol):
    """Answers chats with versions of adapters that are loaded while it runs."""

    @property
    def name(self) -> str: ...

    async def generate(self, requests: Sequence[Request]) -> list[Completion]: ...

    async def load_version(self, version: str, folder: Path) -> None:
        """Load a version, such as ``"agent_2@7"``, from a folder in peft's format."""
        ...

    async def unload_version(self, version: str) -> None:
        """Remove a version; no error if it is not there."""
        ...

    async def tokens(self, chat: Sequence[ChatMessage]) -> list[int]:
        """The tokens of a chat as the engine reads them."""
        ...

    async def close(self) -> None: ...


class ActorModel:
    """The adapters of a learner, with replies from an engine. It is a
    :class:`~swarm_ui.model.VersionedModel` and a :class:`~swarm_ui.model.ScoringModel`.

    The learner makes the prompts, so it trains on exactly the prompts that the engine got. Traces
    name versions as the learner does (``agent_2@7``); a server calls this version ``agent_2-v7``.

    Args:
        engine: gives the replies; usually an :class:`~swarm_ui.nodes.OpenAIModel` of vLLM with
            ``--enable-lora``, which serves the base model of the learner.
        learner: holds the adapters. Its base model must have the weights of the engine's.
        folder: where versions are saved for the engine, which reads them from there. It needs a
            folder of its own for each training run.
        constrained: whether replies to decisions are restricted to the actions that are possible on
            the screen; ``None``: those in the compact format are.
    """

    def __init__(
        self,
        engine: Engine,
        learner: CausalModel,
        folder: Path,
        *,
        constrained: bool | None = None,
    ) -> None:
        self._engine, self.learner, self._folder = engine, learner, folder
        self._constrained = constrained
        self.counters = Counters()
        self._loaded: dict[str, Path] = {}
        self._changing: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
        self._asking, self._since = 0, 0.0

    def __repr__(self) -> str:
        return f"ActorModel({self._engine!r}, trained in this process)"

    def __reduce__(self) -> NoReturn:
        raise not_sent(f"the learner of '{self.name}'")

    @property
    def name(self) -> str:
        return self._engine.name

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the learner's adapters."""
        return self.learner.adapters

    @property
    def loaded(self) -> tuple[str, ...]:
        """The versions that were loaded into the engine and not unloaded since."""
        return tuple(self._loaded)

    async def check(self) -> None:
        """Check that the engine answers, and that it reads a chat as the learner does.

        Raises:
            ModelUnavailable: the engine does not answer.
            ConfigError: it converts a chat to other tokens, because the model or the chat template
                differs.
        """
        chat = (ChatMessage(role="user", content="Goal: open calendar 02:36\nScreen:\nok [0]"),)
        here = self.learner.prompt(Request(chat=chat))
        there = await self._engine.tokens(here.turns)
        if there != here.ids:
            raise ConfigError(
                f"the engine '{self.name}' reads prompts in another way than the learner "
                f"'{self.learner.name}': expected {len(here.ids)} tokens ({here.ids[:8]}…), got "
                f"{len(there)} ({there[:8]}…); serve the same model and chat template on both sides"
            )

    # -- answers ------------------------------------------------------------------------------

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`. Versions that the engine does not have yet are
        loaded first."""
        with leased_versions(self, requests) as versions, self._timed():
            prompts = [self.learner.prompt(request) for request in requests]
            await self._load({version for version in versions if version is not None})
            asked = [
                msgspec.structs.replace(
                    r,
                    decision=None,
                    chat=prompt.turns,
                    adapter=version,
                    pattern=self._pattern(prompt) or r.pattern,
                )
                for r, prompt, version in zip(requests, prompts, versions, strict=True)
            ]
            replies = await self._engine.generate(asked)
        done = [
            msgspec.structs.replace(
                reply,
                prompt=prompt.text,
                adapter=version,
                model=self.name,
                prompt_format="json" if prompt.decision is None else prompt.prompt_format,
                dropped=None if prompt.decision is None else prompt.decision.dropped,
            )
            for reply, prompt, version in zip(replies, prompts, versions, strict=True)
        ]
        counters = self.counters
        counters.calls += len(done)
        counters.prompt_tokens += sum(each.usage.prompt_tokens for each in done)
        counters.completion_tokens += sum(each.usage.completion_tokens for each in done)
        return done

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """See :class:`swarm_ui.model.ScoringModel`; the learner computes it, with the same
        weights."""
        return await self.learner.score(requests, replies)

    def lease(self, adapter: str) -> str:
        """The current version of a name. It stays available, also in the engine, until
        :meth:`release`. Raises ``ModelError`` if there is no such adapter or version."""
        return self.learner.lease(adapter)

    def release(self, version: str) -> None:
        """Give back what :meth:`lease` returned. Raises ``ModelError`` if it is not leased."""
        self.learner.release(version)

    async def close(self) -> None:
        """Unload all versions from the engine if it answers, and close the engine."""
        try:
            async with self._lock():
                for version in self.loaded:
                    await self._unload(version)
        except ModelUnavailable:
            self._loaded.clear()  # it is gone, and its adapters with it
        finally:
            await self._engine.close()

    def _pattern(self, prompt: ChatPrompt) -> str | None:
        """The replies that are possible on the screen; ``None``: replies are not restricted."""
        bound = self._constrained
        if bound is None:
            bound = prompt.prompt_format == "compact"
        if prompt.decision is None or not bound:
            return None
        return reply_pattern(format_named(prompt.prompt_format).replies(prompt.decision))

    # -- versions in the engine ---------------------------------------------------------------

    async def _load(self, versions: set[str]) -> None:
        """Load the given versions that are missing, and unload those that are no longer needed."""
        if versions <= self._loaded.keys() and not self._outdated():
            return
        async with self._lock():
            for version in sorted(versions - self._loaded.keys()):
                folder = self._saved(version)
                await self._engine.load_version(version, folder)
                self._loaded[version] = folder
            for version in self._outdated():
                await self._unload(version)

    def _outdated(self) -> list[str]:
        return [version for version in self._loaded if not self.learner.has_version(version)]

    async def _unload(self, version: str) -> None:
        await self._engine.unload_version(version)
        shutil.rmtree(self._loaded.pop(version), ignore_errors=True)

    def _saved(self, version: str) -> Path:
        """The folder of a version, written atomically. Its name contains a hash of the weights."""
        self._folder.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=self._folder))
        try:
            part.chmod(0o755)  # the server may be another user
            self.learner.save_version(version, part)
            digest = hashlib.sha256((part / _WEIGHTS).read_bytes()).hexdigest()[:8]
            folder = self._folder.resolve() / f"{served_name(version)}-{digest}"
            if not folder.exists():
                part.rename(folder)
            return folder
        except OSError as error:
            raise ModelError(
                f"cannot save {version} in '{self._folder}' for '{self.name}': {error}"
            ) from error
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _lock(self) -> asyncio.Lock:
        """The lock of this event loop."""
        loop = asyncio.get_running_loop()
        for other in [each for each in self._changing if each.is_closed()]:
            del self._changing[other]
        return self._changing.setdefault(loop, asyncio.Lock())

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count the wall time in which at least one request is under way."""
        if not self._asking:
            self._since = time.perf_counter()
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self.counters.seconds += time.perf_counter() - self._since
