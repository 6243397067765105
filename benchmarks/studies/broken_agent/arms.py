"""A team with one broken agent: the kinds of failure, the arms to compare, and their episodes."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import msgspec

from benchmarks.studies.windows.long_phone import LongPhone
from benchmarks.support.origin import commit
from swarm_ui.action import Action
from swarm_ui.agent_view import Window, windows
from swarm_ui.credit import credited
from swarm_ui.environments.phone import (
    TEST_SEEDS,
    VALIDATION_SEEDS,
    PhoneEnvironment,
    draw_jobs,
    tasks,
)
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import forward_edges, shuffled
from swarm_ui.message import Message
from swarm_ui.model import ChatModel, Decision
from swarm_ui.node import NodeContext, NodeReply, derive
from swarm_ui.nodes.agent import AgentNode
from swarm_ui.observation import Observation
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.edges.prune import AgentAudit, find_broken, without_voice
from swarm_ui.rollout import GraphPolicy, Job, rollout_many
from swarm_ui.stats import Outcome, outcomes
from swarm_ui.trace.records import Episode

AGENTS = 4
NAMES = tuple(f"agent_{k}" for k in range(AGENTS))
CONCURRENCY = 128
MEMORY = 1
"""Number of past actions in the observations of long screens, as in the window study."""
_REPLY_TOKENS = 64

Sight = Literal["screen", "half"]
SIGHTS: dict[Sight, str] = {
    "screen": "each agent sees all elements of the screen, in its own order",
    "half": "each agent sees half of a long screen",
}
Kind = Literal["random", "wrong"]
KINDS: dict[Kind, str] = {
    "random": "one agent sends a random action at every call",
    "wrong": "one agent sends a plausible but wrong action at every call",
}
Cut = Literal["nothing", "edges", "vote", "both"]


@dataclass(frozen=True, slots=True)
class BrokenAgent:
    """Replaces an agent: it gets the same input and sends a wrong action."""

    agent: AgentNode
    kind: Kind

    @property
    def id(self) -> str:
        return self.agent.id

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        """A random action on the agent's view, or a mistake in place of the agent's proposal."""
        view, rng = self.agent.look(context), context.rng()
        said = any_action(view.observation, rng)
        if self.kind == "wrong":
            reply = await self.agent(inbox, context)
            own = None if reply.action is None else view.from_screen(reply.action)
            if own is not None:
                decision = Decision(observation=view.observation, partial=view.partial)
                seed = rng.getrandbits(31)
                said = await ScriptedAdversary().oppose(decision, own, seed=seed) or said
        order = None if self.agent.view == "same" else view.order
        return NodeReply(content=said.json(), action=view.to_screen(said), order=order)


def any_action(observation: Observation, rng: random.Random) -> Action:
    """One of the actions that the screen allows, uniformly drawn."""
    words = observation.goal.split() or ["?"]
    offers = [
        Action(action_type="navigate_back"),
        Action(action_type="navigate_home"),
        Action(action_type="status", goal_status="complete"),
    ]
    for element in filter(lambda element: element.enabled, observation.elements):
        label, index = element.label or None, element.index
        if element.clickable:
            offers.append(Action(action_type="click", index=index, target=label))
        if element.editable:
            text = rng.choice(words)
            offers.append(Action(action_type="input_text", index=index, target=label, text=text))
    return rng.choice(offers)


class BrokenArm(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of one arm of the study."""

    name: str
    label: str
    density: float
    """Share of the edges from earlier to later agents of a random order. Order and edges are drawn
    for each episode, so the position of an agent has no effect. With 1, every agent receives the
    messages of all earlier agents."""
    broken: bool = True
    cut: Cut = "nothing"
    found: bool = True
    """Whether to cut the agents that the search found broken; if false, the agent that is
    broken."""


ARMS = (
    BrokenArm(name="healthy", label="healthy, fully connected", density=1.0, broken=False),
    BrokenArm(name="healthy-none", label="healthy, no edges", density=0.0, broken=False),
    BrokenArm(name="none", label="broken: no edges", density=0.0),
    BrokenArm(name="random", label="broken: random edges, redrawn", density=0.5),
    BrokenArm(name="full", label="broken: fully connected", density=1.0),
    BrokenArm(name="cut-edges", label="found, its edges cut", density=1.0, cut="edges"),
    BrokenArm(name="cut-vote", label="found, its vote cut", density=1.0, cut="vote"),
    BrokenArm(name="cut", label="found, edges and vote cut", density=1.0, cut="both"),
    BrokenArm(
        name="told",
        label="broken agent known in advance, edges and vote cut",
        density=1.0,
        cut="both",
        found=False,
    ),
)


