"""The shell's programs for files and text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

from swarm_ui.environments.androidworld.handset.adb.program import Program
from swarm_ui.environments.androidworld.handset.errors import AdbFailure, UnsupportedArguments
from swarm_ui.environments.androidworld.handset.file_system import canonical, name, parent
from swarm_ui.environments.androidworld.handset.handset import Handset


def _flags(program: str, args: list[str], known: str) -> tuple[set[str], list[str]]:
    """The letters after dashes, and the other arguments.

    Raises:
        UnsupportedArguments: a letter is not in ``known``.
    """
    letters: set[str] = set()
    rest: list[str] = []
    for arg in args:
        if arg.startswith("-") and len(arg) > 1:
            letters |= set(arg[1:])
        else:
            rest.append(arg)
    if letters - set(known):
        raise UnsupportedArguments(
            f"expected only the flags {known}" if known else "expected no flags"
        )
    return letters, rest


def _ls(handset: Handset, args: list[str], data: bytes) -> str:
    flags, paths = _flags("ls", args, "1alud")
    show = partial(_long_line, handset) if "l" in flags else lambda place, shown: shown
    lines: list[str] = []
    for path in paths or ["/"]:
        place = canonical(path)
        if handset.files.is_file(place):
            lines.append(show(place, path))
        elif handset.files.is_folder(place):
            children = handset.files.children(place)
            lines += [f"total {4 * len(children)}"] if "l" in flags else []
            if "a" in flags:
                lines += [show(place, "."), show(parent(place), "..")]
            lines += [show(child, name(child)) for child in children]
        else:
            raise AdbFailure(f"ls: {path}: No such file or directory")
    return "".join(f"{line}\n" for line in lines)


def _long_line(handset: Handset, place: str, shown: str) -> str:
    entry = handset.files.get(place)
    when = datetime.fromtimestamp(entry.time if entry else handset.now, UTC)
    folder = entry is None or entry.data is None
    size = 3452 if folder else len(handset.read(place))
    mode = "drwxrws---" if folder else "-rw-rw----"
    stamp = f"{when:%Y-%m-%d %H:%M:%S}.000000000 +0000"
    return f"{mode} 1 u0_a158 media_rw {size} {stamp} {shown}"


def _cat(handset: Handset, args: list[str], data: bytes) -> bytes:
    if not args:
        return data
    return b"".join(_read(handset, "cat", path) for path in args)


def _read(handset: Handset, program: str, path: str) -> bytes:
    try:
        return handset.read(path)
    except AdbFailure as failure:
        raise AdbFailure(f"{program}: {failure}") from failure


def _echo(handset: Handset, args: list[str], data: bytes) -> str:
    plain = args[:1] == ["-n"]
    return " ".join(args[1:] if plain else args) + ("" if plain else "\n")


def _rm(handset: Handset, args: list[str], data: bytes) -> str:
    flags, paths = _flags("rm", args, "rRf")
    for path in paths:
        place = canonical(path)
        if handset.files.get(place) is None:
            if "f" in flags:
                continue
            raise AdbFailure(f"rm: {path}: No such file or directory")
        if handset.files.is_folder(place) and not flags & {"r", "R"}:
            raise AdbFailure(f"rm: {path}: is a directory")
        handset.delete(place)
    return ""


def _mkdir(handset: Handset, args: list[str], data: bytes) -> str:
    flags, paths = _flags("mkdir", args, "p")
    for path in paths:
        handset.files = handset.files.make(canonical(path), handset.now, parents="p" in flags)
    return ""


def _cp(handset: Handset, args: list[str], data: bytes) -> str:
    flags, paths = _flags("cp", args, "arRpf")
    if len(paths) < 2:
        raise AdbFailure("cp: Needs 2 arguments")
    *sources, target = paths
    for source in sources:
        place, goal = canonical(source), canonical(target)
        entry = handset.files.get(place)
        if entry is None:
            raise AdbFailure(f"cp: {source}: No such file or directory")
        if entry.data is None and not flags & {"a", "r", "R"}:
            raise AdbFailure(f"cp: Skipped dir '{source}'")
        # 'FOLDER/.' means the contents of the folder.
        if handset.files.is_folder(goal) and not source.endswith("/."):
            goal = f"{goal}/{name(place)}"
        handset.copy(place, goal)
    return ""


def _find(handset: Handset, args: list[str], data: bytes) -> str:
    """``find PATH [-mindepth N] [-type f|d [-o -type f|d]] [-delete]``."""
    start, rest = (args[0], args[1:]) if args and not args[0].startswith("-") else ("/", args)
    place = canonical(start)
    if handset.files.get(place) is None and place != "/":
        raise AdbFailure(f"find: {start}: No such file or directory")
    kinds: set[str] = set()
    least, delete = 0, False
    options = iter(rest)
    for option in options:
        if option == "-delete":
            delete = True
        elif option == "-type":
            kinds.add(next(options, "f"))
        elif option == "-mindepth":
            depth = next(options, "")
            if not depth.isdecimal():
                raise UnsupportedArguments(f"expected a number after -mindepth, got {depth!r}")
            least = int(depth)
        elif option != "-o" or not kinds:
            raise UnsupportedArguments(f"option {option!r} is not supported")
    found: dict[str, str] = {}
    for path in handset.files.walk(place):
        below = path[len(place) :]
        if below.count("/") >= least and (
            not kinds or "fd"[handset.files.is_folder(path)] in kinds
        ):
            found[path] = start.rstrip("/") + below if below else start
    if not delete:
        return "".join(f"{line}\n" for line in found.values())
    full = []
    for path in reversed(found):  # the contents of a folder before the folder
        if handset.files.is_folder(path) and handset.files.children(path):
            full.append(f"find: {found[path]}: Directory not empty")
        else:
            handset.delete(path)
    if full:
        raise AdbFailure("\n".join(full))
    return ""


def _test(handset: Handset, args: list[str], data: bytes) -> str:
    """``[ -d|-f|-e PATH ]``."""
    given = args[:-1] if args[-1:] == ["]"] else args
    if len(given) != 2 or given[0] not in ("-d", "-f", "-e"):
        raise UnsupportedArguments("expected one of the tests -d, -f, -e")
    kind, place = given[0], canonical(given[1])
    folder, file = handset.files.is_folder(place), handset.files.is_file(place)
    if not ((folder and kind != "-f") or (file and kind != "-d")):
        raise AdbFailure("")
    return ""


def _grep(handset: Handset, args: list[str], data: bytes) -> str:
    flags, rest = _flags("grep", args, "Eiv")
    if not rest:
        raise AdbFailure("grep: no REGEX")
    try:
        pattern = re.compile(rest[0], re.IGNORECASE if "i" in flags else 0)
    except re.error as error:
        raise AdbFailure(f"grep: bad REGEX: {error}", code=2) from error
    text = data if len(rest) == 1 else b"".join(_read(handset, "grep", p) for p in rest[1:])
    lines = [
        line
        for line in text.decode("utf-8", "replace").splitlines()
        if (pattern.search(line) is None) == ("v" in flags)
    ]
    if not lines:
        raise AdbFailure("")  # exit code 1 and no output
    return "".join(f"{line}\n" for line in lines)


def _check(handset: Handset, args: list[str], data: bytes) -> str:
    """A program that changes permissions. It only checks that its files exist."""
    paths = [arg for arg in args if arg.startswith("/")]
    if not paths:
        raise UnsupportedArguments("a path is missing")
    for path in paths:
        if handset.entry(path) is None:
            raise AdbFailure(f"'{path}': No such file or directory")
    return ""


FILE_PROGRAMS: Mapping[str, Program] = {
    "ls": _ls, "cat": _cat, "echo": _echo, "rm": _rm, "mkdir": _mkdir, "cp": _cp, "find": _find,
    "[": _test, "test": _test, "grep": _grep, "chmod": _check, "restorecon": _check,
}  # fmt: skip
