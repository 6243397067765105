r"""Short prompts and replies, for language models that were trained on them.

::

    Goal: add the expense oil 15                     the user's goal, in one line
    App: expenses                                    "Page:" where the page ends the task
    Done: open_app expenses; click add expense       the last actions, by label
    Screen:
    item [0] field = (empty)                         label, index, role, then the state
    save [1] button
    Messages:                                        only if there are any
    you: click save [1]
    agent_1: the item is missing; input_text item [0] : oil

A reply is one line such as ``click save [1]``, ``input_text item [0] : oil``, ``scroll down``,
``answer 15`` or ``status complete``, after an optional line with the reason. Labels come before
indices, in screens and in replies, so that a pretrained model can copy a label from the goal and
then the index that follows it on the screen.

Every text from outside is put on one line, so that no text can imitate another line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

from swarm_ui.action import ACTION_TYPES, POINTING, Abstain, Action, Unparsed, parse_action
from swarm_ui.json_text import LONGEST
from swarm_ui.message import Heard
from swarm_ui.model import ChatMessage, Decision, Dropped
from swarm_ui.observation import Element, Observation, Past, render, state_words
from swarm_ui.prompts.message_text import PASS, heard_messages, reason_of
from swarm_ui.prompts.prompt_format import FreeText, Reply, opened, possible_actions
from swarm_ui.prompts.quoting import flat

HISTORY = 6
"""Number of past actions in a prompt."""
MESSAGE_TOKENS = 96
"""Maximum number of tokens of the text that an agent writes before ``pass``."""
LONGEST_TEXT = 120
"""Maximum number of characters of a label, a value or a past action; the rest becomes ``…``."""
LONGEST_MESSAGE = 400
"""Maximum number of characters of the reason in a message."""

_SHORT = {
    **dict.fromkeys(("click", "double_tap", "long_press"), "index"),
    **dict.fromkeys(("input_text", "select"), "index text"),
    **dict.fromkeys(("scroll", "swipe"), "direction"),  # and perhaps an index
    **dict.fromkeys(("navigate_home", "navigate_back", "keyboard_enter", "wait"), ""),
    "answer": "text",
    "open_app": "app_name",
    "status": "goal_status",
}
"""The fields in the short form of an action; one with others is written as JSON."""
_INDEX = re.compile(r"\[([0-9]{1,9})\]")
_SYSTEM = "Operate the screen."
_PART = "You see a part of the screen. Others see other parts. Without a useful action: pass"


class CompactFormat:
    """The compact format, which the module's docstring describes."""

    name = "compact"

    def chat(self, decision: Decision) -> tuple[ChatMessage, ...]:
        """A system turn and a user turn. Without the first, a chat template may add a long one."""
        return (ChatMessage("system", _SYSTEM), ChatMessage("user", "\n".join(_lines(decision))))

    def write(self, action: Action | Abstain, observation: Observation, reason: str = "") -> str:
        """The reply as one line. Actions without a short form (coordinates, key codes) are JSON."""
        said = PASS if isinstance(action, Abstain) else _written(action, observation)
        return f"{flat(reason)}\n{said}" if reason else said

    def parse(
        self, reply: str, observation: Observation, *, partial: bool = False
    ) -> Action | Abstain | Unparsed:
        """The action on the last line.

        The index decides which element is meant. A label without an index is accepted if exactly
        one element has it.
        """
        if len(reply) > LONGEST:
            reason = f"the reply has {len(reply)} characters; at most {LONGEST} are read"
            return Unparsed(reason=reason, text=reply)
        line = reply.strip().rpartition("\n")[2].strip()
        if line == PASS and partial:
            return Abstain()
        if line.startswith("{"):
            return parse_action(line)
        try:
            return _read(line, observation)
        except (ValueError, msgspec.ValidationError) as error:
            return Unparsed(reason=str(error), text=reply)

    def replies(self, decision: Decision) -> list[Reply]:
        """The possible replies: every possible action, without a reason.

        An agent that sees one pane of a divided screen may write a text before ``pass``, because
        other agents can use what only this agent sees.
        """
        found = []
        for action in possible_actions(decision):
            before, *text = opened(self.write(action, decision.observation))
            # The space before a text belongs to its first token.
            found.append((str(before).removesuffix(" "), *text) if text else (before,))
        if decision.partial and any(element.pane for element in decision.observation.elements):
            found.append((FreeText(MESSAGE_TOKENS), f"\n{PASS}"))
        return found


# -- prompts --------------------------------------------------------------------------------------


def _lines(decision: Decision) -> Iterator[str]:
    screen = decision.observation
    yield f"Goal: {flat(screen.goal)}"
    yield f"{'App' if screen.offers('status') else 'Page'}: {_short(screen.app)}"
    dropped = decision.dropped or Dropped()
    first = max(len(screen.history) - HISTORY, dropped.history, 0)
    done = [_done(past) for past in screen.history[first:]]
    if first:
        done.insert(0, "…")
    yield f"Done: {'; '.join(done) or 'nothing'}"
    yield "Screen:"
    yield render(screen, _element, dropped=frozenset(dropped.elements)) or "(empty)"
    if decision.partial:
        yield _PART
    if decision.heard:
        yield "Messages:"
        yield from (_message(heard, screen) for heard in heard_messages(decision))


