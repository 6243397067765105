"""GPTSwarm (``gptswarm==0.1.0``, arXiv 2402.16823) in our graphs.

    operation = GPTSwarmNode(DirectAnswer("gaia", "gpt-4"))        # one operation as a node
    agent = GPTSwarmGraph(TOT("gaia", "gpt-4"))                    # an agent as one node
    team = import_graph(TOT("gaia", "gpt-4"), model=model)         # one node per operation
    found = import_swarm(Swarm(["IO", "COT"], "gaia", edge_optimize=True))

    edges = EdgeDistribution.from_probabilities(found.potential)
    team = found.with_edges(edges.sample(1, generator)[0].edges)

The prompts, the inputs of an operation and their order are those of GPTSwarm, and so are the
answers. These things differ:

- Every call works on a private copy with its own memory, so one graph serves any number of runs at
  the same time. The process-wide ``GlobalMemory`` is neither read nor written.
- An error that GPTSwarm would print and ignore is an error of that node.
- Operations that block run on another thread, not in the event loop.
- Operations of one graph run as soon as their inputs are ready, not one after another.

These limits come from the package's own code:

- ``Cost`` is a total of the process. It is right unless an operation calls a model with the
  blocking ``gen()``. GPTSwarm's OpenAI backend fails on models without a known price. With
  ``model=``, one of our models answers instead, and its usage is counted per call.
- Objects that an operation holds (its language model, its prompts) are shared by all its calls. An
  operation that fetches ``GlobalMemory`` by itself shares it too.
- A decision by majority breaks ties with the process's ``random``, not with the run's seed.
"""

from swarm_ui.nodes.gptswarm.importing import ImportedSwarm, import_graph, import_swarm
from swarm_ui.nodes.gptswarm.nodes import GPTSwarmGraph, GPTSwarmNode

__all__ = ["GPTSwarmGraph", "GPTSwarmNode", "ImportedSwarm", "import_graph", "import_swarm"]