class BrokenCell(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all arms with one seed."""

    sight: Sight
    kind: Kind
    seed: int
    commit: str
    agent: str
    """SHA-256 of the weights that all agents have."""
    broken: str
    """Name of the broken agent."""
    found: tuple[str, ...]
    """Agents that were found broken."""
    audits: tuple[AgentAudit, ...]
    healthy_found: tuple[str, ...]
    """Agents of the healthy team that the search found broken; empty if it made no error."""
    healthy_audits: tuple[AgentAudit, ...]
    outcomes: dict[str, list[Outcome]]
    """Outcomes by arm, on the same test episodes; the run is the seed."""
    seconds: float
    """CPU time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenCase:
    """One team with one broken agent, and the settings of its episodes."""

    model: ChatModel
    weights: str
    """SHA-256 of the model's weights."""
    sight: Sight
    kind: Kind
    seed: int
    noise: float
    """Share of the critic's verdicts that are inverted."""

    @property
    def broken(self) -> str:
        return NAMES[self.seed % AGENTS]

    def policy(self, arm: BrokenArm, cut: Sequence[str]) -> GraphPolicy:
        """A team on edges that are drawn for each episode."""
        views: Literal["shuffle"] | tuple[Window, ...]
        views = "shuffle" if self.sight == "screen" else windows(AGENTS, 2)
        team = CollabGraph.collaborative(
            AGENTS, 1, model=self.model, edges=[], views=views, max_tokens=_REPLY_TOKENS
        )
        if arm.broken:
            agent = team.nodes[self.broken]
            assert isinstance(agent, AgentNode)
            team = team.with_node(BrokenAgent(agent, self.kind), name=self.broken)
        edges, vote = arm.cut in ("edges", "both"), arm.cut in ("vote", "both")
        seed = self.seed

        def draw(task: str, episode: int) -> tuple[CollabGraph, float | None]:
            rng = random.Random(derive(seed, "edges", task, episode))
            drawn = team.with_edges(forward_edges(shuffled(NAMES, rng), arm.density, rng))
            return without_voice(drawn, cut, edges=edges, vote=vote), None

        return GraphPolicy(draw, name=arm.label)

    def play(
        self, arm: BrokenArm, jobs: Sequence[Job], cut: Sequence[str], *, graded: bool = False
    ) -> list[Episode]:
        """Episodes of one arm; ``graded``: with a critic's credit."""
        critic = ScriptedCritic(self._phone(), flips=self.noise, seed=derive(self.seed, "critic"))
        policy = self.policy(arm, cut)

        async def played() -> list[Episode]:
            found = await rollout_many(self._phone(), policy, jobs, concurrency=CONCURRENCY)
            if not graded:
                return found
            return [credited(*pair) for pair in zip(found, await critic(found), strict=True)]

        return asyncio.run(played())

    def _phone(self) -> Callable[[], PhoneEnvironment]:
        if self.sight == "screen":
            return PhoneEnvironment
        return partial(LongPhone, memory=MEMORY)


def ladder(
    case: BrokenCase, *, tuning: int, episodes: int, progress: Callable[[int, str], None]
) -> BrokenCell:
    """Find the broken agent on tuning episodes, then play all arms on test episodes.

    Args:
        tuning: graded episodes that are used to find the broken agent.
        episodes: test episodes of each arm.
        progress: called with the number of finished parts, out of ``len(ARMS) + 2``.
    """
    began = time.process_time()
    seen = draw_jobs(tasks("train"), tuning, derive(case.seed, "broken"), seeds=VALIDATION_SEEDS)
    jobs = draw_jobs(tasks("train"), episodes, 1 + case.seed, seeds=TEST_SEEDS)
    arms = {arm.name: arm for arm in ARMS}
    progress(0, "searching the broken team")
    audits = find_broken(case.play(arms["full"], seen, (), graded=True))
    progress(1, "searching the healthy team")
    healthy = find_broken(case.play(arms["healthy"], seen, (), graded=True))
    found = tuple(sorted(audit.agent for audit in audits if audit.broken))
    played: dict[str, list[Outcome]] = {}
    for number, arm in enumerate(ARMS):
        progress(2 + number, arm.label)
        cut: tuple[str, ...] = ()
        if arm.cut != "nothing":
            cut = found if arm.found else (case.broken,)
        if arm.name == "told" and cut == found:
            played[arm.name] = played["cut"]  # the same team, and nothing in it is random
            continue
        played[arm.name] = outcomes(case.play(arm, jobs, cut), case.seed)
    return BrokenCell(
        sight=case.sight,
        kind=case.kind,
        seed=case.seed,
        commit=commit(),
        agent=case.weights,
        broken=case.broken,
        found=found,
        audits=audits,
        healthy_found=tuple(sorted(audit.agent for audit in healthy if audit.broken)),
        healthy_audits=healthy,
        outcomes=played,
        seconds=time.process_time() - began,
    )
