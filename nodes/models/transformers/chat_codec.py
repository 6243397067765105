"""Requests as text in the chat template of a tokenizer, and replies as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from swarm_ui.action import Unparsed, parse_action
from swarm_ui.errors import ConfigError
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Request
from swarm_ui.nodes.models.reply_patterns import decision_pattern
from swarm_ui.nodes.models.transformers.chat_reader import ChatPrompt, ChatReader
from swarm_ui.nodes.models.transformers.decoding import Continuation, Row
from swarm_ui.nodes.models.transformers.forwards import Pictures
from swarm_ui.nodes.models.transformers.grammar import ReplyGrammar, ReplyGrammars
from swarm_ui.prompts import format_named

_TURNS = (("user", "question"), ("assistant", "reply"))


class ChatCodec:
    """The :class:`~swarm_ui.nodes.models.transformers.in_process_model.Codec` of chats."""

    any_text: bool = True

    def __init__(
        self,
        network: PreTrainedModel,
        reader: ChatReader,
        *,
        constrained: bool | None,
        pictures: Pictures | None = None,
    ) -> None:
        """Raises ``ConfigError`` if network and tokenizer do not fit together, or neither names an
        end token."""
        embeddings: Any = network.get_input_embeddings()
        self._words, self._device = int(embeddings.weight.shape[0]), network.device
        self.reader, self.tokenizer = reader, reader.tokenizer
        self.context: int | None = reader.context
        self.pictures: Pictures | None = pictures
        self._constrained = constrained
        if len(self.tokenizer) > self._words:
            raise ConfigError(
                f"the tokenizer has {len(self.tokenizer)} tokens, the network knows {self._words}; "
                "the two do not belong together"
            )
        self.end, self.stops = _ends(getattr(network, "generation_config", None), self.tokenizer)
        pad = self.tokenizer.pad_token_id
        self.pad_id: int = self.end if pad is None else pad
        self._grammars: ReplyGrammars | None = None

    def read(self, request: Request, prompt_format: str) -> ChatPrompt:
        return self.reader.read(request, prompt_format)

    def row(self, request: Request, prompt: ChatPrompt) -> Row:
        room = request.reply_tokens if self.context is None else self.context - len(prompt.ids)
        return Row(
            prompt=prompt.ids,
            temperature=request.temperature or 0.0,
            seed=request.seed,
            max_tokens=min(request.reply_tokens, room),
            grammar=self._grammar(request, prompt),
        )

    def completion(self, prompt: ChatPrompt, new: Continuation) -> Completion:
        decode = self.tokenizer.decode
        text = str(decode(new.ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        return Completion(
            text=text,
            usage=Usage(prompt_tokens=len(prompt.ids), completion_tokens=len(new.tokens)),
            logprob=new.logprob,
            sampled=() if new.tokens == self.spoken(prompt, text) else tuple(new.tokens),
            **prompt.told(),
        )

    def spoken(self, prompt: ChatPrompt, reply: str) -> list[int]:
        literal = self.reader.marks.search(reply) is not None  # no token of it is a control token
        return [*self.reader.tokens(reply, literal=literal), self.end]

    def proposal(self, prompt: ChatPrompt, action: str) -> list[int] | None:
        decision, form = prompt.decision, format_named(prompt.prompt_format)
        read = parse_action(action)
        if isinstance(read, Unparsed):
            return None
        if decision is None:
            return self.spoken(prompt, action)
        reply = action if form.name == "json" else form.write(read, decision.observation)
        said = form.parse(reply, decision.observation, partial=decision.partial)
        return None if isinstance(said, Unparsed) else self.spoken(prompt, reply)

    def first_token(self, option: str) -> int:
        """The first token of a reply."""
        ids = self.reader.tokens(option, literal=True)
        return ids[0] if ids else self.end

    def save(self, folder: Path) -> None:
        self.tokenizer.save_pretrained(str(folder))

    def _grammar(self, request: Request, prompt: ChatPrompt) -> ReplyGrammar | None:
        """The replies that the request or the screen allows; ``None`` if they are not restricted.
        Replies of agents with tools are not: the schema is that of the last one."""
        possible = decision_pattern(prompt.decision, prompt.prompt_format, self._constrained)
        pattern = possible or request.pattern
        if pattern is None and (request.json_schema is None or request.tools):
            return None
        if self._grammars is None:
            self._grammars = ReplyGrammars(self.tokenizer, self._words, self.end, self._device)
        if pattern is not None:
            return self._grammars.pattern(pattern)
        assert request.json_schema is not None
        return self._grammars.schema(request.json_schema)


def _ends(generation: Any, tokenizer: Any) -> tuple[int, frozenset[int]]:
    """The token at the end of trained replies, and all tokens that can end a reply."""
    named = getattr(generation, "eos_token_id", None)
    stops = [] if named is None else [named] if isinstance(named, int) else list(named)
    if tokenizer.eos_token_id is not None:
        stops.insert(0, tokenizer.eos_token_id)
    if not stops:
        raise ConfigError(
            "neither the tokenizer nor the network's generation_config names an end token "
            "(eos_token); set one, or no reply would ever end"
        )
    end = _end_of_turn(tokenizer, stops)
    return stops[0] if end is None else end, frozenset(stops)


def _end_of_turn(tokenizer: Any, stops: Sequence[int]) -> int | None:
    """The end token that the chat template puts behind a reply, which may be another one than that
    of a text (Gemma, Phi-3); ``None``: there is none."""
    if tokenizer.chat_template is None:
        return None
    turns = [{"role": role, "content": content} for role, content in _TURNS]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False)
    except Exception:  # a template is a program that may raise anything
        return None
    ids = tokenizer(text.rpartition(_TURNS[-1][1])[2], add_special_tokens=False)["input_ids"]
    return next((id_ for id_ in ids if id_ in stops), None)
