"""The shell's ``am``, ``pm``, ``monkey`` and ``input``, and the console of the emulator."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.environments.androidworld.handset.adb.program import Program
from swarm_ui.environments.androidworld.handset.apps.messenger import store
from swarm_ui.environments.androidworld.handset.errors import (
    AdbFailure,
    UnsupportedArguments,
    UnsupportedCommand,
)
from swarm_ui.environments.androidworld.handset.handset import HOME, Handset, Intent
from swarm_ui.environments.androidworld.handset.screen import touch

_FIELDS = {"-a": "action", "-n": "component", "-d": "data", "-t": "mime"}
_EXTRAS = frozenset(("-e", "--es", "--ez", "--ei", "--el", "--ef", "--esa"))
_SWITCHES = frozenset(("-W", "-S", "-R", "--activity-clear-top", ""))
_OVERLAYS = ("com.example.ACTION_UPDATE_OVERLAY", "com.example.ACTION_UPDATE_SCOREBOARD")
"""Broadcasts to android_world's own app, which displays the goal."""
_SCANS = ("android.intent.action.MEDIA_SCANNER_SCAN_FILE",)


def _am(handset: Handset, args: list[str], data: bytes) -> str:
    command, rest = (args[0], args[1:]) if args else ("", [])
    if command == "start":
        return _start(handset, _intent(rest))
    if command == "broadcast":
        return _broadcast(handset, _intent(rest))
    if command == "force-stop" and len(rest) == 1:
        app = handset.package(rest[0])
        if app is not None:
            handset.close(app.name)
        return ""
    if rest[:1] == ["list"] and command in ("stack", "task"):
        return _stack(handset)
    if rest[:1] == ["remove"] and command == "stack" and len(rest) == 2:
        return _remove_task(handset, rest[1])
    raise UnsupportedArguments(
        "expected one of start, broadcast, force-stop, stack list, stack remove"
    )


def _intent(args: list[str]) -> Intent:
    given: dict[str, str] = {}
    extras: dict[str, str] = {}
    rest = list(args)
    while rest:
        option = rest.pop(0)
        if option in _SWITCHES:
            continue
        if option in _FIELDS and rest:
            given[_FIELDS[option]] = rest.pop(0)
        elif option in _EXTRAS and len(rest) >= 2:
            extras[rest[0]] = rest[1]
            del rest[:2]
        else:
            raise UnsupportedArguments(f"option {option!r} is not supported")
    return Intent(**given, extras=extras)


