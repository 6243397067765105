"""Pictures for notebooks and pages, as SVG text: no Graphviz, no matplotlib, no torch.

Graphs, traces and edge distributions show them by themselves in a notebook. Equal input gives
equal bytes.
"""

from swarm_ui.viz.edge_picture import edges_svg
from swarm_ui.viz.graph_picture import graph_svg
from swarm_ui.viz.svg import scrolling
from swarm_ui.viz.timeline import timeline_svg
from swarm_ui.viz.trace_picture import trace_svg

__all__ = ["edges_svg", "graph_svg", "scrolling", "timeline_svg", "trace_svg"]
