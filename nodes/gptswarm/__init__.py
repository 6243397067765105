"""GPTSwarm (``gptswarm==0.1.0``, arXiv 2402.16823) in our graphs.

    operation = GPTSwarmNode(DirectAnswer("gaia", "gpt-4"))        # one operation as a node
    agent = GPTSwarmNode(TOT("gaia", "gpt-4"))                     # a whole agent as one node
    team = import_graph(TOT("gaia", "gpt-4"), model=model)         # one node per operation
    found = import_swarm(Swarm(["IO", "COT"], "gaia", edge_optimize=True))

    edges = EdgeDistribution.from_probabilities(found.potential)
    team = found.with_edges(edges.sample(1, generator)[0].edges)

Prompts, inputs and answers are those of GPTSwarm. These things differ:

- Every call works on a private copy with its own memory, so one graph serves any number of runs at
  the same time. The process-wide ``GlobalMemory`` is neither read nor written. Objects that an
  operation holds, such as its prompts, are shared.
- An error that GPTSwarm would print and ignore is an error of that node.
- Operations that block run on another thread. Others run as soon as their inputs are ready.
- With ``model=``, one of our models answers, and its usage is counted per call. GPTSwarm's ``Cost``
  is a total of the process.
- GPTSwarm breaks the ties of a majority with the process's ``random``, not with the run's seed.
"""

from swarm_ui.nodes.gptswarm.importing import ImportedSwarm, import_graph, import_swarm
from swarm_ui.nodes.gptswarm.nodes import GPTSwarmNode

__all__ = ["GPTSwarmNode", "ImportedSwarm", "import_graph", "import_swarm"]
