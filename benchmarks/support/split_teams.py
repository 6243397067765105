"""Teams on a phone with split facts: one agent for each app, and edges between apps."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from swarm_ui.agent_view import Pane
from swarm_ui.environments.phone.split import SPLIT_APPS, SplitPhone
from swarm_ui.environments.phone.split_agents import ScriptedAgents
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge, descendants, random_dag
from swarm_ui.model import ChatModel
from swarm_ui.node import derive
from swarm_ui.nodes import AgentNode
from swarm_ui.rollout import GraphPolicy
from swarm_ui.trace.records import Episode

DENSITY = 0.5
"""Probability that two agents of a random graph are joined."""
Edges = Callable[[str, int], Iterable[Edge]]
"""``(task, seed) -> edges`` between apps."""


class SplitTeams:
    """Makes the team of an episode: one agent for each app, and the acting agent decides.

    An agent without a path to the acting agent is not called.
    """

    def __init__(
        self, phone: SplitPhone, model: ChatModel | None = None, *, adapter: str | None = None
    ) -> None:
        """
        Args:
            phone: names the apps of each episode.
            model: answers for all agents; ``None``: :class:`ScriptedAgents`.
            adapter: the adapter of all agents.
        """
        self.phone = phone
        self._model = model or ScriptedAgents()
        self._nodes = {
            app: AgentNode(app, self._model, adapter, view=Pane(name=app)) for app in SPLIT_APPS
        }
        self.one = CollabGraph.solo(self._model, adapter=adapter)
        """One agent that sees the whole screen."""

    def team(self, task: str, seed: int, edges: Iterable[Edge]) -> CollabGraph:
        """The team of this episode: the agents with a path to the acting agent, and the edges among
        them."""
        acting, present = self.phone.spec(task).acting, set(self.phone.team(task, seed))
        inside = [edge for edge in edges if present.issuperset(edge)]
        used = descendants([acting], [(listener, sender) for sender, listener in inside])
        nodes = [self._nodes[app] for app in SPLIT_APPS if app in used]
        joined = [edge for edge in inside if edge[1] in used]
        return CollabGraph(nodes, joined, output=acting)

    def policy(self, name: str, edges: Edges) -> GraphPolicy:
        """A team whose edges may depend on the episode."""
        return GraphPolicy(
            lambda task, seed: (self.team(task, seed, edges(task, seed)), None), name=name
        )

    # -- edges ------------------------------------------------------------------------------------

    def silent(self, task: str, seed: int) -> Sequence[Edge]:
        """Edges of a team without messages: there are none."""
        return ()

    def broadcast(self, task: str, seed: int) -> Sequence[Edge]:
        """Edges from every agent to every later one; the acting agent is the last."""
        acting = self.phone.spec(task).acting
        order = [*(app for app in SPLIT_APPS if app != acting), acting]
        return [(a, b) for k, b in enumerate(order) for a in order[:k]]

    def star(self, task: str, seed: int) -> Sequence[Edge]:
        """Edges from every other agent to the acting one."""
        acting = self.phone.spec(task).acting
        return [(app, acting) for app in SPLIT_APPS if app != acting]

    def random(self, task: str, seed: int) -> Sequence[Edge]:
        """Random edges, drawn again for each episode."""
        return random_dag(SPLIT_APPS, DENSITY, random.Random(derive(seed, "split", task)))

    def oracle(self, task: str, seed: int) -> Sequence[Edge]:
        """Edges to the acting agent from only those agents whose facts the task needs."""
        spec = self.phone.spec(task)
        return [(app, spec.acting) for app in spec.sources]


def tokens(episode: Episode) -> int:
    """Tokens of all prompts and replies; with :class:`ScriptedAgents` their words."""
    used = [call.usage for step in episode.steps for call in step.trace.calls]
    return sum(usage.prompt_tokens + usage.completion_tokens for usage in used)
