"""Restricts decoding to a list of possible replies, as an automaton over the tokens of a model.

A reply consists of literal parts and free text
(:meth:`swarm_ui.prompts.PromptFormat.replies`). Each literal part is read as the tokens that the
tokenizer gives for the whole of it, so a constrained reply has the tokens of a trained one. The
parts form a prefix tree. Free text is a sequence of ordinary tokens without the characters that it
excludes; it begins with something visible.

A space before free text belongs to the text's first token (``" milk"``), as in trained replies.
"""

from __future__ import annotations

import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from swarm_ui.errors import ModelError
from swarm_ui.nodes.models.transformers.choosing import Allowed
from swarm_ui.prompts import FreeText, Reply

_SCREENS = 256
"""Maximum number of compiled lists of replies that are kept."""
_LITERALS = 16_384
"""Maximum number of literal parts whose tokens are kept."""
_BEFORE = "a"
"""Text in front of a literal part that follows a free text, while it is converted to tokens: some
tokenizers begin every text with a space."""
_FRAGMENT = "\ufffd"
"""The replacement character that a decoder writes for an incomplete character."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class ReplyGrammars:
    """Compiles lists of replies for one tokenizer, and caches the most recent ones."""

    def __init__(
        self,
        texts: Sequence[str | None],
        tokenize: Callable[[list[str]], list[list[int]]],
        end: int,
        device: torch.device,
    ) -> None:
        """
        Args:
            texts: the text of each token by id; ``None``: a control token.
            tokenize: the tokens of literal texts, without control tokens.
            end: the token that ends a reply.
            device: the device on which masks are needed.
        """
        self._texts, self._tokenize, self._end, self._device = texts, tokenize, end, device
        self._masks: dict[tuple[str, str], _Mask] = {}
        self._literals: OrderedDict[_Literal, list[int]] = OrderedDict()
        self._grammars: OrderedDict[tuple[Reply, ...], ReplyGrammar] = OrderedDict()

    def compile(self, replies: Iterable[Reply]) -> ReplyGrammar:
        """The automaton of these replies. Raises ``ModelError`` if there are none."""
        key = tuple(replies)
        if not key:
            raise ModelError("constrained decoding needs at least one possible reply, got none")
        grammar = self._grammars.get(key)
        if grammar is None:
            grammar = ReplyGrammar(self._tree(key), self._end)
        _keep(self._grammars, key, grammar, _SCREENS)
        return grammar

    def _tree(self, replies: Sequence[Reply]) -> _Node:
        read = [_parts(reply) for reply in replies]
        literals = [part for parts in read for part in parts if isinstance(part, _Literal)]
        known = self._tokens(dict.fromkeys(literals))
        root = _Node()
        for parts in read:
            here, texts = root, list[tuple[_Text, int]]()
            length = 0
            for part in parts:
                if isinstance(part, _Literal):
                    length += len(known[part])
                    for token in known[part]:
                        here = here.children.setdefault(token, _Node())
                else:
                    length += 2  # a space, and a word; less if the limit does not allow more
                    text = self._text(here, part)
                    texts.append((text, length))
                    here = text.after
            here.ends = True
            for text, until in texts:
                text.rest = max(text.rest, length - until)
        return root

    def _tokens(self, literals: Iterable[_Literal]) -> dict[_Literal, list[int]]:
        """The tokens of literal parts."""
        known = {each: self._literals[each] for each in literals if each in self._literals}
        unknown = [each for each in literals if each not in known]
        if unknown:
            texts = [_BEFORE + each.text if each.inside else each.text for each in unknown]
            before, *read = self._tokenize([_BEFORE, *texts])
            for each, ids in zip(unknown, read, strict=True):
                if each.inside and ids[: len(before)] == before:
                    known[each] = ids[len(before) :]
                else:
                    known[each] = self._tokenize([each.text])[0] if each.inside else ids
        for literal, ids in known.items():
            _keep(self._literals, literal, ids, _LITERALS)
        return known

    def _text(self, here: _Node, part: _Spaced) -> _Text:
        for text in here.texts:
            if text.part == part:
                return text
        without = part.free.without
        first, later = self._mask(without, "first"), self._mask(without, "later")
        opening = self._mask(without, "space") if part.space else first
        here.texts.append(_Text(part, opening, first, later))
        return here.texts[-1]

    def _mask(self, without: str, place: str) -> _Mask:
        """The tokens that are allowed at a position of a text; see ``_FITS``."""
        key = (without, place)
        if key not in self._masks:
            banned, fits = frozenset(without), _FITS[place]
            chosen = bytes(
                text is not None and _ordinary(text) and banned.isdisjoint(text) and fits(text)
                for text in self._texts
            )
            if not any(chosen):
                raise ModelError(
                    "cannot constrain decoding: the tokenizer has no token for the position "
                    f"'{place}' of a text without {without!r}; use constrained=False"
                )
            listed = torch.tensor(list(chosen), dtype=torch.bool, device=self._device)
            blank = frozenset(k for k, text in enumerate(self._texts) if text == " ")
            self._masks[key] = _Mask(chosen, listed, blank)
        return self._masks[key]


class ReplyGrammar:
    """A set of replies, which many rows may use at the same time."""

    def __init__(self, root: _Node, end: int) -> None:
        self._root, self._end = root, end

    def begin(self, room: int) -> ReplyCursor:
        """The position before the first token of a reply of at most ``room`` tokens.

        Free text ends early enough for the longest continuation, if that fits at all.
        """
        return ReplyCursor(self._root, self._end, room)


class ReplyCursor:
    """The position in a reply: a set of positions, since a reason may begin like an action."""

    __slots__ = ("_at", "_end", "_room")

    def __init__(self, root: _Node, end: int, room: int) -> None:
        self._at: list[_Node | _Within] = [root]
        self._end, self._room = end, room

    def allowed(self) -> Allowed:
        """The tokens that may come next; see
        :class:`~swarm_ui.nodes.models.transformers.choosing.Cursor`."""
        ids: dict[int, None] = {}
        masks: list[Tensor] = []
        for at in self._at:
            node, inside = (at, None) if isinstance(at, _Node) else at.read(self._room)
            if inside is not None:
                masks.append(inside.listed)
            if node is not None:
                ids |= dict.fromkeys(node.children)
                masks += [text.opening.listed for text in node.texts]
                if node.ends:
                    ids[self._end] = None
        mask = None if not masks else masks[0] if len(masks) == 1 else torch.stack(masks).any(0)
        return Allowed(list(ids), mask)

    def take(self, token: int) -> None:
        """Append an allowed token; see
        :class:`~swarm_ui.nodes.models.transformers.choosing.Cursor`."""
        following: list[_Node | _Within] = []
        for at in self._at:
            node, inside = (at, None) if isinstance(at, _Node) else at.read(self._room)
            if inside is not None and inside.chosen[token]:
                assert isinstance(at, _Within)
                following.append(_Within(at.text, at.used + 1, True))
            if node is not None:
                if token in node.children:
                    following.append(node.children[token])
                following += [
                    _Within(text, 1, token not in text.opening.blank)
                    for text in node.texts
                    if text.opening.chosen[token]
                ]
        self._at = following
        self._room -= 1


class _Mask(NamedTuple):
    """A set of tokens."""

    chosen: bytes
    """1 for each token of the set, by id."""
    listed: Tensor
    """The set as booleans on the device, ``[words]``."""
    blank: frozenset[int]
    """Tokens that are a space and nothing else."""


class _Literal(NamedTuple):
    """A literal part of a reply, and whether it follows a free text."""

    text: str
    inside: bool


class _Spaced(NamedTuple):
    """A free part of a reply, and whether it begins with a space."""

    free: FreeText
    space: bool


class _Node:
    """A position between tokens of literal parts."""

    __slots__ = ("children", "ends", "texts")

    def __init__(self) -> None:
        self.children: dict[int, _Node] = {}
        self.texts: list[_Text] = []
        """Free texts that may begin here."""
        self.ends = False
        """Whether a reply may end here."""


class _Text:
    """A free text in the prefix tree, with the tokens that it may consist of."""

    __slots__ = ("after", "first", "later", "opening", "part", "rest")

    def __init__(self, part: _Spaced, opening: _Mask, first: _Mask, later: _Mask) -> None:
        self.part, self.opening, self.first, self.later = part, opening, first, later
        self.after = _Node()
        self.rest = 0
        """Number of tokens of the longest rest of a reply."""


class _Within(NamedTuple):
    """A position in a free text, after at least one token."""

    text: _Text
    used: int
    """Tokens of the text so far."""
    began: bool
    """Whether something visible has been written."""

    def read(self, room: int) -> tuple[_Node | None, _Mask | None]:
        """The node after the text if the text may end here, and the tokens with which it may
        continue; ``None`` if it may not."""
        if not self.began:
            return None, self.text.first
        more = self.used < self.text.part.free.max_tokens and room > self.text.rest
        return self.text.after, self.text.later if more else None


def _parts(reply: Reply) -> list[_Literal | _Spaced]:
    """Literal parts, without a trailing space that belongs to the free text after them."""
    out: list[_Literal | _Spaced] = []
    for part in reply:
        if isinstance(part, str):
            out.append(_Literal(part, inside=bool(out)))
            continue
        before = out.pop() if out else _Literal("", inside=False)
        assert isinstance(before, _Literal), "two free texts are adjacent"
        space = before.text.endswith((" ", ":")) or before.text[-1:].isalnum()
        if left := before.text.removesuffix(" "):
            out.append(before._replace(text=left))
        out.append(_Spaced(part, space))
    return out


def _ordinary(text: str) -> bool:
    """Whether a token has text, all of it on one line."""
    return bool(text) and not any(unicodedata.category(c) in _CONTROLS for c in text)


def _visible(text: str) -> bool:
    return bool(text) and not text[0].isspace() and text[0] != _FRAGMENT


_CONTROLS = frozenset({"Cc", "Cf", "Zl", "Zp"})
_FITS: dict[str, Callable[[str], bool]] = {
    "space": lambda text: text == " " or (text[0] == " " and _visible(text[1:])),
    "first": _visible,
    "later": lambda text: True,
}
"""Which tokens fit at a position of a free text. ``space``: the first token of a text that begins
with a space. ``first``: the first token of another text. ``later``: all others. The first word must
be visible, because readers of replies strip spaces."""


def _keep(store: OrderedDict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Put a value into a store that keeps the ``most`` latest ones."""
    store[key] = value
    store.move_to_end(key)
    while len(store) > most:
        store.popitem(last=False)


def token_texts(tokenizer: Any, words: int) -> list[str | None]:
    """The text of each token; ``None`` for control tokens and ids without a token.

    Args:
        tokenizer: a tokenizer of transformers.
        words: number of the network's tokens, which may be more than the tokenizer's.
    """
    [anchor] = tokenizer(["a"], add_special_tokens=False)["input_ids"]
    special = {id_ for id_, token in tokenizer.added_tokens_decoder.items() if token.special}
    known = len(tokenizer)
    options = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
    before = tokenizer.decode(anchor, **options)
    # Alone, a token may lose its space; after another one, it does not.
    joined = tokenizer.batch_decode([[*anchor, id_] for id_ in range(known)], **options)
    texts: list[str | None] = [
        text[len(before) :] if id_ not in special and text.startswith(before) else None
        for id_, text in enumerate(joined)
    ]
    return texts + [None] * (words - known)
