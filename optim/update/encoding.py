"""Encoding of examples as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from swarm_ui.optim.preferences.advantages import ScoredReply
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.update.batches import Row


@dataclass(slots=True)
class Encoded:
    """The usable examples, each list as long as the others."""

    chosen: list[Row] = field(default_factory=list)
    """The chosen replies of pairs, or the replies where there are no pairs."""
    rejected: list[Row | None] = field(default_factory=list)
    """``None``: the example has no rejected reply."""
    weights: list[float] = field(default_factory=list)
    """Of pairs; advantages of replies."""

    @property
    def lengths(self) -> list[int]:
        """Tokens of each chosen row."""
        return [len(prompt) + len(reply) for prompt, reply in self.chosen]


def encode_pairs(
    model: Trainable, pairs: Sequence[PreferencePair], *, both: bool, unique: bool
) -> Encoded:
    """Pairs of positive weight: ``both`` sides where there are two, or the chosen replies only.

    With ``unique`` each prompt with its chosen reply is used once.
    """
    out = Encoded()
    seen: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    for pair in pairs:
        if pair.weight <= 0:
            continue
        row = model.encode(pair.decision, pair.chosen.json())
        key = (tuple(row[0]), tuple(row[1]))
        if unique and key in seen:
            continue
        seen.add(key)
        out.chosen.append(row)
        out.weights.append(pair.weight)
        against = pair.rejected if both else None
        out.rejected.append(
            None if against is None else model.encode(pair.decision, against.json())
        )
    return out


def encode_replies(model: Trainable, replies: Sequence[ScoredReply]) -> Encoded:
    """All replies. Repeated ones are kept, because the policy gradient weights by frequency."""
    return Encoded(
        chosen=[model.encode(r.decision, r.reply.json()) for r in replies],
        rejected=[None] * len(replies),
        weights=[r.advantage for r in replies],
    )
