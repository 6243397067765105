"""Judged replies: what a learned critic is trained and tested on.

One record for each screen, with several replies to it. They are kept as JSON lines with the place
where they come from, so that nothing of a test can get into training unnoticed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation
from swarm_ui.storage.durable import LineFile
from swarm_ui.storage.run_directory import write_atomic

Kind = Literal["solver", "own", "colleague", "adversary"]
"""Who proposed it first: the environment's solver; the first agent of the team; another agent of
the team, which saw the elements in another order or sampled; the adversary."""
KINDS: tuple[str, ...] = get_args(Kind)
Labels = Literal["solver", "outcome"]
"""Where the labels come from. ``solver``: the environment graded each reply. ``outcome``: the
executed replies of a solved episode count as right, those of others as wrong, which is often not
so: a failed episode has right steps too."""


class JudgedReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reply to a screen."""

    action: Action
    """In the screen's own indices."""
    kind: Kind
    right: bool
    votes: int = 0
    """Agents of the team that proposed it in the last round."""
    logprob: float | None = None
    """Log-probability (nats) of the reply under the agent that proposed it first; ``None``: it is
    not known, as for replies of a solver or an adversary."""
    executed: bool = False


class JudgedScreen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision with its judged replies, each a different action."""

    environment: str
    split: str
    """Of the episode: the name of a training or test split."""
    task: str
    seed: int
    step: int
    observation: Observation
    """The screen with its goal and history; without a picture."""
    replies: tuple[JudgedReply, ...]
    labels: Labels = "solver"
    voters: int = 0
    """Agents that proposed something in the last round."""
    success: bool = False
    """Outcome of the episode."""


class CorpusHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a file of judged screens."""

    judged_version: int = 1
    purpose: str
    """``train``, ``validation`` or ``test``; only ``train`` files are trained on."""
    settings: dict[str, object]
    """How the screens were collected."""


class JudgedFile:
    """A file of judged screens that grows by whole episodes."""

    def __init__(self, path: Path, head: CorpusHead) -> None:
        """Open or create it.

        Raises:
            ConfigError: the file was begun with another head, or cannot be written.
        """
        self.path = path
        try:
            if path.exists() and path.stat().st_size:
                found, screens = read_judged(path)
                if found != head:
                    raise ConfigError(
                        f"'{path}' was collected with other settings ({found.settings}, now "
                        f"{head.settings}); give the same ones, or another file"
                    )
                self.done = {(s.task, s.seed) for s in screens}
            else:
                write_atomic(path, msgspec.json.encode(head) + b"\n")
                self.done = set()
            self._file = LineFile(path)
        except OSError as error:
            raise ConfigError(f"cannot write '{path}': {error}") from error

    def add(self, screens: Iterable[JudgedScreen]) -> None:
        """Append the screens of one episode."""
        kept = list(screens)
        try:
            self._file.extend([msgspec.json.encode(screen) for screen in kept])
        except OSError as error:
            raise ConfigError(
                f"cannot write '{self.path}': {error}. What was written before is safe; the same "
                "command goes on from there"
            ) from error
        self.done |= {(screen.task, screen.seed) for screen in kept}

    def close(self) -> None:
        self._file.close()


def read_judged(path: Path) -> tuple[CorpusHead, list[JudgedScreen]]:
    """The head and all screens of a file; an incomplete last line is left out.

    Raises:
        ConfigError: there is no such file, or it is not one of judged screens.
    """
    try:
        raw = path.read_bytes()
        lines = raw[: raw.rfind(b"\n") + 1].splitlines()
        head = msgspec.json.decode(lines[0] if lines else b"", type=CorpusHead)
        decoder = msgspec.json.Decoder(JudgedScreen)
        return head, [decoder.decode(line) for line in lines[1:]]
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise ConfigError(f"'{path}' is not a file of judged screens: {error}") from error


def balanced(
    screens: Sequence[JudgedScreen], rng: random.Random, *, most: int = 6
) -> list[JudgedScreen]:
    """Screens with as many right as wrong replies in all, in random order.

    Of each screen at most half of ``most`` replies are right and half are wrong, drawn at random.
    Then single replies of the more frequent label are left out. A reply that is left out of one
    screen is not replaced.
    """
    drawn: list[tuple[JudgedScreen, list[JudgedReply]]] = []
    for screen in screens:
        kept: list[JudgedReply] = []
        for label in (True, False):
            own = [reply for reply in screen.replies if reply.right == label]
            kept += rng.sample(own, min(len(own), most // 2))
        drawn.append((screen, kept))
    rights = sum(reply.right for _, kept in drawn for reply in kept)
    wrongs = sum(len(kept) for _, kept in drawn) - rights
    more = rights > wrongs
    places = [(k, r) for k, (_, kept) in enumerate(drawn) for r in kept if r.right == more]
    left_out = {(k, id(r)) for k, r in rng.sample(places, abs(rights - wrongs))}
    found = []
    for k, (screen, kept) in enumerate(drawn):
        replies = [reply for reply in kept if (k, id(reply)) not in left_out]
        if replies:
            rng.shuffle(replies)
            found.append(msgspec.structs.replace(screen, replies=tuple(replies)))
    rng.shuffle(found)
    return found
