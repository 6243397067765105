"""The examples of one adapter's update as token ids; all random choices are already made."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.optim.preferences.advantages import ScoredReply
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.update.batches import (
    Example,
    encode_pairs,
    encode_replies,
    lengths_of,
    schedule,
)
from swarm_ui.optim.update.update_config import UpdateConfig, known

Examples = Sequence[PreferencePair] | Sequence[ScoredReply]


class AdapterTask(msgspec.Struct, frozen=True, kw_only=True):
    """One update of one adapter. Equal tasks on equal weights give equal weights."""

    adapter: str
    examples: tuple[Example, ...]
    batches: tuple[tuple[int, ...], ...] = ()
    """The examples of each optimiser step, by position; empty: there is nothing to learn."""
    seed: int = 0
    """Seed of dropout."""

    @property
    def tokens(self) -> int:
        """Tokens of all steps without padding, a measure of the work."""
        sizes = [each.longest * each.sides for each in self.examples]
        return sum(sizes[row] for rows in self.batches for row in rows)


def adapter_task(
    model: Trainable,
    settings: UpdateConfig,
    adapter: str,
    examples: Examples,
    rng: random.Random,
) -> AdapterTask:
    """Encode the examples of an update and draw its batches.

    Args:
        model: encodes prompts and replies.
        settings: method and sizes, with the defaults of the model filled in.
        adapter: the adapter to train.
        examples: pairs, or scored replies for ``pg``.
        rng: draws the batches and the seed of dropout; not used if there is nothing to learn.

    Raises:
        ConfigError: the examples are not of the kind that the method learns from.
    """
    steps = known(settings.steps, "steps")
    rows = _encoded(model, examples, settings, adapter)
    if not rows or not steps:
        return AdapterTask(adapter=adapter, examples=tuple(rows))
    seed = rng.getrandbits(63)
    batches = schedule(
        lengths_of([row.chosen for row in rows]),
        steps=steps,
        batch_size=settings.batch_size,
        rng=rng,
    )
    return AdapterTask(
        adapter=adapter,
        examples=tuple(rows),
        batches=tuple(map(tuple, batches)),
        seed=seed,
    )


def _encoded(
    model: Trainable, examples: Examples, settings: UpdateConfig, adapter: str
) -> list[Example]:
    wanted = ScoredReply if settings.method == "pg" else PreferencePair
    wrong = next((e for e in examples if not isinstance(e, wanted)), None)
    if wrong is not None:
        raise ConfigError(
            f"method '{settings.method}' learns from {wanted.__name__}, got {type(wrong).__name__}"
        )
    unparsed = settings.unparsed
    if unparsed is None:
        unparsed = getattr(model, "encodes_text", False)
    if settings.method == "pg":
        replies = [e for e in examples if isinstance(e, ScoredReply)]
        return encode_replies(model, replies, unparsed=unparsed, adapter=adapter)
    pairs = [e for e in examples if isinstance(e, PreferencePair)]
    both, unique = settings.method != "rft", settings.unique
    return encode_pairs(model, pairs, both=both, unique=unique, unparsed=unparsed, adapter=adapter)
