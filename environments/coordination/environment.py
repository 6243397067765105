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
from typing import NamedTuple

from swarm_ui.action import Action
from swarm_ui.environments.base import Done, Stateful
from swarm_ui.environments.coordination.problem import Problem, draw_problem, task_names
from swarm_ui.observation import Observation

LONGEST = 40
"""Maximum number of characters of an agent's answer. No valid answer is longer."""
Answers = Mapping[str, str]


class Score(NamedTuple):
    """The score of a solution."""

    value: float
    """Score in [0, 1]; 1.0 if and only if the answers solve the problem."""
    note: str


def score(problem: Problem, answers: Mapping[str, str]) -> Score:
    """The score of answers, by the agents' names, in lower case. Missing ones are not valid."""
    valid = {
        name: text
        for name, text in answers.items()
        if name in problem.neighbours and text in problem.answers(name)
    }
    missing = len(problem.names) - len(valid)
    lacking = f"; {missing} agents gave no valid answer" if missing else ""
    if missing and problem.kind != "matching":
        value, note = 0.0, "the answers do not count"
    else:
        value, note = _SCORES[problem.kind](problem, valid)
    return Score(value, f"score {value:.3f}: {note}{lacking}")


def _colouring(problem: Problem, answers: Answers) -> tuple[float, str]:
    edges = problem.edges
    good = sum(answers[a] != answers[b] for a, b in edges)
    return good / len(edges), f"{good} of {len(edges)} pairs of neighbours have different colours"


def _consensus(problem: Problem, answers: Answers) -> tuple[float, str]:
    count = len(set(answers.values()))
    return float(count == 1), f"{count} different numbers"


def _leader(problem: Problem, answers: Answers) -> tuple[float, str]:
    count = list(answers.values()).count("yes")
    return float(count == 1), f"{count} leaders"


def _matching(problem: Problem, answers: Answers) -> tuple[float, str]:
    partner = {other.casefold(): other for other in problem.names}

    def fits(name: str) -> bool:
        answer = answers.get(name)
        if answer == "none":
            return all(answers.get(other) != "none" for other in problem.neighbours[name])
        return answer is not None and answers.get(partner[answer]) == name.casefold()

    good, count = sum(map(fits, problem.names)), len(problem.names)
    return good / count, f"{good} of {count} agents have an answer that fits"


def _cover(problem: Problem, answers: Answers) -> tuple[float, str]:
    chosen = {name for name, answer in answers.items() if answer == "yes"}
    if not chosen:
        return 0.0, "no coordinators"
    edges = problem.edges
    covered = sum(a in chosen or b in chosen for a, b in edges)
    if covered < len(edges):  # without any of them, still fewer pairs would have a coordinator
        needed = len(chosen)
    else:
        needed = sum(any(n not in chosen for n in problem.neighbours[name]) for name in chosen)
    note = f"{covered} of {len(edges)} pairs have a coordinator, {needed} of {len(chosen)} needed"
    return covered * needed / (len(edges) * len(chosen)), note


_SCORES = {
    "colouring": _colouring,
    "consensus": _consensus,
    "leader": _leader,
    "matching": _matching,
    "cover": _cover,
}


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
    state_type = Problem
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
        return Done(*score(self.state, read(action.text or "", self.state.names)))
