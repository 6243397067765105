"""Coordination on networks behind the environment contract, and the score of the answers.

The scores are those of AgentsNet (arXiv 2507.08616 and its released code).

===========  ====================================================================
kind         score
===========  ====================================================================
colouring    share of the edges whose ends have different colours
consensus    1 if all agents give the same number, and an agent holds it; else 0
leader       1 if exactly one agent answers yes; else 0
matching     share of the agents whose answer fits those of their neighbours
cover        share of the edges with a coordinator, times the share of the coordinators
             that are needed; 0 without any coordinator
===========  ====================================================================

In a matching, an invalid answer counts as an answer that does not fit; in the other kinds it makes
the score 0. AgentsNet does the same, except that in a cover it counts an agent with an invalid
answer as no coordinator.

The answers of all agents are the text of one action: one line for each agent, ``NAME: ANSWER``.
Agents are not trusted: the text of an answer cannot add a line. Answers are ignored if two lines
have the same name, or if no agent has the name.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from swarm_ui.action import Action
from swarm_ui.environments.base import Done, Stateful
from swarm_ui.environments.coordination.problem import Problem, draw_problem, task_names
from swarm_ui.observation import Observation

LONGEST = 40
"""Maximum number of characters of an agent's answer. No valid answer is longer."""


def score(problem: Problem, answers: Mapping[str, str]) -> Done:
    """The score of answers, by the agents' names, in lower case, as the reward of an episode: in
    [0, 1], and 1.0 if and only if they solve the problem. Missing answers are not valid."""
    valid = {
        name: text
        for name, text in answers.items()
        if name in problem.neighbours and text in problem.answers(name)
    }
    missing = len(problem.names) - len(valid)
    counts = not missing or problem.kind == "matching"
    value = _value(problem, valid) if counts else 0.0
    lacking = f": {missing} agents gave no valid answer" if missing else ""
    return Done(value, f"score {value:.3f}{lacking}")


def _value(problem: Problem, answers: Mapping[str, str]) -> float:
    """The score of valid answers."""
    edges, said = problem.edges, list(answers.values())
    if problem.kind == "colouring":
        return sum(answers[a] != answers[b] for a, b in edges) / len(edges)
    if problem.kind == "consensus":
        return float(len(set(said)) == 1)
    if problem.kind == "leader":
        return float(said.count("yes") == 1)
    if problem.kind == "matching":
        return sum(_fits(problem, answers, name) for name in problem.names) / len(problem.names)
    chosen = {name for name, answer in answers.items() if answer == "yes"}
    covered = sum(a in chosen or b in chosen for a, b in edges)
    needed = chosen  # of those without whom fewer pairs would have a coordinator
    if covered == len(edges):
        needed = {name for name in chosen if not chosen.issuperset(problem.neighbours[name])}
    return covered * len(needed) / (len(edges) * len(chosen)) if chosen else 0.0


def _fits(problem: Problem, answers: Mapping[str, str], name: str) -> bool:
    """Whether an answer in a matching fits those of the neighbours."""
    answer = answers.get(name)
    if answer == "none":
        return all(answers.get(other) != "none" for other in problem.neighbours[name])
    return any(
        answers.get(other) == name.casefold()
        for other in problem.neighbours[name]
        if other.casefold() == answer
    )


def written(answers: Mapping[str, str]) -> str:
    """One line for each agent, by its name. Answers that are too long are left out."""
    flat = {name: " ".join(text.replace(";", " ").split()) for name, text in answers.items()}
    return "\n".join(f"{name}: {text}" for name, text in flat.items() if len(text) <= LONGEST)


def read(text: str, names: Collection[str]) -> dict[str, str]:
    """The answers by name, in lower case. ``;`` may stand in place of a line break.

    Lines of other forms, of unknown names, and of names with several lines are left out.
    """
    known = {name.casefold(): name for name in names}
    found: dict[str, list[str]] = {}
    for line in text.replace(";", "\n").split("\n"):
        who, colon, answer = line.partition(":")
        name = known.get(who.strip().casefold())
        if colon and name is not None:
            found.setdefault(name, []).append(answer.strip().casefold())
    return {name: said[0] for name, said in found.items() if len(said) == 1}


class CoordinationEnvironment(Stateful):
    """Agents on a network solve a problem of distributed computing together.

    After AgentsNet (arXiv 2507.08616). An episode is one decision of the whole team: an ``answer``
    with one line for each agent, ``NAME: ANSWER``. It ends the episode, and its reward is the
    score in [0, 1]. Other actions change nothing; the third of them truncates the episode.

    The observation shows the whole network;
    :class:`~swarm_ui.environments.coordination.policy.CoordinationPolicy` shows each agent
    its own part and gathers the answers.
    """

    name = "coordination"
    tasks = task_names()
    budget = 3
    actions = ("answer",)
    state: Problem

    @property
    def problem(self) -> Problem:
        """The problem of the running episode. Raises ``EnvironmentFault`` if there is none."""
        _ = self.progress
        return self.state

    def begin(self, task: str, rng: random.Random) -> str:
        self.state = draw_problem(task, self.seed)
        return self.state.observation().goal

    def screen(self) -> Observation:
        return self.state.observation()

    def act(self, action: Action, element: object) -> Done:
        return score(self.state, read(action.text or "", self.state.names))
