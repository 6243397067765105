"""Lessons for window agents: what is right for who sees and hears what, and how it is written."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

import pytest

pytest.importorskip("torch")

from benchmarks.studies.windows.long_phone import LongPhone
from benchmarks.studies.windows.samples import (
    LabelledScreen,
    WindowMix,
    WindowStream,
    labelled_screens,
    window_sample,
)
from demos.base_agent.screens import ActionSample
from demos.base_agent.stream import COLLEAGUES, Mix, Stream
from swarm_ui.action import Abstain, Action
from swarm_ui.environment import Step
from swarm_ui.environments.base import at_once
from swarm_ui.errors import ConfigError
from swarm_ui.message import Heard
from swarm_ui.model import Decision, Request
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import PASS, ScreenTokenizer
from swarm_ui.observation import Element, Observation

CODEC = ScreenTokenizer([PASS, *COLLEAGUES, "notes"])
TASKS = ("notes-create", "contacts-add", "tasks-check-two", "settings-network", "calendar-when")


def shown() -> list[LabelledScreen]:
    phone, rng = LongPhone(memory=1), random.Random(0)

    async def show() -> list[LabelledScreen]:
        found: list[LabelledScreen] = []
        for task in TASKS:
            for seed in (1, 2):
                found += await labelled_screens(phone, task=task, seed=seed, rng=rng)
        return found

    return asyncio.run(show())


POOL = shown()


def lessons(count: int, mix: WindowMix | None = None, seed: int = 0) -> list[ActionSample]:
    rng = random.Random(seed)
    return [window_sample(rng.choice(POOL), rng, mix or WindowMix()) for _ in range(count)]


def test_fields_and_boxes_are_right_in_any_order_but_not_the_button_that_sends() -> None:
    phone = LongPhone()

    async def first_form() -> LabelledScreen:
        found = await labelled_screens(
            phone, task="contacts-add", seed=3, rng=random.Random(0), stray=0.0
        )
        return next(m for m in found if m.observation.app == "contacts new")

    right = asyncio.run(first_form()).correct
    assert [a.action_type for a in right] == ["input_text", "input_text"]
    assert [a.target for a in right] == ["name", "phone"]


def test_every_right_action_brings_the_phone_nearer() -> None:
    phone = LongPhone()
    screen = at_once(phone.reset(task="tasks-check-two", seed=4))
    rng = random.Random(1)
    found = asyncio.run(labelled_screens(phone, task="tasks-check-two", seed=4, rng=rng, stray=0.0))
    assert found[0].observation == screen
    assert any(len(moment.correct) > 1 for moment in found)
    at_once(phone.reset(task="tasks-check-two", seed=4))
    for moment in found:
        for action in moment.correct:
            assert phone.grade(action) == 1.0
        break


def test_what_a_lesson_wants_follows_from_what_is_seen_and_heard() -> None:
    mix = WindowMix(errors=(0.0,), broken=0.0, copies=((1, 1.0),))
    kinds: Counter[str] = Counter()
    for lesson in lessons(600, mix):
        decision, action = lesson.decision, lesson.action
        count = len(decision.observation.elements)
        heard = [h.action for h in decision.heard if h.action is not None]
        assert decision.partial
        if isinstance(action, Abstain):
            kinds["pass"] += 1
            assert not heard  # without errors, whatever is heard is right
        elif action.index is not None and action.index >= count:
            kinds["copied"] += 1
            assert action in heard
        else:
            kinds["own"] += 1
    assert min(kinds.values()) > 30 and len(kinds) == 3


def test_colleagues_err_about_as_often_as_asked() -> None:
    def wrong(mix: WindowMix) -> float:
        told = [
            h.action.target
            for lesson in lessons(400, mix)
            for h in lesson.decision.heard
            if h.action is not None and h.action.index is not None
        ]
        own = {a.target for m in POOL for a in m.correct}
        return sum(target not in own for target in told) / len(told)

    clean = WindowMix(errors=(0.0,), broken=0.0)
    assert wrong(clean) == 0.0
    assert wrong(WindowMix(errors=(0.5,), broken=0.0)) > 0.15
    assert wrong(WindowMix(errors=(0.0,), broken=1.0)) > 0.1


def test_few_of_the_passes_are_kept() -> None:
    others = Stream(0, ("word",), Mix())

    def share(passes: float) -> float:
        stream = WindowStream(0, POOL, others, WindowMix(share=1.0, passes=passes))
        drawn = [stream.draw() for _ in range(400)]
        return (
            sum(isinstance(d, ActionSample) and isinstance(d.action, Abstain) for d in drawn) / 400
        )

    assert share(0.1) < 0.6 * share(1.0)


def test_the_stream_mixes_and_is_the_same_for_a_seed() -> None:
    def drawn(seed: int) -> list[object]:
        stream = WindowStream(seed, POOL, Stream(seed, ("word",), Mix()), WindowMix(share=0.5))
        return [stream.draw() for _ in range(40)]

    first = drawn(3)
    assert first == drawn(3) != drawn(4)
    own = [isinstance(d, ActionSample) and d.decision.partial for d in first]
    assert 5 < sum(own) < 35


def test_an_environment_without_an_expert_is_refused() -> None:
    class Plain:
        name = "plain"
        tasks = ("press",)

        async def reset(self, *, task: str, seed: int) -> Observation:
            return SCREEN

        async def step(self, action: Action) -> Step:
            return Step(observation=SCREEN)

        async def close(self) -> None: ...

    with pytest.raises(ConfigError, match="plain has none"):
        asyncio.run(labelled_screens(Plain(), task="press", seed=0, rng=random.Random(0)))


# -- tokens -----------------------------------------------------------------------------------


def test_every_window_lesson_survives_the_tokens_and_the_grammar() -> None:
    for lesson in lessons(400):
        prompt = CODEC.encode(lesson.decision)
        reply = CODEC.reply(prompt, lesson.action)
        back = CODEC.decode(prompt, reply)
        if isinstance(lesson.action, Abstain):
            assert back == Abstain()
        else:
            assert isinstance(back, Action)
            assert (back.action_type, back.index) == (
                lesson.action.action_type,
                lesson.action.index,
            )
        here = CODEC.grammar(prompt)
        for token in reply:
            assert token in here
            then = here[token]
            if then is None:
                break
            here = then


def heard(sender: str, action: Action | None) -> Heard:
    content = Abstain().json() if action is None else action.json()
    return Heard(sender=sender, round=0, content=content, action=action)


def told(tokenizer: ScreenTokenizer, decision: Decision) -> list[str]:
    prompt = tokenizer.encode(decision)
    named = {id_: word for word, id_ in prompt.slots.items()}
    return [named.get(i, tokenizer.tokens[i]) for i in prompt.ids]


SAVE = Element(index=0, role="button", text="Save")
SCREEN = Observation(goal="save it", elements=(SAVE,))
ASIDE = Action(action_type="click", target="Name", index=3)


def test_a_window_agent_reads_who_passed_and_what_it_does_not_see() -> None:
    decision = Decision(
        observation=SCREEN, heard=(heard("agent_0", None), heard("agent_1", ASIDE)), partial=True
    )
    line = " ".join(told(CODEC, decision))
    assert "<m> agent_0 <pass> <m> agent_1 <click> name #3 <act>" in line


def test_the_shipped_words_know_nothing_of_it() -> None:
    plain = ScreenTokenizer(["notes", "agent_0"])
    decision = Decision(observation=SCREEN, heard=(heard("agent_0", None),), partial=True)
    alone = Decision(observation=SCREEN)
    assert plain.encode(decision).ids == plain.encode(alone).ids
    assert plain.grammar(plain.encode(decision)) == plain.grammar(plain.encode(alone))
    with pytest.raises(ValueError, match="cannot abstain"):
        plain.reply(plain.encode(decision), Abstain())


def test_only_who_sees_a_part_is_offered_a_pass() -> None:
    token = CODEC.tokens.index(PASS)
    part, whole = (Decision(observation=SCREEN, partial=partial) for partial in (True, False))
    assert token in CODEC.grammar(CODEC.encode(part))
    assert token not in CODEC.grammar(CODEC.encode(whole))


def test_an_element_nobody_spoke_of_cannot_be_read() -> None:
    prompt = CODEC.encode(Decision(observation=SCREEN, heard=(heard("a", ASIDE),), partial=True))
    named = CODEC.reply(prompt, ASIDE)
    back = CODEC.decode(prompt, named)
    assert back == ASIDE
    other = CODEC.reply(prompt, Action(action_type="click", target="Name", index=4))
    unread = CODEC.decode(prompt, other)
    assert not isinstance(unread, Action) and "no colleague named" in getattr(unread, "reason", "")


# -- the agent --------------------------------------------------------------------------------


def answers(model: LocalModel, screens: Sequence[Observation]) -> list[str]:
    requests = [Request(decision=Decision(observation=screen)) for screen in screens]
    return [c.text for c in asyncio.run(model.generate(requests))]


def test_more_words_leave_the_agent_as_it_was() -> None:
    base = LocalModel.load()
    more = base.with_words([PASS, *COLLEAGUES])
    assert more.tokenizer.passes and not base.tokenizer.passes
    assert len(more.tokenizer) == len(base.tokenizer) + 1 + len(COLLEAGUES)
    screens = [moment.observation for moment in POOL[:12]]
    assert answers(more, screens) == answers(base, screens)


def test_an_agent_with_more_words_is_saved_and_loaded(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    more = LocalModel.load().with_words([PASS], seed=1)
    folder = tmp_path_factory.mktemp("agent")
    more.save(folder)
    again = LocalModel.load(folder)
    assert again.tokenizer.passes
    screens = [moment.observation for moment in POOL[:6]]
    assert answers(again, screens) == answers(more, screens)
