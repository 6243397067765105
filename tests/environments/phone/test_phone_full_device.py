"""The full device under a user's hands: what the core device does not have."""

from __future__ import annotations

import io
import itertools

import msgspec
import pytest
from PIL import Image

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.assignment import assign
from swarm_ui.environments.phone.tasks import CORE, EXTENDED
from swarm_ui.environments.phone.ui.geometry import (
    HEIGHT,
    KEY_ROW,
    KEY_TOP,
    KEY_WIDTH,
    LETTERS,
    WIDTH,
)
from swarm_ui.observation import Element

COMPLETE = Action(action_type="status", goal_status="complete")
BACK = Action(action_type="navigate_back")
HOME = Action(action_type="navigate_home")
ENTER = Action(action_type="keyboard_enter")
SHADE = Action(action_type="swipe", direction="down")


class Hand:
    """Acts by label, as a person would."""

    def __init__(self, task: str, seed: int = 1) -> None:
        self.phone = PhoneEnvironment()
        self.screen = self.phone.begin(task, seed)
        self.start = assign(task, seed).start

    def labels(self) -> list[str]:
        return [element.label for element in self.screen.elements]

    def find(self, label: str) -> Element:
        return next(e for e in self.screen.elements if e.label == label and e.clickable)

    def do(self, action: Action) -> Step:
        step = self.phone.act(action)
        self.screen = step.observation
        return step

    def click(self, *labels: str) -> Step:
        for label in labels:
            step = self.do(Action(action_type="click", index=self.find(label).index))
        return step

    def open(self, app: str) -> Step:
        return self.do(Action(action_type="open_app", app_name=app))

    def type(self, label: str, text: str) -> Step:
        return self.do(Action(action_type="input_text", index=self.find(label).index, text=text))

    def press(self, letter: str) -> Step:
        """Tap a key of the keyboard where it is drawn."""
        row = next(k for k, letters in enumerate(LETTERS) if letter in letters)
        x = LETTERS[row].index(letter) * KEY_WIDTH + 20
        return self.do(Action(action_type="click", x=x, y=KEY_TOP + row * KEY_ROW + 20))

    def end(self) -> float:
        return self.do(COMPLETE).reward


def test_a_photo_shows_in_the_gallery_and_in_files_and_goes_from_both() -> None:
    hand = Hand("camera-to-gallery")
    hand.open("camera")
    hand.click("while using the app", "take photo")
    hand.open("gallery")
    photo = next(label for label in hand.labels() if label.startswith("img_"))
    hand.open("files")
    hand.click("pictures")
    assert photo in hand.labels()
    hand.click(photo, "move to trash", "move to trash")
    assert photo not in hand.labels()
    hand.open("gallery")
    assert photo not in hand.labels()
    hand.open("files")
    hand.click("trash", photo, "restore")
    hand.open("gallery")
    assert photo in hand.labels()


def test_a_download_shows_in_files_and_its_notification_opens_it() -> None:
    hand = Hand("browser-download")
    address = hand.screen.goal.split("page ")[-1].split("go to ")[-1].split(" ")[0]
    hand.open("browser")
    hand.type("address", address)
    hand.do(ENTER)
    button = next(label for label in hand.labels() if label.startswith("download "))
    hand.click(button)
    name = button.removeprefix("download ")
    hand.do(SHADE)
    hand.click("files download finished")
    assert hand.screen.app == "files detail"
    assert name in {e.value for e in hand.screen.elements}
    hand.do(SHADE)
    assert "files download finished" not in hand.labels()
    hand.open("files")
    hand.click("downloads")
    assert name in hand.labels()
    assert hand.end() == 1.0


def test_a_recording_shows_in_files() -> None:
    hand = Hand("recorder-record")
    name = hand.screen.goal.split(" as ")[-1].split("with name ")[-1]
    hand.open("recorder")
    hand.click("record", "only this time")
    assert "not saved" in hand.click("stop and save").note
    hand.type("name", name)
    hand.click("stop and save")
    hand.open("files")
    hand.click("recordings")
    assert name in hand.labels()
    assert hand.end() == 1.0


def test_apps_that_are_no_favorites_are_in_the_drawer() -> None:
    hand = Hand("drawer-open")
    system = hand.start.system
    assert system is not None
    favorites, home = set(system.favorites), set(hand.labels())
    hidden = next(name for name in hand.start.installed if name not in favorites)
    assert hidden not in home
    assert favorites <= home
    hand.do(Action(action_type="swipe", direction="up"))
    assert hand.screen.app == "all apps"
    shown = set(hand.labels())
    hand.do(Action(action_type="scroll", direction="down"))
    assert set(hand.start.installed) <= shown | set(hand.labels())


