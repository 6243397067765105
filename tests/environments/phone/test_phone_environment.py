"""How the phone behaves under a user's hands."""

from __future__ import annotations

import io
import itertools

import pytest
from PIL import Image

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.templates import CORE
from swarm_ui.environments.phone.view import HEIGHT, WIDTH
from swarm_ui.observation import Element

COMPLETE = Action(action_type="status", goal_status="complete")
HOME = Action(action_type="navigate_home")


class Hand:
    """Acts by label, as a person would."""

    def __init__(self, task: str, seed: int) -> None:
        self.phone = PhoneEnvironment()
        self.screen = at_once(self.phone.reset(task=task, seed=seed))

    def find(self, label: str) -> Element:
        return next(e for e in self.screen.elements if e.text == label and e.clickable)

    def do(self, action: Action) -> Step:
        step = at_once(self.phone.step(action))
        self.screen = step.observation
        return step

    def click(self, *labels: str) -> Step:
        for label in labels:
            step = self.do(Action(action_type="click", index=self.find(label).index))
        return step

    def type(self, label: str, text: str) -> Step:
        return self.do(Action(action_type="input_text", index=self.find(label).index, text=text))

    def words(self) -> tuple[str, str]:
        """Name and phone number of the goal of ``contacts-add`` in its plainest phrasing."""
        name, phone = self.screen.goal.split("name ")[1].split(" and phone ")
        return name, phone


def hand_for(task: str, phrase: str) -> Hand:
    """The first training episode whose goal begins with ``phrase``."""
    return next(h for h in (Hand(task, s) for s in range(99)) if h.screen.goal.startswith(phrase))


def new_contact(hand: Hand) -> None:
    name, phone = hand.words()
    hand.click("contacts", "add")
    hand.type("name", f"  {name.title()} ")  # case and blanks do not matter
    hand.type("phone", phone)
    hand.click("save")


def test_adding_a_contact_by_hand_succeeds_once_declared() -> None:
    hand = hand_for("contacts-add", "add a contact with name")
    name, _ = hand.words()
    new_contact(hand)
    assert hand.screen.app == "contacts"
    assert {name.title(), "saved"} <= {e.text for e in hand.screen.elements}
    step = hand.do(COMPLETE)
    assert (step.reward, step.terminated, step.truncated) == (1.0, True, False)


def test_saving_a_form_without_its_title_saves_nothing() -> None:
    hand = Hand("contacts-add", 1)
    hand.click("contacts")
    before = [e.text for e in hand.screen.elements if e.role == "item"]
    step = hand.click("add", "save")
    assert "name is empty" in step.note
    assert "name is empty" in {e.text for e in hand.screen.elements}
    hand.click("cancel")
    assert [e.text for e in hand.screen.elements if e.role == "item"] == before


def test_an_answer_counts_only_after_completion_is_declared() -> None:
    phone = PhoneEnvironment()
    at_once(phone.reset(task="contacts-phone", seed=2))
    while (action := phone.expert()).action_type != "answer":
        at_once(phone.step(action))
    wrong = phone.snapshot()
    step = at_once(phone.step(action))
    assert (step.ended, step.reward) == (False, 0.0)
    assert at_once(phone.step(COMPLETE)).reward == 1.0
    phone.restore(wrong)
    at_once(phone.step(Action(action_type="answer", text="555")))
    assert at_once(phone.step(COMPLETE)).reward == 0.0


def test_scrolling_reaches_the_rest_of_a_long_list_and_no_further() -> None:
    hand = Hand("contacts-phone-far", 1)
    hand.click("contacts")
    first = {e.text for e in hand.screen.elements if e.role == "item"}
    assert any(e.scrollable for e in hand.screen.elements)
    assert hand.do(Action(action_type="scroll", direction="up")).note
    assert not hand.do(Action(action_type="scroll", direction="down")).note
    second = {e.text for e in hand.screen.elements if e.role == "item"}
    assert second
    assert not first & second
    assert hand.do(Action(action_type="scroll", direction="down")).note
    hand.do(Action(action_type="swipe", direction="down"))
    assert {e.text for e in hand.screen.elements if e.role == "item"} == first


