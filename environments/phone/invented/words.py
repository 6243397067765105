"""The words for the names and texts of invented apps.

None of them is a name, a field or a button of a test app; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


RECORDS = _words("""
voucher parcel booking rental loan invoice receipt ticket permit certificate coupon badge
student patient tenant visitor volunteer member employee supplier customer vendor rider
plant seedling orchard greenhouse aquarium beehive horse dog parrot lizard
vehicle truck scooter boat kayak drone trailer engine tyre
drawer locker crate pallet barrel container sample specimen fossil mineral coin stamp
lesson exam seminar workshop lecture course homework
repair inspection survey audit incident complaint request proposal contract lease
subscription membership donation pledge bill payment refund
workout exercise training race tournament
dose prescription vaccine checkup symptom
flight voyage cruise hotel cabin campsite suitcase
project milestone sprint bug feature prototype experiment measurement sensor
poem novel chapter quote proverb sculpture costume
garment sweater shoe fabric pattern button bracelet
room meter boiler lamp socket window carpet
errand chore habit goal idea promise reminder
shipment order return asset tool machine spare
observation constellation comet rocket satellite telescope
sighting footprint trap nest burrow
passage tram shuttle
recruit interview applicant candidate shift roster
debt budget fund bond share coffer ledger
""")
"""Names of records; the plural of each ends in an added s."""

BRANDS = _words("""
beacon zephyr nimbus cobalt juniper quartz ember willow raven orbit summit aurora cascade drift
sable onyx prism vertex pivot lumen haven anvil sprout thistle acorn otter heron lynx badger
marlin pelican cricket firefly tundra savanna lagoon reef fjord mesa prairie bramble clover
fern hazel ivy saffron indigo crimson amber jade pearl opal topaz garnet flint ash slate
""")
"""Names of apps that do not describe the app."""

PURPOSES = _words("log book desk keeper hub planner manager board diary register office corner kit")
"""Second words of names that describe the app, such as ``voucher log``."""

SYLLABLES = _words("""
ba be bo da de do fa fi ga go ka ki ko la li lo ma mi mo na ne no pa pe po ra ri ro sa si so ta ti
to va vi vo za ze zo bri cla dro fle gru kra pli pro sta stu tra vel zan mer dor lin quo xa ju wex
""")
"""Made-up words consist of these."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "phrase": _words("remark summary subject topic headline memo motto reason outcome verdict"),
    "thing": _words("material contents emblem gift prize cargo topping lining handle ornament"),
    "chore": _words("duty assignment mission agenda objective"),
    "person": _words("owner keeper supervisor sender guest teacher doctor driver coach client"),
    "time": _words("start opening closing departure arrival pickup deadline curfew"),
    "amount": _words("price cost fee deposit refund balance wage tip toll bonus"),
    "count": _words("quantity seats level stock copies laps score rank crates width depth"),
    "phone": _words("hotline telephone fax mobile helpline"),
    "email": _words("mailbox inbox correspondence login"),
    "street": _words("depot branch residence site warehouse studio"),
    "code": _words("serial reference barcode license plate key docket"),
    "date": _words("expiry birthday renewal anniversary issued founded"),
    "share": _words("humidity discount progress interest tax charge"),
    "mass": _words("weight load ballast freight payload"),
}
"""Kind of value -> names of fields with such values."""
VALUE_OF: Mapping[str, str] = {name: kind for kind, names in FIELDS.items() for name in names}
"""Name of a field -> kind of its values."""

TITLES: Mapping[str, tuple[str, ...]] = {
    "phrase": _words("title name label heading"),
    "title": _words("title name label subject"),
    "chore": _words("title job activity what"),
    "person": _words("name holder who person"),
    "thing": _words("name item label thing"),
    "code": _words("code number id tag"),
    "word": _words("name nickname label"),
    "street": _words("site office house"),
}
"""Kind of value -> names of the field that lists show."""

