"""Screens and actions as a few dozen tokens, which the embedded agent reads and writes.

The interface uses JSON and natural text, which are too long for a transformer with a few hundred
thousand parameters. This tokenizer converts them:

- Words are tokens. A word outside the fixed list is replaced by one of ``SLOTS`` placeholder tokens
  (*slots*). All its occurrences in a prompt get the same slot, and the slots are assigned at random
  in each training prompt. So the model can match and copy words that are not in its vocabulary.
- An element's label comes before its index, and an action names its target before its index. So
  choosing an element is induction: copy the label, then the index that followed it.
- A reply becomes raw text again by looking up its words in the goal and on the screen, which
  restores case and punctuation.

Prompt: ``goal <ui> title [role] <on> <in> label #0 … <h> last actions <m> heard … <act>``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, get_args

from swarm_ui.action import Action, Unparsed
from swarm_ui.model import Decision
from swarm_ui.nodes.models.tiny_agent.vocabulary import GENERAL_WORDS
from swarm_ui.observation import Element, Observation, Role

SLOTS = 110
MAX_ELEMENTS = 70
GOAL_WORDS = 60
LABEL_WORDS = 10
TARGET_WORDS = 4
VALUE_WORDS = 8
TEXT_WORDS = 8
HISTORY = 6
MAX_PROMPT = 420
LONGEST_TEXT = 10_000
"""Maximum number of characters of a text that are read."""

_OPS = {
    "click": "<click>", "input_text": "<type>", "long_press": "<long>", "double_tap": "<double>",
    "select": "<select>", "scroll": "<scroll>", "swipe": "<swipe>", "navigate_back": "<back>",
    "navigate_home": "<home>", "keyboard_enter": "<enter>", "open_app": "<open>",
    "answer": "<answer>", "wait": "<wait>",
}  # fmt: skip
_TYPES = {token: kind for kind, token in _OPS.items()}
_POINTING = ("click", "long_press", "double_tap", "input_text", "select")
_DEFAULT_ACTIONS = (
    "click", "input_text", "navigate_back", "navigate_home", "scroll", "answer", "status",
)  # fmt: skip
_DIRECTIONS = ("up", "down", "left", "right")
_STATUS: dict[str, Literal["complete", "infeasible"]] = {
    "<done>": "complete", "<infeasible>": "infeasible",
}  # fmt: skip
_CONTROL = (
    "<pad>", "<eos>", "<ui>", "<page>", "<h>", "<m>", "<me>", "<act>", "<q>", "<where>", "<state>",
    "<value>", "<on>", "<off>", "<:>", "<empty>", "<seen>", "<in>", "<part>", "<done>",
    "<infeasible>", "<unk>",
    *_OPS.values(), *(f"<{d}>" for d in _DIRECTIONS),
)  # fmt: skip
_STOP_WORDS = frozenset((
    "the", "an", "on", "in", "into", "to", "of", "and", "then", "or", "for", "with", "from", "by",
    "at", "is", "it", "that", "this", "your", "you", "as",
))  # fmt: skip
_STATEFUL = frozenset({"checkbox", "radio", "option", "switch", "field", "area"})
"""Roles whose elements show a state or a value in the prompt, so they get no ``<seen>`` mark."""
_WORD = re.compile(r"\w+|[^\w\s]")
_ORDERS = 256


@lru_cache(maxsize=_ORDERS)
def _order(number: int) -> tuple[int, ...]:
    """A permutation of the slots; equal numbers give equal permutations."""
    return tuple(random.Random(number).sample(range(SLOTS), SLOTS))


@lru_cache(maxsize=65536)
def words(text: str) -> tuple[str, ...]:
    """Lower-case words and punctuation marks of a text.

    >>> words("Log-in NOW!")
    ('log', '-', 'in', 'now', '!')
    """
    return tuple(word for word, _, _ in _spans(text))


@lru_cache(maxsize=65536)
def _spans(text: str) -> tuple[tuple[str, int, int], ...]:
    """Each word with its place in the text."""
    found = _WORD.finditer(text, 0, LONGEST_TEXT)
    return tuple((match.group().lower(), *match.span()) for match in found)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A prompt as token ids, with the data that reading the reply needs."""

    ids: list[int]
    decision: Decision
    slots: dict[str, int] = field(repr=False)
    """Token id of each word outside the fixed list."""
    shown: int
    """Number of elements that fit into the prompt."""


