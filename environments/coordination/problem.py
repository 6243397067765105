"""One coordination task: the agents, their neighbours, and the view of each agent.

The five kinds are those of AgentsNet (arXiv 2507.08616):

- ``colouring``: neighbours have different colours. The number of colours is the largest number of
  neighbours of an agent, plus one;
- ``consensus``: all agents give the same value. Here each agent holds a number, and the value must
  be one of them. AgentsNet asks for 0 or 1, which agents that all say 0 solve without a message;
- ``leader``: exactly one agent is the leader;
- ``matching``: pairs of neighbours; two agents without a partner are never neighbours;
- ``cover``: a minimal vertex cover. Of two neighbours at least one is a coordinator, and no
  coordinator can be removed without breaking this rule.

The networks are random and connected, of three families:

- ``smallworld``: Watts and Strogatz (1998), four neighbours, rewired with probability 0.4. With
  four agents it is the complete network.
- ``preferential``: Barabási and Albert (1999), two edges for each new agent.
- ``geometric``: agents at random places in the unit square, joined if they are near.

The first two have the parameters of AgentsNet (arXiv 2507.08616). AgentsNet's geometric networks
are Delaunay triangulations, which need scipy; those of this module are random geometric graphs.

The range in which a seed lies decides the split. A network is drawn from its seed, and the names of
its agents from the names that belong to the split, so that no name of ``TEST_SEEDS`` occurs in an
episode of ``TRAIN_SEEDS``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import log, pi, sqrt
from typing import TYPE_CHECKING, Literal, cast, get_args

from swarm_ui.environments.base import SPLIT_SEEDS, split_of
from swarm_ui.errors import ConfigError
from swarm_ui.node import derive
from swarm_ui.observation import Element, Observation

if TYPE_CHECKING:
    import networkx

Kind = Literal["colouring", "consensus", "leader", "matching", "cover"]
"""Kind of the coordination problem, see above."""
Family = Literal["smallworld", "preferential", "geometric"]
"""Family of random networks; see :func:`draw_network`."""

KINDS: tuple[Kind, ...] = get_args(Kind)
FAMILIES: tuple[Family, ...] = get_args(Family)
SMALL = (4, 8, 16)
"""Numbers of agents of the small tasks, which are those of AgentsNet's main comparison."""
LARGE = (50, 100)

_SYLLABLES = tuple(map("".join, product("bdfgklmnprstvz", "aeiou")))
_NAMES = tuple((a + b).capitalize() for a in _SYLLABLES for b in _SYLLABLES if a != b)
_DEGREE = 4
_REWIRED = 0.4
_NEW_EDGES = 2
_NUMBERS = range(100, 1000)

_SETTING = """\
You are one agent of a team on a network. The screen shows your own name and the names of your \
neighbours. You work in {rounds} rounds. In each round all agents reply at the same time, and your \
reply is read by your neighbours in the next round, and by nobody else. Begin your reason with the \
number of the round, and say in it what your neighbours need to know. In every round give your \
present answer with the action "answer"; only the answers of the last round count. All agents \
succeed or fail together. The task: {task}"""

_TASKS: Mapping[Kind, str] = {
    "colouring": (
        "Choose one of the colours 1 to {colours}, so that no two neighbours have the same colour. "
        "Your answer is the number of your colour."
    ),
    "consensus": (
        "Every agent holds a number. Agree on one of these numbers. Your answer is the number that "
        "the team agreed on."
    ),
    "leader": (
        "Elect one leader. Your answer is yes if you are the leader, and no if another agent is. "
        "Exactly one agent may answer yes."
    ),
    "matching": (
        "Form pairs of neighbours. Your answer is the name of the neighbour that you form a pair "
        "with, who must answer with your name; or none, if all your neighbours are in other pairs."
    ),
    "cover": (
        "Choose coordinators, so that of any two neighbours at least one is a coordinator, and "
        "every coordinator has a neighbour who is not one. Your answer is yes if you are a "
        "coordinator, else no."
    ),
}


