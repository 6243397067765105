"""The shell's programs for apps, touches, settings, time, content providers and databases, and the
console of the emulator."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from swarm_ui.environments.androidworld.handset import screen as touch
from swarm_ui.environments.androidworld.handset.apps.messenger import (
    INBOX,
    PEOPLE,
    SENT,
    newest,
    store,
)
from swarm_ui.environments.androidworld.handset.file_system import (
    SHARED,
    AdbFailure,
    Row,
    UnsupportedCommand,
)
from swarm_ui.environments.androidworld.handset.handset import HOME, Handset, Intent
from swarm_ui.environments.androidworld.handset.screen import HEIGHT, SCALE, WIDTH

Program = Callable[[Handset, list[str], bytes], bytes | str]
"""A program of the shell: maps the handset, the arguments and the standard input to the output.

It raises ``AdbFailure`` if the command fails, and ``ValueError`` for arguments that it does not
support.
"""

_FIELDS = {"-a": "action", "-n": "component", "-d": "data", "-t": "mime"}
_EXTRAS = frozenset(("-e", "--es", "--ez", "--ei", "--el", "--ef", "--esa"))
_SWITCHES = frozenset(("-W", "-S", "-R", "--activity-clear-top", ""))
_HEARD_BY_NOBODY = (
    "com.example.ACTION_UPDATE_OVERLAY", "com.example.ACTION_UPDATE_SCOREBOARD",
    "android.intent.action.MEDIA_SCANNER_SCAN_FILE",
)  # fmt: skip
"""Broadcasts to android_world's own app, which displays the goal, and to what looks for songs."""


def _am(handset: Handset, args: list[str], data: bytes) -> str:
    match args:
        case ["start", *rest]:
            return _start(handset, _intent(rest))
        case ["broadcast", *rest]:
            return _broadcast(handset, _intent(rest))
        case ["force-stop", package]:
            if app := handset.package(package):
                handset.close(app.name)
            return ""
        case ["stack" | "task", "list", *_]:
            return _stack(handset)
        case ["stack", "remove", number]:
            for name in [name for name in handset.apps if _number(handset, name) == int(number)]:
                handset.close(name)
            return ""
    raise ValueError("expected one of start, broadcast, force-stop, stack list, stack remove")


def _intent(args: list[str]) -> Intent:
    given: dict[str, str] = {}
    extras: dict[str, str] = {}
    while args:
        match args:
            case [option, *args] if option in _SWITCHES:
                pass
            case [option, value, *args] if option in _FIELDS:
                given[_FIELDS[option]] = value
            case [option, key, value, *args] if option in _EXTRAS:
                extras[key] = value
            case [option, *_]:
                raise ValueError(f"option {option!r} is not supported")
    return Intent(**given, extras=extras)


def _start(handset: Handset, intent: Intent) -> str:
    if intent.component:
        app = handset.package(intent.component.partition("/")[0])
        if app is None:
            raise AdbFailure(
                f"Error type 3\nError: Activity class {{{intent.component}}} does not exist."
            )
        handset.launch(app.name)
        return (
            f"Starting: Intent {{ cmp={intent.component} }}\nStatus: ok\nLaunchState: COLD\n"
            f"Activity: {app.component}\nTotalTime: 0\nWaitTime: 0\nComplete\n"
        )
    for app in handset.apps.values():
        for key, answer in app.intents.items():
            action, _, about = key.partition(" ")
            if action == intent.action and (intent.mime == about or intent.data.startswith(about)):
                answer(handset, intent)
                return f"Starting: Intent {{ act={intent.action} dat={intent.data} }}\n"
    raise ValueError(f"no app handles the intent {intent.action} {intent.data} {intent.mime}")


def _broadcast(handset: Handset, intent: Intent) -> str:
    result, front = "0", handset.front_app
    if intent.action in ("clipper.get", "clipper.set"):
        if front is not None and front.name == "clipper":
            said = handset.clipboard
            if intent.action == "clipper.set":
                handset.clipboard = intent.extras.get("text", "")
                said = "Text is copied into clipboard."
            result = f'-1, data="{said}"'
    elif intent.action not in _HEARD_BY_NOBODY:
        raise ValueError(f"the handset does not support the broadcast {intent.action}")
    sent = f"Broadcasting: Intent {{ act={intent.action} }}"
    return f"{sent}\nBroadcast completed: result={result}\n"


