"""Episodes in compressed chunks of a page. The browser unpacks a chunk when it is opened."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from swarm_ui.report.read import EpisodeSet, set_name
from swarm_ui.report.viewer import compact, index_entry, viewer_episode
from swarm_ui.trace.failures import FailureClass, failure_class
from swarm_ui.trace.records import Episode
from swarm_ui.viz.svg import Markup

PNG_BUDGET = 8_000_000
"""Maximum size of screenshots in a report, in bytes. Later screens show their elements instead."""
EPISODE_BUDGET = 60_000_000
"""Maximum size of compressed episodes in a report, in bytes. The page counts the others."""
_CHUNK = 400_000  # characters of JSON: unpacked in a few hundredths of a second
_PICTURED = 30

Illustrate = Callable[[Episode], Episode]
"""Adds screenshots to an episode that was recorded without them."""


class Failed(msgspec.Struct, frozen=True):
    """An episode of the viewer that was not solved."""

    set: str
    number: int
    """Number of the episode, from 1, as in its address."""
    why: FailureClass
    task: str
    seed: int
    steps: int


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the viewer's script."""

    index: str
    """Compressed: an entry for each episode, see :func:`swarm_ui.report.viewer.index_entry`."""
    chunks: tuple[str, ...]
    """Compressed: lists of episodes, in the order of the index."""
    pictures: tuple[str, ...]
    """Screenshots as base64, each once."""
    episodes: int
    left_out: int
    """The number of episodes beyond the budget."""
    bare: int
    """The number of screenshots beyond the budget."""
    failed: tuple[Failed, ...] = ()
    """The shown episodes that were not solved."""

    def elements(self) -> Iterator[Markup]:
        """Script elements that hold the pieces. Base64 has no character that could end one."""
        named = {"index": self.index}
        named |= {f"chunk-{k}": text for k, text in enumerate(self.chunks)}
        named |= {f"picture-{k}": text for k, text in enumerate(self.pictures)}
        for name, text in named.items():
            yield Markup(f'<script type="text/plain" id="{name}">{text}</script>\n')


def packed(
    sets: Sequence[tuple[EpisodeSet, str]],
    illustrate: Illustrate | None = None,
    *,
    png_budget: int = PNG_BUDGET,
    episode_budget: int = EPISODE_BUDGET,
) -> Packed:
    """Compress episodes. No more than one chunk of them is held in memory uncompressed.

    Args:
        sets: the episodes, and the path of each set's file from the page; empty: it has none.
        illustrate: used for 30 episodes, failed ones first.
        png_budget, episode_budget: see :data:`PNG_BUDGET` and :data:`EPISODE_BUDGET`.
    """
    pictures = _Pictures(png_budget)
    drawn = _pictured([part for part, _ in sets]) if illustrate is not None else frozenset()
    index: list[list[object]] = []
    chunks: list[str] = []
    waiting: list[str] = []
    failed: list[Failed] = []
    size = left_out = count = 0
    for part, file in sets:
        for place, episode in enumerate(part, start=1):
            count += 1
            if size > episode_budget:
                left_out += 1
                continue
            index.append(index_entry(episode, part.name, file, place, len(chunks)))
            why = failure_class(episode)
            if why is not None:
                name, steps = set_name(part.name), len(episode.steps)
                failed.append(Failed(name, len(index), why, episode.task, episode.seed, steps))
            if illustrate is not None and count in drawn:
                episode = illustrate(episode)
            waiting.append(compact(viewer_episode(episode, pictures.keep)))
            if sum(map(len, waiting)) > _CHUNK:
                chunks.append(squeezed(f"[{','.join(waiting)}]"))
                size, waiting = size + len(chunks[-1]), []
    if waiting:
        chunks.append(squeezed(f"[{','.join(waiting)}]"))
    return Packed(
        index=squeezed(compact(index)),
        chunks=tuple(chunks),
        pictures=tuple(pictures.kept),
        episodes=len(index),
        left_out=left_out,
        bare=pictures.bare,
        failed=tuple(failed),
    )


def squeezed(text: str) -> str:
    """ASCII text, compressed by gzip, as base64. Equal texts give equal results."""
    return base64.b64encode(gzip.compress(text.encode("ascii"), 6, mtime=0)).decode()


def _pictured(sets: Sequence[EpisodeSet]) -> Collection[int]:
    """The numbers, from 1, of the episodes that get screenshots: failed ones first."""
    failed: list[int] = []
    solved: list[int] = []
    episodes = (episode for part in sets for episode in part)
    for number, episode in enumerate(episodes, start=1):
        group = solved if episode.success else failed
        if len(group) < _PICTURED:
            group.append(number)
        if len(failed) == _PICTURED:
            break
    return frozenset([*failed, *solved][:_PICTURED])


class _Pictures:
    """Keeps each screenshot once, up to the budget."""

    def __init__(self, budget: int) -> None:
        self._left = budget
        self._number: dict[bytes, int] = {}
        self.kept: list[str] = []
        self.bare = 0

    def keep(self, png: bytes) -> int | None:
        digest = hashlib.sha256(png).digest()
        if digest in self._number:
            return self._number[digest]
        if len(png) > self._left:
            self.bare += 1
            return None
        self._left -= len(png)
        self._number[digest] = len(self.kept)
        self.kept.append(base64.b64encode(png).decode())
        return self._number[digest]
