"""The words for the names and texts of invented apps.

None of them is a name, a field or a button of a test app; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


def words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


def phrases(text: str) -> tuple[str, ...]:
    """The parts of a text between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


RECORDS = words("""
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

BRANDS = words("""
beacon zephyr nimbus cobalt juniper quartz ember willow raven orbit summit aurora cascade drift
sable onyx prism vertex pivot lumen haven anvil sprout thistle acorn otter heron lynx badger
marlin pelican cricket firefly tundra savanna lagoon reef fjord mesa prairie bramble clover
fern hazel ivy saffron indigo crimson amber jade pearl opal topaz garnet flint ash slate
""")
"""Names of apps that do not describe the app."""

PURPOSES = words("log book desk keeper hub planner manager board diary register office corner kit")
"""Second words of names that describe the app, such as ``voucher log``."""

SYLLABLES = words("""
ba be bo da de do fa fi ga go ka ki ko la li lo ma mi mo na ne no pa pe po ra ri ro sa si so ta ti
to va vi vo za ze zo bri cla dro fle gru kra pli pro sta stu tra vel zan mer dor lin quo xa ju wex
""")
"""Syllables of which made-up words consist."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "phrase": words("remark summary subject topic headline memo motto reason outcome verdict"),
    "thing": words("material contents emblem gift prize cargo topping lining handle ornament"),
    "chore": words("duty assignment mission agenda objective"),
    "person": words("owner keeper supervisor sender guest teacher doctor driver coach client"),
    "time": words("start opening closing departure arrival pickup deadline curfew"),
    "amount": words("price cost fee deposit refund balance wage tip toll bonus"),
    "count": words("quantity seats level stock copies laps score rank crates width depth"),
    "phone": words("hotline telephone fax mobile helpline"),
    "email": words("mailbox inbox correspondence login"),
    "street": words("depot branch residence site warehouse studio"),
    "code": words("serial reference barcode license plate key docket"),
    "date": words("expiry birthday renewal anniversary issued founded"),
    "share": words("humidity discount progress interest tax charge"),
    "mass": words("weight load ballast freight payload"),
}
"""Kind of value -> names of fields with such values."""
VALUE_OF: Mapping[str, str] = {name: kind for kind, names in FIELDS.items() for name in names}
"""Name of a field -> kind of its values."""

TITLES: Mapping[str, tuple[str, ...]] = {
    "phrase": words("title name label heading"),
    "title": words("title name label subject"),
    "chore": words("title job activity what"),
    "person": words("name holder who person"),
    "thing": words("name item label thing"),
    "code": words("code number id tag"),
    "word": words("name nickname label"),
    "street": words("site office house"),
}
"""Kind of value -> names of the field that lists show."""

CHOICES: Mapping[str, tuple[str, ...]] = {
    "priority": words("low normal high"),
    "urgency": words("routine soon critical"),
    "colour": words("red green blue yellow"),
    "shade": words("pale dark bright"),
    "volume class": words("tiny compact bulky"),
    "season": words("spring summer autumn winter"),
    "status": words("pending approved rejected"),
    "stage": words("draft review published"),
    "condition": words("mint used broken"),
    "access": words("private shared public"),
    "grade": words("bronze silver gold"),
    "shift": words("morning noon night"),
    "weather": words("sunny rainy foggy windy"),
    "fuel": words("petrol diesel electric"),
    "payment": words("cash card cheque"),
    "climate": words("tropical arid polar"),
    "side": words("left middle right"),
    "wing": words("north south east west"),
    "age group": words("child teen adult senior"),
    "skill": words("novice skilled expert"),
    "mood": words("happy calm angry"),
    "texture": words("smooth rough soft"),
    "metal": words("iron copper brass"),
    "contract type": words("hourly monthly permanent"),
}
"""Closed choices of records, with their options."""

RECORD_SWITCHES = words("""
urgent paid archived locked hidden verified insured rented sold reserved packed fragile sealed
signed renewed watered tracked certified confidential overdue
""")
DONE_SWITCHES = words("finished checked ready settled cleared handled")
"""Names of the switches that the check boxes of a checklist set."""

