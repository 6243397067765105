"""Episodes in compressed chunks of a page. The browser unpacks a chunk when it is opened."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from swarm_ui.report.read import EpisodeSet
from swarm_ui.report.viewer import compact, index_entry, viewer_episode
from swarm_ui.trace.failures import FailureClass, failure_class
from swarm_ui.trace.records import Episode
from swarm_ui.viz.svg import Markup, tag

PNG_BUDGET = 8_000_000
"""Maximum size of screenshots in a report, in bytes. Later screens show their elements instead."""
EPISODE_BUDGET = 60_000_000
"""Maximum size of compressed episodes in a report, in bytes. The page counts the others."""
_CHUNK = 400_000  # characters of JSON: unpacked in a few hundredths of a second
_PICTURED = 15  # of the solved, and of the other ones
_EXAMPLES = 3

Illustrate = Callable[[Episode], Episode]
"""Adds screenshots to an episode that was recorded without them."""


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
    examples: Mapping[FailureClass, Sequence[Markup]]
    """Links to the first episodes of each class of failures."""

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
) -> Packed:
    """Compress episodes. No more than one chunk of them is held in memory uncompressed.

    Args:
        sets: the episodes, and the path of each set's file from the page; empty: it has none.
        illustrate: used for 15 solved and 15 other episodes.
    """
    pictures = _Pictures(PNG_BUDGET)
    drawn: Counter[bool] = Counter()
    examples: dict[FailureClass, list[Markup]] = {}
    index: list[list[object]] = []
    chunks, waiting = list[str](), list[str]()
    size = left_out = 0
    for part, file in sets:
        for place, episode in enumerate(part, start=1):
            if size > EPISODE_BUDGET:
                left_out += 1
                continue
            index.append(index_entry(episode, part.name, file, place, len(chunks)))
            why = failure_class(episode)
            if why is not None and len(examples.setdefault(why, [])) < _EXAMPLES:
                examples[why].append(_link(episode, len(index)))
            solved = bool(episode.success)
            if illustrate is not None and drawn[solved] < _PICTURED:
                drawn[solved] += 1
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
        examples=examples,
    )


def _link(episode: Episode, number: int) -> Markup:
    """A link to the last step of an episode in the viewer."""
    address = f"#{number}/{max(1, len(episode.steps))}"
    return tag("a", f"#{number}", href=address, title=f"{episode.task}, seed {episode.seed}")


def squeezed(text: str) -> str:
    """ASCII text, compressed by gzip, as base64. Equal texts give equal results."""
    return base64.b64encode(gzip.compress(text.encode("ascii"), 6, mtime=0)).decode()


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