class ScreenTokenizer:
    """Translates between :class:`Decision`/:class:`Action` and token ids."""

    def __init__(self, extra_words: Iterable[str] = ()) -> None:
        tokens = list(_CONTROL)
        tokens += [f"[{role}]" for role in get_args(Role)]
        tokens += [f"#{i}" for i in range(MAX_ELEMENTS)]
        self._first_slot = len(tokens)
        tokens += [f"~{i}" for i in range(SLOTS)]
        self.extra_words = tuple(dict.fromkeys(w.lower() for w in extra_words))
        self.tokens = list(dict.fromkeys([*tokens, *GENERAL_WORDS, *self.extra_words]))
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        self.pad_id = self._ids["<pad>"]
        self.eos_id = self._ids["<eos>"]

    def __len__(self) -> int:
        return len(self.tokens)

    # -- writing ------------------------------------------------------------------------------

    def encode(self, decision: Decision, rng: random.Random | None = None) -> Encoded:
        """The prompt of a decision. With ``rng`` (in training), the order of slots is random."""
        screen = decision.observation
        goal = words(screen.goal)[:GOAL_WORDS]
        # <ui>: a device, on which the agent ends the task; <page>: the page ends it.
        surface = "<ui>" if screen.offers("status") else "<page>"
        head = [*goal, surface, *words(screen.app)[:4]]
        named = {word for word in goal if len(word) > 1} - _STOP_WORDS
        tail = self._tail(decision)
        body: list[str] = []
        seen = {(past.role, past.label) for past in screen.history}
        asked = f" {' '.join(goal)} "
        shown, room = 0, MAX_PROMPT - len(head) - len(tail)
        for element in screen.elements[:MAX_ELEMENTS]:
            piece = _element(element, seen, asked, named)
            if len(body) + len(piece) > room:
                break
            body += piece
            shown += 1
        slots: dict[str, int] = {}
        order = _order(0 if rng is None else rng.randrange(_ORDERS))
        ids = self._map(head + body + tail, slots, order)
        return Encoded(ids=ids, decision=decision, slots=slots, shown=shown)

    def reply(self, prompt: Encoded, action: Action) -> list[int]:
        """Token ids of an action under a prompt, with the end token."""
        pieces = _action(action, prompt.decision.observation)
        return self._map([*pieces, "<eos>"], prompt.slots, _order(0))

    def quiz(
        self, prompt: Encoded, questions: Sequence[tuple[str, int]]
    ) -> tuple[list[int], list[int]]:
        """Questions about the screen with their answers, appended to the prompt without its final
        ``<act>``. A question is ``"where" | "state" | "value"`` and an element's index.

        Returns:
            Token ids and a mask of equal length, 1 on the answers.
        """
        ids, mask = prompt.ids[:-1], [0] * (len(prompt.ids) - 1)
        for kind, index in questions:
            element = prompt.decision.observation.elements[index]
            ask = ["<q>", f"<{kind}>", *words(element.label)[:TARGET_WORDS]]
            answer = [*([f"#{index}"] if kind == "where" else _state(element)), "<eos>"]
            ids += self._map([*ask, *answer], prompt.slots, _order(0))
            mask += [0] * len(ask) + [1] * len(answer)
        return ids, mask

    def _tail(self, decision: Decision) -> list[str]:
        out = ["<h>"]
        for past in decision.observation.history[-HISTORY:]:
            op, *rest = _action(past.action, None)
            where = [f"[{past.role}]", *words(past.label)[:TARGET_WORDS]] if past.role else []
            out += [op, *where, *rest]
        for heard in decision.heard:
            if heard.action is not None:
                mark = "<me>" if heard.own else "<m>"
                out += [mark, *_action(heard.action, decision.observation)]
        out.append("<act>")
        return out

    def _map(self, pieces: Sequence[str], slots: dict[str, int], order: Sequence[int]) -> list[int]:
        ids, known = [], self._ids
        for piece in pieces:
            id_ = known.get(piece)
            if id_ is None:
                id_ = slots.get(piece)
            if id_ is None and len(slots) < SLOTS:
                id_ = slots[piece] = self._free_slot(slots, order)
            ids.append(known["<unk>"] if id_ is None else id_)
        return ids

    def _free_slot(self, slots: dict[str, int], order: Sequence[int]) -> int:
        """The next free slot. The order may differ from that of the prompt, so skip used slots."""
        taken, at = {*slots.values()}, len(slots)
        ahead = (self._first_slot + slot for slot in (*order[at:], *order[:at]))
        return next(id_ for id_ in ahead if id_ not in taken)

    # -- reading ------------------------------------------------------------------------------

    def decode(self, prompt: Encoded, ids: Sequence[int]) -> Action | Unparsed:
        """The action that the ids of a reply encode, with the indices of the decision."""
        named = {id_: word for word, id_ in prompt.slots.items()}
        pieces = [named.get(i, self.tokens[i]) for i in ids if i != self.eos_id]
        text = " ".join(pieces)
        if not pieces:
            return Unparsed(reason="empty reply", text=text)
        op, *rest = pieces
        if op in _STATUS:
            return Action(action_type="status", goal_status=_STATUS[op])
        kind = _TYPES.get(op)
        if kind is None:
            return Unparsed(reason=f"reply starts with {op!r}, not an operation", text=text)
        try:
            return self._action(kind, rest, prompt)
        except (ValueError, IndexError) as error:
            return Unparsed(reason=str(error), text=text)

    def shown(self, prompt: Encoded) -> str:
        """The prompt as text, for the trace."""
        named = {id_: word for word, id_ in prompt.slots.items()}
        return " ".join([named.get(i, self.tokens[i]) for i in prompt.ids])

    def _action(self, kind: str, rest: list[str], prompt: Encoded) -> Action:
        screen = prompt.decision.observation
        if kind in _POINTING:
            at = next((k for k, piece in enumerate(rest) if piece[:1] == "#" and piece[1:]), None)
            if at is None:
                raise ValueError(f"{kind}: the reply names no element")
            index = int(rest[at][1:])
            if index >= len(screen.elements):
                raise ValueError(f"{kind}: there is no element {index}")
            target = screen.elements[index].label
            has_text = kind in ("input_text", "select")
            text = _raw(rest[at + 1 :], prompt.decision) if has_text else None
            return Action(action_type=kind, target=target, index=index, text=text)  # type: ignore[arg-type]
        if kind in ("scroll", "swipe"):
            return Action(action_type=kind, direction=rest[0].strip("<>"))  # type: ignore[arg-type]
        said = _raw(rest, prompt.decision)
        return Action(
            action_type=kind,  # type: ignore[arg-type]
            app_name=said if kind == "open_app" else None,
            text=said if kind == "answer" else None,
        )

    def possible(self, prompt: Encoded) -> Iterator[tuple[list[int], bool]]:
        """The token ids of each action possible on this screen, and whether free text follows."""
        screen = prompt.decision.observation
        ops = {kind: self._ids[token] for kind, token in _OPS.items()}
        allowed = screen.actions or _DEFAULT_ACTIONS
        clicks = [ops[kind] for kind in ("click", "long_press", "double_tap") if kind in allowed]
        for element in screen.elements[: prompt.shown]:
            types = element.editable and "input_text" in allowed
            if element.enabled and (clicks or types):
                pieces = [*_target(element), f"#{element.index}"]
                target = self._map(pieces, prompt.slots, _order(0))
                yield from (([click, *target], False) for click in clicks)
                if types:
                    yield [ops["input_text"], *target], True
        for kind in ("navigate_back", "navigate_home", "keyboard_enter", "wait"):
            if kind in allowed:
                yield [ops[kind]], False
        for kind in ("open_app", "answer"):
            if kind in allowed:
                yield [ops[kind]], True
        if "scroll" in allowed:
            yield from (([ops["scroll"], self._ids[f"<{to}>"]], False) for to in _DIRECTIONS)
        if "status" in allowed:
            yield from (([self._ids[said]], False) for said in ("<done>", "<infeasible>"))

    def free_words(self, prompt: Encoded) -> list[int]:
        """Token ids of free text: the words of the prompt."""
        return sorted({i for i in prompt.ids if i >= self._first_slot})


