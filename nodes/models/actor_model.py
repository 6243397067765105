"""Agents that ask a server, or another engine, while their adapters are trained in this process.

    learner = CausalModel.from_pretrained(folder)            # trains
    actor = OpenAIModel("base", "http://localhost:8000/v1")  # vLLM, serves the same folder
    model = ActorModel(actor, learner, folder=run / "served")
    team = CollabGraph.collaborative(agents=4, rounds=2, model=model, adapters=names)
    trainer = TeamTrainer(learner, team, …)

The learner knows which version of an adapter is current and which ones are leased. A version is
saved and loaded into the engine at the first request to it, and unloaded when it is not current and
not leased. So no call is needed after a training step.

If other processes play the episodes (:class:`~swarm_ui.optim.rollout_actors.RolloutActors`), they
ask the server themselves, for the versions that this process published
(:meth:`ActorModel.publish`).
"""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from swarm_ui.errors import ConfigError, ModelUnavailable
from swarm_ui.model import ChatMessage, Completion, Request, at_leased_versions
from swarm_ui.nodes.models.chat_engine import Engine, ask_engine
from swarm_ui.nodes.models.loop_locks import LoopLocks
from swarm_ui.nodes.models.openai.model import AdapterLost, OpenAIModel
from swarm_ui.nodes.models.published_version import write_version
from swarm_ui.nodes.models.sent_actor_model import SentActorModel
from swarm_ui.nodes.models.transformers.causal_model import CausalModel
from swarm_ui.nodes.models.transformers.in_process_model import Counters
from swarm_ui.nodes.models.unsent import not_sent


