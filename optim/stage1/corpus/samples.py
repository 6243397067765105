"""What a corpus holds: samples of three levels, each with where it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Literal

import msgspec

from swarm_ui.model import ChatMessage

CORPUS_VERSION = 1

Job = tuple[str, int]
"""Task and seed of a walk."""

Kind = Literal["screen", "element", "instruction", "preference"]


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a sample comes from."""

    environment: str
    task: str
    seed: int
    step: int
    """Step of the walk whose screen this is, from 0."""
    agent: str
    """Model that wrote the response."""
    adversary: str = ""
    """Model that wrote the rejected response."""
    critic: str = ""
    """Who gave the scores."""
    prompt: str = ""
    """First 16 hex digits of the SHA-256 of the transcript of the prompt that the agent answered,
    as in ``calls.jsonl``; empty for an agent that reads none."""


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to learn: in this context, say this (and not that)."""

    version: int
    id: str
    """Of level, context and responses: equal for equal samples."""
    level: Literal[1, 2, 3]
    """1: a question about the screen; 2: an instruction of one step; 3: a preference."""
    kind: Kind
    chat: tuple[ChatMessage, ...]
    """The prompt, without the response; for levels 2 and 3 as an agent reads it when it acts."""
    response: str
    rejected: str | None = None
    """The adversary's response to the same prompt; level 3 only."""
    score: float | None = None
    """The critic's, in [0, 1]; ``None``: nobody judged it."""
    rejected_score: float | None = None
    heard: int = 0
    """Messages of neighbours in the context."""
    alike: str
    """Equal for samples that differ in the order of the screen's elements at most."""
    origin: Origin


class Walked(msgspec.Struct, frozen=True, kw_only=True):
    """What one walk through an environment gave."""

    task: str
    seed: int
    success: bool | None
    """``None``: the environment or an endpoint broke."""
    steps: int
    fault: str | None = None
    samples: tuple[Sample, ...] = ()
    dropped: dict[str, int] = {}
    """How many items were left out, by ``"level <n>: <reason>"``."""


def sample_id(level: int, chat: Iterable[ChatMessage], response: str, rejected: str | None) -> str:
    """A name that depends on what is learned alone."""
    texts = [str(level), *(f"{turn.role}\x1f{turn.content}" for turn in chat), response]
    return short_hash("\x1e".join([*texts, rejected or ""]))


def short_hash(text: str) -> str:
    """16 hex digits of the SHA-256 of a text."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
