"""Names that users of other libraries expect a graph to have, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_LEARNABLE = (
    "the learnable parts are an EdgeDistribution (swarm_ui.optim.edges.distribution) and the "
    "adapters of the model; TeamTrainer (swarm_ui.optim.trainer) trains both"
)
_FILES = (
    "a graph holds no weights. to_json() and from_json(text, nodes) keep the structure, "
    "save_edges(edges, path) the learned edges, model.save_adapters(folder) the weights"
)
_RUN = "use graph.run_sync(observation), or await graph.run(observation)"
_NEW = "a graph is immutable, and each operation returns a new graph"
_PICTURE = (
    "in a notebook a graph displays itself as a picture; to_mermaid(), to_graphviz() and "
    "swarm_ui.viz.graph_svg(graph) give it in other forms"
)

EXPECTED_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "parameters": _LEARNABLE,
        "named_parameters": _LEARNABLE,
        "train": _LEARNABLE,
        "fit": _LEARNABLE,
        "backward": _LEARNABLE,
        "state_dict": _FILES,
        "load_state_dict": _FILES,
        "save": _FILES,
        "load": _FILES,
        "forward": _RUN,
        "invoke": _RUN,
        "ainvoke": _RUN,
        "arun": _RUN,
        "compile": f"a graph needs no compilation; {_RUN}",
        "add_node": f"{_NEW}: graph.with_node(node)",
        "add_edge": f"{_NEW}: graph.with_edge(sender, listener)",
        "add_edges": f"{_NEW}: graph.with_edges(edges)",
        "remove_node": f"{_NEW}: graph.without_node(name)",
        "remove_edge": f"{_NEW}: graph.without_edge(sender, listener)",
        "copy": "a graph is immutable, so it need not be copied",
        "eval": "a graph has no modes; temperature, adapter and view belong to its agents",
        "to": "the model has a device, as in CausalModel.named('smollm2', device='cuda')",
        "cuda": "the model has a device, as in CausalModel.named('smollm2', device='cuda')",
        "plot": _PICTURE,
        "draw": _PICTURE,
        "show": _PICTURE,
    }
)
"""For each name, what to use instead."""
