"""Text of strangers on a terminal: models, screens and servers write what is printed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line separators, and changes of direction
    "\ud800-\udfff]"  # lone surrogates, which cannot be encoded
)


def printable(text: str) -> str:
    """The text with ``�`` in place of each character that would control a terminal: the C0 and C1
    controls except tab and line feed, and Unicode's controls of the text direction."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def printable_json(text: str) -> str:
    """A JSON text with the same value, in which these characters are escaped."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class SafeConsole(Console):
    """A console on which untrusted text cannot control the terminal."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Go on without notes. Without a reader of the results there is nothing left to do."""
        if not self.stderr:
            raise BrokenPipeError
        discard_output(self.file)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            controls = segment.control is not None  # control codes of the console itself
            yield segment if controls else segment._replace(text=printable(segment.text))


def discard_output(stream: IO[str]) -> None:
    """Write nothing to a standard stream any more: its reader, such as ``head``, has closed it."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), stream.fileno())
