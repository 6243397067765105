"""The file format of a run: one line of JSON for its head, one for each call, each question to a
person, and its end.

    {"swarm_ui_run":1,"begun":"2025-01-31T14:25:30Z","head":{...},"crc":"5d41402a"}
    {"message":{...},"call":{...},"crc":"bc4b2a76"}
    {"question":{...},"crc":"1f0c5e2b"}
    {"finished":"2025-01-31T14:26:02Z","crc":"b9719d91"}

``crc`` is the CRC-32 of the bytes before it. Lines of older releases have none and are read too.
Reading returns exactly what was written. JSON cannot represent lone surrogates (a truncated emoji
in a model's reply) and numbers that are not finite (the log-probability of an impossible reply). A
line that contains one begins with ``{"escaped":true,``. In such a line, a backslash in a string is
doubled, ``\\\\ud83d`` is a surrogate, and the whole string ``\\\\-inf`` stands for a number.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Generic, TypeVar
from zlib import crc32

import msgspec

from swarm_ui.errors import UNREADABLE, ConfigError, TraceError, brief
from swarm_ui.message import Message, Question
from swarm_ui.observation import Observation
from swarm_ui.storage.protocol import Head, RecordedCall
from swarm_ui.trace.records import Call

LINES_VERSION = 1

T = TypeVar("T")

_ESCAPED = b'{"escaped":true,'
_FIRST = b'{"swarm_ui_run":'
_END = b'{"finished":'
_QUESTION = b'{"question":'
_SPECIAL = re.compile(r"[\\\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")
_NUMBERS = {"\\inf": math.inf, "\\-inf": -math.inf, "\\nan": math.nan}

_SUM = re.compile(rb',"crc":"([0-9a-f]{8})"}\Z')

_encode = msgspec.json.Encoder().encode


class First(msgspec.Struct, Generic[T], frozen=True):
    """The first line of a run."""

    swarm_ui_run: int
    begun: datetime.datetime
    head: T
    """The :class:`Head`, or the part of it that a list shows."""


class _Named(msgspec.Struct, frozen=True):
    run: str


class _Version(msgspec.Struct, frozen=True):
    swarm_ui_run: int


class _Said(msgspec.Struct, frozen=True):
    message: Message
    call: Call


class _Asked(msgspec.Struct, frozen=True):
    question: Question


class _End(msgspec.Struct, frozen=True):
    finished: datetime.datetime


_decode_said = msgspec.json.Decoder(_Said).decode


class Past:
    """The calls of a run, read from its lines. Of two calls with the same id the later is used."""

    __slots__ = ("calls", "finished", "questions")

    def __init__(self) -> None:
        self.calls: dict[str, RecordedCall] = {}
        #: questions without an answer, by message id
        self.questions: dict[str, Question] = {}
        self.finished = False

    def read(self, lines: Iterable[bytes], where: str, start: int) -> None:
        """Read lines; ``where`` and the number of the first line are used in errors.

        Raises:
            TraceError: a line is neither a call, a question nor the end of a run.
        """
        for number, line in enumerate(lines, start):
            try:
                check_sum(line)
                if line.startswith(_END):
                    msgspec.json.decode(line, type=_End)
                    self.finished = True
                    continue
                if line.startswith(_QUESTION):
                    question = msgspec.json.decode(line, type=_Asked).question
                    self.questions[question.id] = question
                    continue
                said = _decode(line, _Said) if line.startswith(_ESCAPED) else _decode_said(line)
            except UNREADABLE as error:
                raise TraceError(
                    f"{where}, line {number}: not a call of a run: {brief(error)}. Remove it and "
                    "all later lines, and their calls are made again; or delete the run"
                ) from error
            self.finished = False
            # Remove and insert again, so that the order is that of the last write.
            self.calls.pop(said.message.id, None)
            self.calls[said.message.id] = (said.message, said.call)
            self.questions.pop(said.message.id, None)


def first_line(head: Head, begun: datetime.datetime) -> bytes:
    """The first line of a run's file, with its head.

    Raises:
        ConfigError: the head contains a value that cannot be written as JSON.
    """
    return _checked(First(LINES_VERSION, begun, head), First[Head], f"run {head.run!r}")


def call_line(message: Message, call: Call) -> bytes:
    """The line of a call.

    Raises:
        ConfigError: the call contains a value that cannot be written as JSON.
    """
    return _checked(_Said(message, call), _Said, f"what node '{call.node}' answered ({message.id})")


def question_line(question: Question) -> bytes:
    return _summed(_encode(_Asked(question)))


def end_line(finished: datetime.datetime) -> bytes:
    return _summed(_encode(_End(finished)))


def is_end(line: bytes) -> bool:
    """Whether a line is the one that ends a run."""
    return line.startswith(_END)


def is_question(line: bytes) -> bool:
    """Whether a line is a question to a person."""
    return line.startswith(_QUESTION)


def may_begin(data: bytes) -> bool:
    """Whether this can be the beginning of a first line that was cut off."""
    return any(begin.startswith(data[: len(begin)]) for begin in (_FIRST, _ESCAPED))


def read_first(line: bytes, where: str) -> First[Head]:
    """Decode the first line of a run.

    Raises:
        TraceError: the line is not the first line of a run, or is of another version.
    """
    return _read(line, First[Head], where)


def read_name(line: bytes, where: str) -> tuple[str, datetime.datetime]:
    """The run's name and when it began, without the screen; raises as :func:`read_first`."""
    found = _read(line, First[_Named], where)
    return found.head.run, found.begun


