"""What a prompt offers, how a reply becomes an action, and when two actions are equal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli_world import RIGHT, Lamp
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui import (
    Action,
    CollabGraph,
    Completion,
    Decision,
    Element,
    Episode,
    Heard,
    Message,
    NodeContext,
    NodeReply,
    Observation,
    Request,
    RunFailed,
    StepRecord,
    Trace,
    parse_action,
    read_jsonl,
    write_jsonl,
)
from swarm_ui.environments import ActionFilter, Rule
from swarm_ui.nodes import (
    AgentNode,
    ChatNode,
    FunctionNode,
    MajorityVote,
    ProbabilityVote,
    ScriptedModel,
)
from swarm_ui.optim.stage1 import CorpusConfig, HeldOut, Models, synthesize
from swarm_ui.prompts import FORMATS

KINDS = {
    "click", "double_tap", "long_press", "input_text", "select", "scroll", "swipe",
    "navigate_home", "navigate_back", "keyboard_enter", "open_app", "wait", "answer", "status",
}  # fmt: skip
PAGE = ("click", "input_text", "select", "scroll", "keyboard_enter")  # those of MiniWoB++
BUTTON = Element(index=0, role="button", text="Save")


def screen(*actions: str) -> Observation:
    made = Observation(goal="Save the note", elements=(BUTTON,))
    return msgspec.structs.replace(made, actions=actions)


# -- what prompts offer -----------------------------------------------------------------------


@pytest.mark.parametrize("format", sorted(FORMATS))
@pytest.mark.parametrize("offered", [("click",), PAGE, ("answer", "status"), ("wait",)])
def test_a_prompt_offers_only_actions_of_the_screen(format: str, offered: Sequence[str]) -> None:
    chat = FORMATS[format].chat(Decision(observation=screen(*offered)))
    text = "\n".join(turn.content for turn in chat)
    named = {kind for kind in KINDS if f'"{kind}"' in text}
    assert named == (set(offered) if format == "json" else set())
    assert ("declare it" in text) == (format == "json" and "status" in offered)
    assert "open the right app" not in text


def test_a_screen_without_a_list_offers_every_action() -> None:
    system = FORMATS["json"].chat(Decision(observation=screen()))[0].content
    assert all(f'"action_type": "{kind}"' in system for kind in KINDS)
    assert "scroll, go back or open the right app" in system


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_constrained_replies_are_actions_of_the_screen(format: str) -> None:
    heard = tuple(
        Heard(sender="ada", round=0, content="", action=Action(action_type=kind, index=7, text="a"))
        for kind in ("long_press", "input_text", "click")
    )
    decision = Decision(observation=screen("click"), heard=heard, partial=True)
    replies = ["".join(map(str, reply)) for reply in FORMATS[format].replies(decision)]
    named = {kind for kind in KINDS for reply in replies if kind in reply}
    assert named == {"click"}
    assert any("7" in reply for reply in replies)


class Clicks(Lamp):
    """A lamp that offers clicks alone."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        screen = await super().reset(task=task, seed=seed)
        self._screen = msgspec.structs.replace(screen, actions=("click",))
        return self._screen


async def test_prompts_of_the_synthesis_name_only_actions_of_the_screen(tmp_path: Path) -> None:
    def reply(request: Request) -> str:
        assert request.chat is not None
        if "You judge" in request.chat[0].content:
            return '{"agent_0": 1, "agent_1": 1, "agent_2": 1, "agent_3": 1}'
        return f"Reason: it is asked for.\n{RIGHT}"

    model = ScriptedModel(reply)
    await synthesize(
        Clicks,
        Models(agent=model, adversary=model, critic=model),
        [("light", seed) for seed in range(12)],
        tmp_path / "corpus",
        held_out=HeldOut.of(tasks=["glow"]),
        config=CorpusConfig(questions=1, instructions=1, screens=4),
    )
    systems = {r.chat[0].content for r in model.requests if r.chat is not None}
    told = {word: [s for s in systems if word in s] for word in ("write exercises", "write wrong")}
    assert all(len(found) == 1 for found in told.values()), sorted(systems)
    for system in (*told["write exercises"], *told["write wrong"]):
        named = [kind for kind in KINDS - {"click"} if f'"{kind}"' in system]
        named += [w for w in ("goal_status", "going back", "too early", "app_name") if w in system]
        assert named == []


# -- which actions are equal ------------------------------------------------------------------

FORM = Observation(
    goal="Write “tea”", elements=(Element(index=0, role="field", text="Note", editable=True),)
)


async def voted(*proposals: Action, vote: MajorityVote | ProbabilityVote | None = None) -> Trace:
    """The decision of agents that propose these actions."""
    agents = [
        AgentNode(f"agent_{k}", ScriptedModel([f"Action: {action.json()}"]))
        for k, action in enumerate(proposals)
    ]
    return await CollabGraph([*agents, vote or MajorityVote()]).run(FORM)


