"""The shell's programs for settings, time, content providers, databases and the screen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from swarm_ui.environments.androidworld.handset.adb.activity_programs import recents
from swarm_ui.environments.androidworld.handset.adb.program import Program
from swarm_ui.environments.androidworld.handset.apps.messenger import SMS, newest
from swarm_ui.environments.androidworld.handset.errors import AdbFailure, UnsupportedArguments
from swarm_ui.environments.androidworld.handset.file_system import SHARED, canonical
from swarm_ui.environments.androidworld.handset.handset import Handset
from swarm_ui.environments.androidworld.handset.screen.accessibility_tree import to_xml, windows
from swarm_ui.environments.androidworld.handset.screen.geometry import HEIGHT, SCALE, WIDTH, lay_out

SCREEN_WIDTH, SCREEN_HEIGHT = WIDTH * SCALE, HEIGHT * SCALE
_SWITCHES = {("global", "wifi_on"): "wifi", ("global", "bluetooth_on"): "bluetooth"}
_BRIGHTNESS = ("system", "screen_brightness")
_ROTATION = ("system", "user_rotation")
_PROPERTIES = {
    "ro.build.version.sdk": "33", "ro.product.model": "swarm-ui handset (simulated)",
    "sys.boot_completed": "1",
}  # fmt: skip


def _settings(handset: Handset, args: list[str], data: bytes) -> str:
    known = "expected get, put, delete or list, and then system, secure or global"
    if len(args) < 2 or args[1] not in handset.namespaces:
        raise UnsupportedArguments(known)
    verb, space, *rest = args
    stored = handset.namespaces[space]
    pairs = {**stored, **_phone_settings(handset, space)}
    if verb == "list" and not rest:
        return "".join(f"{key}={value}\n" for key, value in sorted(pairs.items()))
    if verb == "get" and len(rest) == 1:
        return pairs.get(rest[0], "null") + "\n"
    if verb == "put" and len(rest) == 2:
        _put(handset, space, rest[0], rest[1])
        return ""
    if verb == "delete" and len(rest) == 1:
        left = {key: value for key, value in stored.items() if key != rest[0]}
        handset.namespaces = {**handset.namespaces, space: left}
        return f"Deleted {len(stored) - len(left)} rows\n"
    raise UnsupportedArguments(known)


def _phone_settings(handset: Handset, space: str) -> dict[str, str]:
    """The settings of an Android namespace that are also settings of the embedded phone."""
    found = {
        key: str(int(handset.settings.get(phone) == "on"))
        for (where, key), phone in _SWITCHES.items()
        if where == space
    }
    if space == _BRIGHTNESS[0]:
        found[_BRIGHTNESS[1]] = handset.settings.get("brightness", "128")
    return found


def _put(handset: Handset, space: str, key: str, value: str) -> None:
    phone = _SWITCHES.get((space, key))
    if (space, key) == _ROTATION and value != "0":
        raise UnsupportedArguments("the screen does not rotate")
    if phone is not None:
        handset.set(phone, "off" if value == "0" else "on")
    elif (space, key) == _BRIGHTNESS:
        if not value.isdecimal():
            raise UnsupportedArguments(f"expected a brightness from 1 to 255, got {value!r}")
        handset.set("brightness", str(min(255, max(1, int(value)))))
    else:
        pairs = {**handset.namespaces[space], key: value}
        handset.namespaces = {**handset.namespaces, space: pairs}


def _svc(handset: Handset, args: list[str], data: bytes) -> str:
    match args:
        case [("wifi" | "bluetooth") as radio, ("enable" | "disable") as state]:
            handset.set(radio, "on" if state == "enable" else "off")
            return ""
    raise UnsupportedArguments("expected wifi or bluetooth, and then enable or disable")


def _date(handset: Handset, args: list[str], data: bytes) -> str:
    """Print the time, or set it with ``MMDDhhmm[[CC]YY][.SS]``."""
    if not args:
        return f"{handset.when():%a %b} {handset.when().day:2d} {handset.when():%H:%M:%S UTC %Y}\n"
    if args[0].startswith("+"):
        if set(re.findall("%.", args[0])) - set(re.findall("%.", "%s%Y%m%d%H%M%S%j%a%b%T%F")):
            raise UnsupportedArguments(
                "expected only the fields %s %Y %m %d %H %M %S %j %a %b %T %F"
            )
        shown = args[0][1:].replace("%s", str(handset.now))
        return handset.when().strftime(shown) + "\n"
    parts = re.fullmatch(r"(\d{8})(\d{2}|\d{4})?(?:\.(\d{2}))?", args[0])
    if parts is None or len(args) > 1:
        raise UnsupportedArguments("expected a date in the form MMDDhhmm[[CC]YY][.SS]")
    year = ("20" + (parts[2] or f"{handset.when():%y}"))[-4:]
    try:
        when = datetime.strptime(f"{year}{parts[1]}{parts[3] or '00'}+0000", "%Y%m%d%H%M%S%z")
    except ValueError as error:
        raise AdbFailure(f"date: bad date '{args[0]}'") from error
    handset.now = int(when.timestamp())
    return f"{when:%a %b} {when.day:2d} {when:%H:%M:%S UTC %Y}\n"


def _service(handset: Handset, args: list[str], data: bytes) -> str:
    if args[:3] == ["call", "alarm", "3"] and args[3:] == ["s16", "UTC"]:
        return "Result: Parcel(00000000    '....')\n"  # the clock is always in UTC
    if args[:1] == ["check"] and len(args) == 2:
        return f"Service {args[1]}: found\n"
    raise UnsupportedArguments("expected 'call alarm 3 s16 UTC' or 'check NAME'")


def _wm(handset: Handset, args: list[str], data: bytes) -> str:
    if args == ["size"]:
        return f"Physical size: {SCREEN_WIDTH}x{SCREEN_HEIGHT}\n"
    if args == ["density"]:
        return "Physical density: 420\n"
    raise UnsupportedArguments("expected size or density, without a value")


def _getprop(handset: Handset, args: list[str], data: bytes) -> str:
    if len(args) != 1:
        raise UnsupportedArguments("expected one argument: getprop NAME")
    return _PROPERTIES.get(args[0], "") + "\n"


def _dumpsys(handset: Handset, args: list[str], data: bytes) -> str:
    frame = f"[0, 0, {SCREEN_WIDTH}, {SCREEN_HEIGHT}]"
    if args == ["input"]:
        return (
            "INPUT MANAGER (dumpsys input)\n"
            f"  Viewport INTERNAL: displayId=0, orientation=0, logicalFrame={frame}, "
            f"physicalFrame={frame}, deviceSize=[{SCREEN_WIDTH}, {SCREEN_HEIGHT}]\n"
            "      SurfaceOrientation: 0\n"
        )
    if args == ["window"]:
        head = "WINDOW MANAGER (dumpsys window)"
        return f"{head}\n  mCurrentRotation=ROTATION_0\n  init={SCREEN_WIDTH}x{SCREEN_HEIGHT}\n"
    if args == ["activity", "recents"]:
        return recents(handset)
    if args == ["telephony.registry"]:
        return f"last known state:\n  mCallState={1 if handset.call else 0}\n"
    known = "expected one of input, window, activity recents, telephony.registry"
    raise UnsupportedArguments(known)


def _uiautomator(handset: Handset, args: list[str], data: bytes) -> str:
    if args[:1] != ["dump"] or len(args) > 2:
        raise UnsupportedArguments("expected 'dump' or 'dump FILE'")
    path = args[1] if len(args) == 2 else f"{SHARED}/window_dump.xml"
    app, _ = windows(handset, lay_out(handset))
    handset.write(path, to_xml(app).encode())
    return f"UI hierchary dumped to: {path}\n"  # spelt as Android spells it


def _sqlite3(handset: Handset, args: list[str], data: bytes) -> str:
    if len(args) != 2:
        raise UnsupportedArguments("expected sqlite3 FILE STATEMENTS")
    database = handset.database(canonical(args[0]))
    if database is None:
        raise AdbFailure(f'Error: unable to open database "{args[0]}": no app has this database')
    return database.run(handset, args[1])


def _content(handset: Handset, args: list[str], data: bytes) -> str:
    options = dict(zip(args[1::2], args[2::2], strict=False))
    uri = options.pop("--uri", "").rstrip("/")
    columns = options.pop("--projection", "")
    if options or len(args) % 2 == 0:
        raise UnsupportedArguments("expected only the options --uri and --projection")
    if args[:1] == ["query"]:
        return _query(handset, uri, columns.split(":") if columns else [])
    if args[:1] == ["delete"] and uri == "content://media/external/downloads":
        for path in handset.files.children(f"{SHARED}/Download"):
            handset.delete(path)
        return ""
    if args[:1] == ["delete"] and uri == "content://call_log/calls":
        return ""
    raise UnsupportedArguments(
        "expected a query of sms or contacts, or a delete of calls or downloads"
    )


def _query(handset: Handset, uri: str, columns: list[str]) -> str:
    rows: list[Mapping[str, object]]
    if uri in ("content://sms", "content://sms/sent", "content://sms/inbox"):
        box = uri.removeprefix("content://sms").lstrip("/")
        found = [(k, row) for k, row in newest(handset) if not box or row.get("box") == box]
        rows = [SMS.row(k, row) for k, row in found]
    elif uri in ("content://contacts/phones", "content://com.android.contacts/data/phones"):
        rows = [
            {"_id": k, "display_name": row["name"], "number": row["phone"]}
            for k, row in handset.tables.get("contact", {}).items()
            if row["phone"]
        ]
    elif uri == "content://call_log/calls":
        rows = []
    else:
        known = (
            "expected one of content://sms, content://sms/sent, content://sms/inbox, "
            "content://contacts/phones, content://call_log/calls"
        )
        raise UnsupportedArguments(known)
    if not rows:
        return "No result found.\n"
    if set(columns) - set(rows[0]):
        none = f"no such column among {', '.join(columns)}"
        raise AdbFailure(f"Error while accessing provider: {none}")
    lines = []
    for number, row in enumerate(rows):
        pairs = [f"{key}={'NULL' if row[key] is None else row[key]}" for key in columns or row]
        lines.append(f"Row: {number} {', '.join(pairs)}\n")
    return "".join(lines)


SYSTEM: Mapping[str, Program] = {
    "settings": _settings, "svc": _svc, "date": _date, "service": _service, "wm": _wm,
    "getprop": _getprop, "dumpsys": _dumpsys, "uiautomator": _uiautomator, "sqlite3": _sqlite3,
    "content": _content, "whoami": lambda handset, args, data: "root\n",
    "true": lambda handset, args, data: "",
}  # fmt: skip