def check_same(old: Head, new: Head, where: str) -> None:
    """Raise a ``ConfigError`` that names the differences if these are two different runs."""
    new = _decode(_written(new), Head)  # as it is read back: lists become tuples
    if old == new:
        return
    differences = [f"the name {old.run!r} instead of {new.run!r}"] if old.run != new.run else []
    if old.seed != new.seed:
        differences.append(f"the seed {old.seed} instead of {new.seed}")
    if old.graph != new.graph:
        differences.append(f"another graph ({_graphs(old.graph, new.graph)})")
    if old.observation != new.observation:
        differences.append(f"another screen ({_screens(old.observation, new.observation)})")
    if old.version != new.version:
        differences.append(f"version {old.version} instead of {new.version}")
    raise ConfigError(
        f"the run {new.run!r} in {where} was started with {', '.join(differences)}. "
        f"Use the original arguments, choose another name, or call delete({new.run!r})"
    )


def _graphs(old: str, new: str) -> str:
    try:
        was, now = (msgspec.json.decode(text, type=dict[str, Any]) for text in (old, new))
    except UNREADABLE:
        return "the one in the store cannot be read"
    parts = []
    for key in {**was, **now}:
        before, after = was.get(key), now.get(key)
        if before == after:
            continue
        if not isinstance(before, list) or not isinstance(after, list):
            parts.append(f"{key} {before!r} instead of {after!r}")
            continue
        gone = [_short(each) for each in before if each not in after]
        added = [_short(each) for each in after if each not in before]
        parts.append(
            f"{key} with {', '.join(gone) or 'nothing more'} instead of "
            f"{', '.join(added) or 'nothing more'}"
            if gone or added
            else f"{key} in another order"
        )
    return "; ".join(parts)


def _short(part: Any) -> str:
    if isinstance(part, dict):
        return f"{part.get('id')} ({part.get('kind')})"
    return " -> ".join(map(str, part)) if isinstance(part, list) else str(part)


def _screens(old: Observation, new: Observation) -> str:
    if old.goal != new.goal:
        return f"the goal {old.goal!r} instead of {new.goal!r}"
    fields = [f for f in old.__struct_fields__ if getattr(old, f) != getattr(new, f)]
    return f"other {', '.join(fields)}"


def escape(text: str) -> str:
    """An escaped string that every encoding can write. Different strings stay different."""
    return _SPECIAL.sub(_escaped_character, text)


def unescape(text: str) -> str:
    """The inverse of :func:`escape`."""
    return _ESCAPE.sub(_plain_character, text)


def _read(line: bytes, type: type[T], where: str) -> T:
    try:
        check_sum(line)
        version = _decode(line, _Version).swarm_ui_run
        if version == LINES_VERSION:
            return _decode(line, type)
    except UNREADABLE as error:
        raise TraceError(
            f"{where}, line 1: not the head of a run: {brief(error)}. The other lines are useless "
            "without it: restore it from a copy, or delete the run"
        ) from error
    raise TraceError(
        f"{where}, line 1: a run of version {version}; this release reads {LINES_VERSION}. "
        "Use the version of swarm-ui that created it"
    )


def _checked(value: Any, type: type[T], what: str) -> bytes:
    """The line, after checking that it can be read again.

    An error now is better than one when the run is resumed.
    """
    try:
        line = _written(value)
        _decode(line, type)
    except (TypeError, ValueError, OverflowError, msgspec.ValidationError) as error:
        raise ConfigError(f"{what} cannot be kept in a store: {error}") from error
    return _summed(line)


def _summed(line: bytes) -> bytes:
    """A line with its checksum as the last field, which older releases ignore."""
    return b'%b,"crc":"%08x"}' % (line[:-1], crc32(line[:-1]))


def check_sum(line: bytes) -> None:
    """Raise ``ValueError`` if the checksum is wrong; old lines have no checksum."""
    found = _SUM.search(line)
    if found is not None and int(found[1], 16) != crc32(line[: found.start()]):
        raise ValueError("its checksum is wrong, so it was changed after it was written")


def _written(value: Any) -> bytes:
    with suppress(UnicodeEncodeError):
        line = _encode(value)
        if b"null" not in line:  # what is None is left out: maybe a number that is not finite
            return line
    return _ESCAPED + _encode(_escaped(msgspec.to_builtins(value)))[1:]


def _decode(line: bytes, type: type[T]) -> T:
    if line.startswith(_ESCAPED):
        return msgspec.convert(_unescaped(msgspec.json.decode(line)), type)
    return msgspec.json.decode(line, type=type)


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f"\\{value}"
    if isinstance(value, dict):
        return {_escaped(key): _escaped(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(each) for each in value]
    return value


def _unescaped(value: Any) -> Any:
    if isinstance(value, str):
        return _NUMBERS[value] if value in _NUMBERS else unescape(value)
    if isinstance(value, dict):
        return {unescape(key): _unescaped(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_unescaped(each) for each in value]
    return value


def _escaped_character(found: re.Match[str]) -> str:
    character = found[0]
    return "\\\\" if character == "\\" else f"\\u{ord(character):04x}"


def _plain_character(found: re.Match[str]) -> str:
    return "\\" if found[1] is None else chr(int(found[1], 16))


def file_name(run: str) -> str:
    """A file name for a run, without suffix: the printable part of the run's name, and a hash.

    It is the same on every system, different for each run, and never leads out of the folder.
    """
    readable = "".join([c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in run])
    digest = blake2b(run.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return f"{readable[:48].strip('-') or 'run'}-{digest}"
