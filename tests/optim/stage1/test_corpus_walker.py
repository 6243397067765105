"""Walks on which a trained model chooses the way, and the expert writes the replies."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_fakes import HELD_OUT, jobs

from swarm_ui.action import Action, parse_action
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.model import Completion, Request
from swarm_ui.nodes import ScriptedModel
from swarm_ui.optim.stage1 import CorpusConfig, Models, Sample, read_corpus, synthesize, totals
from swarm_ui.prompts import format_named

LEVEL_3 = CorpusConfig(levels=(3,), messages=0.0, agreed=0.0, repeats=1000)
DONE = '{"action_type": "status", "goal_status": "complete"}'
EXPERT = Models.scripted()


def with_walker(model: ScriptedModel) -> Models:
    return Models(
        agent=EXPERT.agent, adversary=EXPERT.adversary, critic=EXPERT.critic, walker=model
    )


async def corpus(
    folder: Path, models: Models, count: int = 4, config: CorpusConfig = LEVEL_3
) -> list[Sample]:
    await synthesize(
        PhoneEnvironment, models, jobs(count), folder, held_out=HELD_OUT, config=config
    )
    return list(read_corpus(folder))


async def test_every_step_at_which_the_walker_is_wrong_becomes_a_sample(tmp_path: Path) -> None:
    hasty = ScriptedModel(lambda _: DONE, name="hasty")
    samples = await corpus(tmp_path / "walked", with_walker(hasty))
    own = await corpus(tmp_path / "own", EXPERT)
    # The agent's action replaces a declaration, so the way is the expert's. The last step of a walk
    # is the only one at which the declaration is right.
    last = {s.origin.task: max(o.origin.step for o in own if o.origin.task == s.origin.task)
            for s in own}  # fmt: skip
    expected = [(s.chat, s.response) for s in own if s.origin.step < last[s.origin.task]]
    assert [(s.chat, s.response) for s in samples] == expected
    assert totals(tmp_path / "walked").dropped == {"level 3: the walker is right": len(last)}


async def test_a_right_walker_adds_the_share_that_is_asked_for(tmp_path: Path) -> None:
    phone = PhoneEnvironment()
    answers = {}
    for task, seed in jobs(4):
        observation = await phone.reset(task=task, seed=seed)
        while True:
            answers[observation] = phone.expert().json()
            step = await phone.step(phone.expert())
            if step.ended:
                break
            observation = step.observation

    def expert(request: Request) -> str:
        assert request.decision is not None
        return answers[request.decision.observation]

    right = with_walker(ScriptedModel(expert, name="right"))
    assert await corpus(tmp_path / "none", right) == []
    whole = CorpusConfig(levels=(3,), messages=0.0, agreed=1.0, repeats=1000)
    replies = [s.response for s in await corpus(tmp_path / "all", right, config=whole)]
    assert replies == [s.response for s in await corpus(tmp_path / "own", EXPERT)]


async def test_a_walk_goes_where_the_walker_goes_and_the_expert_finds_back(tmp_path: Path) -> None:
    """The walker opens the first app of every home screen; replies are right all the same."""

    def wander(request: Request) -> Completion:
        assert request.decision is not None
        first = request.decision.observation.elements[0]
        action = Action(action_type="click", index=first.index, target=first.label)
        form = format_named("compact")
        text = form.write(action, request.decision.observation)
        return Completion(text=text, prompt="p", prompt_format="compact")

    samples = await corpus(
        tmp_path / "c", with_walker(ScriptedModel(wander, name="wanderer")), count=6
    )
    actions = [parse_action(sample.response) for sample in samples]
    assert all(isinstance(action, Action) for action in actions)
    back = [a for a in actions if isinstance(a, Action) and a.action_type.startswith("navigate")]
    assert back  # no walk of the expert alone goes back from a wrong app
    assert all(s.score == 1.0 for s in samples)


async def test_a_walker_needs_a_critic_and_its_name_is_part_of_the_corpus(tmp_path: Path) -> None:
    hasty = ScriptedModel(lambda _: DONE, name="hasty")
    lenient = Models(agent=EXPERT.agent, adversary=EXPERT.adversary, critic=None, walker=hasty)
    with pytest.raises(ConfigError, match="a critic must judge"):
        await corpus(tmp_path / "c", lenient)
    await corpus(tmp_path / "c", with_walker(hasty), count=2)
    with pytest.raises(ConfigError, match="walker"):
        await corpus(tmp_path / "c", EXPERT, count=2)


async def test_an_interrupted_corpus_asks_the_walker_nothing_twice(tmp_path: Path) -> None:
    asked = 0

    def hasty(request: Request) -> str:
        nonlocal asked
        asked += 1
        return DONE

    models = with_walker(ScriptedModel(hasty, name="hasty"))
    await corpus(tmp_path / "c", models, count=3)
    before = asked
    (tmp_path / "c/journal.jsonl").unlink()
    (tmp_path / "c/samples.jsonl").unlink()
    again = await corpus(tmp_path / "c", models, count=3)
    assert asked == before and again
