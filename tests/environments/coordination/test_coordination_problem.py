"""Problems: equal for equal seeds, on connected networks, with names that no other split has."""

from __future__ import annotations

import networkx as nx
import pytest

from swarm_ui.action import Action
from swarm_ui.agent_view import Pane, View
from swarm_ui.environments.coordination import (
    TEST_SEEDS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    CoordinationEnvironment,
    Problem,
    draw_problem,
    names_of,
    task_names,
)
from swarm_ui.errors import ConfigError, EnvironmentFault


@pytest.mark.parametrize("task", [t for t in task_names() if t.startswith("consensus")])
def test_networks_are_connected_and_have_the_right_size(task: str) -> None:
    problem, again = draw_problem(task, 3), draw_problem(task, 3)
    assert problem.neighbours == again.neighbours and problem.numbers == again.numbers
    graph: nx.Graph[str] = nx.Graph(problem.edges)
    assert len(problem.names) == graph.number_of_nodes() == int(task.rpartition("-")[2])
    assert nx.is_connected(graph)
    assert problem.passes == 2 * nx.diameter(graph) + 1 and problem.rounds == problem.passes + 1
    for name, others in problem.neighbours.items():
        assert all(name in problem.neighbours[other] for other in others)
    assert len(set(problem.numbers.values())) == len(problem.names)
    assert draw_problem(task, 4).names != problem.names


def test_no_name_occurs_in_two_splits() -> None:
    pools = [set(names_of(seeds[0])) for seeds in (TRAIN_SEEDS, VALIDATION_SEEDS, TEST_SEEDS)]
    assert [a & b for a in pools for b in pools if a is not b] == [set()] * 6
    assert min(map(len, pools)) > 1_000
    for seeds, pool in zip((TRAIN_SEEDS, VALIDATION_SEEDS, TEST_SEEDS), pools, strict=True):
        assert set(draw_problem("leader-smallworld-50", seeds[-1]).names) <= pool


@pytest.mark.parametrize(
    ("task", "seed"),
    [("", 0), ("leader-smallworld-5", 0), ("vote-smallworld-4", 0), ("leader-smallworld-4", -1)],
)
def test_unknown_tasks_and_seeds_of_no_split_are_refused(task: str, seed: int) -> None:
    with pytest.raises(ConfigError, match=r"expected (KIND-FAMILY-SIZE|0 <= seed)"):
        draw_problem(task, seed)


def rows(problem: Problem, name: str) -> list[tuple[str, str | None]]:
    view = View(problem.observation(), Pane(name=name).order(problem.observation()))
    return [(element.text, element.value) for element in view.observation.elements]


def test_an_agent_sees_its_name_its_neighbours_and_what_it_holds() -> None:
    problem = draw_problem("consensus-geometric-16", 1)
    for name in problem.names:
        assert rows(problem, name) == [
            ("your name", name),
            ("your number", str(problem.numbers[name])),
            *(("neighbour", other) for other in problem.neighbours[name]),
        ]
    goal = problem.observation().goal
    assert f"{problem.rounds} rounds" in goal and not any(n in goal for n in problem.names)


async def test_one_answer_ends_the_episode_and_other_actions_are_lost() -> None:
    world = CoordinationEnvironment()
    await world.reset(task="leader-smallworld-4", seed=0)
    lost = await world.step(Action(action_type="wait"))
    assert "wait" in lost.note and not lost.ended
    state = world.snapshot()
    names = world.problem.names
    lines = [f"{name}: {'yes' if k == 2 else 'no'}" for k, name in enumerate(names)]
    step = await world.step(Action(action_type="answer", text="\n".join(lines)))
    assert step.terminated and step.reward == 1.0 and step.note == "score 1.000"
    with pytest.raises(EnvironmentFault):
        await world.step(Action(action_type="wait"))
    world.restore(state)
    step = await world.step(Action(action_type="answer", text="nonsense"))
    assert step.terminated and step.reward == 0.0 and "4 agents gave no valid" in step.note
    with pytest.raises(EnvironmentFault):
        world.restore("state")
