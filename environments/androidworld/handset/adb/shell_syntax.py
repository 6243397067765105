"""Parser for the part of the shell's grammar that adb clients use.

It knows words, quotes, pipes, redirections, ``&&``, ``||`` and ``if``, and refuses variables,
substitutions and loops. A line becomes a tree; :class:`Adb` evaluates it.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

import msgspec

from swarm_ui.environments.androidworld.handset.errors import UnsupportedCommand

_OPERATOR = re.compile(r"&&|\|\||>>|[|;>\n]")
_PIECE = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|\\(?P<escaped>.)"""
    r"""|(?P<plain>[^\s|;>&<'"\\$`]+|\\\Z)""",
    re.DOTALL,
)
_ENDS = frozenset(("then", "else", "elif", "fi"))


class Word(NamedTuple):
    """A word of a command, without its quotes."""

    text: str
    pattern: bool = False
    """The word has an unquoted ``*`` or ``?``."""
    quoted: bool = False


class Operator(NamedTuple):
    """An operator between words or commands."""

    text: str


class SimpleCommand(msgspec.Struct, frozen=True):
    """A program with its arguments."""

    words: tuple[Word, ...]
    target: Word | None = None
    """File for the output."""
    append: bool = False


class Pipeline(msgspec.Struct, frozen=True):
    """Commands that each read the output of the one before."""

    commands: tuple[SimpleCommand | If, ...]


class AndOrList(msgspec.Struct, frozen=True):
    """Pipelines joined by ``&&`` and ``||``."""

    first: Pipeline
    rest: tuple[tuple[str, Pipeline], ...] = ()
    """Each operator with the pipeline after it."""


class If(msgspec.Struct, frozen=True):
    """A condition and its two branches."""

    condition: Script
    then: Script
    otherwise: Script = ()


Script = tuple[AndOrList, ...]


def parse(line: str) -> Script:
    """The syntax tree of a command line.

    Raises:
        UnsupportedCommand: the grammar is not supported, or a quote is not closed.
    """
    parser = _Parser(line)
    script = parser.script()
    if not parser.done:
        parser.refuse(f"unexpected {parser.peek()!r}")
    return script


def _tokens(line: str) -> list[Word | Operator]:
    found: list[Word | Operator] = []
    at = 0
    while at < len(line):
        operator = _OPERATOR.match(line, at)
        if operator is not None:
            found.append(Operator(operator[0]))
            at = operator.end()
        elif line[at].isspace():
            at += 1
        else:
            word, at = _word(line, at)
            found.append(word)
    return found


def _word(line: str, at: int) -> tuple[Word, int]:
    """The word that begins at ``at``, and its end."""
    text, pattern, quoted = "", False, False
    while piece := _PIECE.match(line, at):
        kind, part, at = piece.lastgroup, piece[piece.lastgroup or 0], piece.end()
        quoted = quoted or kind in ("single", "double")
        pattern = pattern or (kind == "plain" and ("*" in part or "?" in part))
        text += re.sub(r'\\([\\"$`])', r"\1", part) if kind == "double" else part
    if line[at : at + 1] in ("'", '"'):
        raise UnsupportedCommand(f"shell {line}", "a quote is not closed")
    if line[at : at + 1] in tuple("$`<&") and not line.startswith("&&", at):
        raise UnsupportedCommand(f"shell {line}", f"unquoted {line[at]!r} is not understood")
    return Word(text, pattern, quoted), at


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

    def refuse(self, why: str) -> NoReturn:
        raise UnsupportedCommand(f"shell {self._line}", why)

    def script(self) -> Script:
        lists: list[AndOrList] = []
        while not self.done:
            if self.peek() in (";", "\n"):
                self._at += 1
            elif self.peek() in _ENDS:
                break
            else:
                lists.append(self._and_or_list())
        return tuple(lists)

    def _and_or_list(self) -> AndOrList:
        first = self._pipeline()
        rest: list[tuple[str, Pipeline]] = []
        while (operator := self.peek()) in ("&&", "||"):
            self._at += 1
            rest.append((operator, self._pipeline()))
        return AndOrList(first, tuple(rest))

    def _pipeline(self) -> Pipeline:
        commands = [self._command()]
        while self.peek() == "|":
            self._at += 1
            commands.append(self._command())
        return Pipeline(tuple(commands))

    def _command(self) -> SimpleCommand | If:
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
        return SimpleCommand(tuple(words), target, append)

    def _target(self) -> Word:
        if self.done or not isinstance(token := self._tokens[self._at], Word):
            self.refuse("a file name must follow '>'")
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