class ActorModel:
    """The adapters of a learner, with replies from an engine. It is a
    :class:`~swarm_ui.model.VersionedModel`, a :class:`~swarm_ui.model.ScoringModel` and a
    :class:`~swarm_ui.optim.rollout_actors.Publisher`; the part of it that workers get has no
    ``score``.

    The learner makes the prompts, so it trains on exactly the prompts that the engine got. Traces
    name versions as the learner does (``agent_2@7``); a server calls this version ``agent_2-v7``.

    Args:
        engine: gives the replies; usually an :class:`~swarm_ui.nodes.OpenAIModel` of vLLM with
            ``--enable-lora``, which serves the base model of the learner.
        learner: holds the adapters. Its base model must have the same weights as that of the
            engine.
        folder: where versions are saved for the engine, which reads them from there. Each training
            run needs a separate folder.
        constrained: whether replies to decisions are restricted to the actions that are possible on
            the screen; ``None``: those in the compact format are.
        kept: the versions of this many calls of :meth:`publish` stay in the engine.
    """

    def __init__(
        self,
        engine: Engine,
        learner: CausalModel,
        folder: Path,
        *,
        constrained: bool | None = None,
        kept: int = 2,
    ) -> None:
        self.name = engine.name
        self._engine, self.learner, self._folder = engine, learner, folder
        self._constrained = constrained
        self.counters = Counters()
        self._saved: dict[str, Path] = {}
        self._loaded: dict[str, Path] = {}
        self._kept: deque[frozenset[str]] = deque(maxlen=kept)
        """The versions of the last calls of :meth:`publish`."""
        self._sent: SentActorModel | None = None
        self._key, self._base = uuid4().hex, ""
        self._changing = LoopLocks()
        self._asking, self._since = 0, 0.0

    def __repr__(self) -> str:
        return f"ActorModel({self._engine!r}, trained in this process)"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._sent is None:
            raise not_sent(f"the learner of '{self.name}'")
        return self._sent.__reduce__()

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
                f"the engine '{self.name}' reads prompts differently from the learner "
                f"'{self.learner.name}': expected {len(here.ids)} tokens ({here.ids[:8]}…), got "
                f"{len(there)} ({there[:8]}…); serve the same model and chat template on both sides"
            )

    # -- answers ------------------------------------------------------------------------------

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`. Versions that the engine does not have yet are
        loaded first."""
        with at_leased_versions(self, requests) as exact, self._timed():
            prompts = [self.learner.prompt(request) for request in exact]
            versions = {request.adapter for request in exact if request.adapter is not None}
            await self._load(versions)
            try:
                done = await ask_engine(self._engine, exact, prompts, constrained=self._constrained)
            except AdapterLost:  # the server was restarted
                await self._load(versions, again=True)
                done = await ask_engine(self._engine, exact, prompts, constrained=self._constrained)
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
        """Return the current version of an adapter, which stays available, also in the engine,
        until :meth:`release`. Raises ``ModelError`` if there is no such adapter or version."""
        return self.learner.lease(adapter)

    def release(self, version: str) -> None:
        """Give back what :meth:`lease` returned. Raises ``ModelError`` if it is not leased."""
        self.learner.release(version)

    async def close(self) -> None:
        """Unload all versions from the engine if it answers, and close the engine."""
        self._kept.clear()
        try:
            async with self._changing.current():
                for version in self.loaded:
                    await self._unload(version)
        except ModelUnavailable:
            self._loaded.clear()  # it is gone, and its adapters with it
        finally:
            for folder in self._saved.values():
                shutil.rmtree(folder, ignore_errors=True)
            self._saved.clear()
            await self._engine.close()

    # -- versions in the engine ---------------------------------------------------------------

    async def _load(self, versions: set[str], *, again: bool = False) -> None:
        """Load the given versions that are missing, and unload those that are no longer needed.
        ``again``: load all of them; no error if the engine has one."""
        missing = versions if again else versions - self._loaded.keys()
        if not missing and not self._outdated():
            return
        async with self._changing.current():
            for version in sorted(missing):
                folder = self._save(version)
                await self._engine.load_version(version, folder)
                self._loaded[version] = folder
            for version in self._outdated():
                await self._unload(version)

    def _outdated(self) -> list[str]:
        published = set().union(*self._kept)
        return [
            version
            for version in self._loaded
            if version not in published and not self.learner.has_version(version)
        ]

    async def _unload(self, version: str) -> None:
        await self._engine.unload_version(version)
        self._saved.pop(version, None)
        shutil.rmtree(self._loaded.pop(version), ignore_errors=True)

    def _save(self, version: str) -> Path:
        """The folder of a version, which is written if it is new."""
        if version not in self._saved:
            self._base = self._base or self.learner.base_fingerprint()
            found = write_version(self.learner, version, self._folder, base=self._base)
            self._saved[version] = Path(found.folder)
        return self._saved[version]

    # -- other processes ----------------------------------------------------------------------

    def publish(self) -> Mapping[str, str]:
        """See :class:`swarm_ui.optim.rollout_actors.Publisher`. The versions of the last ``kept``
        calls stay in the engine.

        Raises:
            ConfigError: other processes cannot ask the engine, or a version cannot be written.
        """
        engine = self._engine
        if not isinstance(engine, OpenAIModel):
            raise ConfigError(
                f"'{self.name}' is not a server, and other processes cannot ask it; expected an "
                f"OpenAIModel as the engine, got {type(engine).__name__}"
            )
        current: dict[str, str] = {}
        for name in self.learner.adapters:
            current[name] = self.learner.lease(name)
            try:
                self._save(current[name])
            finally:
                self.learner.release(current[name])
        self._kept.append(frozenset(current.values()))
        prompts = self.learner.prompt_reader(sorted(current.values()))
        self._sent = SentActorModel(self._key, engine, prompts, current, self._constrained)
        return current

    async def prepare(self) -> None:
        """See :class:`swarm_ui.optim.rollout_actors.Publisher`. Load published versions that the
        server lacks, for example after it was restarted. Unload versions that are not needed,
        including those that a killed process of this run left."""
        assert isinstance(self._engine, OpenAIModel)
        async with self._changing.current():
            served = {model.name: model.root for model in await self._engine.served()}
            published = sorted(set().union(*self._kept))
            for version in published:
                if version not in self._loaded or self._engine.loaded.get(version) not in served:
                    await self._engine.load_version(version, self._saved[version])
                    self._loaded[version] = self._saved[version]
            for version in self._outdated():
                await self._unload(version)
            for name, root in served.items():
                left = root is not None and Path(root).parent == self._folder.resolve()
                if left and name not in self._engine.loaded.values():
                    await self._engine.unload_version(name)

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
