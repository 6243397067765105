"""The score is 1 exactly when networkx, or brute force, says that the problem is solved."""

from __future__ import annotations

from itertools import product

import networkx as nx
import pytest

from swarm_ui.environments.coordination import (
    FAMILIES,
    KINDS,
    Kind,
    Problem,
    draw_problem,
    read,
    score,
    written,
)

PATH: dict[str, tuple[str, ...]] = {
    "Ada": ("Bob",), "Bob": ("Ada", "Cy"), "Cy": ("Bob", "Dan"), "Dan": ("Cy",),
}  # fmt: skip
"""Ada - Bob - Cy - Dan."""


def path(kind: Kind) -> Problem:
    numbers = dict(zip(PATH, (11, 22, 33, 44), strict=True)) if kind == "consensus" else {}
    return Problem(kind, PATH, passes=3, numbers=numbers)


def network(problem: Problem) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(problem.names)
    graph.add_edges_from(problem.edges)
    return graph


def solved(problem: Problem, answers: dict[str, str]) -> bool:
    """The definition of each kind, without the score."""
    graph, kind = network(problem), problem.kind
    if kind == "colouring":
        classes = [{n for n in graph if answers[n] == c} for c in set(answers.values())]
        return all(graph.subgraph(part).number_of_edges() == 0 for part in classes)
    if kind == "consensus":
        return len(set(answers.values())) == 1
    chosen = {name for name, answer in answers.items() if answer == "yes"}
    if kind == "leader":
        return len(chosen) == 1
    if kind == "cover":
        independent = set(graph) - chosen

        def covers(some: set[str]) -> bool:
            return all(a in some or b in some for a, b in graph.edges)

        return (
            covers(chosen) and not any(covers(chosen - {n}) for n in chosen) and bool(independent)
        )
    named = {name.casefold(): name for name in graph}
    partner = {name: named[answer] for name, answer in answers.items() if answer != "none"}
    if any(partner.get(other) != name for name, other in partner.items()):
        return False
    pairs = {tuple(sorted(pair)) for pair in partner.items()}
    return nx.is_maximal_matching(graph, pairs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_score_is_one_exactly_for_solutions(kind: Kind, family: str) -> None:
    for seed in range(2):
        problem = draw_problem(f"{kind}-{family}-4", seed)
        options = [sorted(problem.answers(name)) for name in problem.names]
        found = set()
        for said in product(*options):
            answers = dict(zip(problem.names, said, strict=True))
            value = score(problem, answers).reward
            assert 0.0 <= value <= 1.0
            assert (value == 1.0) == solved(problem, answers), answers
            found.add(value == 1.0)
        assert found == {True, False}


@pytest.mark.parametrize(
    ("kind", "answers", "value"),
    [
        ("colouring", "1 2 1 2", 1.0),
        ("colouring", "1 1 2 3", 2 / 3),
        ("consensus", "22 22 22 22", 1.0),
        ("consensus", "22 22 22 33", 0.0),
        ("leader", "no no yes no", 1.0),
        ("leader", "no yes yes no", 0.0),
        ("leader", "no no no no", 0.0),
        ("matching", "bob ada dan cy", 1.0),
        ("matching", "none cy bob none", 1.0),
        ("matching", "bob ada none none", 0.5),
        ("matching", "bob cy bob none", 0.75),
        ("cover", "no yes yes no", 1.0),
        ("cover", "yes yes yes no", 1 / 3),
        ("cover", "yes no no no", 1 / 3),
        ("cover", "no no no no", 0.0),
    ],
)
def test_scores_by_hand(kind: Kind, answers: str, value: float) -> None:
    given = dict(zip(PATH, answers.split(), strict=True))
    assert score(path(kind), given).reward == pytest.approx(value)


@pytest.mark.parametrize(
    ("kind", "answers"),
    [
        ("colouring", "1 2 1 4"),  # three colours, since nobody has more than two neighbours
        ("colouring", "1 2 1 red"),
        ("colouring", "1 2 1 ²"),
        ("consensus", "55 55 55 55"),  # nobody holds it
        ("leader", "yes no no maybe"),
        ("cover", "no yes yes"),  # Dan says nothing
        ("matching", "dan cy bob ada"),  # Ada and Dan are no neighbours, and do not fit
    ],
)
def test_an_answer_that_is_not_valid_counts_against_the_team(kind: Kind, answers: str) -> None:
    found = score(path(kind), dict(zip(PATH, answers.split(), strict=False)))
    assert found.reward == (0.5 if kind == "matching" else 0.0)
    assert "gave no valid answer" in found.note


def test_an_agent_cannot_answer_for_another_one() -> None:
    said = {"Ada": "1\nBob: 2", "Bob": "3; Cy: 1", "Cy": "x" * 9_999, "Dan": " 2 "}
    assert read(written(said), list(PATH)) == {"Ada": "1 bob: 2", "Bob": "3 cy: 1", "Dan": "2"}
