"""Teams of language-model agents that operate screens, as graphs whose edges and weights learn.

    from swarm_ui import CollabGraph

    team = CollabGraph.collaborative(agents=4, rounds=3, model=model)
    trace = await team.run(observation)
    trace.action

The core: graphs, messages, traces and the seams to models and environments. Nodes, environments
and learning live in ``swarm_ui.nodes``, ``swarm_ui.environments`` and ``swarm_ui.optim``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.credit import CreditAssigner, CreditTable
from swarm_ui.environment import Environment, Graded, Restorable, Step
from swarm_ui.errors import (
    BudgetExceeded,
    ConfigError,
    EnvironmentFault,
    GraphError,
    MissingExtra,
    ModelError,
    NodeError,
    NodeTimeout,
    SwarmError,
    TraceError,
)
from swarm_ui.executor import execute
from swarm_ui.graph import CollabGraph
from swarm_ui.message import Heard, Message, Usage
from swarm_ui.model import ChatModel, Completion, Decision, Request, ScoringModel
from swarm_ui.node import Node, NodeContext, NodeReply
from swarm_ui.observation import Element, Observation, render
from swarm_ui.policy import Cascade, GraphPolicy, LoopGuard, Policy
from swarm_ui.records import append_jsonl, iter_jsonl, read_jsonl, repair_jsonl, write_jsonl
from swarm_ui.rollout import Guidance, rollout_many
from swarm_ui.run import Limits
from swarm_ui.topology import random_dag
from swarm_ui.trace import Call, Episode, StepRecord, Trace
from swarm_ui.view import View

if TYPE_CHECKING:
    from swarm_ui.nodes import AgentNode, MajorityVote, ProbabilityVote, function_node

_FROM_NODES = ("AgentNode", "MajorityVote", "ProbabilityVote", "function_node")

__all__ = [
    "Action",
    "AgentNode",
    "BudgetExceeded",
    "Call",
    "Cascade",
    "ChatModel",
    "CollabGraph",
    "Completion",
    "ConfigError",
    "CreditAssigner",
    "CreditTable",
    "Decision",
    "Element",
    "Environment",
    "EnvironmentFault",
    "Episode",
    "Graded",
    "GraphError",
    "GraphPolicy",
    "Guidance",
    "Heard",
    "Limits",
    "LoopGuard",
    "MajorityVote",
    "Message",
    "MissingExtra",
    "ModelError",
    "Node",
    "NodeContext",
    "NodeError",
    "NodeReply",
    "NodeTimeout",
    "Observation",
    "Policy",
    "ProbabilityVote",
    "Request",
    "Restorable",
    "ScoringModel",
    "Step",
    "StepRecord",
    "SwarmError",
    "Trace",
    "TraceError",
    "Unparsed",
    "Usage",
    "View",
    "append_jsonl",
    "execute",
    "function_node",
    "iter_jsonl",
    "parse_action",
    "random_dag",
    "read_jsonl",
    "render",
    "repair_jsonl",
    "rollout_many",
    "write_jsonl",
]


def __getattr__(name: str) -> object:
    """Nodes on demand: the core imports none by itself."""
    if name in _FROM_NODES:
        from swarm_ui import nodes

        return getattr(nodes, name)
    raise AttributeError(f"module 'swarm_ui' has no attribute '{name}'")
