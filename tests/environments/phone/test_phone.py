"""The phone under a user's hands, its reference solver, and its success check."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from swarm_ui import Action
from swarm_ui.environment import Step
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.solver import UNREACHABLE
from swarm_ui.environments.phone.templates import CORE, TEMPLATES
from swarm_ui.environments.phone.view import HEIGHT, WIDTH
from swarm_ui.observation import Element, Observation

COMPLETE = Action(action_type="status", goal_status="complete")
INFEASIBLE = Action(action_type="status", goal_status="infeasible")


# -- by hand ----------------------------------------------------------------------------------


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

    def items(self) -> set[str]:
        return {e.text for e in self.screen.elements if e.role == "item"}

    def scroll(self, direction: str, kind: str = "scroll") -> str:
        return self.do(Action(action_type=kind, direction=direction)).note  # type: ignore[arg-type]


def test_adding_a_contact_by_hand_succeeds_once_declared() -> None:
    hands = (Hand("contacts-add", seed) for seed in range(99))
    hand = next(h for h in hands if h.screen.goal.startswith("add a contact with name"))
    name, phone = hand.screen.goal.split("name ")[1].split(" and phone ")
    hand.click("contacts", "add")
    hand.type("name", f"  {name.title()} ")  # case and blanks do not matter
    hand.type("phone", phone)
    hand.click("save")
    assert hand.screen.app == "contacts"
    assert {name.title(), "saved"} <= {e.text for e in hand.screen.elements}
    step = hand.do(COMPLETE)
    assert (step.reward, step.terminated, step.truncated) == (1.0, True, False)


def test_scrolling_reaches_the_rest_of_a_long_list_and_no_further() -> None:
    hand = Hand("contacts-phone-far", 1)
    hand.click("contacts")
    first = hand.items()
    assert any(e.scrollable for e in hand.screen.elements)
    assert hand.scroll("up") and not hand.scroll("down")
    assert hand.items() and not first & hand.items()
    assert hand.scroll("down") and not hand.scroll("down", "swipe")
    assert hand.items() == first


@given(
    task=st.sampled_from(sorted(TEMPLATES)),
    seed=st.integers(0, 29_999_999),
    moves=st.lists(
        st.tuples(
            st.sampled_from(
                ["click", "long_press", "double_tap", "input_text", "select", "scroll", "swipe",
                 "navigate_home", "navigate_back", "keyboard_enter", "wait", "answer", "open_app"]
            ),
            st.integers(0, 15),
            st.text(max_size=8),
            st.booleans(),
        ),
        max_size=25,
    ),
)  # fmt: skip
def test_no_sequence_of_actions_breaks_the_phone(
    task: str, seed: int, moves: list[tuple[str, int, str, bool]]
) -> None:
    phone = PhoneEnvironment()
    at_once(phone.reset(task=task, seed=seed))
    for kind, number, text, flag in moves:
        step = at_once(phone.step(any_action(kind, number, text, flag)))
        assert step.fault is None
        assert len({e.index for e in step.observation.elements}) == len(step.observation.elements)
        assert step.reward == 0.0
        if step.ended:
            return
        assert phone.distance() < UNREACHABLE


def any_action(kind: str, number: int, text: str, flag: bool) -> Action:
    fields: dict[str, object] = {"action_type": kind}
    if kind in ("click", "long_press", "double_tap", "input_text", "select"):
        fields |= {"x": number * 36, "y": number * 80} if flag else {"index": number}
    if kind in ("input_text", "select", "answer"):
        fields["text"] = text
    if kind in ("scroll", "swipe"):
        fields["direction"] = "down" if flag else "left"
    if kind == "open_app":
        fields["app_name"] = text or "notes"
    return Action(**fields)  # type: ignore[arg-type]


# -- what is shown ----------------------------------------------------------------------------


def screens(phone: PhoneEnvironment, task: str, seed: int) -> Iterator[Observation]:
    """The screens on the way of the solver."""
    yield at_once(phone.reset(task=task, seed=seed))
    ended = False
    while not ended:
        step = at_once(phone.step(phone.expert()))
        ended = step.ended
        yield step.observation


@pytest.mark.parametrize("task", ["contacts-delete", "settings-two"])
def test_pictures_show_every_screen(task: str) -> None:
    seen = set()
    for screen in screens(PhoneEnvironment(screenshots=True), task, 5):
        assert screen.png is not None
        seen.add(screen.png)
        image = Image.open(io.BytesIO(screen.png)).convert("RGB")
        assert image.size == (WIDTH, HEIGHT)
        for element in screen.elements:
            assert element.bounds is not None
            colors = image.crop(element.bounds).getcolors(maxcolors=100_000) or []
            assert len(colors) > 2, f"nothing drawn for {element.text} on {screen.app}"
    assert len(seen) > 3


# -- solver and success check -----------------------------------------------------------------


@pytest.mark.parametrize("task", TEMPLATES)
def test_every_task_can_be_done_within_its_steps_and_not_had_for_nothing(task: str) -> None:
    phone, taken = PhoneEnvironment(), []
    for seed in (*range(20), *range(10_000_000, 10_000_005), *range(20_000_000, 20_000_005)):
        at_once(phone.reset(task=task, seed=seed))
        start = phone.snapshot()
        taken.append(phone.distance() - 1)
        for _ in range(taken[-1] + 1):
            step = at_once(phone.step(phone.expert()))
        assert step.terminated and step.reward == 1.0, (seed, step.observation.goal)
        for declared in (COMPLETE, INFEASIBLE):
            phone.restore(start)
            right = declared == INFEASIBLE and phone.assign(task, seed).goal.infeasible
            assert at_once(phone.step(declared)).reward == float(right)
    assert max(taken) <= TEMPLATES[task].steps
    if task in CORE:
        assert max(taken) == CORE[task].steps


def test_an_answer_counts_only_after_completion_is_declared() -> None:
    phone = PhoneEnvironment()
    at_once(phone.reset(task="contacts-phone", seed=2))
    while (action := phone.expert()).action_type != "answer":
        at_once(phone.step(action))
    before = phone.snapshot()
    step = at_once(phone.step(action))
    assert (step.ended, step.reward) == (False, 0.0)
    assert at_once(phone.step(COMPLETE)).reward == 1.0
    phone.restore(before)
    at_once(phone.step(Action(action_type="answer", text="555")))
    assert at_once(phone.step(COMPLETE)).reward == 0.0


def test_giving_up_is_graded_right_only_after_looking() -> None:
    phone = PhoneEnvironment()
    at_once(phone.reset(task="contacts-delete-missing", seed=3))
    assert phone.grade(INFEASIBLE) == 0.0 and phone.grade(phone.expert()) == 1.0
    at_once(phone.step(phone.expert()))
    assert phone.expert() == INFEASIBLE and phone.grade(INFEASIBLE) == 1.0
    assert at_once(phone.step(INFEASIBLE)).reward == 1.0
