"""Teams of language-model agents that operate screens, as graphs with learnable edges and weights.

    from swarm_ui import CollabGraph

    team = CollabGraph.collaborative(agents=4, rounds=3, model=model)
    trace = await team.run(observation)
    trace.action

The core: graphs, messages, traces and the interfaces to models and environments. Nodes,
environments and learning are in ``swarm_ui.nodes``, ``swarm_ui.environments`` and
``swarm_ui.optim``.
"""

from __future__ import annotations

from swarm_ui.action import Abstain, Action, Unparsed, parse_action
from swarm_ui.agent_view import Pane, View
from swarm_ui.budget import Budget, Price
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.credit import Credit, Critic, Judge, credited
from swarm_ui.engine.limits import Limits
from swarm_ui.environment import Environment, Graded, Restorable, Step
from swarm_ui.errors import (
    BudgetExceeded,
    ConfigError,
    EnvironmentFault,
    Failure,
    GraphError,
    LearningError,
    MissingExtra,
    ModelError,
    ModelUnavailable,
    NodeError,
    ReplyError,
    RunFailed,
    RunPaused,
    SwarmError,
    TraceError,
)
from swarm_ui.graph import shapes
from swarm_ui.message import Heard, Message, Question, Usage
from swarm_ui.model import (
    ChatMessage,
    ChatModel,
    Completion,
    Decision,
    Generation,
    Request,
    ScoringModel,
    StreamingModel,
    VersionedModel,
)
from swarm_ui.node import Node, NodeContext, NodeReply
from swarm_ui.observation import Element, Observation, render
from swarm_ui.prompts import transcript
from swarm_ui.rollout import GraphPolicy, Intervention, Policy, rollout_many
from swarm_ui.storage.journal import Journal, RunRecord
from swarm_ui.trace.jsonl import read_jsonl, write_jsonl
from swarm_ui.trace.records import DRAW, Call, Episode, StepRecord, Trace
from swarm_ui.version import __version__

__all__ = [
    "Abstain", "Action", "Budget", "BudgetExceeded", "Call", "ChatMessage", "ChatModel",
    "CollabGraph", "Completion", "ConfigError", "Credit", "Critic", "Decision", "Element",
    "Environment", "EnvironmentFault", "Episode", "Failure", "Generation", "Graded", "GraphError",
    "GraphPolicy", "Heard", "Intervention", "Journal", "Judge", "LearningError", "Limits",
    "Message", "MissingExtra", "ModelError", "ModelUnavailable", "Node", "NodeContext", "NodeError",
    "NodeReply", "Observation", "Pane", "Policy", "Price", "Question", "ReplyError",
    "Request", "Restorable", "RunFailed", "RunPaused", "RunRecord", "ScoringModel", "Step",
    "StepRecord", "StreamingModel", "SwarmError", "Trace", "TraceError", "Unparsed", "Usage",
    "VersionedModel", "View", "__version__", "credited", "parse_action", "read_jsonl", "render",
    "rollout_many", "shapes", "transcript", "write_jsonl",
]  # fmt: skip


def _trace_svg(trace: Trace) -> str:
    # Drawing is imported only where something is drawn.
    from swarm_ui.viz import trace_svg

    return trace_svg(trace)


def _trace_html(trace: Trace) -> str:
    from swarm_ui.viz import scrolling

    return scrolling(_trace_svg(trace))


DRAW.update(svg=_trace_svg, html=_trace_html)
