"""The part of the shell's language that adb clients use, and adb itself.

    adb = Adb(handset)
    adb.run(["shell", "settings", "get", "global", "wifi_on"])     # b"1\\n"

A command that is not supported raises :class:`UnsupportedCommand`. No command is ignored.
"""

from __future__ import annotations

import fnmatch
import re
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from swarm_ui.environments.androidworld.handset.adb.files import FILES, Program
from swarm_ui.environments.androidworld.handset.adb.system import SYSTEM, console
from swarm_ui.environments.androidworld.handset.errors import (
    AdbFailure,
    UnsupportedArguments,
    UnsupportedCommand,
)
from swarm_ui.environments.androidworld.handset.file_system import canonical, name, parent
from swarm_ui.environments.androidworld.handset.handset import Handset

PROGRAMS: Mapping[str, Program] = {**FILES, **SYSTEM}
_OPERATOR = re.compile(r"&&|[|;>\n]")
_PIECE = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|\\(?P<escaped>.)"""
    r"""|(?P<plain>[^\s|;>&<'"\\$`]+|\\\Z)""",
    re.DOTALL,
)
_ENDS = frozenset(("then", "else", "fi"))
_Result = tuple[bytes, int]
"""Output and exit code."""


class Adb:
    """The adb program, connected to one handset. It is stateless."""

    def __init__(self, handset: Handset) -> None:
        self.handset = handset

    def run(self, args: Sequence[str]) -> bytes:
        """Output of ``adb ARGS``.

        Raises:
            AdbFailure: the command failed, as it would on a device.
            UnsupportedCommand: the simulated device does not support the command.
        """
        match list(args):
            case ["shell", *rest]:
                return Shell(self.handset, " ".join(rest)).run()
            case ["push", local, remote]:
                self._push(local, remote)
                return b"1 file pushed, 0 skipped.\n"
            case ["pull", remote, local]:
                Path(local).write_bytes(self.handset.read(remote))
                return b"1 file pulled, 0 skipped.\n"
            case ["emu", *rest]:
                return console(self.handset, rest).encode()
        raise UnsupportedCommand(" ".join(args), "expected one of shell, push, pull, emu")

    def _push(self, local: str, remote: str) -> None:
        entry = self.handset.entry(remote)
        folder = entry is not None and entry.data is None
        target = canonical(f"{remote}/{Path(local).name}" if folder else remote)
        self.handset.make_folder(parent(target))  # as adb does
        self.handset.write(target, Path(local).read_bytes())


class Token(NamedTuple):
    """A word of a command without its quotes, or an operator between words or commands."""

    text: str
    operator: bool = False
    pattern: bool = False
    """The word has an unquoted ``*`` or ``?``."""
    quoted: bool = False


class Shell:
    """One line of the shell: words, quotes, ``|``, ``>``, ``&&`` and ``if``. Variables,
    substitutions and loops are refused."""

    def __init__(self, handset: Handset, line: str) -> None:
        self._handset, self._line = handset, line
        self._rest = deque(self._tokens())

    def run(self) -> bytes:
        """Execute the line.

        Raises:
            AdbFailure: the last command failed.
            UnsupportedCommand: the grammar or a program is not supported.
        """
        output, code = self._script(True)
        if self._rest:
            self._refuse(f"unexpected {self._rest[0].text!r}")
        if code:
            raise AdbFailure(output.decode("utf-8", "replace").strip(), code=code)
        return output

    def _tokens(self) -> list[Token]:
        found: list[Token] = []
        at = 0
        while at < len(self._line):
            operator = _OPERATOR.match(self._line, at)
            if operator is not None:
                found.append(Token(operator[0], operator=True))
                at = operator.end()
            elif self._line[at].isspace():
                at += 1
            else:
                word, at = self._word(at)
                found.append(word)
        return found

    def _word(self, at: int) -> tuple[Token, int]:
        """The word that begins at ``at``, and its end."""
        text, pattern, quoted = "", False, False
        while piece := _PIECE.match(self._line, at):
            kind, part, at = piece.lastgroup, piece[piece.lastgroup or 0], piece.end()
            quoted = quoted or kind in ("single", "double")
            pattern = pattern or (kind == "plain" and ("*" in part or "?" in part))
            text += re.sub(r'\\([\\"$`])', r"\1", part) if kind == "double" else part
        if self._line[at : at + 1] in ("'", '"'):
            self._refuse("a quote is not closed")
        if self._line[at : at + 1] in tuple("$`<&") and not self._line.startswith("&&", at):
            self._refuse(f"unquoted {self._line[at]!r} is not understood")
        return Token(text, pattern=pattern, quoted=quoted), at

    def _refuse(self, why: str) -> NoReturn:
        raise UnsupportedCommand(f"shell {self._line}", why)

    def _next(self) -> str | None:
        """The next operator or keyword; ``None`` at the end or before another word."""
        token = self._rest[0] if self._rest else Token("")
        keyword = not token.quoted and token.text in (*_ENDS, "if")
        return token.text if token.operator or keyword else None

    def _script(self, live: bool) -> _Result:
        """Commands up to a keyword; without ``live`` they are only read."""
        output, code = b"", 0
        while self._rest and self._next() not in _ENDS:
            if self._next() in (";", "\n"):
                self._rest.popleft()
                continue
            found, code = self._pipeline(live)
            output += found
            while self._next() == "&&":
                self._rest.popleft()
                goes_on = live and code == 0
                found, new = self._pipeline(goes_on)
                output, code = output + found, new if goes_on else code
        return output, code

    def _pipeline(self, live: bool) -> _Result:
        data, code = self._command(live, b"")
        while self._next() == "|":
            self._rest.popleft()
            data, code = self._command(live, data)
        return data, code

    def _command(self, live: bool, data: bytes) -> _Result:
        if self._next() == "if":
            return self._if(live)
        words: list[Token] = []
        target: str | None = None
        while self._rest and (not self._rest[0].operator or self._next() == ">"):
            token = self._rest.popleft()
            if not token.operator:
                words.append(token)
            elif not self._rest or self._rest[0].operator:
                self._refuse("a file name must follow '>'")
            else:
                target = self._rest.popleft().text
        if not words:
            self._refuse("a command is missing")
        return self._call(words, target, data) if live else (b"", 0)

    def _if(self, live: bool) -> _Result:
        self._expect("if")
        _, code = self._script(live)
        self._expect("then")
        result = self._script(live and code == 0)
        if self._next() == "else":
            self._rest.popleft()
            otherwise = self._script(live and code != 0)
            result = result if code == 0 else otherwise
        self._expect("fi")
        return result

    def _expect(self, keyword: str) -> None:
        if self._next() != keyword:
            self._refuse(f"expected '{keyword}'")
        self._rest.popleft()

    def _call(self, tokens: list[Token], target: str | None, data: bytes) -> _Result:
        words = [text for token in tokens for text in self._expand(token)]
        program = PROGRAMS.get(words[0])
        if program is None:
            self._refuse(f"expected one of the programs {', '.join(sorted(PROGRAMS))}")
        try:
            result = program(self._handset, words[1:], data)
        except (UnsupportedArguments, ValueError, re.error) as error:  # such as no number
            raise UnsupportedCommand(f"shell {' '.join(words)}", str(error)) from error
        except AdbFailure as failure:
            message = str(failure)
            return (message + "\n").encode() if message else b"", failure.code
        output = result.encode() if isinstance(result, str) else result
        if target is None:
            return output, 0
        if target != "/dev/null":
            self._handset.write(target, output)
        return b"", 0

    def _expand(self, word: Token) -> list[str]:
        """The files that a pattern matches, or the pattern itself if it matches none."""
        if not word.pattern:
            return [word.text]
        folder, _, pattern = word.text.rpartition("/")
        if any(char in folder for char in "*?"):
            self._refuse("a pattern in the name of a folder")
        names = [name(path) for path in self._handset.files.children(canonical(folder or "/"))]
        return [
            f"{folder}/{one}"
            for one in names
            if fnmatch.fnmatchcase(one, pattern) and not one.startswith(".")
        ] or [word.text]
