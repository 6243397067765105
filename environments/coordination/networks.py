"""Random connected networks of the three families.

- ``smallworld``: Watts and Strogatz (1998), four neighbours, rewired with probability 0.4. With
  four agents it is the complete network.
- ``preferential``: Barabási and Albert (1999), two edges for each new agent.
- ``geometric``: agents at random places in the unit square, joined if they are near.

The first two have the parameters of AgentsNet (arXiv 2507.08616). AgentsNet's geometric networks
are Delaunay triangulations, which need scipy; those of this module are random geometric graphs.
"""

from __future__ import annotations

import random
from itertools import combinations
from math import dist, log, pi, sqrt
from typing import TYPE_CHECKING

from swarm_ui.environments.coordination.splits import Family

if TYPE_CHECKING:
    import networkx

_DEGREE = 4
_REWIRED = 0.4
_NEW_EDGES = 2


def draw_network(family: Family, size: int, rng: random.Random) -> networkx.Graph[int]:
    """A connected network of the agents 0 ... ``size`` - 1; equal generators give equal ones."""
    import networkx as nx

    if family == "geometric":
        return _geometric(size, rng)
    seed = rng.getrandbits(32)
    if family == "smallworld":
        drawn = nx.connected_watts_strogatz_graph(size, _DEGREE, _REWIRED, tries=1000, seed=seed)
    else:
        drawn = nx.barabasi_albert_graph(size, _NEW_EDGES, seed=seed)
    return drawn


def _geometric(size: int, rng: random.Random) -> networkx.Graph[int]:
    """A random geometric graph, drawn until it is connected.

    The radius is near the threshold of connectivity, so few draws are needed.
    """
    import networkx as nx

    radius = sqrt(2 * log(size) / (pi * size))
    while True:
        places = [(rng.random(), rng.random()) for _ in range(size)]
        near = (
            (a, b) for a, b in combinations(range(size), 2) if dist(places[a], places[b]) <= radius
        )
        graph = nx.Graph()
        graph.add_nodes_from(range(size))
        graph.add_edges_from(near)
        if nx.is_connected(graph):
            return graph
