"""The embedded agent: a tiny transformer that reads screens as compact tokens.

It needs no key, no GPU and no download. Batches, adapters and versions are in
:mod:`swarm_ui.nodes.models.transformers.in_process_model`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.nodes.models.tiny_agent import architecture
from swarm_ui.nodes.models.tiny_agent.shipped_agents import (
    BASE_AGENT,
    GENERAL_AGENT,
    SHIPPED_AGENTS,
)
from swarm_ui.nodes.models.tiny_agent.tokenizer import Encoded, ScreenTokenizer
from swarm_ui.nodes.models.transformers.decoding import Allowed, Continuation, Row
from swarm_ui.nodes.models.transformers.forwards import Pictures
from swarm_ui.nodes.models.transformers.in_process_model import InProcessModel, loading

__all__ = ["BASE_AGENT", "GENERAL_AGENT", "LocalModel"]

_REPLY_TOKENS, _FREE_WORDS = 20, 8
_PREFIX_BYTES = 2**26
"""Memory for keys and values of prompts: those of one round of the episodes that fill a batch."""


class WordGrammar:
    """The replies that are possible on one screen; see
    :class:`~swarm_ui.nodes.models.transformers.decoding.Grammar`."""

    def __init__(
        self, replies: Sequence[tuple[list[int], bool]], free: Sequence[int], end: int
    ) -> None:
        """``replies``: the tokens of each, and whether free text, of the tokens ``free``, follows;
        ``end``: the token after a reply."""
        self._replies, self._free, self._end, self._length = replies, free, end, 0

    def allowed(self) -> Allowed:
        at = self._length
        if going_on := dict.fromkeys(ids[at] for ids, _ in self._replies if at < len(ids)):
            return [*going_on]
        ((ids, has_text), *_) = self._replies
        words = at - len(ids)
        if not has_text or words == _FREE_WORDS:
            return [self._end]
        return [*self._free, self._end] if words or not self._free else self._free

    def take(self, token: int) -> None:
        at = self._length
        self._replies = [r for r in self._replies if at >= len(r[0]) or r[0][at] == token]
        self._length += 1


class ScreenCodec:
    """The :class:`~swarm_ui.nodes.models.transformers.in_process_model.Codec` of the tiny agents:
    a screen as a few dozen tokens, and an action as a few."""

    context: int | None = None
    pictures: Pictures | None = None

    def __init__(self, tokenizer: ScreenTokenizer) -> None:
        self.tokenizer = tokenizer
        self.pad_id = tokenizer.pad_id
        self.stops: Collection[int] = (tokenizer.eos_id,)

    def read(self, request: Request, prompt_format: str) -> Encoded:
        if request.decision is None:
            raise ModelError(
                "the base and general agents answer decisions about a screen, not chats; use an "
                "OpenAI-compatible model, or CausalModel, for critics and adversaries that are "
                "asked in text"
            )
        return self.tokenizer.encode(request.decision)

    def row(self, request: Request, prompt: Encoded) -> Row:
        replies, free = [*self.tokenizer.possible(prompt)], self.tokenizer.free_words(prompt)
        if not replies:
            screen = prompt.decision.observation
            raise ModelError(
                f"no reply is possible: the screen shows {len(screen.elements)} elements and "
                f"offers {', '.join(screen.actions)}, none of which can be done there; offer "
                "an action that needs no element, such as 'wait'"
            )
        return Row(
            prompt=prompt.ids,
            temperature=request.temperature or 0.0,
            seed=request.seed,
            max_tokens=min(request.reply_tokens, _REPLY_TOKENS),
            grammar=WordGrammar(replies, free, self.tokenizer.eos_id),
            sparse=False,
        )

    def completion(self, prompt: Encoded, new: Continuation) -> Completion:
        action = self.tokenizer.decode(prompt, new.ids)
        return Completion(
            text=action.text if isinstance(action, Unparsed) else action.json(),
            prompt=self.tokenizer.shown(prompt),
        )

    def spoken(self, prompt: Encoded, reply: str) -> list[int] | None:
        action = parse_action(reply)
        return None if isinstance(action, Unparsed) else self.tokenizer.reply(prompt, action)

    proposal = spoken

    def save(self, folder: Path) -> None:
        words = json.dumps(self.tokenizer.extra_words)
        (folder / "words.json").write_text(words, encoding="utf-8")


class LocalModel(InProcessModel[Encoded]):
    """The embedded agent (or another model of its architecture) with named adapters.

    A reply does not depend on the other requests of its batch, so equal seeds give equal episodes
    in one process and on many machines. Its log-probability may differ by some 1e-6.
    """

    encodes_text = False

    def __init__(
        self, network: PreTrainedModel, tokenizer: ScreenTokenizer, *, name: str = "base-agent"
    ) -> None:
        """``network``: a transformers causal language model over the tokenizer's tokens."""
        codec = ScreenCodec(tokenizer)
        super().__init__(network, codec, name=name, prefix_bytes=_PREFIX_BYTES, tiny=True)
        self.tokenizer = tokenizer

    # -- making, loading, saving --------------------------------------------------------------

    @classmethod
    def untrained(
        cls, tokenizer: ScreenTokenizer, *, width: int, layers: int, heads: int, seed: int
    ) -> Self:
        """A new agent with random weights."""
        sizes = {"width": width, "layers": layers, "heads": heads, "seed": seed}
        words, pad, end = len(tokenizer), tokenizer.pad_id, tokenizer.eos_id
        return cls(architecture.untrained(words, pad, end, **sizes), tokenizer)

    @classmethod
    def load(cls, folder: Path = BASE_AGENT) -> Self:
        """An agent saved by :meth:`save`.

        Raises:
            ConfigError: the folder holds no agent, or weights and word list do not match.
        """
        expected = (
            f"no agent in {folder}: expected words.json, config.json and model.safetensors; make "
            "one with python -m demos.base_agent base --out FOLDER, or give another folder"
        )
        with _no_progress_bar(), loading(expected):
            words = msgspec.json.decode((folder / "words.json").read_bytes(), type=list[str])
            tokenizer = ScreenTokenizer(words)
            network: Any = AutoModelForCausalLM.from_pretrained(
                folder, use_safetensors=True, trust_remote_code=False
            )
        if network.config.vocab_size != len(tokenizer):
            raise ConfigError(
                f"{folder}: the weights have {network.config.vocab_size} tokens, the word list has "
                f"{len(tokenizer)}; the two files do not belong together"
            )
        shipped = folder in SHIPPED_AGENTS.values()
        name = folder.name.replace("_", "-") if shipped else "base-agent"
        return cls(network, tokenizer, name=name)

    # -- training -----------------------------------------------------------------------------

    def lesson(
        self, decision: Decision, action: Action, rng: random.Random
    ) -> tuple[list[int], list[int]]:
        """A sample of stage 1 as token ids, and a mask that is 1 on the reply. The slots of unknown
        words are random."""
        prompt = self.tokenizer.encode(decision, rng)
        reply = self.tokenizer.reply(prompt, action)
        return prompt.ids + reply, [0] * len(prompt.ids) + [1] * len(reply)


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Switch the progress bars of transformers off; a tiny model loads at once."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
