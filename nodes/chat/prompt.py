"""The prompt of a chat node: a template, or a function of the messages that it received."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swarm_ui.agent_view import identity
from swarm_ui.errors import ConfigError
from swarm_ui.message import Message
from swarm_ui.model import ChatMessage
from swarm_ui.node import NodeContext
from swarm_ui.observation import Observation, render
from swarm_ui.prompts.quoting import cut, inside, one_line_each, without_tags
from swarm_ui.trace.records import hear

Prompt = str | Callable[[Sequence[Message], NodeContext], str | Sequence[ChatMessage]]
"""A template with fields in braces, see :data:`FIELDS`; or a function ``(inbox, context)`` that
returns the text of the user's turn, or the turns of a whole chat."""

FIELDS = {
    "goal": "the goal of the run: its question or task",
    "screen": "the screen, if the observation has one",
    "messages": "the messages of the predecessors, each in a block with the name of its sender",
    "own": "the node's own message of the last round, in a block",
    "round": "number of the round, from 1",
    "rounds": "number of rounds",
}
"""The fields of a template with their values; a missing value is an empty text."""


def check_template(prompt: Prompt | None, where: str) -> None:
    """Raise ``ConfigError`` if a template cannot be filled in."""
    if not isinstance(prompt, str):
        return
    try:
        prompt.format_map(dict.fromkeys(FIELDS, ""))
    except (ValueError, LookupError, AttributeError) as error:
        raise ConfigError(
            f"{where}: the prompt cannot be filled in: {error}. Its fields are "
            f"{', '.join(f'{{{name}}}' for name in FIELDS)}. Double literal braces, and give a "
            "function (inbox, context) for anything else"
        ) from error


def first_chat(
    system: str, prompt: Prompt | None, inbox: Sequence[Message], context: NodeContext
) -> tuple[ChatMessage, ...]:
    """The chat that a node begins with. Without a prompt, it holds the goal, the screen, the node's
    last message and the messages of its predecessors."""
    before = (ChatMessage("system", system),) if system else ()
    if callable(prompt):
        asked = prompt(inbox, context)
        return (*before, *([ChatMessage("user", asked)] if isinstance(asked, str) else asked))
    fields = _fields(inbox, context)
    if prompt is None:
        parts = [fields[name] for name in ("goal", "screen", "own", "messages")]
        text = "\n\n".join(part for part in parts if part)
    else:
        text = prompt.format_map(fields)
    return (*before, ChatMessage("user", text))


def _fields(inbox: Sequence[Message], context: NodeContext) -> dict[str, str]:
    own = [_block(message, context) for message in inbox if message.sender == context.node]
    heard = [_block(message, context) for message in inbox if message.sender != context.node]
    return {
        "goal": without_tags(context.observation.goal),
        "screen": _screen(context.observation),
        "messages": "\n\n".join(heard),
        "own": "\n\n".join(own),
        "round": str(context.round + 1),
        "rounds": str(context.rounds),
    }


def _block(message: Message, context: NodeContext) -> str:
    heard = hear(message, identity(context.observation), listener=context.node)
    speaker = "Your previous answer" if heard.own else f"{inside(heard.sender)} said"
    return f"{speaker}:\n<said>\n{without_tags(cut(heard.content.strip()))}\n</said>"


def _screen(observation: Observation) -> str:
    if not observation.elements and not observation.app:
        return ""
    front = f"(in front: {inside(observation.app)})\n" if observation.app else ""
    rows = inside(render(one_line_each(observation)), keep_lines=True)
    return f"On the screen:\n<screen>\n{front}{rows}\n</screen>"
