"""How android_world's tasks are done on a handset, one script for each kind of goal."""

from __future__ import annotations

import re

from androidworld_answers import ANSWERS
from androidworld_media import MEDIA
from androidworld_player import Player, Script, Scripts
from androidworld_records import BAR, RECORDS, rows

Match = re.Match[str]


def toggle(me: Player, label: str, on: bool) -> Script:
    """A switch of the phone's network settings."""
    if not me.has(label):
        yield from me.tap("network")
    if me.screen[me.screen.index(me.find(label)) + 1].checked != on:
        yield from me.tap(label)


def wifi(me: Player, found: Match) -> Script:
    yield from me.open("settings")
    yield from toggle(me, found[1], found[2] == "on")


def wifi_and_bluetooth(me: Player, found: Match) -> Script:
    yield from me.open("settings")
    yield from toggle(me, "wifi", False)
    yield from toggle(me, "bluetooth", True)


def wifi_and_app(me: Player, found: Match) -> Script:
    yield from me.open("settings")
    yield from toggle(me, "wifi", True)
    yield from me.open(found[1])


def brightness(me: Player, found: Match) -> Script:
    yield from me.open("settings")
    yield from me.tap("display")
    yield from me.tap("brightness level")
    yield from me.tap("100%" if found[1] == "max" else "0%")


def open_app(me: Player, found: Match) -> Script:
    yield from me.open(found[1])


def copy_text(me: Player, found: Match) -> Script:
    """Type the text where it can be selected."""
    yield from me.open("simple sms messenger")
    yield from me.tap("New conversation")
    yield from me.write("Add Contact or Number…", found[1])
    field = me.field("Add Contact or Number…")
    yield {"action_type": "long_press", "index": field.index}
    yield from me.tap("Copy")


def add_contact(me: Player, found: Match) -> Script:
    first, _, last = found[1].partition(" ")
    yield from me.open("contacts")
    yield from me.tap("Create contact")
    yield from me.write("First name", first)
    yield from me.write("Last name", last)
    yield from me.write("Phone", found[2])
    yield from me.tap("Save")


def draft_contact(me: Player, found: Match) -> Script:
    yield from me.open("contacts")
    yield from me.tap("Create contact")
    for hint, text in zip(("First name", "Last name", "Phone"), found.groups(), strict=False):
        yield from me.write(hint, text)
    yield from me.tap("Mobile Phone")
    yield from me.tap(found[4])


def stopwatch(me: Player, found: Match) -> Script:
    yield from me.open("clock")
    yield from me.tap("Stopwatch")
    if found[1] == "Run":
        yield from me.tap("Start")


def timer(me: Player, found: Match) -> Script:
    yield from me.open("clock")
    yield from me.tap("Timer")
    hours, minutes, seconds = (int(part) for part in found.groups())
    for digit in f"{hours:02d}{minutes:02d}{seconds:02d}".lstrip("0"):
        yield from me.tap(digit)


def message(me: Player, number: str, text: str) -> Script:
    yield from me.open("simple sms messenger")
    yield from me.tap("New conversation")
    yield from me.write("Add Contact or Number…", number)
    yield from me.tap(f"Send to {number}")
    yield from me.write("Type a message…", text)
    yield from me.tap("SMS")


def send(me: Player, found: Match) -> Script:
    yield from message(me, found[1], found[2])


def reply_recent(me: Player, found: Match) -> Script:
    yield from me.open("simple sms messenger")
    yield {"action_type": "click", "index": rows(me, BAR)[0][0].index}
    yield from me.write("Type a message…", found[1])
    yield from me.tap("SMS")


def reply(me: Player, found: Match) -> Script:
    yield from me.open("simple sms messenger")
    yield from me.tap(found[1])
    yield from me.write("Type a message…", found[2])
    yield from me.tap("SMS")


def paste(me: Player, hint: str) -> Script:
    yield {"action_type": "long_press", "index": me.field(hint).index}
    yield from me.tap("Paste")


def send_clipboard(me: Player, found: Match) -> Script:
    yield from me.open("simple sms messenger")
    yield from me.tap("New conversation")
    yield from me.write("Add Contact or Number…", found[1])
    yield from me.tap(f"Send to {found[1]}")
    yield from paste(me, "Type a message…")
    yield from me.tap("SMS")


def send_address(me: Player, found: Match) -> Script:
    yield from me.open("simple sms messenger")
    address = me.beside(found[2])
    yield from me.tap("New conversation")
    yield from me.tap(found[1])
    yield from me.write("Type a message…", address)
    yield from me.tap("SMS")


