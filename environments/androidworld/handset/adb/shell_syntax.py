"""Parser for the part of the shell's grammar that adb clients use.

It knows words, quotes, pipes, redirections, ``&&``, ``||`` and ``if``, and refuses variables,
substitutions and loops. A line becomes a tree; :class:`Adb` evaluates it.
"""

from __future__ import annotations

import re
from collections import deque
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


class Token(NamedTuple):
    """A word of a command without its quotes, or an operator between words or commands."""

    text: str
    operator: bool = False
    pattern: bool = False
    """The word has an unquoted ``*`` or ``?``."""
    quoted: bool = False


class SimpleCommand(msgspec.Struct, frozen=True):
    """A program with its arguments, and the file for its output."""

    words: tuple[Token, ...]
    target: str | None = None
    append: bool = False


class If(msgspec.Struct, frozen=True):
    """A condition and its two branches."""

    condition: Script
    then: Script
    otherwise: Script = ()


Pipeline = tuple[SimpleCommand | If, ...]
"""Commands that each read the output of the one before."""
AndOrList = tuple[tuple[str, Pipeline], ...]
"""Pipelines, each with the ``&&`` or ``||`` before it. The first has an empty operator."""
Script = tuple[AndOrList, ...]


def parse(line: str) -> Script:
    """The syntax tree of a command line.

    Raises:
        UnsupportedCommand: the grammar is not supported, or a quote is not closed.
    """
    parser = _Parser(line)
    script = parser.script()
    if parser.peek() is not None:
        parser.refuse(f"unexpected {parser.peek()!r}")
    return script


def _tokens(line: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(line):
        operator = _OPERATOR.match(line, at)
        if operator is not None:
            found.append(Token(operator[0], operator=True))
            at = operator.end()
        elif line[at].isspace():
            at += 1
        else:
            word, at = _word(line, at)
            found.append(word)
    return found


def _word(line: str, at: int) -> tuple[Token, int]:
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
    return Token(text, pattern=pattern, quoted=quoted), at


class _Parser:
    def __init__(self, line: str) -> None:
        self._line = line
        self._rest = deque(_tokens(line))

    def peek(self) -> str | None:
        """The next operator or keyword; ``None`` at the end or before another word."""
        token = self._rest[0] if self._rest else Token("")
        keyword = not token.quoted and token.text in (*_ENDS, "if")
        return token.text if token.operator or keyword else None

    def refuse(self, why: str) -> NoReturn:
        raise UnsupportedCommand(f"shell {self._line}", why)

    def script(self) -> Script:
        lists: list[AndOrList] = []
        while self._rest and self.peek() not in _ENDS:
            if self.peek() in (";", "\n"):
                self._rest.popleft()
            else:
                lists.append(self._and_or_list())
        return tuple(lists)

    def _and_or_list(self) -> AndOrList:
        found = [("", self._pipeline())]
        while self.peek() in ("&&", "||"):
            found.append((self._rest.popleft().text, self._pipeline()))
        return tuple(found)

    def _pipeline(self) -> Pipeline:
        commands = [self._command()]
        while self.peek() == "|":
            self._rest.popleft()
            commands.append(self._command())
        return tuple(commands)

    def _command(self) -> SimpleCommand | If:
        if self.peek() == "if":
            return self._if()
        words: list[Token] = []
        target: str | None = None
        append = False
        while self._rest and (not self._rest[0].operator or self.peek() in (">", ">>")):
            token = self._rest.popleft()
            if not token.operator:
                words.append(token)
                continue
            if not self._rest or self._rest[0].operator:
                self.refuse("a file name must follow '>'")
            append = token.text == ">>"
            target = self._rest.popleft().text
        if not words:
            self.refuse("a command is missing")
        return SimpleCommand(tuple(words), target, append)

    def _if(self) -> If:
        self._expect("if")
        condition = self.script()
        self._expect("then")
        then = self.script()
        otherwise: Script = ()
        if self.peek() == "else":
            self._rest.popleft()
            otherwise = self.script()
        self._expect("fi")
        return If(condition, then, otherwise)

    def _expect(self, keyword: str) -> None:
        if self.peek() != keyword:
            self.refuse(f"expected '{keyword}'")
        self._rest.popleft()
