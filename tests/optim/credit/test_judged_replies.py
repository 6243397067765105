"""Judged replies: how they are collected and kept, and what scores are worth on them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_fakes import BUTTONS, ButtonWorld, TinyModel, button_team, click, screen

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError
from swarm_ui.model import Decision
from swarm_ui.optim.credit.judged import (
    CollectConfig,
    JudgedEpisode,
    JudgedFile,
    JudgedHead,
    JudgedReply,
    JudgedScreen,
    balanced,
    collect,
    judged_by_outcome,
    read_judged,
)
from swarm_ui.optim.credit.judging import judge, likelihood, majority, outcome
from swarm_ui.rollout import GraphPolicy, rollout_many

JOBS = [("press", seed) for seed in range(6)]
HEAD = JudgedHead(purpose="train", settings={"episodes": 6})


def policy() -> GraphPolicy:
    return GraphPolicy(button_team(TinyModel([f"agent_{k}" for k in range(3)])), name="team")


class AlwaysHelp:
    """An adversary."""

    name = "help"

    async def oppose(self, decision: Decision, good: Action, *, seed: int) -> Action | None:
        labels = [element.label for element in decision.observation.elements]
        return click(labels.index("Help"), "Help")


async def collected(**settings: Any) -> list[JudgedEpisode]:
    config = CollectConfig(concurrency=2, **settings)
    stream = collect(
        ButtonWorld, policy(), JOBS, split="train", config=config, adversary=AlwaysHelp()
    )
    return [episode async for episode in stream]


def reply(right: bool, kind: Any = "own", **more: Any) -> JudgedReply:
    index = more.pop("index", 0)
    return JudgedReply(action=click(index), kind=kind, right=right, **more)


def judged(*replies: JudgedReply, **more: Any) -> JudgedScreen:
    return JudgedScreen(step=0, observation=screen(), replies=replies, **more)


def episode(*screens: JudgedScreen, task: str = "press", **more: Any) -> JudgedEpisode:
    fields: dict[str, Any] = {"split": "test", "seed": 0, "labels": "solver", "success": True}
    return JudgedEpisode(environment="buttons", task=task, screens=screens, **(fields | more))


async def test_every_proposal_the_solver_s_and_the_adversary_s_are_graded() -> None:
    found = await collected()
    assert {(e.task, e.seed) for e in found} == set(JOBS)
    kinds = set()
    for one in found:
        wanted = BUTTONS[one.seed % len(BUTTONS)]
        for shown in one.screens:
            labels = [element.label for element in shown.observation.elements]
            said = [labels[r.action.index or 0] for r in shown.replies]
            assert len(set(said)) == len(said)
            assert wanted in said and "Help" in said
            assert [r.right for r in shown.replies] == [label == wanted for label in said]
            assert sum(r.votes for r in shown.replies) == shown.voters == 3
            assert all(r.votes == 0 for r in shown.replies if r.kind in ("solver", "adversary"))
            assert sum(r.executed for r in shown.replies) == 1
            kinds |= {r.kind for r in shown.replies}
    assert kinds == {"own", "colleague", "solver", "adversary"}
    assert await collected() == found


async def test_a_job_that_is_given_twice_is_judged_twice() -> None:
    config = CollectConfig(concurrency=2, guide=1.0)
    stream = collect(ButtonWorld, policy(), [("press", 3)] * 2, split="train", config=config)
    assert [len(one.screens) async for one in stream] == [2, 2]


async def test_guidance_executes_the_solver_and_a_stray_step_something_random() -> None:
    guided = await collected(guide=1.0)
    assert all(one.success and len(one.screens) == 2 for one in guided)
    strayed = await collected(stray=1.0)
    assert any(not r.executed for one in strayed for s in one.screens for r in s.replies)


async def test_an_environment_that_cannot_grade_is_refused() -> None:
    class Plain:
        """Passes on what every environment has."""

        def __init__(self) -> None:
            self._world = ButtonWorld()
            self.name, self.tasks = "plain", self._world.tasks
            self.reset, self.step = self._world.reset, self._world.step
            self.close = self._world.close

    with pytest.raises(ConfigError, match=r"plain has no expert\(\) and grade\(\)"):
        async for _ in collect(Plain, policy(), JOBS, split="train"):
            pass
    played = await rollout_many(Plain, policy(), JOBS)
    for before in played:
        found = judged_by_outcome(before, "web")
        assert found is not None and found.labels == "outcome"
        assert [s.step for s in found.screens] == list(range(len(before.steps)))
        for shown, record in zip(found.screens, before.steps, strict=True):
            (only,) = shown.replies
            assert only.executed and only.right == before.success
            assert record.executed is not None and only.action.key == record.executed.key
    masked = msgspec.structs.replace(played[0], success=None)
    assert judged_by_outcome(masked, "web") is None


def test_a_file_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    file = JudgedFile(path, HEAD)
    file.add(episode(judged(reply(True))))
    file.close()
    path.write_bytes(path.read_bytes() + b'{"environment": "but')  # killed while writing
    again = JudgedFile(path, HEAD)
    assert again.done == {("press", 0)}
    again.add(episode(judged(reply(False)), seed=1))
    again.close()
    head, episodes = read_judged(path, purpose="train")
    assert head == HEAD
    assert [e.seed for e in episodes] == [0, 1]


def test_files_of_other_settings_or_purposes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    JudgedFile(path, HEAD).close()
    with pytest.raises(ConfigError, match="was collected for 'train'"):
        JudgedFile(path, JudgedHead(purpose="test", settings={}))
    with pytest.raises(ConfigError, match="expected a file for 'test'"):
        read_judged(path, purpose="test")
    with pytest.raises(ConfigError, match="is not a file of judged episodes"):
        read_judged(tmp_path / "nothing.jsonl")
    path.write_text("{}\n")
    with pytest.raises(ConfigError, match="is not a file of judged episodes"):
        read_judged(path)


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=7), max_size=8),
    st.integers(2, 6),
)
def test_balanced_screens_have_as_many_right_as_wrong_replies(
    screens: list[list[tuple[bool, bool]]], most: int
) -> None:
    made = [
        judged(*[
            reply(right, "adversary" if bad and not right else "own", index=k)
            for k, (right, bad) in enumerate(replies)
        ])
        for replies in screens
    ]  # fmt: skip
    found = balanced(made, random.Random(0), most=most)
    kept = [r for s in found for r in s.replies]
    assert 2 * sum(r.right for r in kept) == len(kept)
    assert all(0 < len(s.replies) <= most for s in found)
    assert found == balanced(made, random.Random(0), most=most)


def test_mistakes_of_agents_are_kept_before_those_of_an_adversary() -> None:
    right = [reply(True, index=k) for k in range(2)]
    wrong = [reply(False, "adversary", index=k) for k in range(2, 6)]
    own = [reply(False, "colleague", index=k) for k in range(6, 8)]
    (found,) = balanced([judged(*right, *wrong, *own)], random.Random(1), most=4)
    assert sorted(r.kind for r in found.replies) == ["colleague", "colleague", "own", "own"]


async def test_figures_of_scores_by_kind_of_mistake() -> None:
    agree = judged(reply(True, votes=3, logprob=-0.1), voters=3)
    differ = judged(
        reply(False, votes=1, logprob=-1.0), reply(True, "colleague", votes=2, logprob=-0.5),
        reply(False, "adversary", index=2, logprob=-9.0), voters=3,
    )  # fmt: skip
    lost = judged(reply(False, votes=3, logprob=-0.2), reply(True, "solver", index=1), voters=3)
    episodes = [
        episode(agree, differ),
        episode(lost, task="other", success=False),
        episode(agree, task="third"),
    ]
    by_vote = await judge(episodes, "majority", majority)
    assert (by_vote.replies, by_vote.right) == (5, 0.6)
    assert by_vote.mistakes == {"own": 2, "colleague": 0, "adversary": 1}
    # Right: 1, 2/3, 1. Wrong of agents: 1/3, 1. Of the adversary: 0.
    assert by_vote.auc is not None and by_vote.auc.mean == pytest.approx((3 + 1) / 6)
    assert by_vote.inside is not None and by_vote.inside.mean == 1.0
    assert by_vote.beside_solver is not None and by_vote.beside_solver.mean == 0.0
    adversary = by_vote.kinds["adversary"]
    assert adversary is not None and adversary.mean == 1.0
    assert by_vote.kinds["colleague"] is None
    assert sum(cell.right.n for cell in by_vote.bins) == 5
    by_outcome = await judge(episodes, "outcome", outcome)
    assert by_outcome.inside is not None and by_outcome.inside.mean == 0.5
    by_likelihood = await judge(episodes, "likelihood", likelihood)
    assert by_likelihood.auc is not None and by_likelihood.auc.mean == pytest.approx(5 / 6)
