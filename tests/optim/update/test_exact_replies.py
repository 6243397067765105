"""What is learned is what was said: whole replies with their reasons, in the agent's own format."""

from __future__ import annotations

import msgspec
from learning_fakes import TinyModel, click, decided, graded

from swarm_ui.optim.examples import encode
from swarm_ui.optim.preferences import (
    PreferencePair,
    ScoredAction,
    preference_pairs,
    scored_replies,
)
from swarm_ui.prompts import FORMATS
from swarm_ui.trace.records import Episode, StepRecord

SHUFFLED = {"agent_1": (2, 0, 1)}  # agent_1 sees Help, Save, Back
SAID = {
    "agent_0:0": "It asks to save.\nclick Save [0]",
    "agent_1:0": "Back is safe.\nclick Back [2]",
}


def episode(*steps: StepRecord) -> Episode:
    return Episode(environment="e", task="t", seed=0, steps=steps, success=True)


def made(step: StepRecord, adversary: tuple[ScoredAction, ...] = ()) -> list[PreferencePair]:
    played = msgspec.structs.replace(episode(step), notes=((adversary, ()),))
    return preference_pairs([played], easy_share=1.0)


def talk() -> StepRecord:
    trace = decided(
        [[click(0), click(1)]], orders=SHUFFLED, said=SAID, prompt_format="compact"
    )  # fmt: skip
    return graded(trace, [[1.0, 0.0]])


def test_the_own_side_is_the_exact_reply() -> None:
    right, corrected = made(talk())
    assert right.chosen_text == SAID["agent_0:0"]
    assert corrected.rejected_text == SAID["agent_1:0"]
    assert {right.prompt_format, corrected.prompt_format} == {"compact"}


def test_a_colleagues_side_is_written_in_the_own_view_and_format_with_its_reason() -> None:
    right, corrected = made(talk())
    assert right.rejected_text == "Back is safe.\nclick Back [1]"
    assert corrected.chosen_text == "It asks to save.\nclick Save [1]"
    for pair in (right, corrected):
        read = FORMATS["compact"].parse(pair.chosen_text, pair.decision.observation)
        assert read.key == pair.chosen.key  # type: ignore[union-attr]


def test_an_adversarys_side_differs_in_the_action_alone() -> None:
    trace = decided([[click(0)]], said=SAID, prompt_format="compact")
    (pair,) = made(graded(trace, [[1.0]]), (ScoredAction(action=click(2), credit=0.0),))
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


def test_a_failed_call_is_no_reply() -> None:
    trace = decided([[click(0), None]], errors={"agent_1:0": "timed out"})
    _, corrected = made(graded(trace, [[1.0, 0.0]]))
    assert corrected.rejected_text is None
    assert [r.node for r in scored_replies([episode(graded(trace, [[1.0, 0.0]]))])] == ["agent_0"]