def test_apps_open_by_name_from_anywhere() -> None:
    hand = Hand("notes-create", 1)
    installed = {e.text for e in hand.screen.elements}
    hand.click("notes", "new")
    assert not hand.do(Action(action_type="open_app", app_name="Notes")).note
    assert hand.screen.app == "notes"
    assert "recipes" not in installed
    assert hand.do(Action(action_type="open_app", app_name="recipes")).note == "no app 'recipes'"
    assert hand.screen.app == "notes"


def test_pixels_and_indices_mean_the_same_element() -> None:
    one, two = Hand("notes-create", 1), Hand("notes-create", 1)
    left, top, right, bottom = one.find("notes").bounds or (0, 0, 0, 0)
    one.do(Action(action_type="click", x=(left + right) // 2, y=(top + bottom) // 2))
    two.click("notes")
    assert one.screen.elements == two.screen.elements
    assert one.do(Action(action_type="click", x=1, y=1)).note


def test_giving_up_is_graded_right_only_after_looking() -> None:
    phone = PhoneEnvironment()
    at_once(phone.reset(task="contacts-delete-missing", seed=3))
    give_up = Action(action_type="status", goal_status="infeasible")
    assert phone.grade(give_up) == 0.0
    assert phone.grade(phone.expert()) == 1.0
    at_once(phone.step(phone.expert()))
    assert phone.expert() == give_up
    assert phone.grade(give_up) == 1.0
    assert at_once(phone.step(give_up)).reward == 1.0


def test_a_snapshot_stays_valid_and_moves_between_phones() -> None:
    one, two = PhoneEnvironment(), PhoneEnvironment()
    at_once(one.reset(task="messages-send", seed=9))
    at_once(one.step(one.expert()))
    state = one.snapshot()
    rest = []
    while True:
        rest.append(one.expert())
        last = at_once(one.step(rest[-1]))
        if last.ended:
            break
    for phone in (two, one, two):
        phone.restore(state)
        steps = [at_once(phone.step(action)) for action in rest]
        assert steps[-1] == last


@pytest.mark.parametrize("task", ["contacts-delete", "settings-two"])
def test_pictures_show_every_screen(task: str) -> None:
    phone = PhoneEnvironment(screenshots=True)
    screen = at_once(phone.reset(task=task, seed=5))
    seen = set()
    while True:
        assert screen.png is not None
        seen.add(screen.png)
        image = Image.open(io.BytesIO(screen.png)).convert("RGB")
        assert image.size == (WIDTH, HEIGHT)
        for element in screen.elements:
            assert element.bounds is not None
            colors = image.crop(element.bounds).getcolors(maxcolors=100_000) or []
            assert len(colors) > 2, f"nothing drawn for {element.text} on {screen.app}"
        step = at_once(phone.step(phone.expert()))
        if step.ended:
            break
        screen = step.observation
    assert len(seen) > 3


def test_elements_do_not_overlap_and_stay_on_the_glass() -> None:
    phone = PhoneEnvironment()
    for name in CORE:
        screen = at_once(phone.reset(task=name, seed=8))
        while True:
            boxes = sorted(e.bounds or (0, 0, 0, 0) for e in screen.elements)
            for left, top, right, bottom in boxes:
                assert 0 <= left < right <= WIDTH
                assert 0 <= top < bottom <= HEIGHT
            rows = sorted(boxes, key=lambda b: (b[1], b[0]))
            for one, two in itertools.pairwise(rows):
                assert one[3] <= two[1] or one[2] <= two[0]
            step = at_once(phone.step(phone.expert()))
            if step.ended:
                break
            screen = step.observation
