"""Stage 1's corpora: three levels from walks, their provenance, what is dropped, and no leaks."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from corpus_fakes import HELD_OUT, Ventriloquist, jobs, scripted_corpus
from small_world import Bare, Notebook

from swarm_ui.action import Action, parse_action
from swarm_ui.environment import Step
from swarm_ui.environments.phone import PhoneEnvironment, tasks
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.model import Decision
from swarm_ui.optim.stage1 import (
    CorpusConfig,
    HeldOut,
    Models,
    read_corpus,
    synthesize,
)
from swarm_ui.optim.stage1.synthesize import canonical
from swarm_ui.prompts import decision_chat

NOTES = [("write", 0), ("write", 1), ("write-again", 0)]


def everyone(model: Ventriloquist) -> Models:
    return Models(agent=model.model, adversary=model.model, critic=model.model)


async def test_three_levels_with_their_provenance(tmp_path: Path) -> None:
    done = await scripted_corpus(tmp_path / "c", 6)
    samples = list(read_corpus(tmp_path / "c"))
    assert done.walks == done.successes == 6
    assert Counter(f"level {s.level}" for s in samples) == done.samples
    assert {s.level for s in samples} == {1, 2, 3}
    assert len({s.id for s in samples}) == len(samples)
    for sample in samples:
        origin = sample.origin
        assert (origin.task, origin.seed) in jobs(6)
        assert origin.environment == "phone (simulated)"
        assert sample.score == 1.0
        assert [turn.role for turn in sample.chat] == ["system", "user"]


async def test_preferences_are_right_against_possible_and_wrong(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "c", 8, CorpusConfig(levels=(3,)))
    pairs = list(read_corpus(tmp_path / "c"))
    phone = PhoneEnvironment()
    for pair in pairs:
        observation = await phone.reset(task=pair.origin.task, seed=pair.origin.seed)
        for _ in range(pair.origin.step):
            observation = (await phone.step(phone.expert())).observation
        good, bad = parse_action(pair.response), parse_action(pair.rejected or "")
        assert isinstance(good, Action) and isinstance(bad, Action)
        assert phone.grade(good) == 1.0 and phone.grade(bad) == 0.0
        assert canonical(pair.rejected or "", observation).text == pair.rejected
        if not pair.heard:
            assert pair.chat == decision_chat(Decision(observation=observation))
    heard = [pair for pair in pairs if pair.heard]
    assert 0.3 < len(heard) / len(pairs) < 0.7
    assert all(pair.chat[1].content.count(" said:") == pair.heard for pair in heard)


async def test_language_models_play_all_parts(tmp_path: Path) -> None:
    model = Ventriloquist()
    done = await synthesize(Bare, everyone(model), NOTES, tmp_path / "c", held_out=HeldOut())
    assert done.successes == 3 and set(done.samples) == {"level 1", "level 2", "level 3"}
    samples = list(read_corpus(tmp_path / "c"))
    pair = next(s for s in samples if s.level == 3)
    assert (
        pair.rejected
        == 'Reason: It looks finished.\nAction: {"action_type":"status","goal_status":"complete"}'
    )
    assert (pair.score, pair.rejected_score) == (1.0, 0.0)


async def test_bad_replies_are_counted_not_kept(tmp_path: Path) -> None:
    places = [("write", seed) for seed in range(12)]
    model = Ventriloquist(bad=0.5)
    done = await synthesize(Bare, everyone(model), places, tmp_path / "c", held_out=HeldOut())
    reasons = set(done.dropped)
    assert {"level 1: malformed", "level 2: malformed"} <= reasons
    assert any("the critic did not say" in reason for reason in reasons)
    for sample in read_corpus(tmp_path / "c"):
        assert "sorry" not in sample.response
        assert sample.level == 1 or isinstance(parse_action(sample.response), Action)


# -- leaks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "seed"), [(tasks("new_apps")[0], 1), (tasks("train")[0], 20_000_001)]
)
async def test_a_held_out_job_is_refused_by_name(tmp_path: Path, task: str, seed: int) -> None:
    with pytest.raises(ConfigError):
        await synthesize(
            PhoneEnvironment, Models.scripted(), [*jobs(2), (task, seed)], tmp_path / "c",
            held_out=HELD_OUT,
        )  # fmt: skip
    assert not (tmp_path / "c").exists()


async def test_a_corpus_that_leaks_cannot_be_read(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "c", 2)
    path, task = tmp_path / "c/corpus.json", jobs(2)[0][0]
    header = json.loads(path.read_text())
    header["held_out"]["tasks"].append(task)
    path.write_text(json.dumps(header))
    with pytest.raises(ConfigError, match=task):
        list(read_corpus(tmp_path / "c"))


# -- what goes wrong --------------------------------------------------------------------------


async def test_unknown_tasks_and_worlds_without_experts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        await synthesize(
            Notebook, Models.scripted(), [("nonsense", 0)], tmp_path / "c", held_out=HeldOut()
        )
    with pytest.raises(ConfigError):
        await synthesize(Bare, Models.scripted(), NOTES, tmp_path / "d", held_out=HeldOut())


async def test_a_fault_is_no_failure_and_is_walked_again(tmp_path: Path) -> None:
    broken = True

    class Shaky(Notebook):
        async def step(self, action: Action) -> Step:
            if broken and self.state.word == "bread":
                raise EnvironmentFault("the battery is empty")
            return await super().step(action)

    async def go():  # type: ignore[no-untyped-def]
        return await synthesize(Shaky, Models.scripted(), NOTES, tmp_path / "c", held_out=HeldOut())

    done = await go()
    assert (done.walks, done.successes, done.faults) == (2, 2, 1)
    assert "battery" in (tmp_path / "c" / "walks.jsonl").read_text()
    broken = False
    done = await go()
    assert (done.walks, done.successes, done.faults) == (3, 3, 0)


async def test_other_settings_need_another_folder(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "c", 1)
    with pytest.raises(ConfigError):
        await scripted_corpus(tmp_path / "c", 1, CorpusConfig(questions=4))