def _target(element: Element) -> list[str]:
    return [f"[{element.role}]", *words(element.label)[:TARGET_WORDS]]


def _element(element: Element, seen: set[tuple[str, str]], goal: str, named: set[str]) -> list[str]:
    """``[role] state mark label #index``. State and mark come before the label, because a causal
    model must see them when it reads the first word of the label. The mark is ``<in>`` if the goal
    contains the label, ``<part>`` if it contains a word of it."""
    label = words(element.label)[:LABEL_WORDS]
    state = _state(element)
    before, after = (state, []) if len(state) == 1 else ([], state)
    mark: list[str] = []
    if element.role not in _STATEFUL and (element.role, element.label) in seen:
        mark = ["<seen>"]
    elif label and f" {' '.join(label).rstrip(' :.')} " in goal:
        mark = ["<in>"]
    elif not named.isdisjoint(label):
        mark = ["<part>"]
    return [f"[{element.role}]", *before, *mark, *label, f"#{element.index}", *after]


def _state(element: Element) -> list[str]:
    """``<on>``, ``<off>``, ``<empty>``, or a field's value."""
    if element.value is not None:
        value = words(element.value)[:VALUE_WORDS]
        return ["<:>", *value] if value else ["<empty>"]
    on = element.checked if element.checked is not None else element.selected
    return [] if on is None else ["<on>" if on else "<off>"]


