"""Instructions, questions and walks: the correct action is right on real screens."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from swarm_ui.action import Action
from swarm_ui.environments.phone import PhoneEnvironment, draw_jobs, tasks
from swarm_ui.environments.phone.invented import InventedPhone
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.stage1.synthesis.demonstrations import demonstrate
from swarm_ui.optim.stage1.synthesis.instructions import COMPLETE, instruction, instructions
from swarm_ui.optim.stage1.synthesis.questions import questions
from swarm_ui.optim.stage1.synthesis.screens import ActionSample
from swarm_ui.optim.stage1.synthesis.walks import WalkMix, sample_walks
from swarm_ui.prompts import format_named

SCREEN = Observation(
    goal="g",
    app="notes new",
    elements=(
        Element(index=0, role="button", text="save"),
        Element(index=1, role="field", text="title", value="", editable=True),
        Element(index=2, role="switch", text="pinned", checked=True),
        Element(index=3, role="item", text="time", value="10:30"),
        Element(index=4, role="button", text="help"),
        Element(index=5, role="label", text="more", clickable=False, scrollable=True),
    ),
    actions=("click", "input_text", "navigate_back", "navigate_home", "scroll", "status", "answer"),
)


def told(screen: Observation, draws: int = 200) -> dict[str, Action]:
    """Many instructions on a screen, with their actions."""
    found = {}
    for seed in range(draws):
        for sample in instructions(screen, random.Random(seed)):
            assert isinstance(sample.action, Action) and sample.level == 2
            text = sample.decision.observation.goal.casefold().rstrip(".")
            assert found.setdefault(text, sample.action) == sample.action
    return found


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("press save", Action(action_type="click", target="save", index=0)),
        ("tap the second button", Action(action_type="click", target="help", index=4)),
        ("tap the last button", Action(action_type="click", target="help", index=4)),
        ("save this", Action(action_type="click", target="save", index=0)),
        ("turn pinned off", Action(action_type="click", target="pinned", index=2)),
        ("turn pinned on", COMPLETE),
        ("go back", Action(action_type="navigate_back")),
        ("scroll down", Action(action_type="scroll", direction="down")),
    ],
)
def test_instructions_have_the_action_that_follows_from_the_screen(
    text: str, action: Action
) -> None:
    assert told(SCREEN, 800)[text] == action


def test_what_is_to_be_typed_is_in_the_instruction() -> None:
    typed = [(t, a) for t, a in told(SCREEN).items() if a.action_type == "input_text"]
    assert len(typed) > 50
    for text, action in typed:
        assert (action.text or "").casefold() in text and action.index == 1
        assert "title" in text


def test_braces_of_a_label_are_in_the_instruction_as_they_are() -> None:
    page = Observation(goal="", elements=(Element(index=0, role="button", text="{draft}"),))
    named = [text for text in told(page) if "draft" in text]
    assert len(named) > 20
    assert all("{draft}" in text and "{{" not in text for text in named)


def test_only_actions_that_the_screen_takes_are_asked_for() -> None:
    page = Observation(goal="", elements=SCREEN.elements, actions=("click", "input_text"))
    assert {a.action_type for a in told(page).values()} == {"click", "input_text"}
    assert instruction(Observation(goal="", elements=()), random.Random(0)) is None


def test_equal_labels_are_not_named() -> None:
    twice = tuple(Element(index=i, role="item", text="copy") for i in range(2))
    found = told(Observation(goal="", elements=twice, app="home", actions=("click",)))
    for text, action in found.items():
        place = "first" if action.index == 0 else "second"
        assert place in text or "last" in text
    assert {action.index for action in found.values()} == {0, 1}


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("what is the value of time", "10:30"),
        ("is pinned on or off", "on"),
        ("which fields are empty", "title"),
        ("what kind of element is time", "item"),
        ("what is the second button", "help [4]"),
        ("which button stores the entries", "save [0]"),
        ("which screen is this", "notes new"),
    ],
)
def test_questions_have_the_answer_of_the_screen(asked: str, answer: str) -> None:
    found = {
        sample.decision.observation.goal.casefold().rstrip("?"): sample.action
        for seed in range(400)
        for sample in questions(SCREEN, random.Random(seed))
    }
    assert found[asked] == Action(action_type="answer", text=answer)


async def drawn(phone: PhoneEnvironment, names: tuple[str, ...], seed: int) -> list[ActionSample]:
    walk = sample_walks(phone, draw_jobs(names, 40, seed), random.Random(seed))
    return [sample async for sample in walk]


WORLDS = {"phone": PhoneEnvironment(), "invented": InventedPhone(devices=4)}


@pytest.mark.parametrize("phone", WORLDS.values(), ids=list(WORLDS))
async def test_walks_give_samples_of_all_levels_that_can_be_written(
    phone: PhoneEnvironment,
) -> None:
    names = tuple(phone.tasks) if isinstance(phone, InventedPhone) else tasks("train")
    samples = await drawn(phone, names, 3)
    levels = Counter(sample.level for sample in samples)
    assert levels[3] > levels[2] > levels[1] > 10
    compact = format_named("compact")
    for sample in samples:
        screen = sample.decision.observation
        assert isinstance(sample.action, Action)
        read = compact.parse(compact.write(sample.action, screen), screen)
        assert isinstance(read, Action) and read.key == sample.action.key
        element = screen.element(sample.action.index)
        assert sample.action.index is None or element is not None
        if element is not None and sample.action.action_type == "input_text":
            assert element.editable
    assert samples == await drawn(phone, names, 3)


async def test_demonstrations_with_wrong_steps_show_the_way_back() -> None:
    phone, rng = InventedPhone(devices=2), random.Random(0)
    lengths = []
    for task, seed in draw_jobs(tuple(phone.tasks), 40, 1):
        phone.begin(task, seed)
        shortest = phone.distance()
        samples = await demonstrate(phone, task=task, seed=seed, rng=rng, stray=0.3)
        lengths.append(len(samples) - shortest)
        assert all(isinstance(s.action, Action) for s in samples)
    assert min(lengths) >= 0 and sum(lengths) > 40


async def test_a_followed_instruction_is_complete_with_one_act_in_its_history() -> None:
    phone = InventedPhone(devices=2)
    jobs = draw_jobs(tuple(phone.tasks), 20, 1)
    mix = WalkMix(instructions=1.0, questions=0.0, stray=0.0, followed=1.0)
    samples = [s async for s in sample_walks(phone, jobs, random.Random(0), mix)]
    pairs = [
        (before, after) for before, after in pairwise(samples) if before.level == after.level == 2
    ]
    assert len(pairs) > 20
    for before, after in pairs:
        seen = after.decision.observation
        assert after.action == COMPLETE
        assert seen.goal == before.decision.observation.goal
        assert [past.action for past in seen.history] == [before.action]


async def test_an_environment_without_an_expert_is_named() -> None:
    class Plain:
        name, tasks = "plain", ("t",)

    with pytest.raises(ConfigError, match="plain has none"):
        async for _ in sample_walks(Plain(), [("t", 0)], random.Random(0)):  # type: ignore[arg-type]
            pass