def test_a_permission_is_asked_for_once_and_can_be_given_after_it_was_denied() -> None:
    hand = Hand("camera-photo")
    hand.open("camera")
    assert any(e.role == "dialog" for e in hand.screen.elements)
    hand.click("don't allow")
    assert "camera permission is needed" in hand.labels()
    hand.do(HOME)
    hand.open("camera")
    hand.click("open settings", "allow")
    hand.open("camera")
    hand.click("take photo")
    assert hand.end() == 1.0


def test_back_at_a_question_for_a_permission_leaves_the_app() -> None:
    hand = Hand("camera-photo")
    hand.open("camera")
    hand.do(BACK)
    assert hand.screen.app == "home"
    hand.open("camera")
    assert any(e.role == "dialog" for e in hand.screen.elements)


def test_the_keyboard_comes_with_a_field_and_types_where_it_is_tapped() -> None:
    hand = Hand("page-to-contact")
    hand.open("contacts")
    hand.click("add")
    assert "keyboard" not in hand.labels()
    hand.click("name")
    assert hand.find("name").focused
    for letter in "ana":
        hand.press(letter)
    hand.click("space", "backspace", "backspace")
    assert hand.find("name").value == "an"
    hand.do(ENTER)
    assert hand.find("phone").focused
    hand.do(BACK)
    assert "keyboard" not in hand.labels()
    assert hand.find("name").value == "an"
    hand.do(BACK)
    assert hand.screen.app == "contacts"


def test_a_page_opens_by_its_address_only_while_wifi_is_on() -> None:
    hand = Hand("browser-offline")
    address = next(row["address"] for row in hand.start.tables["page"].values())
    hand.open("browser")
    assert "you are offline" in hand.labels()
    assert "wifi off" in hand.labels()
    hand.click("network settings", "wifi")
    assert "wifi on" in hand.labels()
    hand.open("browser")
    hand.type("address", address.upper())
    hand.click("enter")
    assert hand.screen.app == "browser detail"
    hand.do(BACK)
    hand.type("address", "no-such.com")
    hand.do(ENTER)
    assert "page not found" in hand.labels()


def until_interrupted(hand: Hand) -> None:
    """Follow the expert until a dialog comes up."""
    while not any(e.role == "dialog" for e in hand.screen.elements):
        hand.do(hand.phone.expert())


def test_an_interruption_that_is_sent_away_leaves_the_form_as_it_was() -> None:
    for seed in range(9):
        hand = Hand("contact-interrupted", seed)
        until_interrupted(hand)
        assert "contacts" not in hand.labels()
        hand.do(BACK)
        assert not any(e.role == "dialog" for e in hand.screen.elements)


def test_back_that_answers_an_interruption_on_the_home_screen_is_not_a_lost_step() -> None:
    hand = Hand("contact-interrupted", 3)
    hand.open("contacts")
    hand.do(HOME)
    assert "a system update is available" in hand.labels()
    assert hand.do(BACK).note == "" and "a system update is available" not in hand.labels()
    assert hand.do(BACK).note == "already at home"


def test_a_menu_does_not_scroll_however_many_records_are_behind_it() -> None:
    hand = Hand("files-star-far", 3)
    hand.open("files")
    down = Action(action_type="scroll", direction="down")
    assert hand.do(down).note == "nothing to scroll there"
    hand.click("downloads")
    assert hand.do(down).note == ""


def test_accepting_an_interruption_leads_away_and_can_spoil_the_task() -> None:
    hand = Hand("message-interrupted", 3)
    until_interrupted(hand)
    hand.click("rate now")
    assert hand.screen.app == "store"
    hand = Hand("expense-interrupted", 3)
    until_interrupted(hand)
    hand.click("turn on battery saver")
    undo = hand.phone.snapshot()
    while (action := hand.phone.expert()).action_type != "status":
        last = hand.do(action)
    assert any(past.label == "battery saver" for past in last.observation.history)
    assert hand.end() == 1.0
    hand.screen = hand.phone.restore(undo)
    assert hand.end() == 0.0


def test_the_shade_keeps_the_form_under_it() -> None:
    hand = Hand("notice-read")
    hand.open("messages")
    hand.click("compose")
    hand.type("text", "tea")
    hand.do(SHADE)
    assert hand.screen.app == "notifications"
    hand.do(Action(action_type="swipe", direction="up"))
    assert hand.find("text").value == "tea"
    hand.click(next(label for label in hand.labels() if label.endswith("notifications")))
    assert hand.screen.app == "notifications"