SETTING_SWITCHES = phrases("""
autosave, reminders, haptics, cloud backup, animations, large buttons, high contrast,
parental lock, live updates, dark theme, weekly digest, guest access, fingerprint unlock, auto lock,
data saver, spell check, background sync, read receipts, typing hints, safe browsing, split view,
screen saver, swipe gestures, tilt control, daily summary, crash reports, beta features, tooltips,
quick add, badges, auto refresh, compact rows, swipe to delete, double check, travel mode,
power saving, passcode, invisible mode, kids mode, left hand mode, face unlock, history log,
auto archive, drag and drop, colour labels, smart sorting, location tags, holiday mode, hints
""")
SETTING_CHOICES: Mapping[str, tuple[str, ...]] = {
    "theme": words("light dark sepia"),
    "units": words("metric imperial"),
    "currency": words("euro dollar yen"),
    "first weekday": words("sunday monday saturday"),
    "font": words("serif sans handwriting"),
    "sort order": words("newest oldest alphabetical"),
    "refresh interval": words("hourly daily weekly"),
    "arrangement": words("grid rows cards"),
    "clock format": words("digital analog"),
    "keyboard layout": words("qwerty azerty dvorak"),
    "backup interval": words("never daily monthly"),
    "icon size": words("small big huge"),
    "accent colour": words("teal violet orange"),
    "start page": words("overview inbox calendar"),
    "vibration strength": words("weak firm strong"),
    "lock delay": words("instant short long"),
    "decimal sign": words("point comma"),
    "paper format": words("letter legal tabloid"),
    "temperature": words("celsius fahrenheit kelvin"),
}
"""Choices of an app, with their options."""

SECTIONS = words("""
general account security appearance data advanced accessibility sync backup team profile storage
family work household club school clinic garage cellar attic yard annex upstairs downstairs
""")
"""Names of menus and categories."""
OPTIONS = phrases("options, preferences, setup, configuration, controls, customize, tweaks")
"""Tabs and buttons that lead to the settings of an app."""

ADD = words("add new create insert register enter append log file")
SAVE = phrases("save, done, confirm, submit, ok, apply, store, accept, continue, all set")
EDIT = phrases("edit, modify, update, revise, adjust, amend, correct, rework")
DELETE = phrases("delete, remove, drop, throw away, bin, clear, destroy, scrap")
CANCEL = phrases("cancel, back, close, dismiss, never mind, abort, leave")
SEARCH = phrases("go, find, look up, show results, lookup")
"""Labels of the button that starts a search; the constants above hold those of the other
buttons."""
MONTHS = words("january february march april june july august september october november december")


class WordLists(msgspec.Struct, frozen=True, kw_only=True):
    """The words of which invented apps are made. The constants of this module describe the
    fields."""

    records: tuple[str, ...]
    brands: tuple[str, ...]
    purposes: tuple[str, ...]
    syllables: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    titles: Mapping[str, tuple[str, ...]]
    choices: Mapping[str, tuple[str, ...]]
    record_switches: tuple[str, ...]
    done_switches: tuple[str, ...]
    setting_switches: tuple[str, ...]
    setting_choices: Mapping[str, tuple[str, ...]]
    sections: tuple[str, ...]
    options: tuple[str, ...]
    add: tuple[str, ...]
    save: tuple[str, ...]
    edit: tuple[str, ...]
    delete: tuple[str, ...]
    cancel: tuple[str, ...]
    search: tuple[str, ...]


WORDS = WordLists(
    records=RECORDS,
    brands=BRANDS,
    purposes=PURPOSES,
    syllables=SYLLABLES,
    fields=FIELDS,
    titles=TITLES,
    choices=CHOICES,
    record_switches=RECORD_SWITCHES,
    done_switches=DONE_SWITCHES,
    setting_switches=SETTING_SWITCHES,
    setting_choices=SETTING_CHOICES,
    sections=SECTIONS,
    options=OPTIONS,
    add=ADD,
    save=SAVE,
    edit=EDIT,
    delete=DELETE,
    cancel=CANCEL,
    search=SEARCH,
)
"""The words of all devices except those of the blind set."""