def _number(handset: Handset, app: str) -> int:
    """Number of an app's task. The home screen has number 1."""
    return 10 + list(handset.apps).index(app)


def _stack(handset: Handset) -> str:
    """The tasks as Android 13 prints them. Only the foreground task is visible."""
    front = handset.front_app
    shown = [(_number(handset, front.name), front.component, True)] if front else []
    shown.append((1, HOME, front is None))
    behind = (app for app in handset.recents if front is None or app != front.name)
    shown += [(_number(handset, app), handset.apps[app].component, False) for app in behind]
    return "".join(
        f"RootTask id={number} bounds=[0,0][1080,2400] displayId=0 userId=0\n"
        f"  taskId={number}: {component} bounds=[0,0][1080,2400] userId=0 "
        f"visible={str(visible).lower()} topActivity=ComponentInfo{{{component}}}\n"
        for number, component, visible in shown
    )


def _pm(handset: Handset, args: list[str], data: bytes) -> str:
    if args[:1] != ["clear"] or len(args) != 2:
        raise ValueError("expected clear PACKAGE")
    app = handset.package(args[1])
    if app is None:
        raise AdbFailure(f"Failed: package {args[1]} is not installed")
    handset.clear(app)
    return "Success\n"


def _input(handset: Handset, args: list[str], data: bytes) -> str:
    match args:
        case ["tap", x, y]:
            touch.tap(handset, float(x), float(y))
        case ["swipe", x, y, to_x, to_y, *duration]:
            start, end = (float(x), float(y)), (float(to_x), float(to_y))
            touch.swipe(handset, start, end, int(duration[0]) if duration else 300)
        case ["text", _, *_]:
            touch.type_text(handset, " ".join(args[1:]).replace("%s", " "))
        case ["keyevent", _, *_]:
            for key in args[1:]:
                touch.press(handset, key)
        case ["keycombination", *keys]:
            touch.combine(handset, tuple(keys))
        case _:
            raise ValueError("expected one of tap, swipe, text, keyevent, keycombination")
    return ""


def console(handset: Handset, args: list[str]) -> str:
    """Run a command of the emulator's console, ``adb emu``."""
    if args[:2] == ["sms", "send"] and len(args) >= 4:
        handset.now += 1
        store(handset, args[2], " ".join(args[3:]), INBOX)
        return "OK\n"
    raise UnsupportedCommand(f"emu {' '.join(args)}", "expected sms send")


_STATES = {"enable": "on", "disable": "off"}
_PHONE = {"wifi_on": "wifi", "bluetooth_on": "bluetooth", "screen_brightness": "brightness"}
"""Android's settings that are also settings of the embedded phone."""


def _settings(handset: Handset, args: list[str], data: bytes) -> str:
    match args:
        case ["get", ("system" | "secure" | "global") as space, key]:
            pairs = handset.settings if key in _PHONE else handset.namespaces[space]
            value = pairs.get(_PHONE.get(key, key), "null")
            return {"on": "1", "off": "0"}.get(value, value) + "\n"
        case ["put", "system", "user_rotation", value] if value != "0":
            raise ValueError("the screen does not rotate")
        case ["put", "system", "screen_brightness", value]:
            handset.set("brightness", str(min(255, max(1, int(value)))))
        case ["put", "global", ("wifi_on" | "bluetooth_on") as key, value]:
            handset.set(_PHONE[key], "off" if value == "0" else "on")
        case ["put", ("system" | "secure" | "global") as space, key, value]:
            pairs = {**handset.namespaces[space], key: value}
            handset.namespaces = {**handset.namespaces, space: pairs}
        case _:
            raise ValueError("expected get or put, and then system, secure or global")
    return ""


def _svc(handset: Handset, args: list[str], data: bytes) -> str:
    if len(args) != 2 or args[0] not in ("wifi", "bluetooth") or args[1] not in _STATES:
        raise ValueError("expected wifi or bluetooth, and then enable or disable")
    handset.set(args[0], _STATES[args[1]])
    return ""