def _start(handset: Handset, intent: Intent) -> str:
    if intent.component:
        app = handset.package(intent.component.partition("/")[0])
        if app is None:
            raise AdbFailure(
                f"Starting: Intent {{ cmp={intent.component} }}\nError type 3\nError: Activity "
                f"class {{{intent.component}}} does not exist. "
                f"Installed: {', '.join(handset.installed)}."
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
    raise UnsupportedArguments(
        f"no app handles the intent {intent.action} {intent.data} {intent.mime}"
    )


def _broadcast(handset: Handset, intent: Intent) -> str:
    sent = f"Broadcasting: Intent {{ act={intent.action} }}\n"
    if intent.action in ("clipper.get", "clipper.set"):
        if handset.front_app is None or handset.front_app.name != "clipper":
            return f"{sent}Broadcast completed: result=0\n"  # as without it in front
        if intent.action == "clipper.set":
            handset.clipboard = intent.extras.get("text", "")
            return f'{sent}Broadcast completed: result=-1, data="Text is copied into clipboard."\n'
        return f'{sent}Broadcast completed: result=-1, data="{handset.clipboard}"\n'
    if intent.action in _OVERLAYS or intent.action in _SCANS:
        return f"{sent}Broadcast completed: result=0\n"
    raise UnsupportedArguments(
        f"the handset does not support the broadcast {intent.action}; it supports clipper.get, "
        "clipper.set, the updates of android_world's overlay, and media scans"
    )


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


def _remove_task(handset: Handset, number: str) -> str:
    for app in handset.apps:
        if str(_number(handset, app)) == number:
            handset.close(app)
    return ""


def recents(handset: Handset) -> str:
    """The output of ``dumpsys activity recents``: the tasks."""
    lines = ["ACTIVITY MANAGER RECENT TASKS (dumpsys activity recents)"]
    for place, app in enumerate(handset.recents):
        number = _number(handset, app)
        lines.append(f"  * Recent #{place}: Task{{#{number} type=standard}}")
        lines.append(f"    id={number} userId=0 component={handset.apps[app].component}")
    return "\n".join(lines) + "\n"


def _pm(handset: Handset, args: list[str], data: bytes) -> str:
    if args[:1] == ["clear"] and len(args) == 2:
        app = handset.package(args[1])
        if app is None:
            raise AdbFailure(f"Failed: package {args[1]} is not installed")
        handset.clear(app)
        return "Success\n"
    if args[:2] == ["list", "packages"]:
        names = sorted(
            name for app in handset.apps.values() for name in (app.package, *app.providers)
        )
        return "".join(f"package:{name}\n" for name in names)
    if args[:1] in (["grant"], ["revoke"]) and len(args) == 3:
        if handset.package(args[1]) is None:
            raise AdbFailure(f"Exception occurred while executing: Unknown package: {args[1]}")
        return ""  # the apps of the handset never ask for a permission
    raise UnsupportedArguments("expected one of clear, grant, revoke, list packages")


def _appops(handset: Handset, args: list[str], data: bytes) -> str:
    if len(args) == 4 and args[0] == "set" and handset.package(args[1]) is not None:
        return ""
    raise AdbFailure(f"Error: No UID for {' '.join(args[1:2])} in user 0")


def _monkey(handset: Handset, args: list[str], data: bytes) -> str:
    if len(args) < 3 or args[0] != "-p" or args[-1] != "1":
        raise UnsupportedArguments("expected monkey -p PACKAGE 1")
    app = handset.package(" ".join(args[1:-1]))
    if app is None:
        raise AdbFailure("** No activities found to run, monkey aborted.", code=252)
    handset.launch(app.name)
    return "Events injected: 1\n"


def _input(handset: Handset, args: list[str], data: bytes) -> str:
    given = args[1:] if args[:1] == ["touchscreen"] else args
    kind, rest = (given[0], given[1:]) if given else ("", [])
    try:
        if kind == "tap" and len(rest) == 2:
            touch.tap(handset, float(rest[0]), float(rest[1]))
        elif kind == "swipe" and len(rest) in (4, 5):
            x, y, to_x, to_y = (float(value) for value in rest[:4])
            touch.swipe(handset, (x, y), (to_x, to_y), int(rest[4]) if len(rest) == 5 else 300)
        elif kind == "text" and rest:
            touch.type_text(handset, " ".join(rest).replace("%s", " "))
        elif kind == "keyevent" and rest:
            for key in rest:
                touch.press(handset, key)
        elif kind == "keycombination":
            touch.combine(handset, tuple(rest))
        else:
            raise UnsupportedArguments("expected one of tap, swipe, text, keyevent, keycombination")
    except ValueError as error:
        raise AdbFailure(f"Error: {error}") from error
    return ""


def console(handset: Handset, args: list[str]) -> str:
    """Run a command of the emulator's console, ``adb emu``."""
    if args[:2] == ["sms", "send"] and len(args) >= 4:
        handset.now += 1
        store(handset, args[2], " ".join(args[3:]), "inbox")
        return "OK\n"
    if args[:2] == ["gsm", "call"] and len(args) == 3:
        handset.call = args[2]
        return "OK\n"
    if args[:2] == ["gsm", "cancel"] and len(args) == 3:
        handset.call = ""
        return "OK\n"
    raise UnsupportedCommand(
        f"emu {' '.join(args)}", "expected one of sms send, gsm call, gsm cancel"
    )


ACTIVITY: Mapping[str, Program] = {
    "am": _am, "pm": _pm, "appops": _appops, "monkey": _monkey, "input": _input,
}  # fmt: skip
