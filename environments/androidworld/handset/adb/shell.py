"""adb, the part of the shell's language that its clients use, and the programs for files and text.

    adb = Adb(handset)
    adb.run(["shell", "settings", "get", "global", "wifi_on"])     # b"1\\n"

A command that is not supported raises :class:`UnsupportedCommand`. No command is ignored.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from swarm_ui.environments.androidworld.handset.adb.system import SYSTEM, Program, console
from swarm_ui.environments.androidworld.handset.file_system import (
    AdbFailure,
    UnsupportedCommand,
    canonical,
    name,
    parent,
)
from swarm_ui.environments.androidworld.handset.handset import Handset

_IF = re.compile(r"\s*if\s(.+?)\s*;\s*then\s(.+?)\selse\s(.+?)\sfi\s*", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<operator>&&|[|;>\n])|\s"""
    r"""|(?P<word>(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|\\\Z|[^\s|;>&<'"\\$`])+)""",
    re.DOTALL,
)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)


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
                output, code = _shell(self.handset, " ".join(rest))
                if code:
                    raise AdbFailure(output.decode("utf-8", "replace").strip(), code=code)
                return output
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
        files = self.handset.files
        into = files.get(remote) is not None and files.is_folder(remote)
        target = canonical(f"{remote}/{Path(local).name}" if into else remote)
        files.make(parent(target))  # as adb does
        files.write(target, Path(local).read_bytes())


class Token(NamedTuple):
    """A word of a command as it was typed, or an operator between words or commands."""

    typed: str
    operator: bool = False

    @property
    def text(self) -> str:
        """The word without its quotes."""
        return _QUOTED.sub(_unquoted, self.typed)

    @property
    def pattern(self) -> bool:
        """Whether the word has an unquoted ``*`` or ``?``."""
        return not {"*", "?"}.isdisjoint(_QUOTED.sub("", self.typed))


def _unquoted(part: re.Match[str]) -> str:
    single, double, escaped = part.groups()
    return single or escaped or re.sub(r'\\([\\"$`])', r"\1", double or "")


def _shell(handset: Handset, line: str) -> tuple[bytes, int]:
    """Execute one line: words, quotes, ``|``, ``>``, ``&&``, ``;``, or one ``if`` with its
    ``else``. Variables, substitutions and loops are refused. Returns output and exit code."""
    if branches := _IF.fullmatch(line):
        _, code = _shell(handset, branches[1])
        return _shell(handset, branches[3 if code else 2])
    output, code = b"", 0
    for part in _split(list(_tokens(line)), ";\n"):
        for place, pipeline in enumerate(_split(part, "&&") if part else ()):
            if place and code:
                break
            data = b""
            for command in _split(pipeline, "|"):
                data, code = _command(handset, line, command, data)
            output += data
    return output, code


def _tokens(line: str) -> Iterator[Token]:
    at = 0
    while at < len(line):
        found = _TOKEN.match(line, at)
        if found is None:
            why = f"{line[at]!r} is not understood without quotes, or a quote is not closed"
            raise UnsupportedCommand(f"shell {line}", why)
        if found.lastgroup:
            yield Token(found[0], found.lastgroup == "operator")
        at = found.end()


def _command(
    handset: Handset, line: str, tokens: Sequence[Token], data: bytes
) -> tuple[bytes, int]:
    """Run one program on the output of the one before; ``>`` writes its output to a file."""
    command, *targets = _split(tokens, ">")
    words = [text for word in command for text in _expand(handset, word)]
    target = [word.text for group in targets for word in group]
    if not words or len(target) != len(targets) or len(target) > 1:
        why = "expected a command, and at most one '>' with the name of a file"
        raise UnsupportedCommand(f"shell {line}", why)
    if words[0] not in PROGRAMS:
        why = f"expected one of the programs {', '.join(sorted(PROGRAMS))}"
        raise UnsupportedCommand(f"shell {line}", why)
    try:
        result = PROGRAMS[words[0]](handset, words[1:], data)
    except (ValueError, re.error) as error:  # such as no number
        raise UnsupportedCommand(f"shell {' '.join(words)}", str(error)) from error
    except AdbFailure as failure:
        return f"{failure}\n".encode() if str(failure) else b"", failure.code
    output = result.encode() if isinstance(result, str) else result
    if not target:
        return output, 0
    if target != ["/dev/null"]:
        handset.files.write(target[0], output)
    return b"", 0


def _expand(handset: Handset, word: Token) -> list[str]:
    """The files that a pattern matches, or the pattern itself if it matches none."""
    if not word.pattern:
        return [word.text]
    folder, _, pattern = word.text.rpartition("/")
    if not {"*", "?"}.isdisjoint(folder):
        raise UnsupportedCommand(f"shell {word.typed}", "a pattern in the name of a folder")
    names = [name(path) for path in handset.files.children(folder or "/")]
    shown = [one for one in fnmatch.filter(names, pattern) if not one.startswith(".")]
    return [f"{folder}/{one}" for one in shown] or [word.text]


def _split(tokens: Sequence[Token], operators: str) -> list[list[Token]]:
    """The groups of tokens between some operators."""
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.operator and token.typed in operators:
            groups.append([])
        else:
            groups[-1].append(token)
    return groups