def _date(handset: Handset, args: list[str], data: bytes) -> str:
    """Print the time, or set it with ``MMDDhhmmYY.SS``."""
    if not args:
        return f"{handset.when():%a %b} {handset.when().day:2d} {handset.when():%H:%M:%S UTC %Y}\n"
    if args == ["+%s"]:
        return f"{handset.now}\n"
    if re.fullmatch(r"\d{10}\.\d{2}", " ".join(args)) is None:
        raise ValueError("expected a date in the form MMDDhhmmYY.SS")
    try:
        when = datetime.strptime(f"{args[0]}+0000", "%m%d%H%M%y.%S%z")
    except ValueError as error:
        raise AdbFailure(f"date: bad date '{args[0]}'") from error
    handset.now = int(when.timestamp())
    return f"{when:%a %b} {when.day:2d} {when:%H:%M:%S UTC %Y}\n"


def _service(handset: Handset, args: list[str], data: bytes) -> str:
    if args != ["call", "alarm", "3", "s16", "UTC"]:
        raise ValueError("expected 'call alarm 3 s16 UTC'")
    return "Result: Parcel(00000000    '....')\n"  # the clock is always in UTC


def _dumpsys(handset: Handset, args: list[str], data: bytes) -> str:
    if args == ["activity", "recents"]:
        return "".join(
            f"  * Recent #{place}: id={_number(handset, app)} {handset.apps[app].component}\n"
            for place, app in enumerate(handset.recents)
        )
    if args != ["input"]:
        raise ValueError("expected input or activity recents")
    wide, high = WIDTH * SCALE, HEIGHT * SCALE
    frame = f"[0, 0, {wide}, {high}]"
    return (
        "INPUT MANAGER (dumpsys input)\n"
        f"  Viewport INTERNAL: displayId=0, orientation=0, logicalFrame={frame}, "
        f"physicalFrame={frame}, deviceSize=[{wide}, {high}]\n"
        "      SurfaceOrientation: 0\n"
    )


def _sqlite3(handset: Handset, args: list[str], data: bytes) -> str:
    path, statements = args
    if (database := handset.database(path)) is None:
        raise AdbFailure(f'Error: unable to open database "{path}": no app has this database')
    return database.run(handset, statements)


def _content(handset: Handset, args: list[str], data: bytes) -> str:
    match args:
        case ["delete", "--uri", "content://media/external/downloads"]:
            for path in handset.files.children(f"{SHARED}/Download"):
                handset.files.remove(path)
            return ""
        case ["query", "--uri", uri]:
            return _query(handset, uri.rstrip("/"), [])
        case ["query", "--uri", uri, "--projection", columns]:
            return _query(handset, uri.rstrip("/"), columns.split(":"))
    raise ValueError("expected a query of sms or contacts, or a delete of downloads")


def _query(handset: Handset, uri: str, columns: list[str]) -> str:
    boxes = {"sms": (INBOX, SENT), "sms/inbox": (INBOX,), "sms/sent": (SENT,)}
    what = uri.removeprefix("content://")
    rows: list[Row]
    if what in boxes:
        rows = [row for row in newest(handset) if row["type"] in boxes[what]]
    elif what == "contacts/phones":
        rows = [
            {"_id": k, "display_name": row["name"], "number": row["phone"]}
            for k, row in PEOPLE.rows(handset, "people").items()
            if row["phone"]
        ]
    else:
        raise ValueError("expected content:// with sms, sms/inbox, sms/sent or contacts/phones")
    lines = []
    for number, row in enumerate(rows):
        pairs = [f"{key}={'NULL' if row[key] is None else row[key]}" for key in columns or row]
        lines.append(f"Row: {number} {', '.join(pairs)}\n")
    return "".join(lines) or "No result found.\n"


SYSTEM: Mapping[str, Program] = {
    "am": _am, "pm": _pm, "input": _input, "settings": _settings, "svc": _svc, "date": _date,
    "dumpsys": _dumpsys, "sqlite3": _sqlite3, "content": _content,
    "service": _service,
    "whoami": lambda handset, args, data: "root\n",
}  # fmt: skip
