"""Nodes of a graph: agents, language models, votes and functions; and the models they ask.

Models that need torch or a client of an endpoint are imported when they are first used.
"""

if __name__ == "nodes":  # the folder was imported by its bare name, from a checkout's root
    raise ImportError("import swarm_ui.nodes, not nodes")

from importlib import import_module
from typing import TYPE_CHECKING, Any

from swarm_ui.nodes.agent import AgentNode
from swarm_ui.nodes.ask import Ask
from swarm_ui.nodes.chat import ChatNode, Tool
from swarm_ui.nodes.fallback import Fallback
from swarm_ui.nodes.function import FunctionNode, function_node
from swarm_ui.nodes.map import Map
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.nodes.vote import MajorityVote, ProbabilityVote

if TYPE_CHECKING:
    from swarm_ui.nodes.models.acting.actor_model import ActorModel
    from swarm_ui.nodes.models.acting.published import PublishedModel, hold_model
    from swarm_ui.nodes.models.openai.model import OpenAIModel, ServedModel
    from swarm_ui.nodes.models.openai.options import ChatOptions, RateLimits
    from swarm_ui.nodes.models.pretrained.catalogue import (
        adapter_folder,
        model_folder,
        pulled_folder,
    )
    from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, GENERAL_AGENT, LocalModel
    from swarm_ui.nodes.models.transformers.causal_model import CausalModel
    from swarm_ui.nodes.models.transformers.vision_model import VisionModel
    from swarm_ui.nodes.models.vllm_model import VLLMModel

__all__ = [
    "BASE_AGENT", "GENERAL_AGENT", "ActorModel", "AgentNode", "Ask", "CausalModel", "ChatNode",
    "ChatOptions", "Fallback", "FunctionNode", "LocalModel", "MajorityVote", "Map", "OpenAIModel",
    "ProbabilityVote", "PublishedModel", "RateLimits", "ScriptedModel", "ServedModel", "Tool",
    "VLLMModel", "VisionModel", "adapter_folder", "function_node", "hold_model",
    "model_folder", "pulled_folder",
]  # fmt: skip

_LAZY = {
    "acting.actor_model": ("ActorModel",),
    "acting.published": ("PublishedModel", "hold_model"),
    "openai.model": ("OpenAIModel", "ServedModel"),
    "openai.options": ("ChatOptions", "RateLimits"),
    "pretrained.catalogue": ("adapter_folder", "model_folder", "pulled_folder"),
    "tiny_agent.local_model": ("BASE_AGENT", "GENERAL_AGENT", "LocalModel"),
    "transformers.causal_model": ("CausalModel",),
    "transformers.vision_model": ("VisionModel",),
    "vllm_model": ("VLLMModel",),
}


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _LAZY.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(f"{__name__}.models.{module}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
