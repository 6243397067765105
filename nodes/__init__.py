"""Nodes of a graph: agents, language models, votes and functions; and the models they ask.

Models that need torch or a client of an endpoint are imported when they are first used.
"""

if __name__ == "nodes":  # the folder was imported by its bare name, from a checkout's root
    raise ImportError("import swarm_ui.nodes, not nodes")

from importlib import import_module
from typing import TYPE_CHECKING, Any

from swarm_ui.nodes.agent import AgentNode
from swarm_ui.nodes.ask import Ask
from swarm_ui.nodes.chat import ChatNode, Tool, mcp_tools
from swarm_ui.nodes.fallback import Fallback
from swarm_ui.nodes.function import FunctionNode, function_node
from swarm_ui.nodes.map import Map
from swarm_ui.nodes.models.scripted.scripted_model import ScriptedModel
from swarm_ui.nodes.vote import MajorityVote, ProbabilityVote

if TYPE_CHECKING:
    from swarm_ui.nodes.models.acting.actor_model import ActorModel
    from swarm_ui.nodes.models.acting.published_model import PublishedModel
    from swarm_ui.nodes.models.openai.model import OpenAIModel
    from swarm_ui.nodes.models.openai.options import ChatOptions, RateLimits
    from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, GENERAL_AGENT, LocalModel
    from swarm_ui.nodes.models.transformers.causal_model import CausalModel
    from swarm_ui.nodes.models.transformers.vision_model import VisionModel
    from swarm_ui.nodes.models.vllm_model import VLLMModel

__all__ = [
    "BASE_AGENT", "GENERAL_AGENT", "ActorModel", "AgentNode", "Ask", "CausalModel", "ChatNode",
    "ChatOptions", "Fallback", "FunctionNode", "LocalModel", "MajorityVote", "Map", "OpenAIModel",
    "ProbabilityVote", "PublishedModel", "RateLimits", "ScriptedModel", "Tool",
    "VLLMModel", "VisionModel", "function_node", "mcp_tools",
]  # fmt: skip

_LAZY = {
    "ActorModel": "acting.actor_model",
    "BASE_AGENT": "tiny_agent.local_model",
    "CausalModel": "transformers.causal_model",
    "ChatOptions": "openai.options",
    "GENERAL_AGENT": "tiny_agent.local_model",
    "LocalModel": "tiny_agent.local_model",
    "OpenAIModel": "openai.model",
    "PublishedModel": "acting.published_model",
    "RateLimits": "openai.options",
    "VisionModel": "transformers.vision_model",
    "VLLMModel": "vllm_model",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.models.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
