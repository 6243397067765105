"""Preference pairs: the agent's own context and indices, and nothing made up."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_fakes import TinyModel, click, decided, graded, screen

from swarm_ui.action import Action
from swarm_ui.agent_view import View
from swarm_ui.errors import Failure
from swarm_ui.optim.examples import encode
from swarm_ui.optim.preferences import (
    PreferencePair,
    ScoredAction,
    preference_pairs,
)
from swarm_ui.prompts import FORMATS
from swarm_ui.trace.records import Episode, StepRecord, Trace


def episode(*steps: StepRecord, fault: Failure | None = None) -> Episode:
    return Episode(environment="e", task="t", seed=0, steps=steps, fault=fault)


def made(
    *steps: StepRecord,
    adversary: tuple[ScoredAction, ...] = (),
    teacher: tuple[ScoredAction, ...] = (),
) -> list[PreferencePair]:
    played = msgspec.structs.replace(episode(*steps), notes=((adversary, teacher),) * len(steps))
    return preference_pairs([played], easy_share=1.0)


def test_own_right_action_beats_a_colleagues_mistake_and_the_mistake_is_corrected() -> None:
    trace = decided([[click(0), click(1)]])
    right, corrected = made(graded(trace, [[1.0, 0.0]]))
    assert (right.node, right.chosen, right.rejected) == ("agent_0", click(0), click(1))
    assert right.source == "own > mistake"
    assert (corrected.node, corrected.chosen, corrected.rejected) == ("agent_1", click(0), click(1))
    assert corrected.source == "colleague > own"


def test_actions_are_in_the_agents_own_indices_and_its_context_is_exact() -> None:
    orders = {"agent_1": (2, 0, 1)}
    trace = decided([[click(0, "Save"), click(1, "Back")], [click(0), click(0)]], orders=orders)
    pairs = made(graded(trace, [[1.0, 0.0], [None, None]]))
    (pair,) = [p for p in pairs if p.node == "agent_1"]
    assert [e.text for e in pair.decision.observation.elements] == ["Help", "Save", "Back"]
    assert pair.chosen == click(1, "Save")  # Save stands second in this view
    assert pair.rejected == click(2, "Back")
    (heard,) = pair.decision.heard
    assert heard.action == click(1, "Save")
    assert pair.decision == trace.decision(trace.calls[1])


def test_a_teachers_action_corrects_every_wrong_agent_that_sees_its_element() -> None:
    orders = {"agent_1": (2, 0, 1), "agent_2": (1, 2)}
    trace = decided([[click(1), click(1), click(0)]], orders=orders)
    shown = ScoredAction(action=click(0, "Save"), credit=1.0)
    pairs = made(graded(trace, [[0.0, 0.0, 0.0]]), teacher=(shown,))
    assert [(p.node, p.chosen.json(), p.source) for p in pairs] == [
        ("agent_0", click(0, "Save").json(), "teacher > own"),
        ("agent_1", click(1, "Save").json(), "teacher > own"),
    ]
    assert all(p.rejected is not None and p.chosen_text == p.chosen.json() for p in pairs)
    doubted = msgspec.structs.replace(shown, credit=0.5)
    assert made(graded(trace, [[0.0, 0.0, 0.0]]), teacher=(doubted,)) == []


def test_unscored_is_not_wrong_and_a_fault_gives_nothing() -> None:
    trace = decided([[click(0), click(1), click(2)]])
    assert made(graded(trace, [[None, None, None]])) == []
    step = graded(trace, [[1.0, 0.0, 0.0]])
    assert preference_pairs([episode(msgspec.structs.replace(step, credit=None))]) == []
    dead = Failure(kind="environment", message="browser died")
    assert preference_pairs([episode(step, fault=dead)]) == []
    pairs = made(graded(trace, [[1.0, None, None]]))
    assert [(p.node, p.rejected) for p in pairs] == [("agent_0", None)]
    assert {p.node for p in made(graded(trace, [[1.0, None, 0.0]]))} == {"agent_0", "agent_2"}


def test_the_adversary_is_used_only_where_it_was_really_wrong() -> None:
    easy = graded(decided([[click(0), click(0)]]), [[1.0, 1.0]])
    wrong = ScoredAction(action=click(2), credit=0.0)
    right = ScoredAction(action=click(1), credit=1.0)
    pairs = made(easy, adversary=(wrong, right))
    assert {p.rejected for p in pairs} == {click(2)}
    assert {p.source for p in pairs} == {"own > adversary"}
    assert {p.rejected for p in made(easy, adversary=(right,))} == {None}


actions = st.one_of(st.none(), st.integers(0, 3).map(click))
credits = st.sampled_from([None, 0.0, 0.3, 0.5, 0.8, 1.0])


@given(
    matrix=st.lists(st.lists(actions, min_size=3, max_size=3), min_size=1, max_size=2),
    data=st.data(),
    seed=st.integers(0, 99),
)
@settings(max_examples=80, deadline=None)
def test_every_pair_is_backed_by_credit(
    matrix: list[list[Action | None]], data: st.DataObject, seed: int
) -> None:
    orders = {
        f"agent_{k}": tuple(data.draw(st.permutations(range(4))))[: data.draw(st.integers(2, 4))]
        for k in range(3)
    }
    look = screen(("a", "b", "c", "d"))
    trace = decided(matrix, orders=orders, observation=look)
    credit = [[data.draw(credits) for _ in row] for row in matrix]
    views = {call.node: trace.view(call) for call in trace.calls}
    scores: dict[object, list[float]] = {}
    for row, values in zip(matrix, credit, strict=True):
        for action, value in zip(row, values, strict=True):
            if action is not None and value is not None:
                scores.setdefault(action.key, []).append(value)
    contexts = {call.node: [] for call in trace.calls}
    for call in trace.calls:
        contexts[call.node].append(trace.decision(call))
    for pair in preference_pairs(
        [episode(graded(trace, credit))], easy_share=1.0, rng=random.Random(seed)
    ):
        assert pair.decision in contexts[pair.node]
        good = back(pair.chosen, views[pair.node])
        assert max(scores[good.key]) > 0.5
        if pair.rejected is not None:
            bad = back(pair.rejected, views[pair.node])
            assert min(scores[bad.key]) < 0.5
            assert bad.key != good.key
            assert pair.weight > 0


def back(action: Action, view: View) -> Action:
    mapped = view.to_screen(action)
    assert mapped is not None
    return mapped


def windowed_pair(*heard: str) -> Trace:
    """``agent_0`` sees and proposes element 0; ``agent_1`` sees the others and proposes 2."""
    trace = decided(
        [[click(0, "Save"), click(2, "Help")]], orders={"agent_0": (0,), "agent_1": (1, 2)}
    )
    first, second, *rest = trace.calls
    return msgspec.structs.replace(
        trace, calls=(first, msgspec.structs.replace(second, heard=heard), *rest)
    )


def test_an_agent_learns_an_action_on_a_hidden_element_that_a_message_named() -> None:
    assert [p.node for p in made(graded(windowed_pair(), [[1.0, 0.0]]))] == ["agent_0"]
    _, corrected = made(graded(windowed_pair("agent_0:0"), [[1.0, 0.0]]))
    assert corrected.node == "agent_1" and corrected.source == "colleague > own"
    assert corrected.chosen == click(2, "Save")  # its number comes after the two shown ones
    assert corrected.rejected == click(1, "Help")
    assert corrected.decision.reaches(click(2, "Save"))
    assert not corrected.decision.reaches(click(3))


# -- whole replies ----------------------------------------------------------------------------

SHUFFLED = {"agent_1": (2, 0, 1)}  # agent_1 sees Help, Save, Back
SAID = {
    "agent_0:0": "It asks to save.\nclick Save [0]",
    "agent_1:0": "Back is safe.\nclick Back [2]",
}


def talk() -> StepRecord:
    trace = decided([[click(0), click(1)]], orders=SHUFFLED, said=SAID, prompt_format="compact")
    return graded(trace, [[1.0, 0.0]])


def test_sides_are_exact_replies_or_written_in_the_own_view_and_format_with_their_reason() -> None:
    right, corrected = made(talk())
    assert right.chosen_text == SAID["agent_0:0"]
    assert corrected.rejected_text == SAID["agent_1:0"]
    assert {right.prompt_format, corrected.prompt_format} == {"compact"}
    assert right.rejected_text == "Back is safe.\nclick Back [1]"
    assert corrected.chosen_text == "It asks to save.\nclick Save [1]"
    for pair in (right, corrected):
        read = FORMATS["compact"].parse(pair.chosen_text, pair.decision.observation)
        assert read.key == pair.chosen.key  # type: ignore[union-attr]


def test_an_adversarys_side_differs_in_the_action_alone() -> None:
    trace = decided([[click(0)]], said=SAID, prompt_format="compact")
    (pair,) = made(graded(trace, [[1.0]]), adversary=(ScoredAction(action=click(2), credit=0.0),))
    assert pair.source == "own > adversary"
    assert pair.rejected_text == "It asks to save.\nclick Help [2]"


def test_an_unparsable_reply_is_rejected_by_models_that_can_say_it() -> None:
    trace = decided([[click(0), None]], said={**SAID, "agent_1:0": "Let me think."})
    _, corrected = made(graded(trace, [[1.0, 0.0]]))
    assert (corrected.rejected, corrected.rejected_text) == (None, "Let me think.")

    class Speaks(TinyModel):
        def __init__(self, encodes_text: bool) -> None:
            super().__init__(["one"])
            self.encodes_text = encodes_text

        def encode(self, decision, reply, *, adapter=None):  # type: ignore[no-untyped-def]
            return [1], [ord(letter) for letter in reply]

    for unparsed, sides in ((True, [2]), (False, [1])):
        task = encode(Speaks(unparsed), [corrected], "one")
        assert [len(each.rows) for each in task] == sides
    assert bytes(task[0].chosen[1]).decode() == corrected.chosen_text
