"""Long screens: an option of the phone, built so that a window of one does not tell enough."""

from __future__ import annotations

import asyncio
import io

import pytest
from PIL import Image

from swarm_ui.action import Action
from swarm_ui.environments.phone import PhoneEnvironment, tasks
from swarm_ui.environments.phone.word_pools import FILLERS
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation

WAIT = Action(action_type="wait")


def solved(phone: PhoneEnvironment, task: str, seed: int) -> list[Observation]:
    """The screens on the expert's way."""
    screens = [phone.begin(task, seed)]
    while True:
        step = phone.act(phone.expert())
        if step.ended:
            assert step.reward == 1.0
            return screens
        screens.append(step.observation)


@pytest.mark.parametrize("task", tasks("train"))
def test_the_expert_solves_long_screens_which_have_12_to_20_elements(task: str) -> None:
    for screen in solved(PhoneEnvironment(long=True), task, 5):
        assert 12 <= len(screen.elements) <= 20
        assert [element.index for element in screen.elements] == list(range(len(screen.elements)))
        labels = [element.label for element in screen.elements if element.label in FILLERS]
        assert len(labels) == len(set(labels)) >= 2


def test_equal_episodes_look_equal_and_others_do_not() -> None:
    phones = PhoneEnvironment(long=True), PhoneEnvironment(long=True)
    first, second = (solved(phone, "notes-create", 7) for phone in phones)
    assert first == second
    assert solved(phones[0], "notes-create", 8)[0].elements != first[0].elements


def test_the_page_order_is_the_order_a_person_would_see() -> None:
    screens = solved(PhoneEnvironment(long=True), "contacts-add", 3)
    form = next(screen for screen in screens if screen.app == "contacts new")
    own = [element.label for element in form.elements if element.label not in FILLERS]
    assert own == ["name", "phone", "email", "save", "cancel"]


def test_nothing_moves_while_a_form_is_filled_in() -> None:
    screens = solved(PhoneEnvironment(long=True), "contacts-add", 3)
    forms = [screen for screen in screens if screen.app == "contacts new"]
    assert len(forms) > 2
    assert len({tuple(e.label for e in form.elements) for form in forms}) == 1


def test_a_filler_is_no_double_of_what_the_app_shows() -> None:
    screens = solved(PhoneEnvironment(long=True), "settings-network", 2)
    settings = next(screen for screen in screens if screen.app == "settings")
    labels = [element.label for element in settings.elements]
    assert "privacy" in FILLERS and labels.count("privacy") == 1


def test_fillers_lead_nowhere() -> None:
    phone = PhoneEnvironment(long=True)
    screen = phone.begin("notes-create", 1)
    for element in screen.elements:
        if element.label in FILLERS:
            step = phone.act(Action(action_type="click", index=element.index))
            assert step.note == "nothing happened"
            assert step.observation.elements == screen.elements
            return
    raise AssertionError("no filler on a long screen")


def test_a_memory_tells_the_last_actions_and_forgets_lost_steps() -> None:
    phone = PhoneEnvironment(long=True, memory=1)
    phone.begin("notes-create", 1)
    first = phone.expert()
    assert [past.action for past in phone.act(first).observation.history] == [first]
    assert [past.action for past in phone.act(WAIT).observation.history] == [first]
    second = phone.expert()
    assert [past.action for past in phone.act(second).observation.history] == [second]
    forgetful = PhoneEnvironment(memory=0)
    forgetful.begin("notes-create", 1)
    assert forgetful.act(forgetful.expert()).observation.history == ()


def test_patience_multiplies_the_budget() -> None:
    usual, patient = PhoneEnvironment(), PhoneEnvironment(patience=4)
    usual.begin("notes-create", 1)
    patient.begin("notes-create", 1)
    budget = patient.budget
    assert budget == 4 * usual.budget
    assert [patient.act(WAIT).ended for _ in range(budget)] == [False] * (budget - 1) + [True]


def test_a_snapshot_goes_on_as_it_was_in_another_phone() -> None:
    phone, other = PhoneEnvironment(long=True, memory=1, patience=2), PhoneEnvironment()
    phone.begin("contacts-add", 3)
    phone.act(phone.expert())
    state = phone.snapshot()
    other.restore(state)
    assert other.budget == phone.budget
    assert other.act(other.expert()) == phone.act(phone.expert())
    assert len(other.begin("contacts-add", 3).elements) < 12  # a new episode is its own again


def test_only_core_templates_have_long_screens() -> None:
    phone = PhoneEnvironment(long=True)
    assert phone.name != PhoneEnvironment().name
    with pytest.raises(ConfigError, match="core templates"):
        phone.begin(tasks("extended_train")[0], 0)


@pytest.mark.parametrize("option", [{"patience": 0}, {"memory": -1}])
def test_options_that_cannot_be_are_refused(option: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="phone: expected"):
        PhoneEnvironment(**option)  # type: ignore[arg-type]


def test_the_defaults_show_everything_as_before() -> None:
    plain, explicit = PhoneEnvironment(), PhoneEnvironment(long=False, memory=None, patience=1)
    assert solved(plain, "expenses-add", 11) == solved(explicit, "expenses-add", 11)


def test_a_long_screen_has_a_picture() -> None:
    phone = PhoneEnvironment(long=True, screenshots=True)
    png = asyncio.run(phone.reset(task="notes-create", seed=1)).png
    assert png is not None
    assert Image.open(io.BytesIO(png)).size == (540, 1200)
