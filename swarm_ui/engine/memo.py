"""What is known of a run before it is made: recorded calls, and edits.

A call is not made if one with the same id heard the same messages. So replays, resumed runs,
recovery after a crash and resampling are runs with a memo; they differ only in what is in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from swarm_ui.message import Message
from swarm_ui.node import NodeReply
from swarm_ui.trace.records import Call


class Memo:
    """Recorded calls, and changes to them, all by message id."""

    def __init__(
        self,
        calls: Mapping[str, Call],
        *,
        replies: Mapping[str, NodeReply] | None = None,
        without: Set[str] = frozenset(),
        again: Set[str] = frozenset(),
        samples: Mapping[str, int] | None = None,
        answers: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            replies: replace those of the nodes.
            without: messages that are not delivered.
            again: calls to make again, although they hear the same.
            samples: number of the sample of each call. Sample 0 has the seed of the original call;
                the others have different seeds.
            answers: of people to the questions of nodes, by message id or by the node's name.
        """
        self.calls, self.replies, self.without = calls, replies or {}, without
        self.samples, self.answers = samples or {}, answers or {}
        self.again = {*again, *self.samples}
        #: for a call, those inside it
        self.inside: dict[str, list[Call]] = {}
        for id, call in calls.items():
            for each in _around(id):
                self.inside.setdefault(each, []).append(call)
        edited = {*self.replies, *without, *self.again}
        self._changed = {*self.replies, *self.again}.union(*map(_around, edited))
        for id, call in calls.items():
            if call.step is not None and id.rpartition("/")[0] in self.again:
                self._changed.add(id)

    def find(
        self, id: str, inbox: Sequence[Message], composite: bool, arguments: str
    ) -> Call | None:
        """The recorded call, unless it is to be made again.

        That is so for a ``composite`` node, which has nodes inside, unless it failed, and where
        something inside is edited: the calls inside that hear the same are not made again.
        """
        found = self.calls.get(id)
        if found is None or id in self._changed or (composite and found.error is None):
            return None
        same = found.heard == tuple([m.id for m in inbox]) and found.arguments == arguments
        return found if same and self.knows(inbox) else None

    def knows(self, messages: Sequence[Message]) -> bool:
        """Whether all of these are recorded."""
        calls = self.calls
        for message in messages:
            call = calls.get(message.id)
            if call is None or (call.message is not message and call.message != message):
                return False
        return True


def _around(id: str) -> list[str]:
    """Ids of the calls inside of which a call was made, the outermost first."""
    return [id[:place] for place, letter in enumerate(id) if letter == "/"]


def succeeded(call: Call) -> bool:
    """Whether a node answered. A vote or a nested graph that received only failures and a step
    inside a node are no answers; a model's unusable reply is one."""
    if call.step is not None or call.error is not None:
        return False
    return call.message.error is None or call.completion is not None


def to_keep(past: Mapping[str, Call]) -> Mapping[str, Call]:
    """The calls of a stored run that are not made again: all, except those that failed if no node
    succeeded, because such a run raised. What a later step heard stays, such as a tool's error."""
    if any(map(succeeded, past.values())):
        return past
    heard = {id for call in past.values() if call.step is not None for id in call.heard}
    return {
        id: call
        for id, call in past.items()
        if call.error is None or (call.step is not None and id in heard)
    }
