"""As much of the shell's grammar as adb clients write: words, quotes, pipes, ``&&``, ``if``.

Nothing is evaluated here: a line becomes a tree that
:mod:`swarm_ui.environments.androidworld.handset.adb.adb`
walks. Variables, substitutions and loops are refused.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from swarm_ui.environments.androidworld.handset.errors import UnsupportedCommand

_OPERATORS = ("&&", "||", ">>", "|", ";", ">", "\n")
_ENDS = frozenset(("then", "else", "elif", "fi"))
_ESCAPABLE_IN_QUOTES = '\\"$`'


class Word(NamedTuple):
    """One word of a command, quotes taken off."""

    text: str
    pattern: bool = False
    """It holds an unquoted ``*`` or ``?``."""
    quoted: bool = False


class Operator(NamedTuple):
    """What stands between commands."""

    text: str


class Simple(msgspec.Struct, frozen=True):
    """A program with its arguments."""

    words: tuple[Word, ...]
    target: Word | None = None
    """File that the output goes to."""
    append: bool = False


class Pipe(msgspec.Struct, frozen=True):
    """Commands that read each other's output."""

    commands: tuple[Simple | If, ...]


class Chain(msgspec.Struct, frozen=True):
    """Pipes joined by ``&&`` and ``||``."""

    first: Pipe
    rest: tuple[tuple[Literal["&&", "||"], Pipe], ...] = ()


class If(msgspec.Struct, frozen=True):
    """A condition and its two branches."""

    condition: Script
    then: Script
    otherwise: Script = ()


Script = tuple[Chain, ...]


def parse(line: str) -> Script:
    """The tree of a command line.

    Raises:
        UnsupportedCommand: grammar that is not known here, or an unfinished quote.
    """
    parser = _Parser(line)
    script = parser.script()
    if not parser.done:
        parser.refuse(f"unexpected {parser.peek()!r}")
    return script


def _tokens(line: str) -> list[Word | Operator]:
    found: list[Word | Operator] = []
    at, end = 0, len(line)
    while at < end:
        operator = next((o for o in _OPERATORS if line.startswith(o, at)), None)
        if operator is not None:
            found.append(Operator(operator))
            at += len(operator)
        elif line[at].isspace():
            at += 1
        else:
            word, at = _word(line, at)
            found.append(word)
    return found


def _word(line: str, at: int) -> tuple[Word, int]:
    """The word that begins at ``at``, and where it ends."""
    parts: list[str] = []
    pattern = quoted = False
    while at < len(line):
        char = line[at]
        if char.isspace() or char in "|;>" or line.startswith("&&", at):
            break
        if char == "'":
            close = line.find("'", at + 1)
            if close < 0:
                raise UnsupportedCommand(f"shell {line}", "a quote is not closed")
            parts.append(line[at + 1 : close])
            at, quoted = close + 1, True
        elif char == '"':
            text, at = _in_quotes(line, at + 1)
            parts.append(text)
            quoted = True
        elif char == "\\" and at + 1 < len(line):
            parts.append(line[at + 1])
            at += 2
        elif char in "$`<&":
            raise UnsupportedCommand(f"shell {line}", f"unquoted {char!r} is not understood")
        else:
            pattern = pattern or char in "*?"
            parts.append(char)
            at += 1
    return Word("".join(parts), pattern, quoted), at


def _in_quotes(line: str, at: int) -> tuple[str, int]:
    """Text up to the closing double quote, and where the line goes on after it."""
    parts: list[str] = []
    while at < len(line):
        char = line[at]
        if char == '"':
            return "".join(parts), at + 1
        if char == "\\" and at + 1 < len(line) and line[at + 1] in _ESCAPABLE_IN_QUOTES:
            parts.append(line[at + 1])
            at += 2
        else:
            parts.append(char)
            at += 1
    raise UnsupportedCommand(f"shell {line}", "a quote is not closed")


class _Parser:
    def __init__(self, line: str) -> None:
        self._line = line
        self._tokens = _tokens(line)
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at >= len(self._tokens)

    def peek(self) -> str | None:
        """The next operator or keyword; ``None`` at the end or before another word."""
        if self.done:
            return None
        token = self._tokens[self._at]
        if isinstance(token, Operator):
            return token.text
        if token.quoted or token.text not in (*_ENDS, "if"):
            return None
        return token.text

    def refuse(self, why: str) -> None:
        raise UnsupportedCommand(f"shell {self._line}", why)

    def script(self) -> Script:
        chains: list[Chain] = []
        while not self.done:
            if self.peek() in (";", "\n"):
                self._at += 1
            elif self.peek() in _ENDS:
                break
            else:
                chains.append(self._chain())
        return tuple(chains)

    def _chain(self) -> Chain:
        first = self._pipe()
        rest: list[tuple[Literal["&&", "||"], Pipe]] = []
        while True:
            joint = self.peek()
            if joint == "&&":
                self._at += 1
                rest.append(("&&", self._pipe()))
            elif joint == "||":
                self._at += 1
                rest.append(("||", self._pipe()))
            else:
                return Chain(first, tuple(rest))

    def _pipe(self) -> Pipe:
        commands = [self._command()]
        while self.peek() == "|":
            self._at += 1
            commands.append(self._command())
        return Pipe(tuple(commands))

    def _command(self) -> Simple | If:
        if self.peek() == "if":
            return self._if()
        words: list[Word] = []
        target: Word | None = None
        append = False
        while not self.done:
            token = self._tokens[self._at]
            if isinstance(token, Word):
                words.append(token)
                self._at += 1
            elif token.text in (">", ">>"):
                append = token.text == ">>"
                self._at += 1
                target = self._target()
            else:
                break
        if not words:
            self.refuse("a command is missing")
        return Simple(tuple(words), target, append)

    def _target(self) -> Word:
        if self.done or not isinstance(token := self._tokens[self._at], Word):
            self.refuse("a file name must follow '>'")
            raise AssertionError
        self._at += 1
        return token

    def _if(self) -> If:
        self._expect("if")
        condition = self.script()
        self._expect("then")
        then = self.script()
        otherwise: Script = ()
        if self.peek() == "else":
            self._at += 1
            otherwise = self.script()
        self._expect("fi")
        return If(condition, then, otherwise)

    def _expect(self, keyword: str) -> None:
        if self.peek() != keyword:
            self.refuse(f"expected '{keyword}'")
        self._at += 1