# -- programs for files and text ------------------------------------------------------------------


def _flags(args: list[str], known: str) -> tuple[set[str], list[str]]:
    """The letters after dashes, and the other arguments."""
    letters = {letter for arg in args if arg.startswith("-") for letter in arg[1:]}
    if letters - set(known):
        raise ValueError(f"expected only the flags {known}")
    return letters, [arg for arg in args if not arg.startswith("-")]


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _found(handset: Handset, program: str, path: str) -> str:
    """The canonical path of a file or a folder that exists."""
    place = canonical(path)
    if place != "/" and handset.files.get(place) is None:
        raise AdbFailure(f"{program}: {path}: No such file or directory")
    return place


def _ls(handset: Handset, args: list[str], data: bytes) -> str:
    flags, paths = _flags(args, "1alud")
    lines: list[str] = []
    for path in paths or ["/"]:
        place = _found(handset, "ls", path)
        shown = {place: path}
        if not handset.files.is_file(place):
            shown = {place: ".", parent(place): ".."} if "a" in flags else {}
            shown |= {child: name(child) for child in handset.files.children(place)}
        if "l" in flags:
            lines += [f"total {4 * len(shown)}", *(_long(handset, *one) for one in shown.items())]
        else:
            lines += shown.values()
    return _lines(lines)


def _long(handset: Handset, place: str, shown: str) -> str:
    entry = handset.files.get(place)
    when = datetime.fromtimestamp(entry.time if entry else handset.now, UTC)
    folder = entry is None or entry.data is None
    size = 3452 if folder else len(handset.files.read(place))
    mode = "drwxrws---" if folder else "-rw-rw----"
    stamp = f"{when:%Y-%m-%d %H:%M:%S}.000000000 +0000"
    return f"{mode} 1 u0_a158 media_rw {size} {stamp} {shown}"


def _cat(handset: Handset, args: list[str], data: bytes) -> bytes:
    return b"".join(map(handset.files.read, args)) if args else data


def _rm(handset: Handset, args: list[str], data: bytes) -> str:
    flags, paths = _flags(args, "rRf")
    for path in paths if "f" not in flags else filter(handset.files.get, paths):
        place = _found(handset, "rm", path)
        if handset.files.is_folder(place) and not flags & {"r", "R"}:
            raise AdbFailure(f"rm: {path}: is a directory")
        handset.files.remove(place)
    return ""


def _mkdir(handset: Handset, args: list[str], data: bytes) -> str:
    if args[:1] != ["-p"]:
        raise ValueError("expected -p and folders")
    for path in args[1:]:
        handset.files.make(path)
    return ""


def _find(handset: Handset, args: list[str], data: bytes) -> str:
    """``find PATH [-mindepth N] [-type f|d [-o -type f|d]] [-delete]``."""
    start, options = args[0], iter(args[1:])
    place = _found(handset, "find", start)
    kinds: set[str] = set()
    least, delete = 0, False
    for option in options:
        if option == "-delete":
            delete = True
        elif option == "-type":
            kinds.add(next(options, "f"))
        elif option == "-mindepth":
            least = int(next(options, "0"))
        elif option != "-o" or not kinds:
            raise ValueError(f"option {option!r} is not supported")
    found: dict[str, str] = {}
    for path in handset.files.walk(place):
        below = path[len(place) :]
        if below.count("/") >= least and "fd"[handset.files.is_folder(path)] in (kinds or "fd"):
            found[path] = start.rstrip("/") + below if below else start
    if not delete:
        return _lines(list(found.values()))
    full = []
    for path in reversed(found):  # the contents of a folder before the folder
        if handset.files.is_folder(path) and handset.files.children(path):
            full.append(f"find: {found[path]}: Directory not empty")
        else:
            handset.files.remove(path)
    if full:
        raise AdbFailure("\n".join(full))
    return ""


def _test(handset: Handset, args: list[str], data: bytes) -> str:
    """``[ -d|-f PATH ]``."""
    kind, path, _ = args
    holds = {"-d": handset.files.is_folder, "-f": handset.files.is_file}
    if kind not in holds:
        raise ValueError("expected one of the tests -d and -f")
    if not holds[kind](path):
        raise AdbFailure("")
    return ""


def _grep(handset: Handset, args: list[str], data: bytes) -> str:
    """``grep [-E] REGEX`` on the output of the command before."""
    (pattern,) = (arg for arg in args if arg != "-E")
    lines = data.decode("utf-8", "replace").splitlines()
    found = [line for line in lines if re.search(pattern, line)]
    if not found:
        raise AdbFailure("")  # exit code 1 and no output
    return _lines(found)


def _chmod(handset: Handset, args: list[str], data: bytes) -> str:
    """Files have no permissions, so this only checks that they exist."""
    for path in args[1:]:
        _found(handset, "chmod", path)
    return ""


PROGRAMS: Mapping[str, Program] = {
    **SYSTEM,
    "ls": _ls, "cat": _cat, "rm": _rm, "mkdir": _mkdir, "find": _find, "[": _test, "grep": _grep,
    "chmod": _chmod, "echo": lambda handset, args, data: " ".join(args) + "\n",
}  # fmt: skip
