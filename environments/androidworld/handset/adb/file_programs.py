"""The shell's programs for files and text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

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
        raise UnsupportedArguments(f"known flags: {known or 'none'}")
    return letters, rest


def _ls(handset: Handset, args: list[str], data: bytes) -> str:
    flags, paths = _flags("ls", args, "1alud")
    lines: list[str] = []
    for path in paths or ["/"]:
        place = canonical(path)
        if handset.files.is_file(place):
            lines.append(_line(handset, place, path, "l" in flags))
        elif handset.files.is_folder(place):
            lines += _listed(handset, place, flags)
        else:
            raise AdbFailure(f"ls: {path}: No such file or directory")
    return "".join(f"{line}\n" for line in lines)


def _listed(handset: Handset, place: str, flags: set[str]) -> list[str]:
    long = "l" in flags
    children = handset.files.children(place)
    lines = [f"total {4 * len(children)}"] if long else []
    if "a" in flags:
        lines += [_line(handset, place, ".", long), _line(handset, parent(place), "..", long)]
    return lines + [_line(handset, child, name(child), long) for child in children]


def _line(handset: Handset, place: str, shown: str, long: bool) -> str:
    if not long:
        return shown
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


def _touch(handset: Handset, args: list[str], data: bytes) -> str:
    _, paths = _flags("touch", args, "")
    for path in paths:
        exists = handset.entry(path) is not None
        handset.write(path, handset.read(path) if exists else b"")
    return ""


def _cp(handset: Handset, args: list[str], data: bytes) -> str:
    flags, paths = _flags("cp", args, "arRpf")
    if len(paths) < 2:
        raise AdbFailure("cp: Needs 2 arguments")
    *sources, target = paths
    for source in sources:
        _copy(handset, source, target, bool(flags & {"a", "r", "R"}))
    return ""


def _copy(handset: Handset, source: str, target: str, recursive: bool) -> None:
    place, goal = canonical(source), canonical(target)
    entry = handset.files.get(place)
    if entry is None:
        raise AdbFailure(f"cp: {source}: No such file or directory")
    if entry.data is None and not recursive:
        raise AdbFailure(f"cp: Skipped dir '{source}'")
    # 'FOLDER/.' means the contents of the folder.
    if handset.files.is_folder(goal) and not source.endswith("/."):
        goal = f"{goal}/{name(place)}"
    handset.copy(place, goal)


def _mv(handset: Handset, args: list[str], data: bytes) -> str:
    _, paths = _flags("mv", args, "fn")
    if len(paths) < 2:
        raise AdbFailure("mv: Needs 2 arguments")
    *sources, target = paths
    for source in sources:
        place, goal = canonical(source), canonical(target)
        if handset.files.is_folder(goal):
            goal = f"{goal}/{name(place)}"
        handset.files = handset.files.move(place, goal)
    return ""


def _find(handset: Handset, args: list[str], data: bytes) -> str:
    """``find PATH [-mindepth N] [-maxdepth N] [-type f|d [-o -type f|d]] [-name P] [-delete]``."""
    start = args[0] if args and not args[0].startswith("-") else "/"
    place = canonical(start)
    if handset.files.get(place) is None and place != "/":
        raise AdbFailure(f"find: {start}: No such file or directory")
    conditions = _Search(args[1:] if start != "/" or args[:1] == ["/"] else args)
    lines: list[str] = []
    for path in list(handset.files.walk(place)):
        depth = path[len(place) :].count("/")
        if not conditions.matches(path, depth, handset.files.is_folder(path)):
            continue
        if conditions.delete:
            if handset.files.is_file(path):
                handset.delete(path)
        else:
            lines.append(start.rstrip("/") + path[len(place) :] if depth else start)
    return "".join(f"{line}\n" for line in lines)


class _Search:
    """The conditions of ``find``."""

    def __init__(self, args: list[str]) -> None:
        self.kinds: set[str] = set()
        self.delete = False
        self.least, self.most = 0, 10**6
        self.pattern: re.Pattern[str] | None = None
        rest = list(args)
        while rest:
            option = rest.pop(0)
            if option == "-delete":
                self.delete = True
            elif option == "-type" and rest:
                self.kinds.add(rest.pop(0))
            elif option == "-mindepth" and rest:
                self.least = int(rest.pop(0))
            elif option == "-maxdepth" and rest:
                self.most = int(rest.pop(0))
            elif option == "-name" and rest:
                self.pattern = re.compile(re.escape(rest.pop(0)).replace(r"\*", ".*"))
            elif option != "-o" or not self.kinds:
                raise UnsupportedArguments(f"{option!r} is not known")

    def matches(self, path: str, depth: int, folder: bool) -> bool:
        fits = not self.kinds or ("d" if folder else "f") in self.kinds
        named = self.pattern is None or self.pattern.fullmatch(name(path)) is not None
        return fits and named and self.least <= depth <= self.most


def _test(handset: Handset, args: list[str], data: bytes) -> str:
    """``[ [!] -d|-f|-e|-s PATH ]``."""
    given = args[:-1] if args[-1:] == ["]"] else args
    turned = given[:1] == ["!"]
    given = given[1:] if turned else given
    if len(given) != 2 or given[0] not in ("-d", "-f", "-e", "-s"):
        raise UnsupportedArguments("known tests: -d, -f, -e, -s")
    place = canonical(given[1])
    if given[0] == "-d":
        true = handset.files.is_folder(place)
    elif given[0] == "-f":
        true = handset.files.is_file(place)
    elif given[0] == "-s":
        true = handset.files.is_file(place) and len(handset.read(place)) > 0
    else:
        true = handset.files.is_folder(place) or handset.files.is_file(place)
    if true == turned:
        raise AdbFailure("")
    return ""


def _grep(handset: Handset, args: list[str], data: bytes) -> str:
    flags, rest = _flags("grep", args, "Eiv")
    if not rest:
        raise AdbFailure("grep: no REGEX")
    pattern = re.compile(rest[0], re.IGNORECASE if "i" in flags else 0)
    text = data if len(rest) == 1 else b"".join(_read(handset, "grep", p) for p in rest[1:])
    lines = [
        line
        for line in text.decode("utf-8", "replace").splitlines()
        if (pattern.search(line) is None) == ("v" in flags)
    ]
    if not lines:
        raise AdbFailure("")  # exit code 1 and no output
    return "".join(f"{line}\n" for line in lines)


def _wc(handset: Handset, args: list[str], data: bytes) -> str:
    flags, paths = _flags("wc", args, "lc")
    text = b"".join(_read(handset, "wc", p) for p in paths) if paths else data
    return f"{text.count(bytes([10])) if 'l' in flags else len(text)}\n"


def _check(program: str) -> Program:
    """A program that changes permissions. It only checks that its files exist."""

    def run(handset: Handset, args: list[str], data: bytes) -> str:
        paths = [arg for arg in args if arg.startswith("/")]
        if not paths:
            raise UnsupportedArguments("a path is missing")
        for path in paths:
            if handset.entry(path) is None:
                raise AdbFailure(f"{program}: '{path}': No such file or directory")
        return ""

    return run


FILE_PROGRAMS: Mapping[str, Program] = {
    "ls": _ls, "cat": _cat, "echo": _echo, "rm": _rm, "mkdir": _mkdir, "touch": _touch,
    "cp": _cp, "mv": _mv, "find": _find, "[": _test, "test": _test, "grep": _grep, "wc": _wc,
    "chmod": _check("chmod"), "chown": _check("chown"), "restorecon": _check("restorecon"),
}  # fmt: skip