def test_only_the_notification_that_is_meant_may_go() -> None:
    hand = Hand("notice-dismiss")
    wanted = hand.screen.goal
    hand.do(SHADE)
    shown = [e for e in hand.screen.elements if e.role == "item"]
    other = next(e for e in shown if e.label.split()[1] not in wanted.split())
    meant = next(e for e in shown if e is not other)
    swipe = Action(action_type="swipe", direction="left", index=other.index)
    hand.do(swipe)
    hand.click(f"dismiss {meant.label}")
    spoiled = hand.phone.snapshot()
    assert hand.end() == 0.0
    hand.screen = hand.phone.restore(spoiled)
    hand.click("history", other.label)
    assert hand.end() == 1.0


def test_a_contact_can_be_chosen_for_a_message() -> None:
    hand = Hand("notice-reply", 4)
    if "contacts" not in hand.start.installed:
        hand = next(h for h in (Hand("notice-reply", s) for s in range(99)) if "contacts" in
                    h.start.installed)  # fmt: skip
    name = next(iter(hand.start.tables["contact"].values()))["name"]
    hand.open("messages")
    hand.click("compose")
    hand.type("text", "tea")
    hand.click("choose contact", "while using the app", name)
    assert (hand.find("to").value, hand.find("text").value) == (name, "tea")


def test_a_picture_is_shared_into_a_message() -> None:
    hand = next(h for h in (Hand("gallery-show", s) for s in range(99)) if "messages" in
                h.start.installed)  # fmt: skip
    hand.open("gallery")
    name = next(e.text for e in hand.screen.elements if e.role == "image")
    hand.click(name, "share in a message")
    assert hand.screen.app == "messages new"
    assert hand.find("text").value == name


def test_elements_say_what_android_says_of_them() -> None:
    hand = Hand("contact-interrupted", 2)
    until_interrupted(hand)
    hand.click("later")
    hand.open("contacts")
    hand.click("add")
    field = hand.find("name")
    assert (field.class_name, field.hint, field.depth > 0) == ("android.widget.EditText", "name",
                                                               True)  # fmt: skip
    assert all(e.class_name and e.depth for e in hand.screen.elements)
    plain = PhoneEnvironment().begin("contacts-add", 1)
    assert b"class_name" not in msgspec.json.encode(plain)
    assert b"depth" not in msgspec.json.encode(plain)


def test_elements_of_the_whole_phone_do_not_overlap_and_stay_on_the_glass() -> None:
    phone, most = PhoneEnvironment(), 0
    for name in EXTENDED:
        screen = phone.begin(name, 8)
        while True:
            most = max(most, len(screen.elements))
            boxes = [e.bounds or (0, 0, 0, 0) for e in screen.elements]
            for left, top, right, bottom in boxes:
                assert 0 <= left < right <= WIDTH
                assert 0 <= top < bottom <= HEIGHT
            for one, two in itertools.combinations(boxes, 2):
                apart = one[3] <= two[1] or two[3] <= one[1] or one[2] <= two[0] or two[2] <= one[0]
                assert apart, (name, screen.app, one, two)
            step = phone.act(phone.expert())
            if step.ended:
                break
            screen = step.observation
    assert most <= 24


@pytest.mark.parametrize("task", ["camera-to-gallery", "notice-reply", "maps-way", "gallery-star"])
def test_pictures_of_the_whole_phone_show_every_element(task: str) -> None:
    phone = PhoneEnvironment(screenshots=True)
    screen = phone.begin(task, 5)
    while True:
        assert screen.png is not None
        image = Image.open(io.BytesIO(screen.png)).convert("RGB")
        assert image.size == (WIDTH, HEIGHT)
        for element in screen.elements:
            assert element.bounds is not None
            colors = image.crop(element.bounds).getcolors(maxcolors=100_000) or []
            assert len(colors) > 1, f"nothing drawn for {element.label} on {screen.app}"
        assert screen.png == phone.picture()
        step = phone.act(phone.expert())
        if step.ended:
            break
        screen = step.observation


def test_every_extended_task_says_what_it_is() -> None:
    apps = {app for template in EXTENDED.values() for app in template.apps}
    assert {"files", "browser", "camera", "gallery", "recorder", "maps"} <= apps
    tags = {tag for template in EXTENDED.values() for tag in template.tags}
    assert {"answer", "across", "infeasible", "misleading", "interrupted", "permission"} <= tags
    for template in EXTENDED.values():
        assert template.tags, template.name
    assert not any(template.full_device for template in CORE.values())