def resend(me: Player, found: Match) -> Script:
    yield from me.open("simple sms messenger")
    yield from me.tap(found[1])
    at = me.screen.index(me.find("You"))
    said = me.screen[at - 1].text
    yield from me.write("Type a message…", said)
    yield from me.tap("SMS")


def create_note(me: Player, name: str, text: str) -> Script:
    yield from me.open("markor")
    yield from new_note(me, name)
    yield from me.write("Text", text)
    yield from me.tap("Save")


def new_note(me: Player, name: str) -> Script:
    yield from me.tap("Create a new file or folder")
    yield from me.write("Name", name)
    if not name.endswith((".md", ".txt")):
        yield from me.tap("No extension")
    yield from me.tap("OK")


def note(me: Player, found: Match) -> Script:
    yield from create_note(me, found[1], found[2])


def note_and_sms(me: Player, found: Match) -> Script:
    yield from create_note(me, found[1], found[2])
    yield from message(me, found[3], found[2])


def note_from_clipboard(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    yield from new_note(me, found[1])
    yield from paste(me, "Text")
    yield from me.tap("Save")


def folder(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    yield from me.tap("Create a new file or folder")
    yield from me.write("Name", found[1])
    yield from me.tap("Folder")


def drop_file(me: Player, name: str) -> Script:
    yield from me.reach(name)
    yield from me.long_press(name)
    yield from me.tap("Delete")
    yield from me.tap("OK")


def delete_note(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    yield from drop_file(me, found[1])


def delete_newest(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    stamps = [one for one in me.screen if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", one.text)]
    newest = max(stamps, key=lambda one: one.text)
    yield from drop_file(me, me.screen[me.screen.index(newest) - 1].text)


def delete_all(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    files = [one.text for one in me.screen if one.text.endswith((".md", ".txt"))]
    yield from me.long_press(files[0])
    yield from me.tap("Select all")
    yield from me.tap("Delete")
    yield from me.tap("OK")


def move_note(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    yield from move(me, found[1], found[2], found[3])


def move_file(me: Player, found: Match) -> Script:
    yield from me.open("files")
    yield from me.tap("sdk_gphone_x86_64")
    yield from move(me, found[1], found[2], found[3])


def move(me: Player, name: str, source: str, target: str) -> Script:
    yield from me.tap(source)
    yield from me.reach(name)
    yield from me.long_press(name)
    yield from me.tap("Move")
    yield from me.reach(target)
    yield from me.tap(target)
    yield from me.tap("Move here")


def delete_file(me: Player, found: Match) -> Script:
    yield from me.open("files")
    yield from me.tap("sdk_gphone_x86_64")
    yield from me.tap(found[2])
    yield from drop_file(me, found[1])


def copy_receipt(me: Player, found: Match) -> Script:
    yield from me.open("simple gallery pro")
    yield from me.tap("DCIM")
    yield from me.long_press(found[1])
    yield from me.tap("Copy")
    yield from me.reach("Download")
    yield from me.tap("Download")
    yield from me.tap("Copy here")


def edit_note(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    yield from me.reach(found[1])
    yield from me.tap(found[1])
    before = me.field("Text").text.rstrip("\n")
    kind, text = found[2], found[3]
    new = {"top": f"{text}\n{before}", "bottom": f"{before}\n{text}"}.get(kind, text)
    yield from me.write("Text", new, clear=True)
    yield from me.tap("Save")


def replace_note(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    yield from me.reach(found[1])
    yield from me.tap(found[1])
    yield from me.write("Text", found[2], clear=True)
    yield from me.back()
    yield from rename(me, found[1], found[3])


def rename(me: Player, old: str, new: str) -> Script:
    yield from me.reach(old)
    yield from me.long_press(old)
    yield from me.tap("Rename")
    yield from me.write("Name", new, clear=True)
    yield from me.tap("OK")


def head_note(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    yield from me.reach(found[1])
    yield from me.tap(found[1])
    before = me.field("Text").text.rstrip("\n")
    yield from me.write("Text", f"{found[2]}\n\n{before}", clear=True)
    yield from me.back()
    yield from rename(me, found[1], found[3])


def merge(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    parts: list[str] = []
    for name in found.groups()[:3]:
        yield from me.reach(name)
        yield from me.tap(name)
        parts.append(me.field("Text").text.rstrip("\n"))
        yield from me.back()
    yield from new_note(me, found[4])
    yield from me.write("Text", "\n\n".join(parts))
    yield from me.tap("Save")


def photo(me: Player, found: Match) -> Script:
    yield from me.open("camera")
    if found[1] == "video":
        yield from me.tap("Video")
        yield from me.tap("Shutter")
        yield from me.tap("Stop")
    else:
        yield from me.tap("Shutter")


def record(me: Player, found: Match) -> Script:
    yield from me.open("audio recorder")
    yield from me.tap("Start recording")
    yield from me.tap("Stop recording")
    if found.lastindex:
        yield from me.write("Record name", found[1], clear=True)
    yield from me.tap("Save")


def drawing(me: Player, found: Match) -> Script:
    yield from me.open("simple draw pro")
    yield from me.tap("Save")
    name, _, suffix = found[1].rpartition(".")
    yield from me.write("Filename", name)
    yield from me.tap("Pictures")
    yield from me.tap(suffix)
    yield from me.tap("OK")


SCRIPTS: Scripts = [
    (r"Turn (wifi|bluetooth) (on|off)\.", wifi),
    (r"Turn off WiFi, then enable bluetooth", wifi_and_bluetooth),
    (r"Turn on Wifi, then open the (.+) app", wifi_and_app),
    (r"Turn brightness to the (max|min) value\.", brightness),
    (r"Open the (.+?) app\..*", open_app),
    (r"Copy the following text to the clipboard: (.+)", copy_text),
    (r"Create a new contact for (.+)\. Their number is (.+)\.", add_contact),
    (
        r"Go to the new contact screen.* First Name: (.+), Last Name: (.+), Phone: (.+), "
        r"Phone Label: (.+)\. Do NOT hit save\.",
        draft_contact,
    ),
    (r"(Run|Pause) the stopwatch\.", stopwatch),
    (r"Create a timer with (\d+) hours, (\d+) minutes, and (\d+) seconds.*", timer),
    (r"Send a text message using Simple SMS Messenger to (\S+) with message: (.+)", send),
    (r"Reply to the most recent text message .* message: (.+)", reply_recent),
    (r"Reply to (\S+) with message: (.+) in Simple SMS Messenger", reply),
    (r"Send a message to (\S+) with the clipboard content in .*", send_clipboard),
    (r"Text the address of the event to (.+) that (.+) just sent me in .*", send_address),
    (r"Resend the message I just sent to (.+) in Simple SMS Messenger", resend),
    (
        r"Create a new note in Markor named (.+?) with the following text: (.+)\. Share the entire "
        r"content of the note with the phone number (\S+) via SMS .*",
        note_and_sms,
    ),
    (r"Create a new note in Markor named (.+?) with the following text: (.+)", note),
    (r"Create a note in Markor named (.+)\. Perform a paste .*", note_from_clipboard),
    (r"Create a new folder in Markor named (.+)\.", folder),
    (r"Delete the note in Markor named (.+)\.", delete_note),
    (r"Delete the newest note in Markor\.", delete_newest),
    (r"Delete all my notes in Markor\.", delete_all),
    (r"In Markor, move the note (.+) from (.+) to (.+)\.", move_note),
    (r"Edit (.+) in Markor\. Add to the (top|bottom) of the note (.+)", edit_note),
    (r"Edit (.+) in Markor\. (Replace) the text with (.+)", edit_note),
    (r'Update the content of (.+) to "(.+)" in Markor and change its name to (.+)\.', replace_note),
    (r'Update the Markor note (.+) by adding .*: "(.+)", and rename it to (.+)\.', head_note),
    (
        r"Merge the contents of Markor notes (.+), (.+) and (.+) \(in .* named (.+) and save.*",
        merge,
    ),
    (r"Move the file (.+) from (.+) within the .* to the (.+) within .*", move_file),
    (
        r"Delete the file (.+) from the Android filesystem located in the (.+) folder .*",
        delete_file,
    ),
    (r"In Simple Gallery Pro, copy (.+) in DCIM and save a copy .*", copy_receipt),
    (r"Take one (photo|video)\.", photo),
    (r"Record an audio clip using Audio Recorder app and save it\.", record),
    (r'Record an audio clip and save it with name "(.+)" using .*', record),
    (r"Create a new drawing in Simple Draw Pro\. Name it (.+)\. Save it .*", drawing),
    *RECORDS,
    *ANSWERS,
    *MEDIA,
]