def _action(action: Action, screen: Observation | None) -> list[str]:
    """Pieces of an action; with a screen, its target and index are written too."""
    if action.action_type == "status":
        return ["<done>" if action.goal_status == "complete" else "<infeasible>"]
    out = [_OPS[action.action_type]]
    element = screen.element(action.index) if screen is not None else None
    if element is not None:
        out += [*_target(element), f"#{element.index}"]
    elif screen is not None and action.index is not None and action.index < MAX_ELEMENTS:
        # A colleague's action on an element that this agent does not see, whose role is unknown.
        out += [*words(action.target or "")[:TARGET_WORDS], f"#{action.index}"]
    if action.direction:
        out.append(f"<{action.direction}>")
    for text in (action.text, action.app_name):
        if text:
            out += words(text)[:TEXT_WORDS]
    return out


def _raw(pieces: Sequence[str], decision: Decision) -> str:
    """The words as written in the goal or on the screen, else joined by spaces."""
    if not pieces:
        return ""
    screen = decision.observation
    sources = [screen.goal, *(e.label for e in screen.elements)]
    sources += [e.value for e in screen.elements if e.value]
    sources += [past.label for past in screen.history]
    wanted = tuple(pieces)
    for source in sources:
        spans, found = _spans(source), words(source)
        for at in range(len(found) - len(wanted) + 1):
            if found[at : at + len(wanted)] == wanted:
                return source[spans[at][1] : spans[at + len(wanted) - 1][2]]
    case = {w: source[a:b] for source in reversed(sources) for w, a, b in _spans(source)}
    return " ".join(case.get(piece, piece) for piece in pieces)