def typed(text: str, *, clear: bool | None = None) -> Action:
    return Action(action_type="input_text", target="Note", index=0, text=text, clear_text=clear)


async def test_texts_that_differ_in_case_or_spaces_are_different_proposals() -> None:
    texts = ("Oil", "oil", "OIL", "o il", "tea", "tea")
    trace = await voted(*map(typed, texts))
    assert trace.action == typed("tea")
    assert sorted(trace.ballot.values()) == [1.0, 1.0, 1.0, 1.0, 2.0]


async def test_a_vote_does_not_take_append_for_replace() -> None:
    trace = await voted(
        typed("oil"), typed("oil", clear=False), typed("oil", clear=True), typed("tea"),
        typed("tea"),
    )  # fmt: skip
    assert trace.action == typed("tea")


async def test_labels_do_not_divide_a_vote() -> None:
    named, other = typed("oil"), msgspec.structs.replace(typed("oil"), target="Notes")
    trace = await voted(named, other, typed("tea"), typed("milk"), named)
    assert trace.action == named and trace.ballot[named.json()] == 3.0


# -- characters that no file can hold ---------------------------------------------------------

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)  # lone surrogates too
REPLIES = st.one_of(
    ANY_TEXT,
    st.builds("{} [0] : {}".format, st.sampled_from(sorted(KINDS)), ANY_TEXT),
    st.builds('answer "\\u{:04x}{}"'.format, st.integers(0xD700, 0xE0FF), ANY_TEXT),
    st.builds(
        '{{"action_type": "{}", "index": 0, "text": "\\u{:04x}{}", "app_name": "{}"}}'.format,
        st.sampled_from(sorted(KINDS)), st.integers(0xD700, 0xE0FF), ANY_TEXT, ANY_TEXT,
    ),
)  # fmt: skip


@given(st.sampled_from(sorted(FORMATS)), REPLIES)
def test_the_action_of_any_reply_can_be_written_and_read_again(format: str, reply: str) -> None:
    form = FORMATS[format]
    action = form.parse(reply, FORM)
    if isinstance(action, Action):
        assert parse_action(action.json()) == action
        assert form.parse(form.write(action, FORM), FORM) == action


HALF = "\ud800"


def fails(inbox: Sequence[Message], context: NodeContext) -> str:
    raise ValueError(HALF)


class Node:
    """Returns a reply with an error."""

    id = "node"

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        return NodeReply(content=HALF, error=HALF)


def look(place: str) -> str:
    """Look at a place."""
    return HALF


@pytest.mark.parametrize(
    "node",
    [
        FunctionNode("says", lambda inbox, context: HALF),
        FunctionNode("acts", lambda inbox, context: typed(HALF)),
        FunctionNode("fails", fails),
        Node(),
        AgentNode("ada", ScriptedModel([Completion(
            text=f"answer {HALF}", prompt=HALF, model=HALF, prompt_format="compact"
        )])),
        ChatNode(
            "chat",
            ScriptedModel(['{"tool": "look", "arguments": {"place": "\\ud800"}}', HALF]),
            prompt=HALF,
            tools=[look],
        ),
    ],
    ids=lambda node: node.id,
)  # fmt: skip
async def test_half_characters_never_reach_a_trace(node: Any, tmp_path: Path) -> None:
    try:
        trace = await CollabGraph([node]).run(FORM)
    except RunFailed as error:
        trace = error.partial
    episode = Episode(environment="e", task="t", seed=0, steps=(StepRecord(trace=trace),))
    write_jsonl(tmp_path / "trace.jsonl", [episode])
    assert read_jsonl(tmp_path / "trace.jsonl") == [episode]


# -- the words of a filter --------------------------------------------------------------------


def refused(word: str, label: str) -> bool:
    button = msgspec.structs.replace(FORM.elements[0], role="button", text=label, editable=False)
    shown = msgspec.structs.replace(FORM, elements=(button,))
    rule = Rule(name="rule", words=(word,))
    press = Action(action_type="click", index=0)
    return bool(ActionFilter(Lamp(), deny=(rule,)).refusal(press, shown))


@pytest.mark.parametrize(
    ("hidden", "word", "labels"),
    [
        (False, "call", ("Cal", "Caal", "Cal Newport")),
        (False, "book now", ("Bok now",)), (False, "add card", ("ad card",)),
        (False, "cancell*", ("Cancelar",)), (False, "哈哈", ("哈",)),
        (True, "call", ("Call", "Caall", "CALLLL now", "c a l l", "c-a-l-l-l", "ca11", "caIl")),
        (True, "book now", ("boooknow",)), (True, "clear all", ("cleara ll",)),
        (True, "cancell*", ("cancelled",)), (True, "哈哈", ("哈哈哈",)),
    ],
)  # fmt: skip
def test_repeated_letters_hide_no_word_and_a_double_letter_must_be_double(
    hidden: bool, word: str, labels: Sequence[str]
) -> None:
    assert [refused(word, label) for label in labels] == [hidden] * len(labels)
