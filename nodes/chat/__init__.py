"""Language models as general nodes: :class:`ChatNode`, with structured output and tools."""

from swarm_ui.nodes.chat.node import ChatNode
from swarm_ui.nodes.chat.tools import Tool

__all__ = ["ChatNode", "Tool"]
