"""The shell's programs for files and text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from swarm_ui.environments.androidworld.handset.file_system import (
    AdbFailure,
    canonical,
    name,
    parent,
)
from swarm_ui.environments.androidworld.handset.handset import Handset

Program = Callable[[Handset, list[str], bytes], bytes | str]
"""A program of the shell: maps the handset, the arguments and the standard input to the output.

It raises ``AdbFailure`` if the command fails, and ``ValueError`` for arguments that it does not
support.
"""


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


FILES: Mapping[str, Program] = {
    "ls": _ls, "cat": _cat, "rm": _rm, "mkdir": _mkdir, "find": _find, "[": _test, "grep": _grep,
    "chmod": _chmod, "echo": lambda handset, args, data: " ".join(args) + "\n",
}  # fmt: skip
