"""Adversaries write possible, different and wrong actions."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from swarm_ui.action import ACTION_TYPES, Action
from swarm_ui.model import Decision
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.adversary import (
    LLMAdversary,
    ScriptedAdversary,
    fits,
)

SCREEN = Observation(
    goal="Set the title to Milk and the note to Eggs",
    elements=(
        Element(index=0, role="field", text="Title", value="", editable=True),
        Element(index=1, role="field", text="Note", value="", editable=True),
        Element(index=2, role="button", text="Save"),
        Element(index=3, role="button", text="Cancel"),
        Element(index=4, role="button", text="Delete", enabled=False),
        Element(index=5, role="text", text="New entry", clickable=False),
    ),
)
DECISION = Decision(observation=SCREEN)
SAVE = Action(action_type="click", target="Save", index=2)
MILK = Action(action_type="input_text", target="Title", index=0, text="Milk")

labels = st.text(alphabet="abc 1", max_size=6)
elements = st.builds(
    Element, index=st.just(0), role=st.sampled_from(["button", "field", "text", "checkbox"]),
    text=labels, clickable=st.booleans(), editable=st.booleans(), enabled=st.booleans(),
)  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> tuple[Decision, Action]:
    """A random screen and any action that points at one of its elements or at none."""
    drawn = draw(st.lists(elements, min_size=1, max_size=8))
    shown = tuple(replace(element, index=k) for k, element in enumerate(drawn))
    observation = Observation(goal=draw(labels), elements=shown)
    kind = draw(st.sampled_from(ACTION_TYPES))
    pointing = kind in ("click", "double_tap", "long_press", "input_text", "select")
    good = Action(
        action_type=kind,  # type: ignore[arg-type]
        index=draw(st.integers(0, len(shown) - 1)) if pointing else None,
        text=draw(labels) if kind in ("input_text", "select", "answer") else None,
        direction=draw(st.sampled_from(["up", "left"])) if kind in ("scroll", "swipe") else None,
        goal_status="complete" if kind == "status" else None,
        app_name="Notes" if kind == "open_app" else None,
    )
    return Decision(observation=observation), good


async def draws(good: Action, number: int = 60) -> Counter[str]:
    adversary = ScriptedAdversary()
    drawn = [await adversary.oppose(DECISION, good, seed=seed) for seed in range(number)]
    return Counter(str(action) for action in drawn)


@given(cases(), st.integers(0, 2**31))
async def test_scripted_mistakes_are_possible_and_never_the_right_action(
    case: tuple[Decision, Action], seed: int
) -> None:
    decision, good = case
    wrong = await ScriptedAdversary().oppose(decision, good, seed=seed)
    assert wrong is not None and wrong.key != good.key
    assert fits(wrong, decision.observation)
    element = decision.observation.element(wrong.index)
    assert wrong.target == ((element.label or None) if element is not None else None)
    assert wrong == await ScriptedAdversary().oppose(decision, good, seed=seed)


async def test_scripted_mistakes_tempt() -> None:
    clicks = await draws(SAVE)
    assert clicks["click “Cancel” [3]"] > clicks["navigate_back"] > 0
    assert clicks["status complete"] > 0
    assert "click “Delete” [4]" not in clicks and "click “New entry” [5]" not in clicks
    texts = await draws(MILK)
    assert texts["input_text “Note” [1] 'Milk'"] > 0 and texts["input_text “Title” [0] 'Eggs'"] > 0
    done = await draws(Action(action_type="status", goal_status="complete"))
    assert "status complete" not in done and len(done) > 1
    down = await draws(Action(action_type="scroll", direction="down"))
    assert down["scroll up"] > 0


async def test_a_model_that_repeats_the_right_action_is_asked_again_then_given_up() -> None:
    cancel = Action(action_type="click", target="nonsense", index=3)
    right = f"Reason: a.\nAction: {SAVE.json()}"
    model = ScriptedModel([right, f"Reason: b.\nAction: {cancel.json()}"])
    wrong = await LLMAdversary(model).oppose(DECISION, SAVE, seed=1)
    assert wrong == Action(action_type="click", target="Cancel", index=3)
    assert model.requests[0].seed != model.requests[1].seed
    stubborn = LLMAdversary(ScriptedModel([right] * 2))
    assert await stubborn.oppose(DECISION, SAVE, seed=1) is None
