"""What a filter and a person may refuse, and every way round them that is known here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from small_world import DELETE, FIELD, PAY, SAVE, Notebook

from swarm_ui.action import Action
from swarm_ui.environment import Graded, Restorable, Step
from swarm_ui.environments.wrappers import (
    DELETION,
    PAYMENT,
    SENDING,
    ActionFilter,
    Confirm,
    Question,
    Rule,
)
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Element, Observation, Role


def contains_word(word: str, text: str) -> bool:
    return bool(Rule(name="any", words=(word,)).word_in(text))


def click(index: int) -> Action:
    return Action(action_type="click", index=index)


def shown(*labels: str, role: Role = "button", app: str = "", **fields: object) -> Observation:
    """A screen with such elements, one below the other."""
    elements = tuple(
        Element(index=i, role=role, text=label, bounds=(0, 50 * i, 100, 50 * i + 40), **fields)  # type: ignore[arg-type]
        for i, label in enumerate(labels)
    )
    return Observation(goal="g", elements=elements, app=app)


def refusal(action: Action, screen: Observation, **options: object) -> str:
    return ActionFilter(Notebook(), **options).refusal(action, screen)  # type: ignore[arg-type]


# -- a refused action -------------------------------------------------------------------------


async def test_a_refused_action_never_reaches_the_world_and_costs_a_step() -> None:
    world = Notebook()
    env = ActionFilter(world)
    await env.reset(task="write", seed=0)
    step = await env.step(click(DELETE))
    assert isinstance(env, Restorable)
    aside, screen = env.snapshot(), step.observation
    assert step.note == (
        "refused by the rule 'deletion': “Delete note” matches “delet*”; nothing was done"
    )
    assert [a.action_type for a in world.seen] == ["wait"]
    assert not step.ended and step.reward == 0
    past = step.observation.history[0]
    assert (past.action, past.role, past.label) == (click(DELETE), "button", "Delete note")
    for _ in range(5):
        step = await env.step(click(PAY))
    assert step.truncated and {a.action_type for a in world.seen} == {"wait"}
    assert [p.action.index for p in step.observation.history] == [DELETE, *[PAY] * 5]
    with pytest.raises(EnvironmentFault):
        await env.step(click(SAVE))
    assert env.restore(aside) == screen
    assert (await env.step(click(SAVE))).observation.history[0].action == click(DELETE)


async def test_a_task_the_rules_forbid_is_a_wrong_setting() -> None:
    env = ActionFilter(Notebook(), deny=[Rule(name="no saving", words=("save",))])
    assert isinstance(env, Graded)
    await env.reset(task="write", seed=0)
    assert env.grade(env.expert()) == 1.0
    await env.step(env.expert())
    assert env.grade(click(SAVE)) == 0.0
    with pytest.raises(ConfigError):
        env.expert()


# -- how a word may be written ----------------------------------------------------------------

TRICKS = [
    "delete", "DELETE", "Delete all 3 notes", "Deleting…", "delete_note", "btn-delete",
    "noteDelete", "d e l e t e",
    "D.E.L.E.T.E", "d-e-l-e-t-e", "de lete", "d  e\tl\ne  t  e", "deleeete",
    "Ddelete",
    "d\u200be\u200cl\u200de\ufeffte", "de\u00adle\u00adte", "d\u2060elete", "de\u034flete",
    "dеlеtе", "ԁelete", "DΕLΕΤΕ", "dеlеtе nоw", "ᎠᎬᏞᎬᎢᎬ", "ꓓꓰꓡꓰꓔꓰ",
    "ｄｅｌｅｔｅ", "𝐝𝐞𝐥𝐞𝐭𝐞", "𝕕𝕖𝕝𝕖𝕥𝕖", "ⓓⓔⓛⓔⓣⓔ", "🅳🅴🅻🅴🆃🅴", "🇩🇪🇱🇪🇹🇪", "ᴅᴇʟᴇᴛᴇ", "ᵈᵉˡᵉᵗᵉ",
    "délété", "d̶e̶l̶e̶t̶e̶", "d̲e̲l̲e̲t̲e̲", "đelete", "ɗelete",
    "de1ete", "d3l3t3", "de|ete", "de!ete", "deIete", "delet€", "d€lete", "delete!", "delete2",
    "\u202eeteled", "\u2067eteled\u2069", "🗑", "🗑️ empty", "Clear all", "clear  ALL", "clearall",
    "c l e a r a l l", "Factory\u00a0reset", "UNINSTALL",
    "Pay now", "pаy", "PayPal", "Buy it", "Check out", "💳", "Checkout (2)", "Place   order",
    "0rder n0w", "Send", "Ѕend", "✉️", "Reply all", "5hare",
]  # fmt: skip


@pytest.mark.parametrize("label", TRICKS)
def test_a_denied_label_is_found_however_it_is_written(label: str) -> None:
    every = (PAYMENT, DELETION, SENDING)
    assert "refused by the rule" in refusal(click(1), shown("Keep", label), deny=every)
    assert not refusal(click(0), shown("Keep", label), deny=every)


OTHERS = [
    "display", "Play", "paper", "repay later", "Payload", "weekend", "Sender", "calls", "spay",
    "Postpone", "compost", "forwarded", "Buyer", "relationship", "Recall", "Dear all", "ideal",
    "delft", "Dele", "information", "wiper blades 2", "", "…", "12.50 €", "Callum",
]  # fmt: skip


@pytest.mark.parametrize("label", OTHERS)
def test_other_words_are_not_taken_for_denied_ones(label: str) -> None:
    everything = (PAYMENT, replace(DELETION, words=("delet*", "wipe", "clear all")), SENDING)
    assert not refusal(click(0), shown(label), deny=everything)


def test_words_of_scripts_without_spaces_and_of_other_languages() -> None:
    assert contains_word("删除", "要删除文件吗")
    assert contains_word("оплат*", "Оплатить") and not contains_word("оплат*", "предоплата")
    assert contains_word("löschen", "LÖSCHEN") and contains_word("löschen", "loschen")


@given(st.text(max_size=60))
def test_folding_takes_any_text(text: str) -> None:
    assert contains_word("delete", f"delete {text}") is True
    assert isinstance(contains_word("delete", text), bool)
    if text.strip("*") and any(c.isalpha() for c in text):
        assert isinstance(contains_word(text, "delete"), bool)


@pytest.mark.timeout(20)
def test_very_long_labels_are_read_without_getting_lost() -> None:
    for text in ("d " * 20_000, "d" * 40_000, "delet " * 8_000, "d_e_l_e_t_" * 4_000):
        assert not contains_word("delete", text)
    assert contains_word("delete", "d" * 40_000 + " delete")


# -- what an action would press ---------------------------------------------------------------

TWO = shown("Keep", "Delete")
SLIDES = shown("Photo", "Trash can", "Slide to pay", "Album")
UNPLACED = replace(
    shown("Keep"), elements=(*shown("Keep").elements, Element(index=1, role="link", text="Delete"))
)
IN_THE_MIDDLE = replace(
    shown(),
    elements=(
        Element(index=0, role="item", text="Bob", bounds=(0, 0, 300, 60)),
        Element(index=1, role="icon", description="delete", bounds=(140, 20, 160, 40)),
        Element(index=2, role="item", text="Eve", bounds=(0, 60, 300, 120)),
    ),
)
DIALOG = replace(
    shown(),
    elements=(
        Element(index=0, role="dialog", text="Delete note?", bounds=(0, 0, 300, 300)),
        Element(index=1, role="button", text="Cancel", bounds=(0, 200, 100, 250)),
        Element(index=2, role="button", text="OK", bounds=(150, 200, 250, 250)),
    ),
)
FIELD_ABOUT_IT = shown("Reason to delete", role="field", value="delete", editable=True)
FOCUSED = replace(TWO, elements=(replace(TWO.elements[0], focused=True), TWO.elements[1]))


@pytest.mark.parametrize(
    ("screen", "action", "why"),
    [
        # Pixels are judged by what lies there.
        (TWO, Action(action_type="click", x=50, y=70), "“Delete”"),
        (TWO, Action(action_type="double_tap", x=50, y=70), "“Delete”"),
        (TWO, Action(action_type="long_press", x=0, y=50), "“Delete”"),
        (TWO, Action(action_type="click", x=50, y=20), ""),
        (TWO, Action(action_type="click", x=400, y=400), ""),
        (UNPLACED, Action(action_type="click", x=5, y=5), "“Delete”"),
        (UNPLACED, click(0), ""),
        # The label that an action names itself counts for nothing.
        (TWO, Action(action_type="click", index=1, target="Keep"), "“Delete”"),
        (TWO, Action(action_type="click", index=0, target="Delete"), ""),
        # Both ends of a swipe count.
        (SLIDES, Action(action_type="swipe", index=0, to_index=1), "“Trash can”"),
        (SLIDES, Action(action_type="swipe", index=0, to_x=50, to_y=60), "“Trash can”"),
        (SLIDES, Action(action_type="swipe", index=2, direction="right"), "“pay”"),
        (SLIDES, Action(action_type="swipe", index=0, to_index=3), ""),
        (SLIDES, Action(action_type="scroll", direction="down"), ""),
        # A small element in the middle of another one gets the click; a dialog does not.
        (IN_THE_MIDDLE, click(0), "“delete”"),
        (IN_THE_MIDDLE, click(2), ""),
        (DIALOG, click(0), "“Delete note?”"),
        (DIALOG, click(1), ""),
        (DIALOG, Action(action_type="click", x=50, y=220), ""),
        # Descriptions, hints and values count, but not of what is only typed into.
        *((shown("", **{name: "delete"}), click(0), "matches") for name in
          ("description", "hint", "value")),
        (FIELD_ABOUT_IT, click(0), ""),
        (FIELD_ABOUT_IT, Action(action_type="input_text", index=0, text="delete"), ""),
        # Typing, or Enter, on a button presses it.
        (FOCUSED, Action(action_type="input_text", index=1, text="x"), "“Delete”"),
        (FOCUSED, Action(action_type="input_text", x=50, y=70, text=""), "“Delete”"),
        (FOCUSED, Action(action_type="keyboard_enter", index=1), "“Delete”"),
        (FOCUSED, Action(action_type="input_text", x=50, y=20, text=""), ""),
        (FOCUSED, Action(action_type="keyboard_enter", index=0), ""),
        # An option is chosen by its text.
        (shown("Action", role="field"), Action(action_type="select", index=0, text="Delete it"),
         "the option “Delete it” matches"),
    ],
)  # fmt: skip
def test_what_an_action_presses_is_judged(screen: Observation, action: Action, why: str) -> None:
    found = refusal(action, screen)
    assert why in found and bool(found) is bool(why)


ENTER = [
    Action(action_type="keyboard_enter"),
    Action(action_type="input_text", index=0, text="hello\n"),
    Action(action_type="wait", keycode="KEYCODE_NUMPAD_ENTER"),
]


@pytest.mark.parametrize("enter", ENTER, ids=str)
@pytest.mark.parametrize(
    ("focus", "refused"), [("Delete", True), ("Keep", False), ("Note", True), (None, True)]
)
def test_enter_presses_what_has_the_focus_or_any_button(
    enter: Action, focus: str | None, refused: bool
) -> None:
    note = Element(index=0, role="field", text="Note", editable=True, focused=focus == "Note")
    buttons = [
        Element(index=i, role="button", text=text, focused=focus == text)
        for i, text in enumerate(("Keep", "Delete"), start=1)
    ]
    screen = Observation(goal="g", elements=(note, *buttons))
    assert bool(refusal(enter, screen)) is refused
    harmless = replace(screen, elements=screen.elements[:2])
    assert not refusal(enter, harmless)


# -- apps and sites ---------------------------------------------------------------------------


HOME, BANK, NOWHERE = (
    shown("Notes", "Bank", role="app", app="home"),
    *(shown("OK", app=app) for app in ("bank", "")),
)


def opening(app: str) -> Action:
    return Action(action_type="open_app", app_name=app)


@pytest.mark.parametrize(
    ("screen", "action", "why"),
    [
        (HOME, click(0), ""),
        (HOME, opening("NOTES"), ""),
        (HOME, click(1), "“Bank” is not an allowed app"),
        (HOME, Action(action_type="click", x=50, y=70), "“Bank”"),
        *((HOME, opening(app), "is not an allowed app") for app in
          ("bank", "nоtes", "bank notes", "no tes", "bank\nnotes")),
        (BANK, click(0), "“bank” is in front"),
        (NOWHERE, click(0), "names no app"),
        (BANK, Action(action_type="navigate_back"), ""),
        (BANK, Action(action_type="status", goal_status="infeasible"), ""),
        (shown("OK", app="Notes"), click(0), ""),
    ],
)  # fmt: skip
def test_only_allowed_apps_are_used(screen: Observation, action: Action, why: str) -> None:
    found = refusal(action, screen, apps=("notes*",), deny=())
    assert why in found and bool(found) is bool(why)


# -- a person in the loop ---------------------------------------------------------------------


async def confirmed(answer: bool) -> tuple[Notebook, list[Question], Step]:
    world, asked = Notebook(), []

    async def ask(question: Question) -> bool:
        asked.append(question)
        return answer

    env = Confirm(world, ask)
    await env.reset(task="write", seed=0)
    await env.step(Action(action_type="input_text", index=FIELD, text="x"))
    return world, asked, await env.step(click(DELETE))


async def test_only_what_matches_is_asked_about_and_needs_a_yes() -> None:
    world, asked, step = await confirmed(True)
    assert [(q.rule, q.action) for q in asked] == [("deletion", click(DELETE))]
    assert "“Delete note” matches" in str(asked[0]) and asked[0].screen.goal in str(asked[0])
    assert world.seen[-1] == click(DELETE) and step.note == "nothing happened"
    world, asked, step = await confirmed(False)
    assert step.note == "not confirmed (deletion): nothing was done"
    assert len(asked) == 1 and click(DELETE) not in world.seen
    assert step.observation.history[-1].action == click(DELETE)


async def test_every_action_can_be_asked_about_and_a_broken_function_does_nothing() -> None:
    world = Notebook()

    async def ask(question: Question) -> bool:
        raise RuntimeError("the pager is gone")

    env = Confirm(world, ask, rules=None)
    await env.reset(task="write", seed=0)
    with pytest.raises(RuntimeError, match="pager"):
        await env.step(click(SAVE))
    assert world.seen == []