@dataclass(frozen=True)
class Problem:
    """A task with its network."""

    kind: Kind
    neighbours: Mapping[str, tuple[str, ...]]
    """The names of the neighbours of each agent, by its name; symmetric."""
    passes: int
    """Number of times that messages are passed on, at least 1."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The number that each agent holds, by its name; only for ``consensus``."""

    @property
    def names(self) -> tuple[str, ...]:
        """The agents, in the order of the observation."""
        return tuple(self.neighbours)

    @property
    def rounds(self) -> int:
        """Number of calls of each agent: one more than messages are passed on."""
        return self.passes + 1

    @property
    def colours(self) -> int:
        """The number of colours: one more than the largest number of neighbours."""
        return 1 + max(map(len, self.neighbours.values()))

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Each pair of neighbours once."""
        return tuple((a, b) for a, found in self.neighbours.items() for b in found if a < b)

    def answers(self, name: str) -> frozenset[str]:
        """The valid answers of an agent, in lower case."""
        if self.kind == "colouring":
            return frozenset(str(colour) for colour in range(1, self.colours + 1))
        if self.kind == "matching":
            return frozenset(["none", *(other.casefold() for other in self.neighbours[name])])
        if self.kind == "consensus":
            return frozenset(map(str, self.numbers.values()))
        return frozenset(["yes", "no"])

    def observation(self) -> Observation:
        """The whole network, with one pane for each agent. An agent sees only its own pane."""
        task = _TASKS[self.kind].format(colours=self.colours)
        about = [(name, *row) for name in self.neighbours for row in self._about(name)]
        return Observation(
            goal=_SETTING.format(rounds=self.rounds, task=task),
            elements=tuple(
                Element(index=k, role="text", text=text, value=value, clickable=False, pane=name)
                for k, (name, text, value) in enumerate(about)
            ),
            app=self.kind,
            actions=("answer",),
        )

    def _about(self, name: str) -> list[tuple[str, str]]:
        """The rows of an agent's screen, as label and value."""
        rows = [("your name", name)]
        if self.kind == "colouring":
            rows.append(("colours", f"1 to {self.colours}"))
        if self.kind == "consensus":
            rows.append(("your number", str(self.numbers[name])))
        return rows + [("neighbour", other) for other in self.neighbours[name]]


def draw_problem(task: str, seed: int) -> Problem:
    """The task with this name and seed; equal arguments give equal problems.

    All kinds with the same family, size and seed have the same network, names included.

    Messages are passed on ``2 * diameter + 1`` times, as in AgentsNet for consensus, leader
    election and all networks of more than 16 agents.

    Raises:
        ConfigError: there is no such task, or the seed belongs to no split.
    """
    import networkx as nx

    if task not in task_names():
        sizes = ", ".join(map(str, (*SMALL, *LARGE)))
        raise ConfigError(
            f"coordination: no task {task!r}; expected KIND-FAMILY-SIZE with a kind of "
            f"{', '.join(KINDS)}, a family of {', '.join(FAMILIES)} and a size of {sizes}"
        )
    kind, family, count = cast(tuple[Kind, Family, str], task.split("-"))
    pool, size = names_of(seed), int(count)
    rng = random.Random(derive(seed, "coordination", family, size))
    graph = draw_network(family, size, rng)
    names = rng.sample(pool, size)
    neighbours = {
        names[k]: tuple(sorted(names[other] for other in graph.neighbors(k)))
        for k in rng.sample(range(size), size)
    }
    numbers = dict(zip(names, rng.sample(_NUMBERS, size), strict=True))
    return Problem(
        kind,
        neighbours,
        passes=2 * nx.diameter(graph) + 1,
        numbers=numbers if kind == "consensus" else {},
    )


def task_names(sizes: tuple[int, ...] = (*SMALL, *LARGE)) -> tuple[str, ...]:
    """The tasks with these numbers of agents, such as ``"colouring-smallworld-16"``."""
    return tuple(
        f"{kind}-{family}-{size}" for size in sizes for kind in KINDS for family in FAMILIES
    )


def names_of(seed: int) -> tuple[str, ...]:
    """The names that agents may have in an episode with this seed.

    Raises:
        ConfigError: the seed is in none of the three ranges.
    """
    part = list(SPLIT_SEEDS).index(split_of(seed))
    return _NAMES[part :: len(SPLIT_SEEDS)]


def draw_network(family: Family, size: int, rng: random.Random) -> networkx.Graph[int]:
    """A connected network of the agents 0 ... ``size`` - 1; equal generators give equal ones."""
    import networkx as nx

    if family == "smallworld":
        seed = rng.getrandbits(32)
        return nx.connected_watts_strogatz_graph(size, _DEGREE, _REWIRED, tries=1000, seed=seed)
    if family == "preferential":
        return nx.barabasi_albert_graph(size, _NEW_EDGES, seed=rng.getrandbits(32))
    # The radius is near the threshold of connectivity, so few draws are needed.
    radius = sqrt(2 * log(size) / (pi * size))
    while not nx.is_connected(drawn := nx.random_geometric_graph(size, radius, seed=rng)):
        pass
    return drawn