def _element(element: Element) -> str:
    parts = [_named(element.label, element.index), element.role]
    if element.value is not None:
        parts.append(f"= {_short(element.value) or '(empty)'}")
    if element.hint and element.hint != element.label:
        parts.append(f"({_short(element.hint)})")
    return " ".join([*parts, *state_words(element)])


def _done(past: Past) -> str:
    action = past.action
    words: list[str] = [action.action_type, past.label or action.target or ""]
    words += [w or "" for w in (action.direction, action.goal_status, action.app_name)]
    said = " ".join(filter(None, words))
    return _short(said if action.text is None else f"{said} : {action.text}")


def _message(heard: Heard, screen: Observation) -> str:
    """A message in one line: the sender, the reason, and the action in the receiver's indices."""
    who = "you" if heard.own else _short(heard.sender)
    said = "" if heard.action is None else _written(heard.action, screen)
    reason = flat(reason_of(heard.content, heard.prompt_format))
    if len(reason) > LONGEST_MESSAGE:
        reason = f"{reason[:LONGEST_MESSAGE]}…"
    return f"{who}: {'; '.join(filter(None, (reason, said)))}"


# -- replies --------------------------------------------------------------------------------------


def _written(action: Action, screen: Observation) -> str:
    kind = action.action_type
    given = {name for name in action.__struct_fields__ if getattr(action, name) is not None}
    given -= {"action_type", "target"} | ({"index"} if "direction" in given else set())
    if given != set(_SHORT[kind].split()):
        return action.json()
    words: list[str] = [kind, action.direction or action.goal_status or ""]
    if action.index is not None:
        element = screen.element(action.index)
        label = element.label if element is not None else action.target or ""
        words.append(_named(label, action.index))
    text = action.app_name if action.text is None else action.text
    if text is not None:
        words += ["" if action.index is None else ":", _quoted(text)]
    return " ".join(filter(None, words))


def _read(line: str, screen: Observation) -> Action:
    """The action that a line describes. Raises ``ValueError`` if the line is not an action."""
    kind, _, rest = line.partition(" ")
    rest = rest.strip()
    if kind not in ACTION_TYPES:
        raise ValueError(
            f"unknown action {kind[:80]!r} on the last line; expected one of "
            f"{', '.join(ACTION_TYPES)}"
        )
    fields: dict[str, object] = {"action_type": kind}
    short, place = _SHORT[kind], ""
    if short == "index":
        place = rest
    elif short == "index text":
        place, fields["text"] = _place_and_text(rest, screen)
    elif short == "direction":
        fields["direction"], _, place = rest.partition(" ")
    elif short:
        fields[short] = rest if kind == "status" else _unquoted(rest)
    elif rest:
        raise ValueError(f"{kind}: expected nothing after it, got {rest[:80]!r}")
    if place or kind in POINTING:
        fields["index"] = _index(place, screen)
    if kind in POINTING:
        fields["target"] = _label(screen, fields["index"])
    return msgspec.convert(fields, Action)


def _index(place: str, screen: Observation) -> int:
    """The number of ``label [index]``, or of the only element with this label."""
    found = _INDEX.findall(place)
    if found and place.endswith("]"):
        return int(found[-1])
    wanted = place.strip().casefold()
    named = [e.index for e in screen.elements if wanted and _short(e.label).casefold() == wanted]
    if len(named) != 1:
        count = f"{len(named)} elements have" if named else "no element has"
        raise ValueError(f"expected 'label [index]', got {place[:80]!r}; {count} this label")
    return named[0]


def _place_and_text(rest: str, screen: Observation) -> tuple[str, str]:
    """The parts of ``label [index] : text``; both may contain brackets."""
    ends = [m for m in _INDEX.finditer(rest) if rest[m.end() :].lstrip().startswith(":")]
    if not ends:
        label, colon, text = rest.partition(" : ")
        if not colon:
            raise ValueError(f"expected 'label [index] : text', got {rest[:80]!r}")
        return label, _unquoted(text)
    fitting = [m for m in ends if rest[: m.end()] == _named(_label(screen, int(m[1])), int(m[1]))]
    end = (fitting or ends)[0].end()
    return rest[:end], _unquoted(rest[end:].lstrip()[1:].strip())


def _label(screen: Observation, index: object) -> str | None:
    element = screen.element(index if isinstance(index, int) else None)
    return None if element is None else element.label or None


def _named(label: str | None, index: int | None) -> str:
    return f"{_short(label or '')} [{index}]".strip()


def _short(text: str) -> str:
    one_line = flat(text).strip()
    return one_line if len(one_line) <= LONGEST_TEXT else f"{one_line[:LONGEST_TEXT]}…"


def _quoted(text: str) -> str:
    """The text unchanged, or as a JSON string if it could not be parsed otherwise."""
    plain = text and text == text.strip() and text[0] != '"' and text.isprintable()
    return text if plain else json.dumps(text)


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            read = json.loads(text)
        except ValueError:
            return text
        return str(read)
    return text
