"""What can stand in a graph: agents, votes, functions; and the models behind agents."""

if __name__ == "nodes":  # the folder was imported by its bare name, from a checkout's root
    raise ImportError("import swarm_ui.nodes, not nodes")

from swarm_ui.nodes.agent import AgentNode
from swarm_ui.nodes.function import FunctionNode, function_node
from swarm_ui.nodes.models.scripted.scripted_model import ScriptedModel
from swarm_ui.nodes.vote import MajorityVote, ProbabilityVote

__all__ = [
    "AgentNode",
    "FunctionNode",
    "MajorityVote",
    "ProbabilityVote",
    "ScriptedModel",
    "function_node",
]
