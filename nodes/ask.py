"""A node that asks a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swarm_ui.action import Action, parse_action
from swarm_ui.errors import ConfigError
from swarm_ui.message import PERSON, Message
from swarm_ui.model import Completion
from swarm_ui.node import NodeContext, NodeReply


@dataclass(frozen=True, slots=True)
class Ask:
    """Asks a person; the answer is the node's message.

    An answer that is an action as JSON is also the node's proposal.

    A run that reaches the node makes all other calls that it can and pauses with a
    :class:`~swarm_ui.errors.RunPaused`; ``graph.resume(...)`` continues with the answer. With a
    store, the calls and the question are on disk. The trace holds the question as the prompt of the
    call.

    Examples:
        ``graph.with_node(Ask("approve", "Send this letter?"), hears=["writer"])``
    """

    id: str
    question: str | Callable[[Sequence[Message]], str]
    """The question, or a function that makes it of the received messages. Without a function, the
    contents of the received messages follow the question."""
    options: tuple[str, ...] = ()
    """The answers that are allowed; empty: any."""

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        text = self._text([m for m in inbox if m.sender != context.node])
        if self.options:
            text += f" ({' / '.join(self.options)})"
        answer = await context.ask(text)
        if self.options and answer not in self.options:
            raise ConfigError(
                f"the answer to '{context.message_id}' is {answer!r}; expected one of "
                f"{', '.join(map(repr, self.options))}"
            )
        found = parse_action(answer)
        action = found if isinstance(found, Action) else None
        said = Completion(text=answer, prompt=text, model=PERSON)
        return NodeReply(content=answer, action=action, completion=said)

    def _text(self, inbox: Sequence[Message]) -> str:
        if not isinstance(self.question, str):
            return self.question(inbox)
        said = [f"{m.sender}: {m.content if m.error is None else m.error}" for m in inbox]
        return "\n".join([self.question, *said])
