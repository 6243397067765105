"""Pictures for notebooks and pages, as SVG text: no Graphviz, no matplotlib, no torch.

Graphs, traces and edge distributions show them by themselves in a notebook. Equal input gives
equal bytes.
"""

from swarm_ui.draw.edges import edges_svg
from swarm_ui.draw.graph import graph_svg
from swarm_ui.draw.marks import scrolling
from swarm_ui.draw.timeline import timeline_svg
from swarm_ui.draw.trace import trace_svg

__all__ = ["edges_svg", "graph_svg", "scrolling", "timeline_svg", "trace_svg"]
