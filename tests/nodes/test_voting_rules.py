"""Votes: counting, ties, probabilities by hand."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from math import inf, log

import pytest
from graph_fakes import SCREEN, FixedModel, click
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui import (
    Action,
    CollabGraph,
    Completion,
    ConfigError,
    Request,
    Trace,
)
from swarm_ui.nodes import MajorityVote, ProbabilityVote
from swarm_ui.nodes.vote import candidates, winner


def type_text(index: int, text: str, target: str | None = None) -> Action:
    return Action(action_type="input_text", index=index, text=text, target=target)


def tap(index: int, target: str | None = None) -> Action:
    return Action(action_type="click", index=index, target=target)


ACTS = st.lists(
    st.one_of(
        st.builds(tap, st.integers(0, 3)),
        st.builds(type_text, st.integers(0, 2), st.sampled_from(["a", "A", "b"])),
        st.just(Action(action_type="navigate_back")),
    ),
    min_size=1,
    max_size=9,
)


@given(ACTS, st.integers(0, 10**9), st.randoms())
def test_no_vote_depends_on_who_stands_where(
    acts: list[Action], seed: int, rng: random.Random
) -> None:
    mixed = list(acts)
    rng.shuffle(mixed)
    assert voted(acts, seed) == voted(mixed, seed)
    assert candidates(acts) == candidates(mixed)


def voted(acts: Sequence[Action], seed: int) -> object:
    return winner(Counter(action.key for action in acts), seed)


def test_ties_follow_the_seed_evenly() -> None:
    wins = Counter(voted([tap(0), tap(1), tap(2)], seed) for seed in range(3000))
    assert len(wins) == 3
    assert all(900 < count < 1100 for count in wins.values())


def team(replies: Sequence[str], **options: object) -> Trace:
    """A team without talk whose agents say these replies in every round."""
    names = [f"a{k}" for k in range(len(replies))]
    model = FixedModel(dict(zip(names, replies, strict=True)))
    graph = CollabGraph.collaborative(
        len(replies),
        2,
        model=model,
        edges=[],
        adapters=names,
        **options,  # type: ignore[arg-type]
    )
    return graph.run_sync(SCREEN)


@pytest.mark.parametrize("vote", [MajorityVote(), ProbabilityVote()])
def test_nobody_proposing_anything_valid_is_a_value(vote: MajorityVote | ProbabilityVote) -> None:
    graph = CollabGraph.collaborative(model=FixedModel({None: "hm"}), rounds=1).with_node(vote)
    trace = graph.run_sync(SCREEN)
    assert trace.action is None and trace.ballot == {}
    assert trace.message("vote:0").error == "nobody proposed a valid action"
    assert trace.calls[-1].error is None


# -- probability vote -------------------------------------------------------------------------


class Scorer(FixedModel):
    """Knows, for each adapter, the probability of each label; other labels are impossible."""

    name = "scorer"

    def __init__(
        self, replies: dict[str | None, str], beliefs: dict[str, dict[str, float]]
    ) -> None:
        super().__init__(replies)
        self.beliefs = beliefs
        self.scored: list[tuple[Request, str]] = []
        self.calls = 0

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """The adapter's reply names a label; answers with its place in the agent's own view."""
        self.requests.extend(requests)
        answers = []
        for request in requests:
            assert request.decision is not None
            places = {e.text: e.index for e in request.decision.observation.elements}
            text = self.replies[request.adapter]
            answer = click(places[text]) if text in places else text
            answers.append(Completion(text=answer, prompt="p", adapter=request.adapter))
        return answers

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        self.calls += 1
        self.scored.extend(zip(requests, replies, strict=True))
        found = []
        for request, reply in zip(requests, replies, strict=True):
            assert request.decision is not None and request.adapter is not None
            label = request.decision.observation.elements[json.loads(reply)["index"]].text
            probability = self.beliefs[request.adapter].get(label, 0.0)
            found.append(log(probability) if probability else -inf)
        return found


BELIEFS = {
    "a": {"button 1": 0.5, "button 2": 0.4},
    "b": {"button 1": 0.1, "button 2": 0.6},
    "c": {"button 1": 0.5, "button 2": 0.3},
}


def probability_team(scorer: Scorer, rounds: int = 2, **options: object) -> CollabGraph:
    return CollabGraph.collaborative(
        3, rounds, model=scorer, edges=[("agent_0", "agent_1")], adapters=list("abc"),
        views="shuffle", vote="probability", **options,  # type: ignore[arg-type]
    )  # fmt: skip


def test_each_proposal_weighs_its_probability_under_every_agents_own_view() -> None:
    scorer = Scorer({"a": "button 1", "b": "button 2", "c": "button 1"}, BELIEFS)
    trace = probability_team(scorer).run_sync(SCREEN, seed=8)
    # By count, button 1 wins 2 : 1; by probability, .5 + .1 + .5 = 1.1 against .4 + .6 + .3 = 1.3.
    assert trace.ballot == pytest.approx({tap(1).json(): 1.1, tap(2).json(): 1.3})
    assert trace.action == tap(2)
    # Each agent's context of the last round, with what it heard there.
    assert len(scorer.scored) == 6
    last = {request.adapter: request.decision for request in scorer.requests[3:]}
    assert len(last) == 3
    assert all(request.decision == last[request.adapter] for request, _ in scorer.scored)


def test_who_cannot_be_asked_is_an_error_of_the_user() -> None:
    graph = CollabGraph.collaborative(
        2, 1, model=FixedModel({"a": click(0), "b": click(1)}), adapters=["a", "b"]
    ).with_node(ProbabilityVote())
    with pytest.raises(ConfigError, match="'agent_0'"):
        graph.run_sync(SCREEN)
