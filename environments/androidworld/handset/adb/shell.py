"""The part of the shell's language that adb clients use, and adb itself.

    adb = Adb(handset)
    adb.run(["shell", "settings", "get", "global", "wifi_on"])     # b"1\\n"

A command that is not supported raises :class:`UnsupportedCommand`. No command is ignored.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from swarm_ui.environments.androidworld.handset.adb.files import FILES, Program
from swarm_ui.environments.androidworld.handset.adb.system import SYSTEM, console
from swarm_ui.environments.androidworld.handset.file_system import (
    AdbFailure,
    UnsupportedCommand,
    canonical,
    name,
    parent,
)
from swarm_ui.environments.androidworld.handset.handset import Handset

PROGRAMS: Mapping[str, Program] = {**FILES, **SYSTEM}
_IF = re.compile(r"\s*if\s(.+?)\s*;\s*then\s(.+?)\selse\s(.+?)\sfi\s*", re.DOTALL)
_OPERATOR = re.compile(r"&&|[|;>\n]")
_PIECE = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|\\(?P<escaped>.)"""
    r"""|(?P<plain>[^\s|;>&<'"\\$`]+|\\\Z)""",
    re.DOTALL,
)


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
                Path(local).write_bytes(self.handset.files.read(remote))
                return b"1 file pulled, 0 skipped.\n"
            case ["emu", *rest]:
                return console(self.handset, rest).encode()
        raise UnsupportedCommand(" ".join(args), "expected one of shell, push, pull, emu")

    def _push(self, local: str, remote: str) -> None:
        entry = self.handset.files.get(remote)
        folder = entry is not None and entry.data is None
        target = canonical(f"{remote}/{Path(local).name}" if folder else remote)
        self.handset.files.make(parent(target))  # as adb does
        self.handset.files.write(target, Path(local).read_bytes())


class Token(NamedTuple):
    """A word of a command without its quotes, or an operator between words or commands."""

    text: str
    operator: bool = False
    pattern: bool = False
    """The word has an unquoted ``*`` or ``?``."""


class Shell:
    """One line of the shell: words, quotes, ``|``, ``>``, ``&&``, ``;``, or one ``if`` with its
    ``else``. Variables, substitutions and loops are refused."""

    def __init__(self, handset: Handset, line: str) -> None:
        self._handset, self._line = handset, line

    def run(self) -> bytes:
        """Execute the line.

        Raises:
            AdbFailure: the last command failed.
            UnsupportedCommand: the grammar or a program is not supported.
        """
        branches = _IF.fullmatch(self._line)
        if branches is not None:
            _, code = Shell(self._handset, branches[1])._result()
            return Shell(self._handset, branches[2 if code == 0 else 3]).run()
        output, code = self._result()
        if code:
            raise AdbFailure(output.decode("utf-8", "replace").strip(), code=code)
        return output

    def _result(self) -> tuple[bytes, int]:
        """Output and exit code."""
        output, code = b"", 0
        for line in _split(list(self._tokens()), ";\n"):
            for place, pipeline in enumerate(_split(line, "&&") if line else ()):
                if place and code:
                    break
                data = b""
                for command in _split(pipeline, "|"):
                    data, code = self._command(command, data)
                output += data
        return output, code

    def _tokens(self) -> Iterator[Token]:
        at = 0
        while at < len(self._line):
            operator = _OPERATOR.match(self._line, at)
            if operator is not None:
                yield Token(operator[0], operator=True)
                at = operator.end()
            elif self._line[at].isspace():
                at += 1
            else:
                word, at = self._word(at)
                yield word

    def _word(self, at: int) -> tuple[Token, int]:
        """The word that begins at ``at``, and its end."""
        text, pattern = "", False
        while piece := _PIECE.match(self._line, at):
            kind, part, at = piece.lastgroup, piece[piece.lastgroup or 0], piece.end()
            pattern = pattern or (kind == "plain" and ("*" in part or "?" in part))
            text += re.sub(r'\\([\\"$`])', r"\1", part) if kind == "double" else part
        if self._line[at : at + 1] in ("'", '"'):
            self._refuse("a quote is not closed")
        if self._line[at : at + 1] in tuple("$`<&") and not self._line.startswith("&&", at):
            self._refuse(f"unquoted {self._line[at]!r} is not understood")
        return Token(text, pattern=pattern), at

    def _refuse(self, why: str) -> NoReturn:
        raise UnsupportedCommand(f"shell {self._line}", why)

    def _command(self, tokens: Sequence[Token], data: bytes) -> tuple[bytes, int]:
        """Run one program on the output of the one before; ``>`` writes its output to a file."""
        command, *targets = _split(tokens, ">")
        words = [text for word in command for text in self._expand(word)]
        target = [word.text for group in targets for word in group]
        if not words or len(target) != len(targets) or len(target) > 1:
            self._refuse("expected a command, and at most one '>' with the name of a file")
        if words[0] not in PROGRAMS:
            self._refuse(f"expected one of the programs {', '.join(sorted(PROGRAMS))}")
        try:
            result = PROGRAMS[words[0]](self._handset, words[1:], data)
        except (ValueError, re.error) as error:  # such as no number
            raise UnsupportedCommand(f"shell {' '.join(words)}", str(error)) from error
        except AdbFailure as failure:
            message = str(failure)
            return (message + "\n").encode() if message else b"", failure.code
        output = result.encode() if isinstance(result, str) else result
        if not target:
            return output, 0
        if target != ["/dev/null"]:
            self._handset.files.write(target[0], output)
        return b"", 0

    def _expand(self, word: Token) -> list[str]:
        """The files that a pattern matches, or the pattern itself if it matches none."""
        if not word.pattern:
            return [word.text]
        folder, _, pattern = word.text.rpartition("/")
        if any(char in folder for char in "*?"):
            self._refuse("a pattern in the name of a folder")
        names = [name(path) for path in self._handset.files.children(folder or "/")]
        return [
            f"{folder}/{one}"
            for one in names
            if fnmatch.fnmatchcase(one, pattern) and not one.startswith(".")
        ] or [word.text]


def _split(tokens: Sequence[Token], operators: str) -> list[list[Token]]:
    """The groups of tokens between some operators."""
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.operator and token.text in operators:
            groups.append([])
        else:
            groups[-1].append(token)
    return groups
