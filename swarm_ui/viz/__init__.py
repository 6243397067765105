"""Pictures for notebooks and pages, as SVG text: no Graphviz, no matplotlib, no torch.

In a notebook, graphs, traces and edge distributions display themselves as such pictures. Equal
input gives equal bytes.
"""

from swarm_ui.viz.edges import edges_svg
from swarm_ui.viz.graphs import graph_svg
from swarm_ui.viz.svg import scrolling
from swarm_ui.viz.traces import trace_svg

__all__ = ["edges_svg", "graph_svg", "scrolling", "trace_svg"]
