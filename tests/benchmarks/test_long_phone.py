"""Long screens, built so that a window of one does not tell enough."""

from __future__ import annotations

import asyncio
import io

import pytest
from PIL import Image

from benchmarks.support.long_phone import FILLERS, LongPhone
from swarm_ui.action import Action
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import PhoneEnvironment, tasks
from swarm_ui.observation import Observation

WAIT = Action(action_type="wait")


def solved(phone: PhoneEnvironment, task: str, seed: int) -> list[Observation]:
    """The screens on the expert's way."""
    screens = [at_once(phone.reset(task=task, seed=seed))]
    while True:
        step = at_once(phone.step(phone.expert()))
        if step.ended:
            assert step.reward == 1.0
            return screens
        screens.append(step.observation)


@pytest.mark.parametrize("task", tasks("train"))
def test_the_expert_solves_long_screens_which_have_12_to_20_elements(task: str) -> None:
    for screen in solved(LongPhone(), task, 5):
        assert 12 <= len(screen.elements) <= 20
        assert [element.index for element in screen.elements] == list(range(len(screen.elements)))
        labels = [element.label for element in screen.elements if element.label in FILLERS]
        assert len(labels) == len(set(labels)) >= 2


def test_forms_are_in_page_order_and_nothing_moves_while_they_are_filled_in() -> None:
    forms = [s for s in solved(LongPhone(), "contacts-add", 3) if s.app == "contacts new"]
    own = [element.label for element in forms[0].elements if element.label not in FILLERS]
    assert own == ["name", "phone", "email", "save", "cancel"]
    assert len(forms) > 2
    assert len({tuple(e.label for e in form.elements) for form in forms}) == 1


def test_a_filler_leads_nowhere_and_is_no_double_of_what_the_app_shows() -> None:
    screens = solved(LongPhone(), "settings-network", 2)
    settings = next(screen for screen in screens if screen.app == "settings")
    labels = [element.label for element in settings.elements]
    assert "privacy" in FILLERS and labels.count("privacy") == 1
    phone = LongPhone()
    screen = at_once(phone.reset(task="notes-create", seed=1))
    filler = next(element for element in screen.elements if element.label in FILLERS)
    step = at_once(phone.step(Action(action_type="click", index=filler.index)))
    assert step.note and step.observation.elements == screen.elements


def test_a_memory_tells_the_last_actions_and_forgets_lost_steps() -> None:
    phone = LongPhone(memory=1)
    at_once(phone.reset(task="notes-create", seed=1))
    first = phone.expert()
    assert [past.action for past in at_once(phone.step(first)).observation.history] == [first]
    assert [past.action for past in at_once(phone.step(WAIT)).observation.history] == [first]
    second = phone.expert()
    assert [past.action for past in at_once(phone.step(second)).observation.history] == [second]
    forgetful = LongPhone(memory=0)
    at_once(forgetful.reset(task="notes-create", seed=1))
    assert at_once(forgetful.step(forgetful.expert())).observation.history == ()


def test_patience_multiplies_the_budget() -> None:
    patient, usual = LongPhone(patience=4), PhoneEnvironment()
    at_once(patient.reset(task="notes-create", seed=1))
    at_once(usual.reset(task="notes-create", seed=1))
    budget = patient.budget
    assert budget == 4 * usual.budget
    ended = [at_once(patient.step(WAIT)).ended for _ in range(budget)]
    assert ended == [False] * (budget - 1) + [True]


def test_a_long_screen_has_a_picture() -> None:
    phone = LongPhone(screenshots=True)
    png = asyncio.run(phone.reset(task="notes-create", seed=1)).png
    assert png is not None
    assert Image.open(io.BytesIO(png)).size == (540, 1200)
