"""Restricts replies: to the actions that are possible on a screen, a pattern, or a JSON schema.

llguidance compiles the restriction, gives the tokens that may come next, and the tokens that must
come (the rest of a label, an index), which are read without a choice. A reply that was trained has
the tokens that its tokenizer gives for the whole text, and these are the ones that must come.

With SmolLM2's tokenizer, the replies to a screen of the phone compile in 1.6 ms of CPU time, and
the tokens of one reply take 0.3 ms.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from swarm_ui.errors import MissingExtra, ModelError
from swarm_ui.nodes.models.transformers.decoding import Allowed

_SCREENS = 256
"""Number of compiled restrictions that are kept."""
_FEW = 64
"""Up to this many allowed tokens are listed; noise is then drawn for these alone."""


class ReplyGrammars:
    """Compiles restrictions for one tokenizer, and keeps the most recent ones."""

    def __init__(self, tokenizer: Any, words: int, end: int, device: torch.device) -> None:
        """``words``: number of the network's tokens, which may be more than the tokenizer's;
        ``end``: the token that ends a reply. Raises ``MissingExtra`` without llguidance, and
        ``ModelError`` if the tokenizer is not a fast one."""
        try:
            import llguidance.hf
        except ImportError as error:
            raise MissingExtra("train", "constrained replies", "llguidance") from error
        try:
            self._tokens = llguidance.hf.from_tokenizer(tokenizer, n_vocab=words, eos_token=end)
        except ValueError as error:
            raise ModelError(
                f"constrained replies need a fast tokenizer, got {type(tokenizer).__name__} "
                f"({error}); use constrained=False"
            ) from error
        self._words, self._device = words, device
        [first, *_] = tokenizer.convert_ids_to_tokens(
            tokenizer("a", add_special_tokens=False)["input_ids"]
        )
        # Some tokenizers begin every text with a space, which is no part of it.
        self._before = " " if first[:1] in ("▁", "Ġ") else ""
        self._compiled = lru_cache(_SCREENS)(self._compile)

    def find(self, pattern: str | None, schema: str | None) -> ReplyGrammar | None:
        """The replies that match a regular expression as a whole, or else follow a JSON schema.
        ``None``, with a warning, if llguidance does not support the schema. Raises ``ModelError``
        if the pattern cannot be used."""
        if pattern is not None:
            own = f"{self._before}(?:{pattern})" if self._before else pattern
            return self._begun(own, False)
        try:
            return None if schema is None else self._begun(schema, True)
        except ModelError as error:
            warnings.warn(f"{error}. The reply is not restricted", stacklevel=2)
            return None

    def _begun(self, text: str, is_schema: bool) -> ReplyGrammar:
        return ReplyGrammar(self._compiled(text, is_schema).deep_copy(), self._words, self._device)

    def _compile(self, text: str, is_schema: bool) -> Any:
        from llguidance import LLMatcher

        make = LLMatcher.grammar_from_json_schema if is_schema else LLMatcher.grammar_from_regex
        try:
            matcher = LLMatcher(self._tokens, make(text), log_level=0)
            wrong = matcher.get_error()
        except ValueError as error:
            wrong = str(error)
        if wrong:
            what = "JSON schema" if is_schema else "pattern"
            raise ModelError(f"replies cannot be restricted to the {what} {text[:200]!r}: {wrong}")
        return matcher


class ReplyGrammar:
    """The replies that match a pattern or a schema; see
    :class:`~swarm_ui.nodes.models.transformers.decoding.Grammar`."""

    def __init__(self, matcher: Any, words: int, device: torch.device) -> None:
        self._matcher, self._words, self._device = matcher, words, device
        self._must: Sequence[int] = ()
        """Tokens that come next without an alternative."""

    def allowed(self) -> Allowed:
        self._must = self._must or self._matcher.compute_ff_tokens()
        if self._must:
            return self._must[:1]
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        chosen = np.unpackbits(mask, count=self._words, bitorder="little")
        ids = chosen.nonzero()[0]
        if not len(ids):
            raise ModelError(f"no token can follow in a reply: {self._matcher.get_error()}")
        if len(ids) <= _FEW:
            return [int(each) for each in ids]
        return torch.from_numpy(chosen).to(self._device, torch.bool)

    def take(self, token: int) -> None:
        self._must = self._must[1:]
        self._matcher.consume_token(token)
