"""Teams of scripted agents on a phone with split facts, and the arms of the study."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from swarm_ui.agent_view import Pane
from swarm_ui.environments.phone.split import SPLIT_APPS, SplitPhone, scripted_reply
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge, descendants, random_dag
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Request
from swarm_ui.node import derive
from swarm_ui.nodes import AgentNode
from swarm_ui.prompts import as_chat, format_named
from swarm_ui.rollout.policy import GraphPolicy
from swarm_ui.trace.records import Episode

AGENTS = 10
DENSITY = 0.5
"""Of random graphs: the chance that two agents are joined."""
_FORMAT = "compact"
Edges = Callable[[str, int], Iterable[Edge]]
"""``(task, seed) -> edges`` between apps."""


def _reply(request: Request) -> Completion:
    """The scripted reply, with the words of prompt and reply as tokens."""
    assert request.decision is not None
    chat = as_chat(request, format_named(_FORMAT).chat)
    prompt = "\n".join(turn.content for turn in chat)
    text = scripted_reply(request.decision)
    usage = Usage(prompt_tokens=len(prompt.split()), completion_tokens=len(text.split()))
    return Completion(
        text=text, prompt=prompt, usage=usage, model="scripted", prompt_format=_FORMAT
    )


class ScriptedAgents:
    """The model of all agents. It is a script, not a language model."""

    name = "scripted"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One scripted reply for each request."""
        return [_reply(request) for request in requests]


class SplitTeams:
    """Makes the team of an episode: one agent for each app, and the acting agent decides.

    An agent without a path to the acting agent is not called.
    """

    def __init__(self, phone: SplitPhone) -> None:
        self.phone = phone
        self._model = ScriptedAgents()
        self._nodes = {app: AgentNode(app, self._model, view=Pane(name=app)) for app in SPLIT_APPS}
        self.one = CollabGraph.solo(self._model)
        """One agent that sees the whole screen."""

    def team(self, task: str, seed: int, edges: Iterable[Edge]) -> CollabGraph:
        """The agents that reach the acting one, on those of the edges that join them."""
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

    # -- edges of the arms ------------------------------------------------------------------------

    def silent(self, task: str, seed: int) -> Sequence[Edge]:
        """No edges."""
        return ()

    def broadcast(self, task: str, seed: int) -> Sequence[Edge]:
        """Every agent to every later one, the acting agent last."""
        acting = self.phone.spec(task).acting
        order = [*(app for app in SPLIT_APPS if app != acting), acting]
        return [(a, b) for k, b in enumerate(order) for a in order[:k]]

    def star(self, task: str, seed: int) -> Sequence[Edge]:
        """Every agent to the acting one."""
        acting = self.phone.spec(task).acting
        return [(app, acting) for app in SPLIT_APPS if app != acting]

    def random(self, task: str, seed: int) -> Sequence[Edge]:
        """A random graph for each episode."""
        return random_dag(SPLIT_APPS, DENSITY, random.Random(derive(seed, "split", task)))

    def oracle(self, task: str, seed: int) -> Sequence[Edge]:
        """The needed senders only."""
        spec = self.phone.spec(task)
        return [(app, spec.acting) for app in spec.sources]


def tokens(episode: Episode) -> int:
    """Words of all prompts and replies."""
    used = [call.usage for step in episode.steps for call in step.trace.calls]
    return sum(usage.prompt_tokens + usage.completion_tokens for usage in used)