CHOICES: Mapping[str, tuple[str, ...]] = {
    "priority": _words("low normal high"),
    "urgency": _words("routine soon critical"),
    "colour": _words("red green blue yellow"),
    "shade": _words("pale dark bright"),
    "volume class": _words("tiny compact bulky"),
    "season": _words("spring summer autumn winter"),
    "status": _words("pending approved rejected"),
    "stage": _words("draft review published"),
    "condition": _words("mint used broken"),
    "access": _words("private shared public"),
    "grade": _words("bronze silver gold"),
    "shift": _words("morning noon night"),
    "weather": _words("sunny rainy foggy windy"),
    "fuel": _words("petrol diesel electric"),
    "payment": _words("cash card cheque"),
    "climate": _words("tropical arid polar"),
    "side": _words("left middle right"),
    "wing": _words("north south east west"),
    "age group": _words("child teen adult senior"),
    "skill": _words("novice skilled expert"),
    "mood": _words("happy calm angry"),
    "texture": _words("smooth rough soft"),
    "metal": _words("iron copper brass"),
    "contract type": _words("hourly monthly permanent"),
}
"""Closed choices of records, with their options."""

RECORD_SWITCHES = _words("""
urgent paid archived locked hidden verified insured rented sold reserved packed fragile sealed
signed renewed watered tracked certified confidential overdue
""")
DONE_SWITCHES = _words("finished checked ready settled cleared handled")
"""Names of the switches that the check boxes of a checklist set."""

SETTING_SWITCHES = _phrases("""
autosave, reminders, haptics, cloud backup, animations, large buttons, high contrast,
parental lock, live updates, dark theme, weekly digest, guest access, fingerprint unlock, auto lock,
data saver, spell check, background sync, read receipts, typing hints, safe browsing, split view,
screen saver, swipe gestures, tilt control, daily summary, crash reports, beta features, tooltips,
quick add, badges, auto refresh, compact rows, swipe to delete, double check, travel mode,
power saving, passcode, invisible mode, kids mode, left hand mode, face unlock, history log,
auto archive, drag and drop, colour labels, smart sorting, location tags, holiday mode, hints
""")
SETTING_CHOICES: Mapping[str, tuple[str, ...]] = {
    "theme": _words("light dark sepia"),
    "units": _words("metric imperial"),
    "currency": _words("euro dollar yen"),
    "first weekday": _words("sunday monday saturday"),
    "font": _words("serif sans handwriting"),
    "sort order": _words("newest oldest alphabetical"),
    "refresh interval": _words("hourly daily weekly"),
    "arrangement": _words("grid rows cards"),
    "clock format": _words("digital analog"),
    "keyboard layout": _words("qwerty azerty dvorak"),
    "backup interval": _words("never daily monthly"),
    "icon size": _words("small big huge"),
    "accent colour": _words("teal violet orange"),
    "start page": _words("overview inbox calendar"),
    "vibration strength": _words("weak firm strong"),
    "lock delay": _words("instant short long"),
    "decimal sign": _words("point comma"),
    "paper format": _words("letter legal tabloid"),
    "temperature": _words("celsius fahrenheit kelvin"),
}
"""Choices of an app, with their options."""

SECTIONS = _words("""
general account security appearance data advanced accessibility sync backup team profile storage
family work household club school clinic garage cellar attic yard annex upstairs downstairs
""")
"""Names of menus and categories."""
OPTIONS = _phrases("options, preferences, setup, configuration, controls, customize, tweaks")
"""Tabs and buttons that lead to the settings of an app."""

ADD = _words("add new create insert register enter append log file")
SAVE = _phrases("save, done, confirm, submit, ok, apply, store, accept, continue, all set")
EDIT = _phrases("edit, modify, update, revise, adjust, amend, correct, rework")
DELETE = _phrases("delete, remove, drop, throw away, bin, clear, destroy, scrap")
CANCEL = _phrases("cancel, back, close, dismiss, never mind, abort, leave")
SEARCH = _phrases("go, find, look up, show results, lookup")
"""Buttons, with the synonyms of each."""
MONTHS = _words("january february march april june july august september october november december")
