"""AutoWebBench's prompts as observations: the simplified page, tabs, view, task and commands.

A page looks like ``<a[SD]| <span| Google> > <p| Hello>``: a tag, the id of an actionable element in
brackets, a bar, then texts and further nodes; ``< … >`` is a group. Texts are not escaped, so a
``>`` in a text closes its node too early. That can cut a label, but it loses no id.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.autowebbench.call_syntax import FUNCTIONS, strict_call, to_action
from swarm_ui.environments.recorded.web_elements import first_words, role_of
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Past

_TOKEN = re.compile(r"<(?:(?P<tag>[A-Za-z_][\w:-]*)(?:\[(?P<id>\w+)\])?\|)?|>|[^<>]+|<")
_SECTIONS = re.compile(
    r"\A(?P<page>.*?)\n\nYou are a helpful assistant.*"
    r"\n#Previous commands:(?P<commands>.*)\n\n#Window tabs:(?P<tabs>.*)"
    r"\n\n#Current viewport \(pages\):(?P<view>.*?)\n\n#Task:(?P<task>.*?)\n\nYou should output",
    re.DOTALL,
)
_COMMAND = re.compile(rf"^(?=(?:{'|'.join(FUNCTIONS)})\()", re.MULTILINE)
_SEGMENT = re.compile(r"(?P<call>.*?)(?: #HTML Segment: (?P<html>.*))?", re.DOTALL)
_FIELDS = ("field", "area")
_WORDS = 30
"""Maximum number of words of an actionable element's text."""


class Source(msgspec.Struct, frozen=True):
    """The parts of a prompt."""

    page: str
    commands: str
    tab: str
    view: str
    task: str


def read_source(text: str, where: str) -> Source:
    """Split a prompt into its parts. Raises ``ConfigError`` if one is missing."""
    found = _SECTIONS.match(text)
    if found is None:
        raise ConfigError(
            f"{where}: 'source' is not an AutoWebBench prompt: expected a page, then '#Previous "
            "commands:', '#Window tabs:', '#Current viewport (pages):' and '#Task:'"
        )
    tabs = found["tabs"].strip()
    current = next((line for line in tabs.splitlines() if "<-- current tab" in line), tabs)
    tab = re.sub(r"^\d+\.\s*", "", current.partition("<-- current tab")[0].strip())
    return Source(
        found["page"], found["commands"].strip(), tab, found["view"].strip(), found["task"].strip()
    )


class _Node(NamedTuple):
    """A node of the page with the pieces of its text."""

    tag: str
    id: str
    pieces: list[str]


def read_page(page: str, words: int = _WORDS) -> tuple[tuple[Element, ...], tuple[str, ...]]:
    """The elements of a page in its order, and the id of each. An id is empty for plain text.

    A node with an id has all text inside it, except that of inner nodes with an id. Text outside
    such nodes becomes elements of its own, because it can contain the answer to a question.
    """
    root = _Node("", "", [])
    found = [root]
    holders = [root]  # of each open node, the one that takes its text: the nearest with an id
    for token in _TOKEN.finditer(page):
        piece = token[0]
        if piece == ">":
            if len(holders) > 1:
                holders.pop()
        elif piece == "<":
            holders.append(holders[-1])
        elif token["tag"] is None:
            holders[-1].pieces.append(piece)
        else:
            node = _Node(token["tag"].lower(), token["id"] or "", [])
            if node.id or not holders[-1].id:
                found.append(node)
                holders.append(node)
            else:
                holders.append(holders[-1])
    texts = [(node, " ".join(" ".join(node.pieces).split())) for node in found]
    kept = [(node, text) for node, text in texts if node.id or text]
    elements = tuple(_element(k, node, text, words) for k, (node, text) in enumerate(kept))
    return elements, tuple(node.id for node, _ in kept)


def _element(index: int, node: _Node, text: str, words: int) -> Element:
    role = role_of(node.tag)
    return Element(
        index=index,
        role=role,
        # The text of an element without an id is shown in full.
        text=first_words(text, words) if node.id else text,
        clickable=bool(node.id),
        editable=bool(node.id) and role in _FIELDS and node.tag != "select",
    )


def read_commands(commands: str) -> tuple[Past, ...]:
    """The recorded commands before this page, oldest first."""
    if not commands or commands == "None":
        return ()
    return tuple(_past(command.strip()) for command in _COMMAND.split(commands) if command.strip())


def _past(command: str) -> Past:
    found = _SEGMENT.fullmatch(command)
    assert found is not None
    elements, _ = read_page(found["html"] or "", words=12)
    first = elements[0] if elements else None
    role, label = (first.role, first.label) if first else ("", "")
    call = strict_call(found["call"])
    # The index refers to no later page. A call without an action is quoted.
    action = to_action(call, 0, label) or Action(action_type="wait", text=found["call"])
    return Past(action=action, role=role, label=label)
