"""The adb program for a handset: it maps the arguments of a command to its output.

    adb = Adb(handset)
    adb.run(["shell", "settings", "get", "global", "wifi_on"])     # b"1\\n"

A command that is not supported raises :class:`UnsupportedCommand`. No command is ignored.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path

from swarm_ui.environments.androidworld.handset.adb.activity_programs import ACTIVITY, console
from swarm_ui.environments.androidworld.handset.adb.file_programs import FILE_PROGRAMS
from swarm_ui.environments.androidworld.handset.adb.program import Program
from swarm_ui.environments.androidworld.handset.adb.shell_syntax import (
    If,
    Script,
    SimpleCommand,
    Token,
    parse,
)
from swarm_ui.environments.androidworld.handset.adb.system_programs import SYSTEM
from swarm_ui.environments.androidworld.handset.errors import (
    AdbFailure,
    UnsupportedArguments,
    UnsupportedCommand,
)
from swarm_ui.environments.androidworld.handset.file_system import canonical, name
from swarm_ui.environments.androidworld.handset.handset import Handset

PROGRAMS: Mapping[str, Program] = {**FILE_PROGRAMS, **ACTIVITY, **SYSTEM}


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
        if not args:
            raise UnsupportedCommand("", "a command is missing")
        command, rest = args[0], list(args[1:])
        if command == "shell":
            return self._shell(" ".join(rest))
        if command == "push" and len(rest) == 2:
            return self._push(rest[0], rest[1])
        if command == "pull" and len(rest) == 2:
            return self._pull(rest[0], rest[1])
        if command == "emu":
            return console(self.handset, rest).encode()
        if command in ("root", "unroot"):
            return b"adbd is already running as root\n"
        if command in ("devices", "start-server", "kill-server", "wait-for-device"):
            return (
                b"List of devices attached\nsimulated\tdevice\n\n" if command == "devices" else b""
            )
        if command == "install":
            raise UnsupportedCommand(" ".join(args), "its apps are built in; none can be installed")
        raise UnsupportedCommand(
            " ".join(args), "expected one of shell, push, pull, emu, root, devices"
        )

    def _shell(self, line: str) -> bytes:
        output, code = self._script(parse(line))
        if code:
            raise AdbFailure(output.decode("utf-8", "replace").strip(), code=code)
        return output

    def _script(self, script: Script) -> tuple[bytes, int]:
        """Output of a script, and the exit code of its last command."""
        output, code = b"", 0
        for and_or_list in script:
            for operator, pipeline in and_or_list:
                if operator and (code == 0) != (operator == "&&"):
                    continue
                data = b""
                for command in pipeline:
                    data, code = self._command(command, data)
                output += data
        return output, code

    def _command(self, command: SimpleCommand | If, data: bytes) -> tuple[bytes, int]:
        if isinstance(command, If):
            _, code = self._script(command.condition)
            return self._script(command.then if code == 0 else command.otherwise)
        words = [text for word in command.words for text in self._expand(word)]
        program = PROGRAMS.get(words[0])
        if program is None:
            known = ", ".join(sorted(PROGRAMS))
            raise UnsupportedCommand(
                f"shell {' '.join(words)}", f"expected one of the programs {known}"
            )
        try:
            result = program(self.handset, words[1:], data)
        except UnsupportedArguments as error:
            raise UnsupportedCommand(f"shell {' '.join(words)}", str(error)) from error
        except AdbFailure as failure:
            message = str(failure)
            return (message + "\n").encode() if message else b"", failure.code
        output = result.encode() if isinstance(result, str) else result
        if command.target is None:
            return output, 0
        if command.target != "/dev/null":
            kept = command.append and self.handset.entry(command.target) is not None
            before = self.handset.read(command.target) if kept else b""
            self.handset.write(command.target, before + output)
        return b"", 0

    def _expand(self, word: Token) -> list[str]:
        """The files that a pattern matches, or the pattern itself if it matches none."""
        if not word.pattern:
            return [word.text]
        folder, _, pattern = word.text.rpartition("/")
        if any(char in folder for char in "*?"):
            raise UnsupportedCommand(f"shell … {word.text}", "a pattern in the name of a folder")
        place = canonical(folder or "/")
        found = [
            f"{folder}/{name(path)}"
            for path in self.handset.files.children(place)
            if fnmatch.fnmatchcase(name(path), pattern) and not name(path).startswith(".")
        ]
        return found or [word.text]

    def _push(self, local: str, remote: str) -> bytes:
        data = Path(local).read_bytes()
        entry = self.handset.entry(remote)
        target = remote
        if entry is not None and entry.data is None:
            target = f"{remote.rstrip('/')}/{Path(local).name}"
        above = canonical(target).rpartition("/")[0] or "/"
        if not self.handset.files.is_folder(above):
            self.handset.make_folder(above)  # as adb does
        self.handset.write(target, data)
        return f"{local}: 1 file pushed, 0 skipped.\n".encode()

    def _pull(self, remote: str, local: str) -> bytes:
        entry = self.handset.entry(remote)
        if entry is None:
            raise AdbFailure(f"adb: error: failed to stat remote object '{remote}': No such file")
        if entry.data is None:
            raise UnsupportedCommand(f"pull {remote}", "it is a folder; pull its files one by one")
        Path(local).write_bytes(self.handset.read(remote))
        return f"{remote}: 1 file pulled, 0 skipped.\n".encode()
